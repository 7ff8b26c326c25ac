/*
 * Ten kernels whose blocks differ, one of them in two orders: what the busiest multiprocessor has
 * to do is far from the mean. They judge how the model of time places blocks.
 */
#include "common/simt/calibration/kernels.h"

enum {
    ELEMENTS = 1 << 24,
    PROCESSORS = 132,   /* of the H100, on which they were timed */
    WHOLE = 200 * 1024, /* bytes of shared memory: no second block fits beside such a block */
    TILE = 1024
};

__device__ float chains(float start, int steps) {
    float a = start, b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int k = 0; k < steps; k++) {
        a = a * 0.999f + 0.5f;
        b = b * 0.999f + 0.5f;
        c = c * 0.999f + 0.5f;
        d = d * 0.999f + 0.5f;
    }
    return a + b + c + d;
}

/* 64 blocks sum exponentials, a thread a row; all others return at once. */
__global__ void idle_blocks(float *out, const float *in, int columns) {
    if (blockIdx.x >= 64) {
        return;
    }
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    const float *x = in + (size_t)row * columns;
    float most = -1e30f;
    float sum = 0.0f;
    for (int i = 0; i < columns; i++) {
        most = fmaxf(most, x[i]);
    }
    for (int i = 0; i < columns; i++) {
        sum += __expf(x[i] - most);
    }
    out[row] = sum;
}

/* The blocks with work are as far apart as there are multiprocessors: all are on the same one. */
__global__ void one_processor(float *out, const float *in, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x % PROCESSORS == 0) {
        out[i] = chains(in[i], steps);
    }
}

/* One block has 64 times the work of the others, and reads through L2. */
__global__ void one_long_block(float *out, const float4 *in, int turns) {
    float sum = 0.0f;
    int n = blockIdx.x == 200 ? 64 * turns : turns;
    for (int t = 0; t < n; t++) {
        float4 v = in[((blockIdx.x + t * 7) * blockDim.x + threadIdx.x) % (1 << 17)];
        sum += v.x * v.y + v.z * v.w;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Blocks with 1, 2, 3 ... tiles, as in causal attention, or the longest first. */
__global__ void growing(float *out, const float *in, bool longest_first) {
    extern __shared__ float tile[];
    int place = longest_first ? (int)(gridDim.x - 1 - blockIdx.x) : (int)blockIdx.x;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int t = 0; t <= place / 4; t++) {
        for (int i = threadIdx.x; i < TILE; i += blockDim.x) {
            tile[i] = in[t * TILE + i];
        }
        __syncthreads();
        for (int i = 0; i < TILE / 4; i += 4) {
            float own = tile[threadIdx.x + i];
            sums[0] += own * tile[i];
            sums[1] += own * tile[i + 1];
            sums[2] += own * tile[i + 2];
            sums[3] += own * tile[i + 3];
        }
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}

/* Equal blocks, one at a time on a multiprocessor, and one more of them than there are of those. */
__global__ void tail_of_one(float *out, const float *in, int steps) {
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

/* Every second block copies, the others compute. */
__global__ void two_kinds(float4 *out, const float4 *in, int quads, int steps) {
    size_t first = (size_t)blockIdx.x / 2 * quads;
    if (blockIdx.x % 2 == 0) {
        for (int i = threadIdx.x; i < quads; i += blockDim.x) {
            out[first + i] = in[first + i];
        }
    } else {
        float sum = chains(in[threadIdx.x].x, steps);
        out[ELEMENTS / 8 + blockIdx.x * blockDim.x + threadIdx.x].x = sum;
    }
}

/* Four of a thousand blocks read all of the data. */
__global__ void few_read_much(float *out, const float4 *in, int quads) {
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    if (blockIdx.x >= 4) {
        return;
    }
    in += (size_t)blockIdx.x * quads;
#pragma unroll 4
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        float4 v = in[i];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum.x + sum.y + sum.z + sum.w;
}

/* What a block reads decides whether it has work: one in 16 has. */
__global__ void early_exit(float *out, const float *in, int turns) {
    if (in[blockIdx.x * 97] >= -0.875f) {
        return;
    }
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    for (int t = 0; t < turns; t++) {
        value = __expf(-value) + in[(i + t * 4096) % ELEMENTS];
    }
    out[i] = value;
}

/* In every eighth block all lanes of a warp use the same bank. */
__global__ void shared_uneven(float *out, const float *in, int turns) {
    __shared__ float words[256 * 32];
    int stride = blockIdx.x % 8 == 0 ? 32 : 1;
    for (int i = threadIdx.x; i < 256 * 32; i += 256) {
        words[i] = in[i];
    }
    __syncthreads();
    float sum = 0.0f;
    for (int t = 0; t < turns; t++) {
        sum += words[(threadIdx.x * stride + t) % (256 * 32)];
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}

/* One warp a block follows a chain of loads, each block one of another length. */
__global__ void chains_uneven(float *out, const float *in) {
    unsigned at = (blockIdx.x * 32u + threadIdx.x) * 977u;
    int steps = 8 + (int)(blockIdx.x * blockIdx.x * 37u % 97u) * 8;
    for (int i = 0; i < steps; i++) {
        at = (at * 1664525u + 1013904223u + (unsigned)(in[at % ELEMENTS] > 10.0f)) % ELEMENTS;
    }
    out[blockIdx.x * 32 + threadIdx.x] = (float)at;
}

/* A launch of blocks that have a multiprocessor for themselves. */
#define ALONE(name, kernel, grid, block, ...)                                                 \
    {                                                                                         \
        name, [](float *out, const float *x, const float *y) {                                \
            (void)y;                                                                          \
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WHOLE); \
            kernel<<<grid, block, WHOLE>>>(__VA_ARGS__);                                      \
        }                                                                                     \
    }

/* A row of the table: a kernel's name, and how it is launched. */
#define ROW(name, kernel, grid, block, ...)                    \
    {                                                          \
        name, [](float *out, const float *x, const float *y) { \
            (void)y;                                           \
            kernel<<<grid, block>>>(__VA_ARGS__);              \
        }                                                      \
    }

const struct calibration_kernel calibration_uneven[CALIBRATION_UNEVEN] = {
    ROW("idle_blocks", idle_blocks, 64 + 2112, 32, out, x, 512),
    ROW("one_processor", one_processor, PROCESSORS * 8, 256, out, x, 1000),
    ROW("one_long_block", one_long_block, PROCESSORS * 4, 256, out, (const float4 *)x, 32),
    ALONE("growing", growing, PROCESSORS * 2, 128, out, x, false),
    ALONE("shrinking", growing, PROCESSORS * 2, 128, out, x, true),
    ALONE("tail_of_one", tail_of_one, PROCESSORS + 1, 256, out, x, 700),
    ROW("two_kinds", two_kinds, PROCESSORS * 8, 256, (float4 *)out, (const float4 *)x, 3968, 700),
    ROW("few_read_much", few_read_much, 1000, 1024, out, (const float4 *)x, ELEMENTS / 16),
    ROW("early_exit", early_exit, 4096, 128, out, x, 500),
    ROW("shared_uneven", shared_uneven, PROCESSORS * 4, 256, out, x, 160),
    ROW("chains_uneven", chains_uneven, PROCESSORS * 2, 32, out, x),
};
