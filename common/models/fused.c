#include "common/models/fused.h"

enum status engine_linear(const struct engine *e, float *out, const float *in, const float *weight,
                          const float *bias, size_t M, size_t N, size_t K) {
    if (e->linear != NULL) {
        return e->linear(e->context, out, in, weight, bias, M, N, K);
    }
    TRY(e->matmul(e->context, out, in, weight, M, N, K));
    return e->bias_add(e->context, out, bias, M, N);
}

enum status engine_linear_activation(const struct engine *e, float *out, const float *in,
                                     const float *weight, const float *bias, size_t M, size_t N,
                                     size_t K, enum nn_activation f) {
    if (e->linear_activation != NULL) {
        return e->linear_activation(e->context, out, in, weight, bias, M, N, K, f);
    }
    TRY(engine_linear(e, out, in, weight, bias, M, N, K));
    return e->activation(e->context, out, out, M * N, f);
}

enum status engine_linear_residual_layernorm(const struct engine *e, float *x, const float *in,
                                             const float *weight, const float *bias,
                                             const struct nn_norm *norm, float *scratch, size_t M,
                                             size_t N, size_t K) {
    if (e->linear_residual_layernorm != NULL) {
        return e->linear_residual_layernorm(e->context, x, in, weight, bias, norm, scratch, M, N,
                                            K);
    }
    TRY(engine_linear(e, scratch, in, weight, bias, M, N, K));
    return engine_residual_layernorm(e, x, x, scratch, norm, M, N);
}

enum status engine_residual_layernorm(const struct engine *e, float *out, const float *a,
                                      const float *b, const struct nn_norm *norm, size_t rows,
                                      size_t C) {
    if (e->residual_layernorm != NULL) {
        return e->residual_layernorm(e->context, out, a, b, norm, rows, C);
    }
    TRY(e->residual(e->context, out, a, b, rows * C));
    return e->layernorm(e->context, out, out, norm->weight, norm->bias, rows, C, norm->eps);
}

enum status engine_attention_packed(const struct engine *e, float *out,
                                    const struct nn_attention *a, const int32_t *starts,
                                    const int32_t *host_starts) {
    if (e->attention_packed != NULL) {
        return e->attention_packed(e->context, out, a, starts, host_starts);
    }
    for (size_t b = 0; b < a->B; b++) {
        size_t first = (size_t)host_starts[b];
        struct nn_attention one = *a;
        one.B = 1;
        one.T = (size_t)host_starts[b + 1] - first;
        one.S = one.T;
        one.q += first * a->q_stride;
        one.k += first * a->kv_stride;
        one.v += first * a->kv_stride;
        TRY(e->attention(e->context, out + first * a->NH * a->HS, &one));
    }
    return STATUS_OK;
}
