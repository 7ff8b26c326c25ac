/**
 * @file ladder.h
 * @brief The steps of solution 05, each with the signature of layernorm_softmax().
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_LADDER_H_

#include <stdbool.h>

#include "labs/05_layernorm_softmax/layernorm_softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

rows_function rows_v1_thread_a_row;
rows_function rows_v2_block_a_row;
rows_function rows_v3_warp_two_pass;
rows_function rows_v4_warp_online;
rows_function rows_v5_registers;
rows_function rows_v6_widths;

/** Who shares a row in v6, and where the row waits between its first and its last use. */
enum rows_way {
    ROWS_WAY_EIGHTH, /**< 8 lanes, four rows a warp; registers; aligned rows */
    ROWS_WAY_WARP,   /**< a warp; registers; aligned rows */
    ROWS_WAY_BLOCK,  /**< a block; registers; aligned rows */
    ROWS_WAY_SHARED, /**< a block; shared memory, the next row arrives while this one leaves */
    ROWS_WAY_SPLIT   /**< several blocks, two kernels; read twice */
};
enum { ROWS_WAYS = 5 };

/** How v6 does one problem. */
struct rows_plan {
    enum rows_way way;
    int threads; /**< of a block, a multiple of 32; 64 where lanes or a warp do a row */
    int splits;  /**< blocks a row, 1 but for ROWS_WAY_SPLIT */
};

/** @return the plan that v6 takes on this GPU. */
struct rows_plan rows_v6_choose(const struct rows_problem *problem);

/** @return whether a plan's threads hold the row, and the GPU has the shared memory. */
bool rows_v6_possible(const struct rows_problem *problem, struct rows_plan plan);

/** As layernorm_softmax(), with a plan of the caller's, which must be possible; for tests and tune.
 */
MUST_CHECK enum status rows_v6_with_plan(const struct rows_problem *problem, struct rows_plan plan,
                                         void *workspace, device_stream stream,
                                         struct error *error);

/**
 * @brief The checks of every step.
 * @param empty receives whether there is nothing to do
 */
MUST_CHECK enum status rows_check(const struct rows_problem *problem, bool *empty,
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
