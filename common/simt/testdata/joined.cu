// Shared accesses that ptxas joins, and some that it does not: what nvcc 13.0 makes of them for
// sm_90 stands beside them. One warp runs each.
#define KERNEL(name) extern "C" __global__ void name(float *out, int n, int m)
#define FILL b[threadIdx.x] = m; __syncthreads()

// LDS.128: three of four words, or all.
KERNEL(first_three) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 4] + b[n * 4 + 1] + b[n * 4 + 2]; }
KERNEL(last_three) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 4 + 1] + b[n * 4 + 2] + b[n * 4 + 3]; }
KERNEL(with_a_hole) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 4] + b[n * 4 + 1] + b[n * 4 + 3]; }
KERNEL(dynamic) { extern __shared__ float b[]; FILL; out[threadIdx.x] = b[n * 4] + b[n * 4 + 1] + b[n * 4 + 2] + b[n * 4 + 3]; }
KERNEL(rows_of_20) { __shared__ float b[20 * 8]; FILL; out[threadIdx.x] = b[n * 20] + b[n * 20 + 1] + b[n * 20 + 2] + b[n * 20 + 3]; }
// LDS.128 and LDS.
KERNEL(five) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 8] + b[n * 8 + 1] + b[n * 8 + 2] + b[n * 8 + 3] + b[n * 8 + 4]; }
// Two LDS.64: rows of 18 words are aligned to 8 bytes.
KERNEL(rows_of_18) { __shared__ float b[18 * 8]; FILL; out[threadIdx.x] = b[n * 18] + b[n * 18 + 1] + b[n * 18 + 2] + b[n * 18 + 3]; }
// Two LDS: not one aligned piece; or a barrier, a store or `volatile` in the way.
KERNEL(middle) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 4 + 1] + b[n * 4 + 2]; }
KERNEL(apart) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 4] + b[n * 4 + 2]; }
KERNEL(unaligned) { __shared__ float b[64]; FILL; out[threadIdx.x] = b[n * 3] + b[n * 3 + 1]; }
KERNEL(barrier) { __shared__ float b[64]; FILL; float x = b[n * 4]; __syncthreads(); out[threadIdx.x] = x + b[n * 4 + 1]; }
KERNEL(store_between) { __shared__ float b[64]; FILL; float x = b[n * 4]; b[m] = x; out[threadIdx.x] = x + b[n * 4 + 1]; }
KERNEL(is_volatile) { __shared__ float b[64]; FILL; volatile float *p = b; out[threadIdx.x] = p[n * 4] + p[n * 4 + 1]; }
// Four LDS: behind an array of 12 bytes.
KERNEL(behind_another) { __shared__ float a[3]; __shared__ float b[64]; a[m % 3] = m; FILL; out[threadIdx.x] = b[n * 4] + b[n * 4 + 1] + b[n * 4 + 2] + b[n * 4 + 3] + a[m % 3]; }
// LDS.64 in spite of what stands between: a shuffle, a store to global memory.
KERNEL(shuffle) { __shared__ float b[64]; FILL; float x = b[n * 4]; x = __shfl_xor_sync(~0u, x, 1); out[threadIdx.x] = x + b[n * 4 + 1]; }
KERNEL(global_between) { __shared__ float b[64]; FILL; float x = b[n * 4]; out[m] = x; out[threadIdx.x] = x * b[n * 4 + 1]; }
// STS.128; STS.64 and STS.
KERNEL(store_four) { __shared__ float b[128]; int t = threadIdx.x * 4; b[t] = n; b[t + 1] = m; b[t + 2] = n * m; b[t + 3] = n + m; __syncthreads(); out[threadIdx.x] = b[n]; }
KERNEL(store_three) { __shared__ float b[128]; int t = threadIdx.x * 4; b[t] = n; b[t + 1] = m; b[t + 2] = n * m; __syncthreads(); out[threadIdx.x] = b[n]; }
// LDS.U16 four times: only words are joined.
extern "C" __global__ void halves(float *out, int n, int m) { __shared__ short b[64]; FILL; out[threadIdx.x] = b[n * 4] + b[n * 4 + 1] + b[n * 4 + 2] + b[n * 4 + 3]; }
