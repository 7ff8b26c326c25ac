/**
 * @file fused_v1_single_operators.cu
 * @brief A launch for each operator: lab 04's SGEMM, lab 05's LayerNorm, lab 03's others.
 *
 * Every operator reads its (M, N) from memory and writes one back: bias, residual
 * and LayerNorm after a matmul move (M, N) some eight times, to do a dozen
 * operations with each element.
 *
 * Launches: matmul 1 (2 where K is split), each of the others 1.
 *
 * Measured on an NVIDIA H200, 2026-11-21, FUSED_LINEAR_ADD_NORM, 8192 x 768 x 768: 0.2812 ms; the
 * plain matmul 0.2069.
 */
#include "labs/03_resident_weights/given/operators.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "solutions/06_fused_epilogues/steps/ladder.h"

static const size_t SCRATCH_FLOATS =
    (FUSED_WORKSPACE_BYTES - FUSED_ZERO_BYTES - SGEMM_WORKSPACE_BYTES) / sizeof(float);

static enum status linear(const struct fused_problem *p, void *workspace, device_stream stream,
                          struct error *error) {
    const struct sgemm_problem product = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .beta = 0.0f,
                                          .A = p->in,
                                          .B = p->weight,
                                          .C = p->out};
    TRY(sgemm_v10_shapes(&product, fused_scratch(workspace), stream, error));
    if (p->bias == NULL) {
        return STATUS_OK;
    }
    return launch_bias_add(p->out, p->bias, p->M, p->N, stream, error);
}

static enum status layernorm(const struct fused_problem *p, const float *in, void *workspace,
                             device_stream stream, struct error *error) {
    const struct rows_problem rows = {.op = ROWS_LAYERNORM,
                                      .type = NN_F32,
                                      .rows = p->M,
                                      .C = p->N,
                                      .in = in,
                                      .out = p->out,
                                      .weight = p->norm.weight,
                                      .bias = p->norm.bias,
                                      .eps = p->norm.eps};
    return layernorm_softmax(&rows, fused_scratch(workspace), stream, error);
}

/* As many rows of the problem as the scratch memory holds, from row m on. */
static struct fused_problem band_of(const struct fused_problem *p, size_t m) {
    struct fused_problem band = *p;
    size_t most = SCRATCH_FLOATS / (p->N + p->K);
    band.M = p->M - m < most ? p->M - m : most;
    band.in = p->in + m * p->K;
    band.residual = p->residual + m * p->N;
    band.out = p->out + m * p->N;
    return band;
}

/* The product is stored in scratch memory, because out may be the residual. */
static enum status linear_add(const struct fused_problem *p, fused_function *linear_step,
                              void *workspace, device_stream stream, struct error *error) {
    float *product = fused_scratch(workspace) + SGEMM_WORKSPACE_BYTES / sizeof(float);
    struct fused_problem multiply = *p;
    multiply.op = FUSED_LINEAR;
    multiply.out = product;
    multiply.bias = p->op == FUSED_LINEAR_ADD ? NULL : p->bias;
    if (p->op == FUSED_GELU_LINEAR_ADD_NORM) {
        float *activated = product + p->M * p->N;
        TRY(launch_activation(activated, p->in, p->M * p->K, NN_GELU, stream, error));
        multiply.in = activated;
    }
    TRY(linear_step(&multiply, workspace, stream, error));
    TRY(launch_residual(p->out, p->residual, product, p->M * p->N, stream, error));
    if (p->op == FUSED_LINEAR_ADD) {
        return STATUS_OK;
    }
    return layernorm(p, p->out, workspace, stream, error);
}

static enum status add_norm(const struct fused_problem *p, void *workspace, device_stream stream,
                            struct error *error) {
    float *sum = p->op == FUSED_ADD_KEEP_NORM ? p->sum : p->out;
    TRY(launch_residual(sum, p->residual, p->in, p->M * p->N, stream, error));
    return layernorm(p, sum, workspace, stream, error);
}

enum status fused_one_by_one(const struct fused_problem *p, fused_function *linear_step,
                             void *workspace, device_stream stream, struct error *error) {
    if (!fused_multiplies(p->op)) {
        return add_norm(p, workspace, stream, error);
    }
    if (p->op == FUSED_LINEAR) {
        return linear_step(p, workspace, stream, error);
    }
    if (p->op == FUSED_LINEAR_ACTIVATION) {
        TRY(linear_step(p, workspace, stream, error));
        return launch_activation(p->out, p->out, p->M * p->N, p->f, stream, error);
    }
    for (size_t m = 0; m < p->M;) {
        const struct fused_problem band = band_of(p, m);
        TRY(linear_add(&band, linear_step, workspace, stream, error));
        m += band.M;
    }
    return STATUS_OK;
}

enum status fused_v1_single_operators(const struct fused_problem *p, void *workspace,
                                      device_stream stream, struct error *error) {
    return fused_one_by_one(p, linear, workspace, stream, error);
}
