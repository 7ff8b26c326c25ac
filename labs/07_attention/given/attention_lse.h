/**
 * @file attention_lse.h
 * @brief Lab 07's solution for training: attention that also keeps what its gradient needs.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_GIVEN_ATTENTION_LSE_H_
#define WARPBOOK_LABS_07_ATTENTION_GIVEN_ATTENTION_LSE_H_

#include "labs/07_attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief attention(), packed form, that also stores the logarithm of each query's sum of
 *        exponentials: lse[t] = log(sum over the keys it sees of exp(scale * q[t] . k[s])).
 *
 * @param problem as for attention(); packed, with out_stride = NH * HS; of every sequence at least
 *                one token
 * @param lse     device, (tokens, NH), fp32
 * @return as attention(), and STATUS_INVALID_ARGUMENT for the padded form or another stride
 */
MUST_CHECK enum status attention_lse(const struct attention_problem *problem, float *lse,
                                     device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
