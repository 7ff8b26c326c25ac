/**
 * @file norm_rows.cu
 * @brief LayerNorm of a sum of partial sums, bias and residual: one launch for all after a matmul.
 *
 * A row stays in registers from the first load to the last store: the sum is
 * formed on the way in, mean and variance are two passes over registers, and
 * memory is read once and written once (twice where the sum is wanted, too).
 *
 * Mapping: rows of up to 1024 floats a warp each, up to 8192 a block of 256
 * threads, 16 bytes a load; longer and unaligned ones a block, which keeps the
 * sum in memory and reads it again from the cache.
 *
 * Bytes: 4 M N (splits + 1 for the residual) read, 4 M N written. FLOPs: about 9 an
 * element.
 */
#include "common/cuda/block.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/06_fused_epilogues/steps/ladder.h"

enum { THREADS = 256, WARP = 32, WARPS = THREADS / WARP };

/* Sum over the LANES threads of a row: a warp, or the block. */
template <int LANES> static __device__ __forceinline__ float row_sum(float x) {
    if constexpr (LANES == WARP) {
        return warp_sum(x);
    } else {
        return block_sum<THREADS>(x);
    }
}

static __device__ __forceinline__ float4 add4(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

static __device__ __forceinline__ float4 load4_at(const float *from, size_t i) {
    return *(const float4 *)(from + i);
}

/* x += from, where there is such a column. */
template <int FOURS>
static __device__ __forceinline__ void add_row(float4 (&x)[FOURS], const float *from, size_t first,
                                               size_t step, size_t N) {
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        size_t c = first + i * step;
        if (c < N) {
            x[i] = add4(x[i], load4_at(from, c));
        }
    }
}

/* A thread's share of row m of the sum. One addend after the other, so that all loads of an addend
   are in flight together. */
template <int FOURS>
static __device__ __forceinline__ void sum_row(float4 (&x)[FOURS], const struct norm_rows &p,
                                               size_t m, size_t first, size_t step) {
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        x[i] = {0, 0, 0, 0};
    }
    for (int split = 0; split < p.splits; split++) {
        add_row(x, p.partials + (split * p.M + m) * p.N, first, step, p.N);
    }
    if (p.bias != NULL) {
        add_row(x, p.bias, first, step, p.N);
    }
    if (p.residual != NULL) {
        add_row(x, p.residual + m * p.N, first, step, p.N);
    }
}

static __device__ __forceinline__ float4 normalised(float4 x, float mean, float scale, float4 w,
                                                    float4 b) {
    return {(x.x - mean) * scale * w.x + b.x, (x.y - mean) * scale * w.y + b.y,
            (x.z - mean) * scale * w.z + b.z, (x.w - mean) * scale * w.w + b.w};
}

static __device__ __forceinline__ float squares_of(float4 x, float mean) {
    float a = x.x - mean, b = x.y - mean, c = x.z - mean, d = x.w - mean;
    return a * a + b * b + c * c + d * d;
}

/* LANES threads a row, of which each holds FOURS times four floats. */
template <int LANES, int FOURS>
static __global__ void __launch_bounds__(THREADS) norm_in_registers(struct norm_rows p) {
    dependent_launch_begin();
    size_t m = blockIdx.x * (size_t)(THREADS / LANES) + threadIdx.x / LANES;
    if (m >= p.M) {
        return; /* a whole warp, or nobody */
    }
    const size_t first = threadIdx.x % LANES * 4, STEP = LANES * 4;
    float4 x[FOURS];
    float total = 0.0f, squares = 0.0f;
    sum_row(x, p, m, first, STEP);
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        total += x[i].x + x[i].y + (x[i].z + x[i].w);
    }
    float mean = row_sum<LANES>(total) / (float)p.N;
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        squares += first + i * STEP < p.N ? squares_of(x[i], mean) : 0.0f;
    }
    float scale = 1.0f / sqrtf(row_sum<LANES>(squares) / (float)p.N + p.norm.eps);
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        size_t c = first + i * STEP;
        if (c < p.N) {
            if (p.sum != NULL) {
                *(float4 *)(p.sum + m * p.N + c) = x[i];
            }
            *(float4 *)(p.out + m * p.N + c) =
                normalised(x[i], mean, scale, load4_at(p.norm.weight, c), load4_at(p.norm.bias, c));
        }
    }
}

/* The sum at one element. */
static __device__ __forceinline__ float single_sum(const struct norm_rows &p, size_t m, size_t c) {
    size_t i = m * p.N + c;
    float sum = p.partials[i];
    for (int split = 1; split < p.splits; split++) {
        sum += p.partials[split * p.M * p.N + i];
    }
    sum = p.bias != NULL ? sum + p.bias[c] : sum;
    return p.residual != NULL ? sum + p.residual[i] : sum;
}

/* Any row: a block, float by float. A thread reads back only elements that it wrote. */
static __global__ void __launch_bounds__(THREADS) norm_in_memory(struct norm_rows p) {
    dependent_launch_begin();
    size_t m = blockIdx.x;
    float *kept = (p.sum != NULL ? p.sum : p.out) + m * p.N;
    float total = 0.0f, squares = 0.0f;
    for (size_t c = threadIdx.x; c < p.N; c += THREADS) {
        float x = single_sum(p, m, c);
        kept[c] = x;
        total += x;
    }
    float mean = row_sum<THREADS>(total) / (float)p.N;
    for (size_t c = threadIdx.x; c < p.N; c += THREADS) {
        squares += (kept[c] - mean) * (kept[c] - mean);
    }
    float scale = 1.0f / sqrtf(row_sum<THREADS>(squares) / (float)p.N + p.norm.eps);
    for (size_t c = threadIdx.x; c < p.N; c += THREADS) {
        p.out[m * p.N + c] = (kept[c] - mean) * scale * p.norm.weight[c] + p.norm.bias[c];
    }
}

template <int LANES, int FOURS>
static void launch_in_registers(const struct norm_rows *p, device_stream stream) {
    const size_t ROWS = THREADS / LANES;
    launch_dependent<norm_in_registers<LANES, FOURS>>((unsigned)((p->M + ROWS - 1) / ROWS), THREADS,
                                                      0, stream, *p);
}

/* Whether every pointer and every row begins 16-byte aligned. */
static int is_aligned(const struct norm_rows *p) {
    uintptr_t any = (uintptr_t)p->partials | (uintptr_t)p->bias | (uintptr_t)p->residual |
                    (uintptr_t)p->sum | (uintptr_t)p->out | (uintptr_t)p->norm.weight |
                    (uintptr_t)p->norm.bias;
    return any % 16 == 0 && p->N % 4 == 0;
}

enum status fused_norm_rows(const struct norm_rows *p, device_stream stream, struct error *error) {
    if (!is_aligned(p) || p->N > 8 * 4 * THREADS) {
        launch_dependent<norm_in_memory>((unsigned)p->M, THREADS, 0, stream, *p);
    } else if (p->N <= 2 * 4 * WARP) {
        launch_in_registers<WARP, 2>(p, stream);
    } else if (p->N <= 6 * 4 * WARP) {
        launch_in_registers<WARP, 6>(p, stream);
    } else if (p->N <= 8 * 4 * WARP) {
        launch_in_registers<WARP, 8>(p, stream);
    } else if (p->N <= 4 * 4 * THREADS) {
        launch_in_registers<THREADS, 4>(p, stream);
    } else {
        launch_in_registers<THREADS, 8>(p, stream);
    }
    return device_launched("norm_rows", error);
}
