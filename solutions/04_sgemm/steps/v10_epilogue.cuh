/**
 * @file v10_epilogue.cuh
 * @brief The epilogue of v10's kernels, a template parameter EPILOGUE: here C =
 * alpha * AB + beta * C.
 *
 * As in CUTLASS, the mainloop is written once, and an epilogue functor stores
 * the accumulators. Lab 06 has other epilogues for the same mainloop
 * (fused_epilogue, gemm.cuh). A functor is a struct with
 *
 *     problem        type of the kernel's parameter: struct sgemm_problem, or
 * derived from it prologue()     called first in the kernel, by every thread
 *     transform_a()  of each element of A, before shared memory or a product;
 * elements outside the matrix are 0, and must become 0 store_rows()   stores
 * rows [from, to) of a thread's accumulators of a tile, or, with split-K, of
 * partial sums: a kernel of tiles store()        stores one element: a kernel
 * of few rows tile_stored()  called last, by every thread, after store_rows()
 * of the tile from row m on
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_EPILOGUE_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_EPILOGUE_CUH_

#include "solutions/04_sgemm/steps/helpers.cuh"

/* Row i of a thread's accumulators, from its first. */
template <class T> static __device__ __forceinline__ int row_of(int i) {
    return i / 4 * 16 * T::WARPS_M + i % 4;
}

/* C = alpha * AB + beta * C. */
struct linear_combination {
    typedef struct sgemm_problem problem;

    static __device__ __forceinline__ void prologue(const problem &) {
    }

    static __device__ __forceinline__ float transform_a(const problem &, float a) {
        return a;
    }

    static __device__ __forceinline__ void store(const problem &p, size_t m, size_t n, float sum) {
        ::store(p, m, n, sum);
    }

    template <class T>
    static __device__ __forceinline__ void store_rows(const problem &p, size_t m, size_t n,
                                                      const float (&sum)[T::ROWS][8], int from,
                                                      int to) {
        bool vector = aligned16(p.C, p.N);
#pragma unroll
        for (int i = 0; i < T::ROWS; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                size_t row = m + row_of<T>(i), column = n + 32 * half;
                if (i < from || i >= to) {
                    continue;
                }
                if (vector) {
                    if (row < p.M && column < p.N) {
                        store4(p, row, column, &sum[i][4 * half]);
                    }
                } else {
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        ::store(p, row, column + j, sum[i][4 * half + j]);
                    }
                }
            }
        }
    }

    template <class T> static __device__ __forceinline__ void tile_stored(const problem &, size_t) {
    }
};

#endif
