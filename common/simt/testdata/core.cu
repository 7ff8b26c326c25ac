// Kernels whose results core_test.c computes again on the CPU.
#include <cstdio>

extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}

// Sum of each block: shared memory, barriers in a loop, then shuffles.
extern "C" __global__ void block_sums(int *sums, const int *values, int n) {
    __shared__ int tile[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    tile[t] = i < n ? values[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s >= 32; s /= 2) {
        if (t < s) {
            tile[t] += tile[t + s];
        }
        __syncthreads();
    }
    if (t < 32) {
        int sum = tile[t];
        for (int s = 16; s > 0; s /= 2) {
            sum += __shfl_down_sync(0xffffffffu, sum, s);
        }
        if (t == 0) {
            sums[blockIdx.x] = sum;
        }
    }
}

// C = A * B, N x N, tiles in shared memory.
extern "C" __global__ void sgemm_tile(float *C, const float *A, const float *B, int N) {
    __shared__ float a[16][16];
    __shared__ float b[16][16];
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < N; k += 16) {
        a[threadIdx.y][threadIdx.x] = A[row * N + k + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * N + column];
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        }
        __syncthreads();
    }
    C[row * N + column] = sum;
}

// Dynamic shared memory: reverses each block.
extern "C" __global__ void reverse(int *values) {
    extern __shared__ int line[];
    int base = blockIdx.x * blockDim.x;
    line[threadIdx.x] = values[base + threadIdx.x];
    __syncthreads();
    values[base + threadIdx.x] = line[blockDim.x - 1 - threadIdx.x];
}

// Nested loops, break, continue and early return, different in every lane.
extern "C" __global__ void collatz(int *steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    int total = 0;
    for (int start = i + 1; start < i + 8; start++) {
        long long x = start;
        int count = 0;
        while (x != 1) {
            x = x % 2 == 0 ? x / 2 : 3 * x + 1;
            if (++count > 100) {
                break;
            }
        }
        if (count > 100) {
            continue;
        }
        total += count;
    }
    steps[i] = total;
}

// A lock taken by one lane of a warp at a time.
extern "C" __global__ void spin_lock(int *lock, int *count) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            volatile int *value = count;
            *value = *value + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) {
        return n + 1;
    }
    if (n == 0) {
        return ackermann(m - 1, 1);
    }
    return ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(int *out) {
    int t = threadIdx.x;
    out[t] = ackermann(t % 3, t % 4);
}

extern "C" __global__ void switches(int *out) {
    int t = threadIdx.x;
    int value = 0;
    switch (t % 11) {
    case 0:
        value = 5;
        break;
    case 1:
        value = t * 3;
        break;
    case 2:
        value = 77 - t; // falls through
    case 3:
        value += 1000;
        break;
    case 4:
        value = t << 3;
        break;
    case 5:
        value = -t;
        break;
    case 6:
        value = t * t;
        break;
    case 7:
        value = 42;
        break;
    case 8:
        value = t ^ 0x55;
        break;
    default:
        value = 9;
        break;
    }
    out[t] = value;
}

__device__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ float scale[2] = {0.5f, 2.0f};

// A local array with a dynamic index, a module variable and constants.
extern "C" __global__ void locals(float *out) {
    int t = threadIdx.x;
    int mine[8];
    for (int i = 0; i < 8; i++) {
        mine[(i + t) % 8] = table[i] * (t + 1);
    }
    out[t] = mine[(t * 5) % 8] * scale[t & 1];
}

extern "C" __global__ void histogram(unsigned *bins, const unsigned char *data, int n) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        local[i] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[data[i]], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        atomicAdd(&bins[i], local[i]);
    }
}

extern "C" __global__ void votes(unsigned *out) {
    int t = threadIdx.x;
    unsigned all = __ballot_sync(0xffffffffu, t % 3 == 0);
    unsigned half = 0;
    if (t < 16) {
        half = __ballot_sync(0x0000ffffu, t & 1);
    } else {
        half = __ballot_sync(0xffff0000u, t & 2);
    }
    out[t] = all ^ half ^ (unsigned)__shfl_xor_sync(0xffffffffu, t, 5);
}

extern "C" __global__ void says(const float *x) {
    if (threadIdx.x == 1) {
        printf("block %d: %s %5.2f %lld %c%%\n", blockIdx.x, "value", x[0], 1ll << 40, 'z');
    }
}

extern "C" __global__ void reads_beyond(float *out, const float *in) {
    out[threadIdx.x] = in[threadIdx.x + 1];
}

extern "C" __global__ void divergent_barrier(int *out) {
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();
        out[threadIdx.x] = 3;
    }
}

extern "C" __global__ void never_ends(volatile int *flag) {
    while (*flag == 0) {
    }
}

// Eight reads by one register, which moves from round to round: of rows, columns, halves of rows, one
// word; for a third of the lanes in the last rounds.
extern "C" __global__ void unrolled(int *out, const int *in) {
    __shared__ int tile[36 * 33];
    int t = threadIdx.x, sum = 0;
    for (int n = t; n < 36 * 33; n += 32) {
        tile[n] = in[n];
    }
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < 8; round++) {
        int at = round % 4 == 0   ? t
                 : round % 4 == 1 ? t * 33
                 : round % 4 == 2 ? t / 16 * 33 + t % 16
                                  : 5;
        if (round < 4 || t % 3 == 0) {
            const int *from = tile + at;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                sum = sum * 3 + from[20 * i];
            }
        }
    }
    out[t] = sum;
}
