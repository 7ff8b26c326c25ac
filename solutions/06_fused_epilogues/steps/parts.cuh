/**
 * @file parts.cuh
 * @brief Split-K: the kernel that adds the partial sums runs the epilogue.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_PARTS_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_PARTS_CUH_

#include "solutions/06_fused_epilogues/steps/gemm.cuh"

enum { ADD_THREADS = 256, MOST_ADD_BLOCKS = 2048 };

/* C = activation(sum of the partial sums (count, M, N) + bias) + residual. */
template <class ACTIVATION>
static __global__ void __launch_bounds__(ADD_THREADS)
    add_parts(fused_gemm<identity, ACTIVATION> p, const float *parts, int count) {
    chained_begin();
    size_t elements = p.M * p.N;
    for (size_t i = blockIdx.x * (size_t)ADD_THREADS + threadIdx.x; i < elements;
         i += (size_t)gridDim.x * ADD_THREADS) {
        float sum = parts[i];
        for (int part = 1; part < count; part++) {
            sum += parts[part * elements + i];
        }
        fused_epilogue<identity, ACTIVATION>::store(p, i / p.N, i % p.N, sum);
    }
}

template <class ACTIVATION>
static void launch_add_parts(const fused_gemm<identity, ACTIVATION> &p, const float *parts,
                             int count, device_stream stream) {
    size_t blocks = (p.M * p.N + ADD_THREADS - 1) / ADD_THREADS;
    launch_chained<add_parts<ACTIVATION>>(
        (unsigned)(blocks < MOST_ADD_BLOCKS ? blocks : MOST_ADD_BLOCKS), ADD_THREADS, 0, stream, p,
        parts, count);
}

#endif
