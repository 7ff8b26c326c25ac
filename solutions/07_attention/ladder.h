/**
 * @file ladder.h
 * @brief The steps of solution 07, each with the signature of attention().
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_LADDER_H_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_LADDER_H_

#include "labs/07_attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

attention_function attention_v1_plain;
attention_function attention_v2_flash;
attention_function attention_v3_registers;
attention_function attention_v4_tensor;
attention_function attention_v5_lengths;

#ifdef __cplusplus
}
#endif

#endif
