/**
 * @file step_kernels.h
 * @brief The persistent kernels of several texts, a file for each type of weights.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_KERNELS_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_KERNELS_H_

#include <stddef.h>

#include "common/nn/dtype.h"

struct step_kernel_choice {
    const void *function;
    size_t shared_bytes; /* dynamic */
};

struct step_arguments;

/* @param p filled but for `listed`, which is set */
struct step_kernel_choice step_kernel_int8(struct step_arguments *p, size_t blocks);
struct step_kernel_choice step_kernel_int4_128(enum nn_dtype scales, struct step_arguments *p,
                                               size_t blocks);
struct step_kernel_choice step_kernel_int4_32(enum nn_dtype scales, struct step_arguments *p,
                                              size_t blocks);

#endif
