/**
 * @file kernel.cuh
 * @brief The low-bit decoder's kernel: lab 10's d8 on other weights, in the form of the including
 * file.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_KERNEL_CUH_

#include "solutions/10_llama2_decoder/steps/d8_run.cuh"
#include "solutions/13_low_bit/decoder/kernels.h"

template <typename W, int GROUP>
static __global__ void __launch_bounds__(ONE_THREADS, 1)
    low_bit_one_kernel(struct one_arguments p) {
    if constexpr (ONE_HAS_CP_ASYNC) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ struct static_shared fixed;
        run<W, GROUP>(shared, &fixed, p, local_residual());
    }
}

template <typename W>
static struct low_bit_kernel kernel_for_queries(size_t queries, size_t L, size_t HS) {
    void (*function)(struct one_arguments) =
        queries == 2 ? low_bit_one_kernel<W, 2> : low_bit_one_kernel<W, 1>;
    return {(const void *)function,
            ONE_THREADS,
            ONE_WARPS,
            ONE_STAGES,
            ONE_PIPELINE_BYTES,
            plan_bytes(L),
            sizeof(struct static_shared),
            ONE_STAGE_STRIDE - ONE_KEY_BYTES,
            one_attention_floats(queries, HS),
            W::INPUT_FLOATS};
}

#endif
