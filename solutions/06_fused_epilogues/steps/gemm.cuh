/**
 * @file gemm.cuh
 * @brief Lab 04's v10 with a fused epilogue, and a transform of A on its way in.
 *
 * The mainloop is v10's own code (solutions/04_sgemm/steps/v10_tile.cuh), for weights (N, K). Its
 * template parameter EPILOGUE (v10_epilogue.cuh) is a functor from here:
 * out = activation(transform(in) * weight^T + bias) + residual.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_GEMM_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_GEMM_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "solutions/04_sgemm/steps/ladder.h"
#include "solutions/04_sgemm/steps/v10_few_rows.cuh"
#include "solutions/04_sgemm/steps/v10_tile.cuh"
#include "solutions/06_fused_epilogues/steps/functions.cuh"
#include "solutions/06_fused_epilogues/steps/ladder.h"

/* A multiplication: alpha is 1, beta 0. Aligned: bias, residual and C allow 16 bytes at a time. */
template <class TRANSFORM, class ACTIVATION> struct fused_gemm : sgemm_problem {
    const float *bias, *residual; /* (N) and (M, N), or NULL */
    bool aligned;
    TRANSFORM transform; /* of A */
    ACTIVATION activation;
};

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

/* Rows of a thread that one step of the epilogue stores. Their residuals are loaded together: one
   after the other, each would wait for the store before it, since C may be the residual. */
template <class T> struct rows_together {
    enum { OWN = T::ROWS / T::SLICES, COUNT = OWN % 4 == 0 ? 4 : 2 };
};

/* The epilogue of a thread's rows from `first` on, COUNT of them. */
template <class T, class TRANSFORM, class ACTIVATION>
static __device__ __forceinline__ void epilogue_rows(const fused_gemm<TRANSFORM, ACTIVATION> &p,
                                                     size_t m, size_t n, const float (&bias)[2][4],
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
            result[j] = p.activation(x) + old[i / 2][i % 2][j];
        }
        write_four(p.C + row * p.N + column, result, p.aligned, left);
    }
}

/* C = activation(transform(A) * B + bias) + residual, as an epilogue of v10's kernels. PROBLEM is
   fused_gemm, or derived from it. */
template <class TRANSFORM, class ACTIVATION, class PROBLEM = fused_gemm<TRANSFORM, ACTIVATION>>
struct fused_epilogue {
    typedef PROBLEM problem;

    static __device__ __forceinline__ void prologue(const problem &) {
        dependent_launch_begin();
    }

    static __device__ __forceinline__ float transform_a(const problem &p, float a) {
        return p.transform(a);
    }

    static __device__ __forceinline__ void store(const problem &p, size_t m, size_t n, float sum) {
        if (m < p.M && n < p.N) {
            float x = p.activation(p.bias != NULL ? sum + p.bias[n] : sum);
            p.C[m * p.N + n] = p.residual != NULL ? x + p.residual[m * p.N + n] : x;
        }
    }

    template <class T>
    static __device__ __forceinline__ void store_rows(const problem &p, size_t m, size_t n,
                                                      const float (&sum)[T::ROWS][8], int from,
                                                      int to) {
        float bias[2][4] = {};
        if (p.bias != NULL) {
            read_four(bias[0], p.bias + n, p.aligned, n < p.N ? p.N - n : 0);
            read_four(bias[1], p.bias + n + 32, p.aligned, n + 32 < p.N ? p.N - n - 32 : 0);
        }
#pragma unroll
        for (int first = 0; first < T::ROWS; first += rows_together<T>::COUNT) {
            if (first >= from && first < to) {
                epilogue_rows<T, TRANSFORM, ACTIVATION>(p, m, n, bias, sum, first);
            }
        }
    }

    template <class T> static __device__ __forceinline__ void tile_stored(const problem &, size_t) {
    }
};

template <class T, bool VECTOR, class EPILOGUE>
static void launch_tile(const typename EPILOGUE::problem &p, unsigned splits,
                        device_stream stream) {
    const size_t BYTES = T::FLOATS * sizeof(float);
    size_t tiles = (p.M + T::BM - 1) / T::BM * ((p.N + T::BN - 1) / T::BN);
    /* Together with static shared memory, more than 48 KiB need this attribute. The launch reports
       a failure. */
    if (BYTES + 1024 > 48 << 10) {
        (void)cudaFuncSetAttribute(tile_kernel<T, SGEMM_B_TRANSPOSED, VECTOR, EPILOGUE>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)BYTES);
    }
    launch_dependent<tile_kernel<T, SGEMM_B_TRANSPOSED, VECTOR, EPILOGUE>>(
        (unsigned)(tiles * splits), T::THREADS, BYTES, stream, p, splits);
}

template <bool VECTOR, class EPILOGUE>
static void launch_few_rows(const typename EPILOGUE::problem &p, device_stream stream) {
    size_t blocks = (p.M + FEW_ROWS - 1) / FEW_ROWS * ((p.N + FEW_COLUMNS_T - 1) / FEW_COLUMNS_T);
    launch_dependent<few_rows_transposed<VECTOR, EPILOGUE>>((unsigned)blocks, FEW_THREADS_T, 0,
                                                            stream, p);
}

/* The plan's shapes by their numbers in lab 04. */
template <class EPILOGUE>
static void launch_aligned(const typename EPILOGUE::problem &p, struct sgemm_plan plan,
                           device_stream stream) {
    unsigned splits = (unsigned)plan.splits;
    switch (plan.shape) {
    case 0:
        return launch_tile<tile_shape<V10_128x128>, true, EPILOGUE>(p, splits, stream);
    case 1:
        return launch_tile<tile_shape<V10_96x128>, true, EPILOGUE>(p, splits, stream);
    case 2:
        return launch_tile<tile_shape<V10_96x128_2>, true, EPILOGUE>(p, splits, stream);
    case 3:
        return launch_tile<tile_shape<V10_64x64_4>, true, EPILOGUE>(p, splits, stream);
    case 4:
        return launch_tile<tile_shape<V10_32x64_4>, true, EPILOGUE>(p, splits, stream);
    default:
        return launch_few_rows<true, EPILOGUE>(p, stream);
    }
}

/* Odd sizes: one large shape and one small one are enough. */
template <class EPILOGUE>
static void launch_unaligned(const typename EPILOGUE::problem &p, struct sgemm_plan plan,
                             device_stream stream) {
    unsigned splits = (unsigned)plan.splits;
    if (plan.shape < 3) {
        launch_tile<tile_shape<V10_96x128>, false, EPILOGUE>(p, splits, stream);
    } else if (plan.shape < sgemm_v10_shape_count() - 1) {
        launch_tile<tile_shape<V10_32x64_4>, false, EPILOGUE>(p, splits, stream);
    } else {
        launch_few_rows<false, EPILOGUE>(p, stream);
    }
}

/* p with a plan; with split-K the partial sums go to p.C, one split's matrix after the other. */
template <class EPILOGUE>
static void launch_gemm(typename EPILOGUE::problem p, struct sgemm_plan plan,
                        device_stream stream) {
    p.aligned = aligned16(p.C, p.N) && aligned16(p.bias, p.N) && aligned16(p.residual, p.N);
    if (aligned16(p.A, p.K) && aligned16(p.B, p.K)) {
        launch_aligned<EPILOGUE>(p, plan, stream);
    } else {
        launch_unaligned<EPILOGUE>(p, plan, stream);
    }
}

/* The same, with the epilogue that fused_gemm's types name. */
template <class TRANSFORM, class ACTIVATION>
static void launch_fused(const fused_gemm<TRANSFORM, ACTIVATION> &p, struct sgemm_plan plan,
                         device_stream stream) {
    launch_gemm<fused_epilogue<TRANSFORM, ACTIVATION>>(p, plan, stream);
}

/* The multiplication of a problem, nothing fused yet. */
template <class TRANSFORM, class ACTIVATION>
static fused_gemm<TRANSFORM, ACTIVATION> gemm_of(const struct fused_problem *p,
                                                 ACTIVATION activation) {
    fused_gemm<TRANSFORM, ACTIVATION> gemm = {};
    (struct sgemm_problem &)gemm = {.M = p->M,
                                    .N = p->N,
                                    .K = p->K,
                                    .form = SGEMM_B_TRANSPOSED,
                                    .alpha = 1.0f,
                                    .beta = 0.0f,
                                    .A = p->in,
                                    .B = p->weight,
                                    .C = p->out};
    gemm.activation = activation;
    return gemm;
}

#endif
