/**
 * @file split_k.cuh
 * @brief Split-K: the kernel that adds the partial sums runs the epilogue.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_SPLIT_K_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_SPLIT_K_CUH_

#include "solutions/06_fused_epilogues/steps/gemm.cuh"

enum { REDUCE_THREADS = 256, MOST_REDUCE_BLOCKS = 2048 };

/* C = activation(sum of the splits' partial sums (splits, M, N) + bias) + residual. */
template <class ACTIVATION>
static __global__ void __launch_bounds__(REDUCE_THREADS)
    reduce_splits(fused_gemm<identity, ACTIVATION> p, const float *partials, int splits) {
    dependent_launch_begin();
    size_t elements = p.M * p.N;
    for (size_t i = blockIdx.x * (size_t)REDUCE_THREADS + threadIdx.x; i < elements;
         i += (size_t)gridDim.x * REDUCE_THREADS) {
        float sum = partials[i];
        for (int split = 1; split < splits; split++) {
            sum += partials[split * elements + i];
        }
        fused_epilogue<identity, ACTIVATION>::store(p, i / p.N, i % p.N, sum);
    }
}

template <class ACTIVATION>
static void launch_reduce_splits(const fused_gemm<identity, ACTIVATION> &p, const float *partials,
                                 int splits, device_stream stream) {
    size_t blocks = (p.M * p.N + REDUCE_THREADS - 1) / REDUCE_THREADS;
    launch_dependent<reduce_splits<ACTIVATION>>(
        (unsigned)(blocks < MOST_REDUCE_BLOCKS ? blocks : MOST_REDUCE_BLOCKS), REDUCE_THREADS, 0,
        stream, p, partials, splits);
}

#endif
