/*
 * More kernels whose time was measured: no constant of the model was fitted to
 * them. They are what the workbook's labs are about (rows, matrix-vector
 * products, fusing, split sums) and what a model of time may get wrong: few
 * blocks, few warps, chains of loads, slow arithmetic, atomics.
 */
#include "common/simt/calibration/kernels.h"

#include <cuda_fp16.h>
#include <mma.h>

enum {
    BLOCK = 256,
    ELEMENTS = 1 << 24,
    ROWS = 4096,
    COLUMNS = 1024,
    SMALL = 1 << 20, /* fits into L2 with room to spare */
    BINS = 256,
    DEEP = 1 << 16
};

__device__ float warp_sum(float value) {
    for (int s = 16; s > 0; s /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, s);
    }
    return value;
}

__device__ float warp_max(float value) {
    for (int s = 16; s > 0; s /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, s));
    }
    return value;
}

/* Row softmax, one thread a row: neighbouring threads read far apart. */
__global__ void softmax_thread(float *out, const float *in, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    const float *x = in + (size_t)row * columns;
    float *y = out + (size_t)row * columns;
    float most = -1e30f;
    float sum = 0.0f;
    for (int i = 0; i < columns; i++) {
        most = fmaxf(most, x[i]);
    }
    for (int i = 0; i < columns; i++) {
        sum += __expf(x[i] - most);
    }
    for (int i = 0; i < columns; i++) {
        y[i] = __expf(x[i] - most) / sum;
    }
}

/* The same, one warp a row. */
__global__ void softmax_warp(float *out, const float *in, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    const float *x = in + (size_t)row * columns;
    float *y = out + (size_t)row * columns;
    float most = -1e30f;
    float sum = 0.0f;
    for (int i = lane; i < columns; i += 32) {
        most = fmaxf(most, x[i]);
    }
    most = warp_max(most);
    for (int i = lane; i < columns; i += 32) {
        sum += __expf(x[i] - most);
    }
    sum = warp_sum(sum);
    for (int i = lane; i < columns; i += 32) {
        y[i] = __expf(x[i] - most) / sum;
    }
}

/* Row layer norm, one block a row: mean and variance in two passes. */
__global__ void layernorm_block(float *out, const float *in, int columns) {
    __shared__ float parts[BLOCK / 32];
    const float *x = in + (size_t)blockIdx.x * columns;
    float *y = out + (size_t)blockIdx.x * columns;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        sum += x[i];
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    float mean = 0.0f;
    for (int w = 0; w < BLOCK / 32; w++) {
        mean += parts[w];
    }
    mean /= (float)columns;
    __syncthreads();
    float squares = 0.0f;
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    float variance = 0.0f;
    for (int w = 0; w < BLOCK / 32; w++) {
        variance += parts[w];
    }
    float scale = rsqrtf(variance / (float)columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        y[i] = (x[i] - mean) * scale;
    }
}

/* y = A x, one thread a row. */
__global__ void gemv_thread(float *y, const float *A, const float *x, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < columns; i++) {
        sum += A[(size_t)row * columns + i] * x[i];
    }
    y[row] = sum;
}

/* y = A x, one warp a row. */
__global__ void gemv_warp(float *y, const float *A, const float *x, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (int i = lane; i < columns; i += 32) {
        sum += A[(size_t)row * columns + i] * x[i];
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        y[row] = sum;
    }
}

/* y = A x, one block a row, 16 bytes a thread and load. */
__global__ void gemv_block(float *y, const float4 *A, const float4 *x, int quads) {
    __shared__ float parts[BLOCK / 32];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < quads; i += BLOCK) {
        float4 a = A[(size_t)blockIdx.x * quads + i];
        float4 b = x[i];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < BLOCK / 32; w++) {
            sum += parts[w];
        }
        y[blockIdx.x] = sum;
    }
}

/* One of three passes that are better one: out = a * x + y. */
__global__ void axpy(float *out, const float *x, const float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a * x[i] + y[i];
    }
}

/* All three in one, with the activation between them. */
__global__ void fused_gelu(float *out, const float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i] + y[i];
        out[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    }
}

/* A copy by so few blocks that most of the GPU has nothing to do. */
__global__ void copy_grid_stride(float *out, const float *in, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = in[i];
    }
}

/* A copy by blocks that take all the shared memory of a multiprocessor: two warps at a time. */
__global__ void copy_low_occupancy(float *out, const float *in, int n) {
    extern __shared__ float unused[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        unused[0] = 0.0f;
    }
    if (i < n) {
        out[i] = in[i];
    }
}

/* Every thread adds to one of 256 counters in global memory. */
__global__ void histogram_global(unsigned *bins, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&bins[(unsigned)(in[i] * 64.0f + 128.0f) % BINS], 1u);
    }
}

/* Each block counts in shared memory first. */
__global__ void histogram_shared(unsigned *bins, const float *in, int n) {
    __shared__ unsigned own[BINS];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&own[(unsigned)(in[i] * 64.0f + 128.0f) % BINS], 1u);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

/* C (64 x 64) = A^T B, both DEEP x 64; a block sums a slice and adds it with atomics. */
__global__ void gemm_split_k(float *C, const float *A, const float *B, int slice) {
    __shared__ float a[16][64];
    __shared__ float b[16][64];
    float sums[4][4] = {{0.0f}};
    int row = threadIdx.x / 16 * 4;
    int column = threadIdx.x % 16 * 4;
    for (int k = blockIdx.x * slice; k < (int)(blockIdx.x + 1) * slice; k += 16) {
        for (int i = threadIdx.x; i < 16 * 64; i += BLOCK) {
            a[i / 64][i % 64] = A[(size_t)(k + i / 64) * 64 + i % 64];
            b[i / 64][i % 64] = B[(size_t)(k + i / 64) * 64 + i % 64];
        }
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            for (int r = 0; r < 4; r++) {
                for (int c = 0; c < 4; c++) {
                    sums[r][c] += a[i][row + r] * b[i][column + c];
                }
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        for (int c = 0; c < 4; c++) {
            atomicAdd(&C[(row + r) * 64 + column + c], sums[r][c]);
        }
    }
}

/* One warp follows a chain: every load waits for the one before. */
__global__ void pointer_chase(float *out, const float *in, int steps) {
    unsigned at = threadIdx.x;
    for (int i = 0; i < steps; i++) {
        at = (at * 1664525u + 1013904223u + (unsigned)(in[at] > 10.0f)) % (SMALL * 8u);
    }
    out[threadIdx.x] = (float)at;
}

/* Integer division by a number that the compiler does not know. */
__global__ void divide(float *out, const float *in, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int k = 1; k <= 16; k++) {
        sum += (i + k) / (by + k) + (i + k) % (by + k);
    }
    out[i] = in[i] + (float)sum;
}

/* fp32 multiply-adds and nothing else, four chains a thread. */
__global__ void fma_chains(float *out, const float *in, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = in[i], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int k = 0; k < steps; k++) {
        a = a * 0.999f + 0.5f;
        b = b * 0.999f + 0.5f;
        c = c * 0.999f + 0.5f;
        d = d * 0.999f + 0.5f;
    }
    out[i] = a + b + c + d;
}

/* The same in double precision. */
__global__ void fma_double(float *out, const float *in, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double a = in[i], b = a + 1.0, c = a + 2.0, d = a + 3.0;
    for (int k = 0; k < steps; k++) {
        a = a * 0.999 + 0.5;
        b = b * 0.999 + 0.5;
        c = c * 0.999 + 0.5;
        d = d * 0.999 + 0.5;
    }
    out[i] = (float)(a + b + c + d);
}

/* Exponentials: the special function unit. */
__global__ void exponentials(float *out, const float *in, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = in[i], b = a + 0.1f, c = a + 0.2f, d = a + 0.3f;
    for (int k = 0; k < steps; k++) {
        a = __expf(-a);
        b = __expf(-b);
        c = __expf(-c);
        d = __expf(-d);
    }
    out[i] = a + b + c + d;
}

/* Reads 4 MiB over and over: L2. */
__global__ void read_l2(float *out, const float4 *in, int quads, int times) {
    float sum = 0.0f;
    for (int t = 0; t < times; t++) {
        int i = ((blockIdx.x + t * 7) * BLOCK + threadIdx.x) % quads;
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    out[blockIdx.x * BLOCK + threadIdx.x] = sum;
}

/* C = A B in half precision on the tensor cores, one warp a tile of 16 x 16, N x N. */
__global__ void gemm_tensor(float *C, const half *A, const half *B, int N) {
    using namespace nvcuda::wmma;
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int row = warp / (N / 16) * 16;
    int column = warp % (N / 16) * 16;
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, row_major> b;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < N; k += 16) {
        load_matrix_sync(a, A + (size_t)row * N + k, N);
        load_matrix_sync(b, B + (size_t)k * N + column, N);
        mma_sync(sum, a, b, sum);
    }
    store_matrix_sync(C + (size_t)row * N + column, sum, N, mem_row_major);
}

/* C = A B, 64 x 64 tiles, 4 x 4 results a thread; blocks enough for all multiprocessors. */
__global__ void sgemm_4x4(float *C, const float *A, const float *B, int N) {
    __shared__ float a[16][64 + 1];
    __shared__ float b[16][64];
    float sums[4][4] = {{0.0f}};
    int row = threadIdx.x / 16 * 4;
    int column = threadIdx.x % 16 * 4;
    A += (size_t)blockIdx.y * 64 * N;
    B += blockIdx.x * 64;
    for (int k = 0; k < N; k += 16) {
        for (int i = threadIdx.x; i < 16 * 64; i += BLOCK) {
            a[i % 16][i / 16] = A[(size_t)(i / 16) * N + k + i % 16];
            b[i / 64][i % 64] = B[(size_t)(k + i / 64) * N + i % 64];
        }
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            for (int r = 0; r < 4; r++) {
                for (int c = 0; c < 4; c++) {
                    sums[r][c] += a[i][row + r] * b[i][column + c];
                }
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        for (int c = 0; c < 4; c++) {
            C[(size_t)(blockIdx.y * 64 + row + r) * N + blockIdx.x * 64 + column + c] = sums[r][c];
        }
    }
}

/* Does nothing: what remains is the launch. */
__global__ void empty() {
}

void more_kernels_empty(void *stream) {
    empty<<<1, 32, 0, (cudaStream_t)stream>>>();
}

static void run_empty(float *out, const float *x, const float *y) {
    (void)out, (void)x, (void)y;
    more_kernels_empty(NULL);
}

static void run_copy_low_occupancy(float *out, const float *x, const float *y) {
    enum { SHARED = 200 * 1024 };
    (void)y;
    cudaFuncSetAttribute(copy_low_occupancy, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    copy_low_occupancy<<<ELEMENTS / 4 / 64, 64, SHARED>>>(out, x, ELEMENTS / 4);
}

/* A row of the table: a kernel's name, and how it is launched. */
#define ROW(name, kernel, grid, block, ...)                    \
    {                                                          \
        name, [](float *out, const float *x, const float *y) { \
            (void)y;                                           \
            kernel<<<grid, block>>>(__VA_ARGS__);              \
        }                                                      \
    }

const struct calibration_kernel calibration_more[CALIBRATION_MORE] = {
    {"empty", run_empty},
    ROW("softmax_thread", softmax_thread, ROWS / 64, 64, out, x, ROWS, COLUMNS),
    ROW("softmax_warp", softmax_warp, ROWS * 32 / BLOCK, BLOCK, out, x, ROWS, COLUMNS),
    ROW("layernorm_block", layernorm_block, 2 * ROWS, BLOCK, out, x, 768),
    ROW("gemv_thread", gemv_thread, ROWS / BLOCK, BLOCK, out, x, y, ROWS, COLUMNS),
    ROW("gemv_warp", gemv_warp, ROWS * 32 / BLOCK, BLOCK, out, x, y, ROWS, 4 * COLUMNS),
    ROW("gemv_block", gemv_block, ROWS, BLOCK, out, (const float4 *)x, (const float4 *)y, COLUMNS),
    ROW("axpy", axpy, ELEMENTS / BLOCK, BLOCK, out, x, y, 0.5f, ELEMENTS),
    ROW("fused_gelu", fused_gelu, ELEMENTS / BLOCK, BLOCK, out, x, y, ELEMENTS),
    ROW("copy_8_blocks", copy_grid_stride, 8, BLOCK, out, x, SMALL),
    ROW("copy_small", copy_grid_stride, SMALL / BLOCK, BLOCK, out, x, SMALL),
    {"copy_low_occupancy", run_copy_low_occupancy},
    ROW("histogram_global", histogram_global, ELEMENTS / 4 / BLOCK, BLOCK, (unsigned *)out, x,
        ELEMENTS / 4),
    ROW("histogram_shared", histogram_shared, 528, BLOCK, (unsigned *)out, x, ELEMENTS / 4),
    ROW("gemm_split_1", gemm_split_k, 1, BLOCK, out, x, y, DEEP / 16),
    ROW("gemm_split_128", gemm_split_k, 128, BLOCK, out, x, y, DEEP / 128),
    ROW("pointer_chase", pointer_chase, 1, 32, out, x, 512),
    ROW("divide", divide, ELEMENTS / 4 / BLOCK, BLOCK, out, x, ELEMENTS / 4, 77),
    ROW("fma_chains", fma_chains, 132 * 8, BLOCK, out, x, 512),
    ROW("fma_double", fma_double, 132 * 8, BLOCK, out, x, 256),
    ROW("exponentials", exponentials, 132 * 8, BLOCK, out, x, 128),
    ROW("read_l2", read_l2, 132 * 8, BLOCK, out, (const float4 *)x, SMALL / 4, 64),
    ROW("gemm_tensor", gemm_tensor, 64 * 64 * 32 / BLOCK, BLOCK, out, (const half *)x,
        (const half *)y, 1024),
    ROW("sgemm_4x4", sgemm_4x4, dim3(1024 / 64, 1024 / 64), BLOCK, out, x, y, 1024),
};
