/**
 * @file calls.h
 * @brief What the grader of lab 13 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_13_LOW_BIT_CALLS_H_
#define WARPBOOK_GRADER_13_LOW_BIT_CALLS_H_

#include "labs/09_kv_cache/kv_cache.h"
#include "labs/13_low_bit/low_bit.h"

/** "low_bit_prepare" */
struct low_bit_prepare_call {
    struct low_bit_matrix matrix;
    void *prepared;
    device_stream stream;
};

/** "low_bit_linear" */
struct low_bit_linear_call {
    struct low_bit_linear linear;
    void *workspace;
    device_stream stream;
};

/** "bf16_linear", of the baseline alone: lab 09's product, once for each row of in and out. */
struct bf16_linear_call {
    struct kv_linear linear; /**< of the first row */
    size_t rows;
    device_stream stream;
};

#endif
