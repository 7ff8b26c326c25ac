/**
 * @file fused.h
 * @brief Fused operators: each calls the stage's fused entry, or the single operators if the stage
 *        has none.
 *
 * Models call these functions instead of the entries of struct engine. So stages with and without
 * fused operators run the same model code.
 */
#ifndef WARPBOOK_COMMON_MODELS_FUSED_H_
#define WARPBOOK_COMMON_MODELS_FUSED_H_

#include "common/models/engine.h"

/** out (M, N) = in (M, K) * weight (N, K)^T + bias (N). Single operators: matmul, bias_add. */
MUST_CHECK enum status engine_linear(const struct engine *engine, float *out, const float *in,
                                     const float *weight, const float *bias, size_t M, size_t N,
                                     size_t K);

/** out (M, N) = f(in * weight^T + bias). Single operators: engine_linear(), activation. */
MUST_CHECK enum status engine_linear_activation(const struct engine *engine, float *out,
                                                const float *in, const float *weight,
                                                const float *bias, size_t M, size_t N, size_t K,
                                                enum nn_activation f);

/**
 * x (M, N) = LayerNorm(x + in * weight^T + bias). Single operators: engine_linear() into scratch
 * (M, N), engine_residual_layernorm().
 */
MUST_CHECK enum status engine_linear_residual_layernorm(const struct engine *engine, float *x,
                                                        const float *in, const float *weight,
                                                        const float *bias,
                                                        const struct nn_norm *norm, float *scratch,
                                                        size_t M, size_t N, size_t K);

/** out (rows, C) = LayerNorm(a + b); out may be a or b. Single operators: residual, layernorm. */
MUST_CHECK enum status engine_residual_layernorm(const struct engine *engine, float *out,
                                                 const float *a, const float *b,
                                                 const struct nn_norm *norm, size_t rows, size_t C);

/**
 * Attention of sequences without padding, see attention_packed in struct engine. Single operators:
 * one call of attention for each sequence.
 */
MUST_CHECK enum status engine_attention_packed(const struct engine *engine, float *out,
                                               const struct nn_attention *a, const int32_t *starts,
                                               const int32_t *host_starts);

#endif
