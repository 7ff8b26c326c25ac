/**
 * @file gemm.cuh
 * @brief Lab 04's v10 with something done to A on its way in, and to sums before they are stored.
 *
 * The multiplication is v10's own code (solutions/04_sgemm/steps/v10_tile.cuh), for weights (N, K).
 * What is here takes the place of its epilogue: out = leave(sum + bias) + residual.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_GEMM_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_GEMM_CUH_

#include "common/device/chained.cuh"
#include "solutions/04_sgemm/steps/ladder.h"
#include "solutions/04_sgemm/steps/v10_few_rows.cuh"
#include "solutions/04_sgemm/steps/v10_tile.cuh"
#include "solutions/06_fused_epilogues/steps/functions.cuh"
#include "solutions/06_fused_epilogues/steps/ladder.h"

/* A multiplication: alpha is 1, beta 0. Aligned: bias, residual and C allow 16 bytes at a time. */
template <class ENTER, class LEAVE> struct fused_gemm : sgemm_problem {
    const float *bias, *residual; /* (N) and (M, N), or NULL */
    bool aligned;
    ENTER way_in;
    LEAVE way_out;
};

template <class ENTER, class LEAVE>
static __device__ __forceinline__ void begin(const fused_gemm<ENTER, LEAVE> &p) {
    (void)p;
    chained_begin();
}

template <class ENTER, class LEAVE>
static __device__ __forceinline__ float enter(const fused_gemm<ENTER, LEAVE> &p, float a) {
    return p.way_in(a);
}

/* Of four neighbours in a row, those that exist; the others are 0. */
static __device__ __forceinline__ void read_four(float (&to)[4], const float *from, bool aligned,
                                                 size_t left) {
    if (aligned) {
        float4 v = left > 0 ? *(const float4 *)from : float4{0, 0, 0, 0};
        to[0] = v.x;
        to[1] = v.y;
        to[2] = v.z;
        to[3] = v.w;
    } else {
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            to[j] = j < left ? from[j] : 0;
        }
    }
}

static __device__ __forceinline__ void write_four(float *to, const float (&from)[4], bool aligned,
                                                  size_t left) {
    if (aligned) {
        if (left > 0) {
            *(float4 *)to = {from[0], from[1], from[2], from[3]};
        }
    } else {
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            if (j < left) {
                to[j] = from[j];
            }
        }
    }
}

/* Rows that a thread finishes together. Their residuals are on their way at the same time: one
   after the other, each would wait for the store before it, since C may be the residual. */
template <class T> struct rows_together {
    enum { OWN = T::ROWS / T::SLICES, COUNT = OWN % 4 == 0 ? 4 : 2 };
};

/* Finishes a thread's rows from `first` on that belong together. */
template <class T, class ENTER, class LEAVE>
static __device__ __forceinline__ void finish_rows(const fused_gemm<ENTER, LEAVE> &p, size_t m,
                                                   size_t n, const float (&bias)[2][4],
                                                   const float (&sum)[T::ROWS][8], int first) {
    const int TOGETHER = rows_together<T>::COUNT;
    float old[TOGETHER][2][4] = {};
    if (p.residual != NULL) {
#pragma unroll
        for (int i = 0; i < 2 * TOGETHER; i++) {
            size_t row = m + row_of<T>(first + i / 2), column = n + 32 * (i % 2);
            size_t left = row < p.M && column < p.N ? p.N - column : 0;
            read_four(old[i / 2][i % 2], p.residual + row * p.N + column, p.aligned, left);
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * TOGETHER; i++) {
        size_t row = m + row_of<T>(first + i / 2), column = n + 32 * (i % 2);
        size_t left = row < p.M && column < p.N ? p.N - column : 0;
        float result[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float x = sum[first + i / 2][4 * (i % 2) + j] + bias[i % 2][j];
            result[j] = p.way_out(x) + old[i / 2][i % 2][j];
        }
        write_four(p.C + row * p.N + column, result, p.aligned, left);
    }
}

/* In place of v10's: stores this thread's rows [from, to). */
template <class T, class ENTER, class LEAVE>
static __device__ __forceinline__ void store_rows(const fused_gemm<ENTER, LEAVE> &p, size_t m,
                                                  size_t n, const float (&sum)[T::ROWS][8],
                                                  int from, int to) {
    float bias[2][4] = {};
    if (p.bias != NULL) {
        read_four(bias[0], p.bias + n, p.aligned, n < p.N ? p.N - n : 0);
        read_four(bias[1], p.bias + n + 32, p.aligned, n + 32 < p.N ? p.N - n - 32 : 0);
    }
#pragma unroll
    for (int first = 0; first < T::ROWS; first += rows_together<T>::COUNT) {
        if (first >= from && first < to) {
            finish_rows<T>(p, m, n, bias, sum, first);
        }
    }
}

/* In place of v10's, for few rows. */
template <class ENTER, class LEAVE>
static __device__ __forceinline__ void store(const fused_gemm<ENTER, LEAVE> &p, size_t m, size_t n,
                                             float sum) {
    if (m < p.M && n < p.N) {
        float x = p.way_out(p.bias != NULL ? sum + p.bias[n] : sum);
        p.C[m * p.N + n] = p.residual != NULL ? x + p.residual[m * p.N + n] : x;
    }
}

template <class T, bool VECTOR, class PROBLEM>
static void launch_tile(const PROBLEM &p, unsigned parts, device_stream stream) {
    const size_t BYTES = T::FLOATS * sizeof(float);
    size_t tiles = (p.M + T::BM - 1) / T::BM * ((p.N + T::BN - 1) / T::BN);
    /* With what a kernel has beside it, more than 48 KiB must be asked for. The launch reports. */
    if (BYTES + 1024 > 48 << 10) {
        (void)cudaFuncSetAttribute(tile_kernel<T, SGEMM_B_TRANSPOSED, VECTOR, PROBLEM>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)BYTES);
    }
    launch_chained<tile_kernel<T, SGEMM_B_TRANSPOSED, VECTOR, PROBLEM>>(
        (unsigned)(tiles * parts), T::THREADS, BYTES, stream, p, parts);
}

template <bool VECTOR, class PROBLEM>
static void launch_few_rows(const PROBLEM &p, device_stream stream) {
    size_t blocks = (p.M + FEW_ROWS - 1) / FEW_ROWS * ((p.N + FEW_COLUMNS_T - 1) / FEW_COLUMNS_T);
    launch_chained<few_rows_transposed<VECTOR, PROBLEM>>((unsigned)blocks, FEW_THREADS_T, 0, stream,
                                                         p);
}

/* The plan's shapes by their numbers in lab 04. */
template <class PROBLEM>
static void launch_aligned(const PROBLEM &p, struct sgemm_plan plan, device_stream stream) {
    unsigned parts = (unsigned)plan.splits;
    switch (plan.shape) {
    case 0:
        return launch_tile<tile_shape<V10_128x128>, true>(p, parts, stream);
    case 1:
        return launch_tile<tile_shape<V10_96x128>, true>(p, parts, stream);
    case 2:
        return launch_tile<tile_shape<V10_96x128_2>, true>(p, parts, stream);
    case 3:
        return launch_tile<tile_shape<V10_64x64_4>, true>(p, parts, stream);
    case 4:
        return launch_tile<tile_shape<V10_32x64_4>, true>(p, parts, stream);
    default:
        return launch_few_rows<true>(p, stream);
    }
}

/* Odd sizes: one large shape and one small one are enough. */
template <class PROBLEM>
static void launch_unaligned(const PROBLEM &p, struct sgemm_plan plan, device_stream stream) {
    unsigned parts = (unsigned)plan.splits;
    if (plan.shape < 3) {
        launch_tile<tile_shape<V10_96x128>, false>(p, parts, stream);
    } else if (plan.shape < sgemm_v10_shape_count() - 1) {
        launch_tile<tile_shape<V10_32x64_4>, false>(p, parts, stream);
    } else {
        launch_few_rows<false>(p, stream);
    }
}

/* p with a plan whose parts, if there are several, go to p.C one after the other. */
template <class PROBLEM>
static void launch_gemm(PROBLEM p, struct sgemm_plan plan, device_stream stream) {
    p.aligned = aligned16(p.C, p.N) && aligned16(p.bias, p.N) && aligned16(p.residual, p.N);
    if (aligned16(p.A, p.K) && aligned16(p.B, p.K)) {
        launch_aligned(p, plan, stream);
    } else {
        launch_unaligned(p, plan, stream);
    }
}

/* The multiplication of a problem, nothing fused yet. */
template <class ENTER, class LEAVE>
static fused_gemm<ENTER, LEAVE> gemm_of(const struct fused_problem *p, LEAVE way_out) {
    fused_gemm<ENTER, LEAVE> gemm = {};
    (struct sgemm_problem &)gemm = {.M = p->M,
                                    .N = p->N,
                                    .K = p->K,
                                    .form = SGEMM_B_TRANSPOSED,
                                    .alpha = 1.0f,
                                    .beta = 0.0f,
                                    .A = p->in,
                                    .B = p->weight,
                                    .C = p->out};
    gemm.way_out = way_out;
    return gemm;
}

#endif
