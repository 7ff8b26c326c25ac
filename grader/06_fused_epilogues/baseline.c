#include "grader/06_fused_epilogues/baseline.h"

#include "labs/03_resident_weights/given/operators.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

static char *scratch(void *workspace) {
    return (char *)workspace + FUSED_ZERO_BYTES;
}

static enum status matmul(const struct fused_problem *p, float *out, void *workspace,
                          device_stream stream, struct error *error) {
    const struct sgemm_problem product = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .A = p->in,
                                          .B = p->weight,
                                          .C = out};
    return sgemm(&product, scratch(workspace), stream, error);
}

enum status fused_plain_matmul(const struct fused_problem *p, void *workspace, device_stream stream,
                               struct error *error) {
    return matmul(p, p->out, workspace, stream, error);
}

static enum status add_norm(const struct fused_problem *p, void *workspace, device_stream stream,
                            struct error *error) {
    float *product = (float *)(scratch(workspace) + SGEMM_WORKSPACE_BYTES);
    TRY(matmul(p, product, workspace, stream, error));
    TRY(launch_bias_add(product, p->bias, p->M, p->N, stream, error));
    TRY(launch_residual(p->out, p->residual, product, p->M * p->N, stream, error));
    const struct rows_problem rows = {.op = ROWS_LAYERNORM,
                                      .type = NN_F32,
                                      .rows = p->M,
                                      .C = p->N,
                                      .in = p->out,
                                      .out = p->out,
                                      .weight = p->norm.weight,
                                      .bias = p->norm.bias,
                                      .eps = p->norm.eps};
    return layernorm_softmax(&rows, scratch(workspace), stream, error);
}

enum status fused_baseline(const struct fused_problem *p, void *workspace, device_stream stream,
                           struct error *error) {
    if (p->op == FUSED_LINEAR_ADD_NORM) {
        return add_norm(p, workspace, stream, error);
    }
    TRY(matmul(p, p->out, workspace, stream, error));
    TRY(launch_bias_add(p->out, p->bias, p->M, p->N, stream, error));
    if (p->op == FUSED_LINEAR) {
        return STATUS_OK;
    }
    return launch_activation(p->out, p->out, p->M * p->N, p->f, stream, error);
}
