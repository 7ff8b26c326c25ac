/* The hand-written kernels of pytorch_fusions.py, a block a row: what an attempt to speed a Pythia up
   launched from Python, and what its step between two layers really is. */
#include <cuda_fp16.h>

enum { THREADS = 512, WARPS = THREADS / 32 };

static __device__ float block_sum(float x) {
    __shared__ float of_warp[WARPS];
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(~0u, x, step);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = threadIdx.x % 32 < WARPS ? of_warp[threadIdx.x % 32] : 0.0f;
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(~0u, x, step);
    }
    return x;
}

/* out = x + a + m, the fp32 sum rounded once. */
static __global__ void add_kernel(__half *out, const __half *x, const __half *a, const __half *m,
                                  int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) {
        out[i] = __float2half_rn(__half2float(x[i]) + __half2float(a[i]) + __half2float(m[i]));
    }
}

static __device__ float2 mean_and_rstd(const float *sums, int C, float eps) {
    float sum = 0.0f, squares = 0.0f;
    for (int c = threadIdx.x; c < C; c += THREADS) {
        sum += sums[c];
    }
    float mean = block_sum(sum) / (float)C;
    for (int c = threadIdx.x; c < C; c += THREADS) {
        squares += (sums[c] - mean) * (sums[c] - mean);
    }
    return make_float2(mean, rsqrtf(block_sum(squares) / (float)C + eps));
}

/* out = LayerNorm(x) + residual. */
static __global__ void norm_add_kernel(__half *out, const __half *x, const __half *residual,
                                       const __half *weight, const __half *bias, int C, float eps) {
    extern __shared__ float row[];
    size_t at = (size_t)blockIdx.x * C;
    for (int c = threadIdx.x; c < C; c += THREADS) {
        row[c] = __half2float(x[at + c]);
    }
    float2 of = mean_and_rstd(row, C, eps);
    for (int c = threadIdx.x; c < C; c += THREADS) {
        float y = (row[c] - of.x) * of.y * __half2float(weight[c]) + __half2float(bias[c]);
        out[at + c] = __float2half_rn(y + __half2float(residual[at + c]));
    }
}

/* x += a + m, then two LayerNorms of the sum. The stream is fp16, rounded after each addition
   (roundings 2) or once (1); or fp32 (0). */
template <typename T>
static __global__ void add_norms_kernel(T *x, const __half *a, const __half *m, __half *out_1,
                                        const __half *w_1, const __half *b_1, __half *out_2,
                                        const __half *w_2, const __half *b_2, int C, float eps,
                                        int roundings) {
    extern __shared__ float row[];
    size_t at = (size_t)blockIdx.x * C;
    for (int c = threadIdx.x; c < C; c += THREADS) {
        float sum = (float)x[at + c] + __half2float(a[at + c]);
        sum = roundings == 2 ? __half2float(__float2half_rn(sum)) : sum;
        x[at + c] = (T)(sum + __half2float(m[at + c]));
        row[c] = (float)x[at + c];
    }
    float2 of = mean_and_rstd(row, C, eps);
    for (int c = threadIdx.x; c < C; c += THREADS) {
        float y = (row[c] - of.x) * of.y;
        out_1[at + c] = __float2half_rn(y * __half2float(w_1[c]) + __half2float(b_1[c]));
        out_2[at + c] = __float2half_rn(y * __half2float(w_2[c]) + __half2float(b_2[c]));
    }
}

extern "C" {

void launch_add(__half *out, const __half *x, const __half *a, const __half *m, int n,
                cudaStream_t stream) {
    add_kernel<<<(n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(out, x, a, m, n);
}

void launch_norm_add(__half *out, const __half *x, const __half *residual, const __half *weight,
                     const __half *bias, int rows, int C, float eps, cudaStream_t stream) {
    norm_add_kernel<<<rows, THREADS, C * sizeof(float), stream>>>(out, x, residual, weight, bias, C,
                                                                  eps);
}

void launch_add_norms(void *x, const __half *a, const __half *m, __half *out_1, const __half *w_1,
                      const __half *b_1, __half *out_2, const __half *w_2, const __half *b_2,
                      int rows, int C, float eps, int roundings, cudaStream_t stream) {
    if (roundings == 0) {
        add_norms_kernel<float><<<rows, THREADS, C * sizeof(float), stream>>>(
            (float *)x, a, m, out_1, w_1, b_1, out_2, w_2, b_2, C, eps, roundings);
    } else {
        add_norms_kernel<__half><<<rows, THREADS, C * sizeof(float), stream>>>(
            (__half *)x, a, m, out_1, w_1, b_1, out_2, w_2, b_2, C, eps, roundings);
    }
}

} // extern "C"
