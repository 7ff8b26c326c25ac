#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "solutions/13_low_bit/rows/step_kernel.cuh"

struct step_kernel_choice step_kernel_int4_32(enum nn_dtype scales, struct step_arguments *p,
                                              size_t blocks) {
    return scales == NN_BF16 ? choose_step_kernel<step_weights<32, __nv_bfloat16>>(p, blocks)
                             : choose_step_kernel<step_weights<32, __half>>(p, blocks);
}
