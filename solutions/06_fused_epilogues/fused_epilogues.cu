/**
 * @file fused_epilogues.cu
 * @brief Solution of lab 06: checks, the last step of the ladder, and the ladder.
 */
#include "labs/06_fused_epilogues/fused_epilogues.h"

#include <limits.h>

#include "solutions/06_fused_epilogues/steps/ladder.h"

static enum status check_sizes(const struct fused_problem *p, struct error *error) {
    size_t M = p->M, N = p->N, K = p->K;
    if (M > FUSED_MAX_ROWS || N > FUSED_MAX_COLUMNS || K > FUSED_MAX_COLUMNS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "fused_epilogues: M = %zu, N = %zu, K = %zu: M is at most %zu, the others "
                         "%zu",
                         M, N, K, FUSED_MAX_ROWS, FUSED_MAX_COLUMNS);
    }
    if ((M / 32 + 1) * (N / 64 + 1) > INT_MAX / 16) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "fused_epilogues: M = %zu and N = %zu need more blocks than a launch takes", M, N);
    }
    return STATUS_OK;
}

static enum status check(const struct fused_problem *p, struct error *error) {
    if ((unsigned)p->op >= FUSED_OPS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "fused_epilogues: there is no operation %d", (int)p->op);
    }
    if (p->op == FUSED_LINEAR_ACTIVATION && (unsigned)p->f > NN_RELU) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "fused_epilogues: there is no activation %d", (int)p->f);
    }
    return check_sizes(p, error);
}

enum status fused_run_plan(const struct fused_problem *p, struct sgemm_plan plan, void *workspace,
                           device_stream stream, struct error *error) {
    switch (p->op) {
    case FUSED_LINEAR:
        return fused_linear(p, plan, NULL, workspace, stream, error);
    case FUSED_LINEAR_ACTIVATION:
        return fused_linear_activation(p, plan, workspace, stream, error);
    case FUSED_LINEAR_ADD:
        return fused_linear(p, plan, p->residual, workspace, stream, error);
    case FUSED_LINEAR_ADD_NORM:
    case FUSED_GELU_LINEAR_ADD_NORM:
        return fused_band_barrier(p, plan, workspace, stream, error);
    default:
        return fused_add_norm(p, stream, error);
    }
}

const struct fused_step *fused_epilogues_ladder(size_t *count) {
    static const struct fused_step steps[] = {
        {"v1_single_operators", fused_v1_single_operators},
        {"v2_bias", fused_v2_bias},
        {"v3_activation", fused_v3_activation},
        {"v4_residual", fused_v4_residual},
        {"v5_one_launch", fused_v5_one_launch},
        {"v6_gelu_in", fused_v6_gelu_in},
        {"v7_rows_meet", fused_v7_band_barrier},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

enum status fused_epilogues(const struct fused_problem *problem, void *workspace,
                            device_stream stream, struct error *error) {
    TRY(check(problem, error));
    if (problem->M == 0 || problem->N == 0) {
        return STATUS_OK;
    }
    return fused_v7_band_barrier(problem, workspace, stream, error);
}
