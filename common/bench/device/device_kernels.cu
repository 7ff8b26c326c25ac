#include "common/bench/device/device_kernels.h"

#include <cuda_runtime.h>

#include "common/cuda/mma.cuh"

static __device__ unsigned long long nanoseconds_now(void) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* The timer moves in steps of up to a microsecond: both ends of the time are edges of it. */
static __device__ unsigned long long next_edge(unsigned long long after) {
    unsigned long long now;
    do {
        now = nanoseconds_now();
    } while (now <= after);
    return now;
}

static __global__ void read_clock(struct device_clock *clock) {
    const unsigned long long duration = 20000;
    unsigned long long start = next_edge(nanoseconds_now());
    long long first = clock64();
    unsigned long long stop = next_edge(start + duration);
    clock->cycles = (unsigned long long)(clock64() - first);
    clock->nanoseconds = stop - start;
}

extern "C" enum status device_read_clock(struct device_clock *clock, device_stream stream,
                                         struct error *error) {
    read_clock<<<1, 1, 0, stream>>>(clock);
    return device_launched("read_clock", error);
}

enum { THREADS = 256 };

/* Blocks for one vector of four floats a thread. */
static unsigned blocks_for(size_t bytes) {
    size_t vectors = bytes / sizeof(float4);
    return (unsigned)((vectors + THREADS - 1) / THREADS);
}

static __global__ void sweep(float4 *memory, size_t vectors) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) {
        memory[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}

extern "C" enum status device_sweep(void *memory, size_t bytes, device_stream stream,
                                    struct error *error) {
    sweep<<<blocks_for(bytes), THREADS, 0, stream>>>((float4 *)memory, bytes / sizeof(float4));
    return device_launched("sweep", error);
}

static __global__ void stream_copy(float4 *to, const float4 *from, size_t vectors) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) {
        to[i] = from[i];
    }
}

extern "C" enum status device_stream_copy(void *to, const void *from, size_t bytes,
                                          device_stream stream, struct error *error) {
    stream_copy<<<blocks_for(bytes), THREADS, 0, stream>>>((float4 *)to, (const float4 *)from,
                                                           bytes / sizeof(float4));
    return device_launched("stream_copy", error);
}

enum { TILE_VECTORS = (int)(DEVICE_READ_TILE_BYTES / sizeof(float4) / THREADS), WAVE_BLOCKS = 8 };

/* All loads of a tile are under way before the first is used. */
static __global__ void stream_read(float *sink, const float4 *from, size_t tiles) {
    float sum = 0.0f;
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const float4 *first = from + tile * TILE_VECTORS * THREADS + threadIdx.x;
        float4 values[TILE_VECTORS];
#pragma unroll
        for (int i = 0; i < TILE_VECTORS; i++) {
            values[i] = __ldcs(first + i * THREADS);
        }
#pragma unroll
        for (int i = 0; i < TILE_VECTORS; i++) {
            sum += values[i].x + values[i].y + values[i].z + values[i].w;
        }
    }
    /* What the compiler cannot rule out: without it nothing would be read. */
    if (sum == -1.0f) {
        *sink = sum;
    }
}

extern "C" enum status device_stream_read(float *sink, const void *from, size_t bytes,
                                          enum device_read_shape shape, int multiprocessors,
                                          device_stream stream, struct error *error) {
    size_t tiles = bytes / DEVICE_READ_TILE_BYTES;
    size_t wave = (size_t)multiprocessors * WAVE_BLOCKS;
    size_t blocks = shape == DEVICE_READ_WAVE && wave < tiles ? wave : tiles;
    if (blocks == 0) {
        return STATUS_OK;
    }
    stream_read<<<(unsigned)blocks, THREADS, 0, stream>>>(sink, (const float4 *)from, tiles);
    return device_launched("stream_read", error);
}

/*
 * Independent sums hide the latency of one multiply-add; all live in registers.
 * Factor and summand are one register: three different ones of an instruction
 * may lie in the same register bank, and then it takes a cycle more.
 */
enum { SUMS = 16, ROUNDS = 8192, BLOCKS_EACH = 16 };

static __global__ void multiply_add(float *sink, float factor) {
    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        sum[i] = (float)(threadIdx.x + i);
    }
#pragma unroll 8
    for (int round = 0; round < ROUNDS; round++) {
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            sum[i] = fmaf(sum[i], factor, factor);
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        total += sum[i];
    }
    /* Never true, which the compiler does not know. */
    if (total == -1.0f) {
        *sink = total;
    }
}

extern "C" enum status device_multiply_add(float *sink, int multiprocessors, double *flops,
                                           device_stream stream, struct error *error) {
    unsigned blocks = (unsigned)(multiprocessors * BLOCKS_EACH);
    *flops = 2.0 * SUMS * ROUNDS * THREADS * blocks;
    multiply_add<<<blocks, THREADS, 0, stream>>>(sink, 0.5f);
    return device_launched("multiply_add", error);
}

/* Products of one warp that do not wait for each other, as many as hide the latency of one. */
enum { PRODUCTS = 8, PRODUCT_ROUNDS = 2048, PRODUCT_BLOCKS_EACH = 8 };

static __global__ void multiply_matrices(float *sink) {
    struct accumulator sums[PRODUCTS] = {};
    struct fragment a = {{threadIdx.x, 0, 0, 0}};
#pragma unroll 4
    for (int round = 0; round < PRODUCT_ROUNDS; round++) {
#pragma unroll
        for (int i = 0; i < PRODUCTS; i++) {
            mma_m16n8k16(sums[i].x, a, a.x[0], a.x[1], __nv_bfloat16());
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < PRODUCTS; i++) {
        total += sums[i].x[0] + sums[i].x[1] + sums[i].x[2] + sums[i].x[3];
    }
    if (total == -1.0f) {
        *sink = total;
    }
}

extern "C" enum status device_multiply_matrices(float *sink, int multiprocessors, double *flops,
                                                device_stream stream, struct error *error) {
    unsigned blocks = (unsigned)(multiprocessors * PRODUCT_BLOCKS_EACH);
    double products = (double)PRODUCTS * PRODUCT_ROUNDS * (THREADS / 32) * blocks;
    *flops = products * 2.0 * 16.0 * 8.0 * 16.0;
    multiply_matrices<<<blocks, THREADS, 0, stream>>>(sink);
    return device_launched("multiply_matrices", error);
}
