/**
 * @file fused_v4_residual.cu
 * @brief The residual joins in the epilogue, and a second kernel computes the LayerNorm in place.
 *
 * Changes since v3: the epilogue reads the residual, four rows of a thread at a
 * time, and stores the sum to `out`; the LayerNorm then works in place
 * (norm_rows.cu). With split-K, the LayerNorm's kernel adds the partial sums, the bias
 * and the residual itself. The operations without a matmul are that kernel alone.
 * The lone fused add is the matmul alone.
 *
 * Why: two launches for four or five. A LayerNorm needs whole rows, and a block of the
 * matmul has 64 or 128 columns of them: the same epilogue cannot compute it. But it
 * can be set up while the matmul still runs (dependent_launch.cuh), and 25 MB just written
 * are in the L2 cache.
 *
 * Launches: 2; the lone add 1 (2 with split-K), without a matmul 1. Bytes beside
 * the matmul's: the residual, and once more each way for the LayerNorm.
 *
 * Measured on an NVIDIA H200, 2026-11-21, FUSED_LINEAR_ADD_NORM, 8192 x 768 x 768: 0.2247 ms
 * after 0.2505 (v3); the lone add 0.2121 after 0.2371; the plain matmul 0.2069.
 */
#include "solutions/06_fused_epilogues/steps/ladder.h"

enum status fused_norm_after(const struct fused_problem *p, struct sgemm_plan plan, void *workspace,
                             device_stream stream, struct error *error) {
    struct norm_rows rows = {.partials = p->out,
                             .splits = 1,
                             .bias = NULL,
                             .residual = NULL,
                             .sum = NULL,
                             .out = p->out,
                             .norm = p->norm,
                             .M = p->M,
                             .N = p->N};
    if (plan.splits > 1) {
        rows.partials = fused_scratch(workspace);
        rows.splits = plan.splits;
        rows.bias = p->bias;
        rows.residual = p->residual;
    }
    return fused_norm_rows(&rows, stream, error);
}

enum status fused_linear_add_norm(const struct fused_problem *p, struct sgemm_plan plan,
                                  void *workspace, device_stream stream, struct error *error) {
    if (plan.splits == 1) {
        TRY(fused_linear(p, plan, p->residual, workspace, stream, error));
    } else {
        TRY(fused_linear_splits(p, plan, workspace, stream, error));
    }
    return fused_norm_after(p, plan, workspace, stream, error);
}

enum status fused_add_norm(const struct fused_problem *p, device_stream stream,
                           struct error *error) {
    const struct norm_rows rows = {.partials = p->in,
                                   .splits = 1,
                                   .bias = NULL,
                                   .residual = p->residual,
                                   .sum = p->op == FUSED_ADD_KEEP_NORM ? p->sum : NULL,
                                   .out = p->out,
                                   .norm = p->norm,
                                   .M = p->M,
                                   .N = p->N};
    return fused_norm_rows(&rows, stream, error);
}

enum status fused_v4_residual(const struct fused_problem *p, void *workspace, device_stream stream,
                              struct error *error) {
    struct sgemm_plan plan;
    if (!fused_multiplies(p->op)) {
        return fused_add_norm(p, stream, error);
    }
    if (p->op != FUSED_LINEAR_ADD && p->op != FUSED_LINEAR_ADD_NORM) {
        return fused_v3_activation(p, workspace, stream, error);
    }
    TRY(fused_choose(p, &plan, error));
    if (p->op == FUSED_LINEAR_ADD) {
        return fused_linear(p, plan, p->residual, workspace, stream, error);
    }
    return fused_linear_add_norm(p, plan, workspace, stream, error);
}
