/**
 * @file ladder.h
 * @brief The steps of solution 13, each with the signature of low_bit_linear().
 *
 * Up to v2 the matrix stays in the plain order, from v3 on it is in tensor cores' fragments:
 * prepare.cuh.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_LADDER_H_

#include "labs/13_low_bit/low_bit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status low_bit_function(const struct low_bit_linear *linear, void *workspace,
                                     device_stream stream, struct error *error);

low_bit_function low_bit_v1_rows, low_bit_v2_magic, low_bit_v3_mma, low_bit_v4_in_flight,
    low_bit_v5_chained, low_bit_v6_warps;

#ifdef __cplusplus
}
#endif

#endif
