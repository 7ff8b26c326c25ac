/**
 * @file ladder.h
 * @brief The steps of solution 07, each with the signature of attention().
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_LADDER_H_

#include "labs/07_attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

attention_function attention_v1_plain;
attention_function attention_v2_flash;
attention_function attention_v3_registers;
attention_function attention_v4_tensor;
attention_function attention_v5_lengths;
attention_function attention_v6_hopper;
attention_function attention_v7_specialised;
/** Halfway to v4: a learner's middling submission, for the grader. */
attention_function attention_small_tiles;

/**
 * @brief The kernels of v3, for fp32; the problem is checked.
 * @param lse     (tokens, NH), of packed sequences and contiguous rows of out: also receives the
 *                logarithm of each query's sum of exponentials; NULL: not wanted
 * @param lengths whether to launch only tiles of packed sequences that exist and to pass over tiles
 *                of keys that are all masked, as v5 does
 */
MUST_CHECK enum status attention_float(const struct attention_problem *problem, float *lse,
                                       bool lengths, device_stream stream, struct error *error);

/** The same of v4, for fp16 and bf16. */
MUST_CHECK enum status attention_half(const struct attention_problem *problem, float *lse,
                                      bool lengths, device_stream stream, struct error *error);

/** @return whether the GPU at hand, and the code compiled for it, have what v6 and v7 need. */
bool attention_hopper_there(void);

/** @return whether v6's kernel takes the problem: fp16 or bf16, heads 16-byte aligned. */
bool attention_hopper_takes(const struct attention_problem *problem);

/** The same of v6, for problems that it takes. */
MUST_CHECK enum status attention_hopper(const struct attention_problem *problem, float *lse,
                                        device_stream stream, struct error *error);

/**
 * @brief The same of v7, for problems that v6 takes without a mask, with heads of 64 or 128
 *        channels and at least one query and key.
 * @param most_blocks blocks of a launch at most; 0: as many as the GPU has multiprocessors
 */
MUST_CHECK enum status attention_specialised(const struct attention_problem *problem, float *lse,
                                             int most_blocks, device_stream stream,
                                             struct error *error);

#ifdef __cplusplus
}
#endif

#endif
