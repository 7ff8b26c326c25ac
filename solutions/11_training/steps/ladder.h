/**
 * @file ladder.h
 * @brief The steps of solution 11: functions with the signatures of training.h, by the step that
 *        brought them.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_LADDER_H_

#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/** v1, labs/11_training/given/starter.cu: a thread a row, and a thread a column. */
MUST_CHECK enum status starter_layernorm_backward(const struct layernorm_backward_problem *problem,
                                                  void *workspace, device_stream stream,
                                                  struct error *error);

/** v1: the matrices of p and ds stored, a thread an element of each product. */
MUST_CHECK enum status starter_attention_backward(const struct attention_backward_problem *problem,
                                                  void *scratch, device_stream stream,
                                                  struct error *error);

/** v1: a kernel an operation. */
MUST_CHECK enum status starter_adamw(const struct adamw_problem *problem, device_stream stream,
                                     struct error *error);

/** v2: a warp or a block a row, which also adds up the columns. */
MUST_CHECK enum status layernorm_backward_v2_rows(const struct layernorm_backward_problem *problem,
                                                  void *workspace, device_stream stream,
                                                  struct error *error);

/** v3: one pass. */
MUST_CHECK enum status adamw_v3_one_pass(const struct adamw_problem *problem, device_stream stream,
                                         struct error *error);

/** v4: tile by tile, nothing stored. */
MUST_CHECK enum status attention_backward_v4_flash(const struct attention_backward_problem *problem,
                                                   void *scratch, device_stream stream,
                                                   struct error *error);

/** v5: the same on tensor cores, for bf16. */
MUST_CHECK enum status
attention_backward_v5_tensor(const struct attention_backward_problem *problem, void *scratch,
                             device_stream stream, struct error *error);

/** v6: on Hopper, for bf16 and heads of 64 or 128, one kernel by TMA and wgmma. */
MUST_CHECK enum status
attention_backward_v6_hopper(const struct attention_backward_problem *problem, void *scratch,
                             device_stream stream, struct error *error);

/** v7: in fp32, with heads of up to 64 channels, one kernel of five products. */
MUST_CHECK enum status
attention_backward_v7_five_products(const struct attention_backward_problem *problem, void *scratch,
                                    device_stream stream, struct error *error);

/**
 * @brief v6 on a part of the GPU.
 * @param most_blocks blocks of the launch at most; 0: as many as the GPU has multiprocessors
 */
MUST_CHECK enum status attention_backward_hopper(const struct attention_backward_problem *problem,
                                                 void *scratch, unsigned most_blocks,
                                                 device_stream stream, struct error *error);

/**
 * @brief The prologue of v4 and v5: delta = dout . out and lse * log2 e of each head and row.
 * @param scratch receives them as tile_coordinates.cuh's query_stats_in() says
 */
MUST_CHECK enum status attention_query_stats(const struct attention_backward_problem *problem,
                                             void *scratch, device_stream stream,
                                             struct error *error);

/** v4's kernel for dq alone, in bf16, behind attention_query_stats(). */
MUST_CHECK enum status attention_backward_queries(const struct attention_backward_problem *problem,
                                                  void *scratch, device_stream stream,
                                                  struct error *error);

/**
 * @name Halfway between v1 and the last step: a learner's middling submission, for the grader
 * @{ */
MUST_CHECK enum status layernorm_backward_middle(const struct layernorm_backward_problem *problem,
                                                 void *workspace, device_stream stream,
                                                 struct error *error);

/** dk and dv as v5, dq as v4. */
MUST_CHECK enum status attention_backward_middle(const struct attention_backward_problem *problem,
                                                 void *scratch, device_stream stream,
                                                 struct error *error);

MUST_CHECK enum status adamw_middle(const struct adamw_problem *problem, device_stream stream,
                                    struct error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
