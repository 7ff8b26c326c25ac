/**
 * @file kernels.h
 * @brief The kernels of the low-bit decoder, one file for each form of a stage.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_KERNELS_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_KERNELS_H_

#include <stddef.h>

#include "common/nn/dtype.h"
#include "common/nn/low_bit.h"

/* A kernel, and its block. */
struct low_bit_kernel {
    const void *function;
    unsigned threads, warps, stages;
    size_t pipeline_bytes; /* shared memory of all pipelines */
    size_t plan_bytes;     /* behind them */
    size_t static_bytes;
    size_t stage_room;     /* bytes of a stage behind its keys and values, for their scales */
    size_t partial_floats; /* of shared memory in attention */
    size_t input_floats;   /* of shared memory for 128 channels of a product's input */
};

/* @param queries 1 or 2: of a team @param L, HS of the model */
struct low_bit_kernel low_bit_kernel_bytes(enum low_bit_type type, size_t queries, size_t L,
                                           size_t HS);
/* int8 with a stage more. */
struct low_bit_kernel low_bit_kernel_int8(size_t queries, size_t L, size_t HS);
struct low_bit_kernel low_bit_kernel_int4_128(enum nn_dtype scales, size_t queries, size_t L,
                                              size_t HS);
struct low_bit_kernel low_bit_kernel_int4_32(enum nn_dtype scales, size_t queries, size_t L,
                                             size_t HS);

#endif
