/*
 * Kernels whose cost is known from hardware counters: what simt counts and
 * models is compared with a GPU on these. Each is one idea of memory access or
 * arithmetic; matrix kernels are the usual steps of an SGEMM ladder.
 */
#include "common/simt/calibration/kernels.h"

#include <stdio.h>

enum { BLOCK = 256 };

__global__ void copy(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i];
    }
}

__global__ void copy_float4(float4 *out, const float4 *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[i];
    }
}

/* Thread i reads element i * STRIDE (mod n): a sector for one word when STRIDE is 8 or more. */
template <int STRIDE> __global__ void copy_strided(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[(int)((long long)i * STRIDE % n + i / (n / STRIDE)) % n];
    }
}

/* Neighbours read far apart, without any pattern. */
__global__ void gather(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned x = (unsigned)i * 2654435761u;
        out[i] = in[(x ^ x >> 15) & (unsigned)(n - 1)];
    }
}

/* N x N: reads along rows, writes along columns. */
__global__ void transpose_naive(float *out, const float *in, int N) {
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 8 + threadIdx.y;
    out[x * N + y] = in[y * N + x];
}

/* Through shared memory: both sides along rows; PAD 0 reads one bank 32 times. */
template <int PAD> __global__ void transpose_tile(float *out, const float *in, int N) {
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * N + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {
        out[(y + j) * N + x] = tile[threadIdx.x][threadIdx.y + j];
    }
}

/* Sum of each block, threads with stride-2^k indices: bank conflicts and idle lanes. */
__global__ void reduce_interleaved(float *out, const float *in, int n) {
    __shared__ float tile[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    tile[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int s = 1; s < BLOCK; s *= 2) {
        int index = 2 * s * t;
        if (index < BLOCK) {
            tile[index] += tile[index + s];
        }
        __syncthreads();
    }
    if (t == 0) {
        out[blockIdx.x] = tile[0];
    }
}

/* The same with shuffles and several elements a thread. */
__global__ void reduce_shuffle(float *out, const float *in, int n) {
    __shared__ float warps[BLOCK / 32];
    float sum = 0.0f;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
        sum += in[i];
    }
    for (int s = 16; s > 0; s /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    }
    if (threadIdx.x % 32 == 0) {
        warps[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < BLOCK / 32; w++) {
            sum += warps[w];
        }
        out[blockIdx.x] = sum;
    }
}

/* Row softmax, one block a row, three passes. */
__global__ void softmax(float *out, const float *in, int columns) {
    __shared__ float shared[BLOCK];
    const float *row = in + (size_t)blockIdx.x * columns;
    float *result = out + (size_t)blockIdx.x * columns;
    float most = -1e30f;
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        most = fmaxf(most, row[i]);
    }
    shared[threadIdx.x] = most;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) {
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + s]);
        }
        __syncthreads();
    }
    most = shared[0];
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        sum += __expf(row[i] - most);
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) {
            shared[threadIdx.x] += shared[threadIdx.x + s];
        }
        __syncthreads();
    }
    float scale = 1.0f / shared[0];
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        result[i] = __expf(row[i] - most) * scale;
    }
}

/* C = A * B, N x N, row-major. Neighbouring threads in one column: nothing coalesces. */
__global__ void sgemm_naive(float *C, const float *A, const float *B, int N) {
    int row = blockIdx.x * 16 + threadIdx.x;
    int column = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < N; k++) {
        sum += A[row * N + k] * B[k * N + column];
    }
    C[row * N + column] = sum;
}

/* Neighbouring threads in one row. */
__global__ void sgemm_coalesced(float *C, const float *A, const float *B, int N) {
    int row = blockIdx.y * 8 + threadIdx.y;
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < N; k++) {
        sum += A[row * N + k] * B[k * N + column];
    }
    C[row * N + column] = sum;
}

__global__ void sgemm_shared(float *C, const float *A, const float *B, int N) {
    __shared__ float a[32][32];
    __shared__ float b[32][32];
    int row = blockIdx.y * 32 + threadIdx.y;
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < N; k += 32) {
        a[threadIdx.y][threadIdx.x] = A[row * N + k + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * N + column];
        __syncthreads();
        for (int i = 0; i < 32; i++) {
            sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        }
        __syncthreads();
    }
    C[row * N + column] = sum;
}

/* A thread makes 8 results of one column: 64 x 64 tiles, 8 deep, 512 threads. */
__global__ void sgemm_1d_tile(float *C, const float *A, const float *B, int N) {
    __shared__ float a[64][8];
    __shared__ float b[8][64];
    int column = threadIdx.x % 64;
    int row = threadIdx.x / 64 * 8;
    float sums[8] = {0.0f};
    A += blockIdx.y * 64 * N;
    B += blockIdx.x * 64;
    for (int k = 0; k < N; k += 8) {
        a[threadIdx.x / 8][threadIdx.x % 8] = A[threadIdx.x / 8 * N + k + threadIdx.x % 8];
        b[threadIdx.x / 64][column] = B[(k + threadIdx.x / 64) * N + column];
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            float value = b[i][column];
            for (int r = 0; r < 8; r++) {
                sums[r] += a[row + r][i] * value;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; r++) {
        C[(blockIdx.y * 64 + row + r) * N + blockIdx.x * 64 + column] = sums[r];
    }
}

/* A thread makes 8 x 8 results: 128 x 128 tiles, 8 deep, 256 threads; VECTOR: 16-byte accesses. */
template <bool VECTOR>
__global__ void __launch_bounds__(256)
    sgemm_2d_tile(float *C, const float *A, const float *B, int N) {
    __shared__ float a[8][128];
    __shared__ float b[8][128];
    int column = threadIdx.x % 16 * 8;
    int row = threadIdx.x / 16 * 8;
    float sums[8][8] = {{0.0f}};
    A += blockIdx.y * 128 * N;
    B += blockIdx.x * 128;
    for (int k = 0; k < N; k += 8) {
        if (VECTOR) {
            int ar = threadIdx.x / 2;
            int ac = threadIdx.x % 2 * 4;
            float4 value = *(const float4 *)&A[ar * N + k + ac];
            a[ac][ar] = value.x;
            a[ac + 1][ar] = value.y;
            a[ac + 2][ar] = value.z;
            a[ac + 3][ar] = value.w;
            int br = threadIdx.x / 32;
            int bc = threadIdx.x % 32 * 4;
            *(float4 *)&b[br][bc] = *(const float4 *)&B[(k + br) * N + bc];
        } else {
            for (int i = threadIdx.x; i < 1024; i += 256) {
                a[i % 8][i / 8] = A[i / 8 * N + k + i % 8];
                b[i / 128][i % 128] = B[(k + i / 128) * N + i % 128];
            }
        }
        __syncthreads();
        for (int i = 0; i < 8; i++) {
            float x[8], y[8];
            for (int r = 0; r < 8; r++) {
                x[r] = a[i][row + r];
                y[r] = b[i][column + r];
            }
            for (int r = 0; r < 8; r++) {
                for (int c = 0; c < 8; c++) {
                    sums[r][c] += x[r] * y[c];
                }
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; r++) {
        for (int c = 0; c < 8; c++) {
            C[(blockIdx.y * 128 + row + r) * N + blockIdx.x * 128 + column + c] = sums[r][c];
        }
    }
}

enum { ELEMENTS = 1 << 24, SIDE = 4096, MATRIX = 1024, COLUMNS = 4096, ROWS = 4096 };

size_t calibration_floats(void) {
    return ELEMENTS;
}

/* A row of the table: a kernel's name, and how it is launched. */
#define ROW(name, kernel, grid, block, ...)                    \
    {                                                          \
        name, [](float *out, const float *x, const float *y) { \
            (void)y;                                           \
            kernel<<<grid, block>>>(__VA_ARGS__);              \
        }                                                      \
    }

const struct calibration_kernel calibration_fit[CALIBRATION_FIT] = {
    ROW("copy", copy, ELEMENTS / BLOCK, BLOCK, out, x, ELEMENTS),
    ROW("copy_float4", copy_float4, ELEMENTS / 4 / BLOCK, BLOCK, (float4 *)out, (const float4 *)x,
        ELEMENTS / 4),
    ROW("copy_stride_2", copy_strided<2>, ELEMENTS / BLOCK, BLOCK, out, x, ELEMENTS),
    ROW("copy_stride_8", copy_strided<8>, ELEMENTS / BLOCK, BLOCK, out, x, ELEMENTS),
    ROW("copy_stride_32", copy_strided<32>, ELEMENTS / BLOCK, BLOCK, out, x, ELEMENTS),
    ROW("gather", gather, ELEMENTS / BLOCK, BLOCK, out, x, ELEMENTS),
    ROW("transpose_naive", transpose_naive, dim3(SIDE / 32, SIDE / 8), dim3(32, 8), out, x, SIDE),
    ROW("transpose_tile", transpose_tile<0>, dim3(SIDE / 32, SIDE / 32), dim3(32, 8), out, x, SIDE),
    ROW("transpose_padded", transpose_tile<1>, dim3(SIDE / 32, SIDE / 32), dim3(32, 8), out, x,
        SIDE),
    ROW("reduce_interleaved", reduce_interleaved, ELEMENTS / BLOCK, BLOCK, out, x, ELEMENTS),
    ROW("reduce_shuffle", reduce_shuffle, 1056, BLOCK, out, x, ELEMENTS),
    ROW("softmax", softmax, ROWS, BLOCK, out, x, COLUMNS),
    ROW("sgemm_naive", sgemm_naive, dim3(MATRIX / 16, MATRIX / 16), dim3(16, 16), out, x, y,
        MATRIX),
    ROW("sgemm_coalesced", sgemm_coalesced, dim3(MATRIX / 32, MATRIX / 8), dim3(32, 8), out, x, y,
        MATRIX),
    ROW("sgemm_shared", sgemm_shared, dim3(MATRIX / 32, MATRIX / 32), dim3(32, 32), out, x, y,
        MATRIX),
    ROW("sgemm_1d_tile", sgemm_1d_tile, dim3(MATRIX / 64, MATRIX / 64), 512, out, x, y, MATRIX),
    ROW("sgemm_2d_tile", sgemm_2d_tile<false>, dim3(MATRIX / 128, MATRIX / 128), 256, out, x, y,
        MATRIX),
    ROW("sgemm_2d_vector", sgemm_2d_tile<true>, dim3(MATRIX / 128, MATRIX / 128), 256, out, x, y,
        MATRIX),
};
