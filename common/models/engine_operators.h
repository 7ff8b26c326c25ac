/**
 * @file engine_operators.h
 * @brief The operators of struct engine as lists, for code that treats all of them alike: a layer,
 *        a profile, a test's engine that fails.
 *
 * ENTRY(NAME, name, parameters, arguments...) is called for each operator: its name in capitals and
 * in struct engine, its parameters in parentheses, and the same without types and context. An
 * engine that counts calls, for example:
 *
 *     #define COUNTED(NAME, name, parameters, ...)                             \
 *         static enum status counted_##name parameters {                       \
 *             struct counter *c = context;                                     \
 *             c->calls++;                                                      \
 *             return c->inner.name(c->inner.context, __VA_ARGS__);             \
 *         }
 *     ENGINE_OPERATORS(COUNTED)
 *
 * engine.h says what the operators do.
 */
#ifndef WARPBOOK_COMMON_MODELS_ENGINE_OPERATORS_H_
#define WARPBOOK_COMMON_MODELS_ENGINE_OPERATORS_H_

#include "common/models/engine.h"

/** The operators whose function in common/nn takes the same arguments: all but attention. */
#define ENGINE_NN_OPERATORS(ENTRY)                                                                 \
    ENTRY(MATMUL, matmul,                                                                          \
          (void *context, float *out, const float *in, const float *weight, size_t M, size_t N,    \
           size_t K),                                                                              \
          out, in, weight, M, N, K)                                                                \
    ENTRY(BIAS_ADD, bias_add, (void *context, float *x, const float *bias, size_t rows, size_t C), \
          x, bias, rows, C)                                                                        \
    ENTRY(ACTIVATION, activation,                                                                  \
          (void *context, float *out, const float *in, size_t count, enum nn_activation f), out,   \
          in, count, f)                                                                            \
    ENTRY(SILU_GATE, silu_gate,                                                                    \
          (void *context, float *out, const float *gate, const float *up, size_t count), out,      \
          gate, up, count)                                                                         \
    ENTRY(RESIDUAL, residual,                                                                      \
          (void *context, float *out, const float *a, const float *b, size_t count), out, a, b,    \
          count)                                                                                   \
    ENTRY(LAYERNORM, layernorm,                                                                    \
          (void *context, float *out, const float *in, const float *weight, const float *bias,     \
           size_t rows, size_t C, float eps),                                                      \
          out, in, weight, bias, rows, C, eps)                                                     \
    ENTRY(RMSNORM, rmsnorm,                                                                        \
          (void *context, float *out, const float *in, const float *weight, size_t rows, size_t C, \
           float eps),                                                                             \
          out, in, weight, rows, C, eps)                                                           \
    ENTRY(SOFTMAX, softmax, (void *context, float *out, const float *in, size_t rows, size_t C),   \
          out, in, rows, C)                                                                        \
    ENTRY(ROPE, rope,                                                                              \
          (void *context, float *x, size_t T, size_t heads, size_t HS, size_t stride,              \
           size_t position, float theta, enum nn_rope_layout layout),                              \
          x, T, heads, HS, stride, position, theta, layout)                                        \
    ENTRY(EMBEDDING, embedding,                                                                    \
          (void *context, float *out, const float *table, const int32_t *ids, size_t T, size_t C,  \
           bool accumulate),                                                                       \
          out, table, ids, T, C, accumulate)

/** The operators that every engine has. */
#define ENGINE_OPERATORS(ENTRY) \
    ENGINE_NN_OPERATORS(ENTRY)  \
    ENTRY(ATTENTION, attention, (void *context, float *out, const struct nn_attention *a), out, a)

/** The optional and the fused operators, which may be NULL. */
#define ENGINE_FUSED_OPERATORS(ENTRY)                                                             \
    ENTRY(ROPE_TABLE, rope_table,                                                                 \
          (void *context, float *x, size_t T, size_t heads, size_t HS, size_t stride,             \
           size_t position, const float *frequencies, enum nn_rope_layout layout),                \
          x, T, heads, HS, stride, position, frequencies, layout)                                 \
    ENTRY(LINEAR, linear,                                                                         \
          (void *context, float *out, const float *in, const float *weight, const float *bias,    \
           size_t M, size_t N, size_t K),                                                         \
          out, in, weight, bias, M, N, K)                                                         \
    ENTRY(LINEAR_ACTIVATION, linear_activation,                                                   \
          (void *context, float *out, const float *in, const float *weight, const float *bias,    \
           size_t M, size_t N, size_t K, enum nn_activation f),                                   \
          out, in, weight, bias, M, N, K, f)                                                      \
    ENTRY(LINEAR_RESIDUAL_LAYERNORM, linear_residual_layernorm,                                   \
          (void *context, float *x, const float *in, const float *weight, const float *bias,      \
           const struct nn_norm *norm, float *scratch, size_t M, size_t N, size_t K),             \
          x, in, weight, bias, norm, scratch, M, N, K)                                            \
    ENTRY(RESIDUAL_LAYERNORM, residual_layernorm,                                                 \
          (void *context, float *out, const float *a, const float *b, const struct nn_norm *norm, \
           size_t rows, size_t C),                                                                \
          out, a, b, norm, rows, C)                                                               \
    ENTRY(ATTENTION_PACKED, attention_packed,                                                     \
          (void *context, float *out, const struct nn_attention *a, const int32_t *starts,        \
           const int32_t *host_starts),                                                           \
          out, a, starts, host_starts)

/** The copies between host and resident memory. */
#define ENGINE_COPIES(ENTRY)                                                                      \
    ENTRY(COPY, write, (void *context, void *resident, const void *host, size_t bytes), resident, \
          host, bytes)                                                                            \
    ENTRY(COPY, read, (void *context, void *host, const void *resident, size_t bytes), host,      \
          resident, bytes)

#endif
