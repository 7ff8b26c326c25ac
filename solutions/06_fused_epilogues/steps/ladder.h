/**
 * @file ladder.h
 * @brief The steps of solution 06, each with the signature of fused_epilogues(), and what they
 * share.
 *
 * Each step replaces some operations of the step before it.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_LADDER_H_

#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "solutions/04_sgemm/steps/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

fused_function fused_v1_single_operators;
fused_function fused_v2_bias;
fused_function fused_v3_activation;
fused_function fused_v4_residual;
fused_function fused_v5_one_launch;
fused_function fused_v6_gelu_in;
fused_function fused_v7_band_barrier;

/** The workspace behind the bytes that stay zero. */
static inline float *fused_scratch(void *workspace) {
    return (float *)((char *)workspace + FUSED_ZERO_BYTES);
}

/** @return true when the operation multiplies. */
static inline int fused_multiplies(enum fused_op op) {
    return op <= FUSED_GELU_LINEAR_ADD_NORM;
}

/**
 * @brief Lab 04's choice of tile shape and split-K for the multiplication of @p problem.
 * @return STATUS_OK, or STATUS_DEVICE when the GPU does not say how many multiprocessors it has
 */
MUST_CHECK enum status fused_choose(const struct fused_problem *problem, struct sgemm_plan *plan,
                                    struct error *error);

/**
 * @brief The last step with a plan of the caller's, which must be possible. For tests and tuning.
 * @param plan ignored by operations without a multiplication
 */
MUST_CHECK enum status fused_run_plan(const struct fused_problem *problem, struct sgemm_plan plan,
                                      void *workspace, device_stream stream, struct error *error);

/** A launch for each operator but FUSED_LINEAR, which is @p linear's. */
MUST_CHECK enum status fused_one_by_one(const struct fused_problem *problem, fused_function *linear,
                                        void *workspace, device_stream stream, struct error *error);

/** @name Functions of the steps, each with a plan of lab 04
 * @{ */

/** v2: out = product + bias + residual, both or NULL. */
MUST_CHECK enum status fused_linear(const struct fused_problem *problem, struct sgemm_plan plan,
                                    const float *residual, void *workspace, device_stream stream,
                                    struct error *error);
/** v2: the partial sums of plan.splits splits of K, one matrix after the other, to the scratch
 * memory. */
MUST_CHECK enum status fused_linear_splits(const struct fused_problem *problem,
                                           struct sgemm_plan plan, void *workspace,
                                           device_stream stream, struct error *error);
/** v3: FUSED_LINEAR_ACTIVATION. */
MUST_CHECK enum status fused_linear_activation(const struct fused_problem *problem,
                                               struct sgemm_plan plan, void *workspace,
                                               device_stream stream, struct error *error);
/** v4: FUSED_LINEAR_ADD_NORM. */
MUST_CHECK enum status fused_linear_add_norm(const struct fused_problem *problem,
                                             struct sgemm_plan plan, void *workspace,
                                             device_stream stream, struct error *error);
/** v5: the same, in one launch where that is possible. */
MUST_CHECK enum status fused_one_launch(const struct fused_problem *problem, struct sgemm_plan plan,
                                        void *workspace, device_stream stream, struct error *error);
/** v4: the LayerNorm of the sum in out, or, with split-K, of partial sums in the scratch memory. */
MUST_CHECK enum status fused_norm_after(const struct fused_problem *problem, struct sgemm_plan plan,
                                        void *workspace, device_stream stream, struct error *error);
/** v4: the operations without a multiplication. */
MUST_CHECK enum status fused_add_norm(const struct fused_problem *problem, device_stream stream,
                                      struct error *error);
/** v6: FUSED_GELU_LINEAR_ADD_NORM. */
MUST_CHECK enum status fused_gelu_linear_add_norm(const struct fused_problem *problem,
                                                  struct sgemm_plan plan, void *workspace,
                                                  device_stream stream, struct error *error);
/** v7: FUSED_LINEAR_ADD_NORM and FUSED_GELU_LINEAR_ADD_NORM, in one launch where possible. */
MUST_CHECK enum status fused_band_barrier(const struct fused_problem *problem,
                                          struct sgemm_plan plan, void *workspace,
                                          device_stream stream, struct error *error);
/** @} */

/** out = LayerNorm(sum), sum = the partial sums + bias + residual. */
struct norm_rows {
    const float *partials; /**< (splits, M, N), added up in order */
    int splits;            /**< at least 1 */
    const float *bias;     /**< (N), or NULL */
    const float *residual; /**< (M, N), or NULL; may be sum or out */
    float *sum;            /**< (M, N), or NULL; may be partials when splits is 1 */
    float *out;            /**< (M, N); may be partials when splits is 1, but not sum */
    struct nn_norm norm;
    size_t M, N;
};

/** One launch, of a kernel that is set up while the one before it still runs. */
MUST_CHECK enum status fused_norm_rows(const struct norm_rows *rows, device_stream stream,
                                       struct error *error);

#ifdef __cplusplus
}
#endif

#endif
