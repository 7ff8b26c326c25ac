/*
 * Kernels that would be cheap if something cost nothing: registers that a thread does not have,
 * constants at different addresses, tensor products of formats other than bf16. They judge the
 * model's prices of these.
 */
#include "common/simt/calibration/kernels.h"

#include <stdint.h>

enum {
    PROCESSORS = 132,
    THREADS = 128,
    ROWS = 2048,
    COLUMNS = PROCESSORS * 16,
    DEPTH = 128,
    CONSTANTS = 4096,
    TURNS = 512,
    TENSOR_BLOCKS = 16 /* a multiprocessor each: its products are what is timed */
};

/* C (ROWS, COLUMNS) = A (ROWS, DEPTH) * B (COLUMNS, DEPTH)^T, SIDE x SIDE results a thread, a
   warp's threads in 4 rows of 8. */
template <int SIDE> __device__ void multiply(float *C, const float *A, const float *B) {
    const int TILES = COLUMNS / SIDE;
    int lane = threadIdx.x % 32, warp = (int)(blockIdx.x * THREADS + threadIdx.x) / 32;
    int row = (warp / (TILES / 8) * 4 + lane / 8) * SIDE;
    int column = (warp % (TILES / 8) * 8 + lane % 8) * SIDE;
    float sums[SIDE][SIDE] = {};
    for (int k = 0; k < DEPTH; k += 4) {
        float4 a[SIDE];
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            a[i] = *(const float4 *)(A + (row + i) * DEPTH + k);
        }
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const float4 b = *(const float4 *)(B + (column + j) * DEPTH + k);
#pragma unroll
            for (int i = 0; i < SIDE; i++) {
                sums[i][j] += a[i].x * b.x + a[i].y * b.y + a[i].z * b.z + a[i].w * b.w;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            C[(row + i) * COLUMNS + column + j] = sums[i][j];
        }
    }
}

/* All values of a thread have a register. */
__global__ void __launch_bounds__(THREADS, 2)
    product_8x8(float *C, const float *A, const float *B) {
    multiply<8>(C, A, B);
}

/* A thread has 64 registers and needs some 110. */
__global__ void __launch_bounds__(THREADS, 8)
    product_8x8_of_64(float *C, const float *A, const float *B) {
    multiply<8>(C, A, B);
}

/* Blocks that a multiprocessor of every GPU of the architecture has threads for. */
#if __CUDA_ARCH__ >= 800
enum { MANY_BLOCKS = 12 };
#else
enum { MANY_BLOCKS = 8 };
#endif

/* A thread has 40 registers. */
__global__ void __launch_bounds__(THREADS, MANY_BLOCKS)
    product_8x8_of_40(float *C, const float *A, const float *B) {
    multiply<8>(C, A, B);
}

/* No thread has registers for 256 sums. */
__global__ void __launch_bounds__(THREADS, 1)
    product_16x16(float *C, const float *A, const float *B) {
    multiply<16>(C, A, B);
}

__constant__ float constants[CONSTANTS];

/* The lanes of a warp read ADDRESSES different constants at a time. */
template <int ADDRESSES> __global__ void read_constants(float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < TURNS; t++) {
        sum += constants[(i % ADDRESSES * 8 + t) % CONSTANTS];
    }
    out[i] = sum;
}

/* d += a * b on the tensor cores; all registers of a matrix are alike. Code for GPUs without these
   instructions does nothing. */
#if __CUDA_ARCH__ >= 800
#define MMA(instruction, letter)                                                          \
    asm volatile("mma.sync.aligned." instruction                                          \
                 " {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"       \
                 : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3]) \
                 : "r"(a), "r"(b))
#define MMA_F64(instruction)                                                        \
    asm volatile("mma.sync.aligned." instruction " {%0, %1}, {%2}, {%3}, {%0, %1};" \
                 : "+d"(d[0]), "+d"(d[1])                                           \
                 : "d"((double)a), "d"((double)b))
#else
#define MMA(instruction, letter)
#define MMA_F64(instruction)
#endif

/* A format: the type of its sums, and d += a * b. */
#define FORMAT(name, type, ...)                                         \
    struct name {                                                       \
        typedef type sum;                                               \
        static __device__ void add(type d[4], uint32_t a, uint32_t b) { \
            __VA_ARGS__;                                                \
        }                                                               \
    }

FORMAT(bf16, float, MMA("m16n8k16.row.col.f32.bf16.bf16.f32", "f"));
FORMAT(tf32, float, MMA("m16n8k8.row.col.f32.tf32.tf32.f32", "f"));
FORMAT(f64, double, MMA_F64("m8n8k4.row.col.f64.f64.f64.f64"));
FORMAT(s8, int, MMA("m16n8k32.row.col.s32.s8.s8.s32", "r"));
FORMAT(s4, int, MMA("m16n8k64.row.col.s32.s4.s4.s32", "r"));

/* Four products one behind the other, so that a warp has four under way. */
template <typename FORMAT> __global__ void multiply_format(float *out, int turns) {
    typename FORMAT::sum d[4][4] = {};
    uint32_t a = threadIdx.x, b = threadIdx.x + 1;
    for (int t = 0; t < turns; t++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            FORMAT::add(d[i], a, b);
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = (float)(d[0][0] + d[1][1] + d[2][0] + d[3][1]);
}

/* Blocks for threads with SIDE x SIDE results. */
static unsigned blocks_of(unsigned side) {
    return ROWS / side * (COLUMNS / side) / THREADS;
}

/* A row of the table: a kernel's name, and how it is launched. */
#define ROW(name, kernel, grid, block, ...)                    \
    {                                                          \
        name, [](float *out, const float *x, const float *y) { \
            (void)x, (void)y;                                  \
            kernel<<<grid, block>>>(__VA_ARGS__);              \
        }                                                      \
    }

const struct calibration_kernel calibration_priced[CALIBRATION_PRICED] = {
    ROW("product_8x8", product_8x8, blocks_of(8), THREADS, out, x, y),
    ROW("product_8x8_of_64", product_8x8_of_64, blocks_of(8), THREADS, out, x, y),
    ROW("product_8x8_of_40", product_8x8_of_40, blocks_of(8), THREADS, out, x, y),
    ROW("product_16x16", product_16x16, blocks_of(16), THREADS, out, x, y),
    ROW("constants_1", read_constants<1>, PROCESSORS * 4, 256, out),
    ROW("constants_4", read_constants<4>, PROCESSORS * 4, 256, out),
    ROW("constants_32", read_constants<32>, PROCESSORS * 4, 256, out),
    ROW("mma_bf16", multiply_format<bf16>, TENSOR_BLOCKS, 256, out, TURNS),
    ROW("mma_tf32", multiply_format<tf32>, TENSOR_BLOCKS, 256, out, TURNS),
    ROW("mma_f64", multiply_format<f64>, TENSOR_BLOCKS, 256, out, TURNS),
    ROW("mma_s8", multiply_format<s8>, TENSOR_BLOCKS, 256, out, TURNS),
    ROW("mma_s4", multiply_format<s4>, TENSOR_BLOCKS, 256, out, TURNS),
};
