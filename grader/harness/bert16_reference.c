#include "grader/harness/bert16_reference.h"

#include <stdint.h>

#include "common/models/engine_layer.h"
#include "common/nn/dtype.h"

static void round_to_bf16(float *x, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        nn_dtype_store(&bits, &x[i], 1, NN_BF16);
        nn_dtype_load(&x[i], &bits, 1, NN_BF16);
    }
}

/* The model's arena is its own; its weights are const for those who run it. */
static void round_linear(const struct bert_linear *linear, size_t N, size_t K) {
    round_to_bf16((float *)(uintptr_t)linear->weight, N * K);
    round_to_bf16((float *)(uintptr_t)linear->bias, N);
}

void bert16_round_weights(struct bert_random *model) {
    const size_t C = model->config.C, hidden = model->config.hidden;
    for (size_t l = 0; l < model->config.L; l++) {
        const struct bert_layer *layer = &model->weights.layers[l];
        round_linear(&layer->q, C, C);
        round_linear(&layer->k, C, C);
        round_linear(&layer->v, C, C);
        round_linear(&layer->attention_out, C, C);
        round_linear(&layer->up, hidden, C);
        round_linear(&layer->down, C, hidden);
    }
}

/* How far a batch has come. What the encoder's last LayerNorm gives, the pooler and the classifier
   are fp32. */
struct progress {
    size_t sublayers, done; /* two a layer, each of which ends with a LayerNorm */
};

static void round_inside(void *context, float *x, size_t count) {
    const struct progress *progress = engine_layer_own(context);
    if (progress->done < progress->sublayers) {
        round_to_bf16(x, count);
    }
}

/* The embedding's, where a batch begins; the layers' are part of linear_residual_layernorm(). */
static enum status layernorm(void *context, float *out, const float *in, const float *weight,
                             const float *bias, size_t rows, size_t C, float eps) {
    const struct engine *base = engine_layer_base(context);
    struct progress *progress = engine_layer_own(context);
    progress->done = 0;
    TRY(base->layernorm(base->context, out, in, weight, bias, rows, C, eps));
    round_inside(context, out, rows * C);
    return STATUS_OK;
}

static enum status linear(void *context, float *out, const float *in, const float *weight,
                          const float *bias, size_t M, size_t N, size_t K) {
    const struct engine *base = engine_layer_base(context);
    TRY(base->matmul(base->context, out, in, weight, M, N, K));
    TRY(base->bias_add(base->context, out, bias, M, N));
    round_inside(context, out, M * N);
    return STATUS_OK;
}

static enum status linear_activation(void *context, float *out, const float *in,
                                     const float *weight, const float *bias, size_t M, size_t N,
                                     size_t K, enum nn_activation f) {
    const struct engine *base = engine_layer_base(context);
    TRY(base->matmul(base->context, out, in, weight, M, N, K));
    TRY(base->bias_add(base->context, out, bias, M, N));
    TRY(base->activation(base->context, out, out, M * N, f));
    round_inside(context, out, M * N);
    return STATUS_OK;
}

static enum status linear_residual_layernorm(void *context, float *x, const float *in,
                                             const float *weight, const float *bias,
                                             const struct nn_norm *norm, float *scratch, size_t M,
                                             size_t N, size_t K) {
    const struct engine *base = engine_layer_base(context);
    struct progress *progress = engine_layer_own(context);
    TRY(base->matmul(base->context, scratch, in, weight, M, N, K));
    TRY(base->bias_add(base->context, scratch, bias, M, N));
    TRY(base->residual(base->context, x, x, scratch, M * N));
    TRY(base->layernorm(base->context, x, x, norm->weight, norm->bias, M, N, norm->eps));
    progress->done++;
    round_inside(context, x, M * N);
    return STATUS_OK;
}

static enum status attention(void *context, float *out, const struct nn_attention *a) {
    const struct engine *base = engine_layer_base(context);
    TRY(base->attention(base->context, out, a));
    round_inside(context, out, a->B * a->T * a->NH * a->HS);
    return STATUS_OK;
}

enum status bert16_reference_create(struct engine *engine, size_t layers) {
    struct engine base;
    const struct progress progress = {2 * layers, 0};
    TRY(engine_reference_create(&base));
    TRY(engine_layer_create_copy(engine, "reference in bf16", &base, &progress, sizeof progress,
                                 NULL, NULL));
    engine->layernorm = layernorm;
    engine->linear = linear;
    engine->linear_activation = linear_activation;
    engine->linear_residual_layernorm = linear_residual_layernorm;
    engine->attention = attention;
    return STATUS_OK;
}
