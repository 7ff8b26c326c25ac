/**
 * @file reference_internal.h
 * @brief The entries of the reference engine's table; private to reference*.c.
 *
 * What each does, and what may overlap, train_engine.h says. Here every tensor is double in plain
 * host memory, and the context is not used: the entries compute at once and hold nothing.
 */
#ifndef WARPBOOK_COMMON_TRAIN_REFERENCE_REFERENCE_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_REFERENCE_REFERENCE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/train/train_engine.h"

/** @return sum of a[i] * b[i]. @param a (count) @param b (count) */
static inline double reference_dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/** out[i] += factor * in[i]. @param out (count) @param in (count) */
static inline void reference_add(double *out, double factor, const double *in, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] += factor * in[i];
    }
}

/** @return add[i] + dropout(in[i]), the residual connection. @param add NULL: none */
static inline double reference_residual(const double *add, const double *in, size_t i,
                                        const struct train_dropout *dropout) {
    double kept = dropout->p > 0.0f ? (double)train_dropout_factor(dropout, i) * in[i] : in[i];
    return add != NULL ? add[i] + kept : kept;
}

enum status reference_linear(void *context, void *out, const void *in, const void *weight,
                             const void *bias, size_t M, size_t N, size_t K);
enum status reference_linear_backward(void *context, void *din, const void *add, void *dweight,
                                      void *dbias, const void *dout, const void *in,
                                      const void *weight, size_t M, size_t N, size_t K);

enum status reference_activation(void *context, void *out, const void *in, size_t count,
                                 enum nn_activation f);
enum status reference_activation_backward(void *context, void *din, const void *dout,
                                          const void *in, size_t count, enum nn_activation f);
enum status reference_silu_gate(void *context, void *out, const void *gate_up, size_t rows,
                                size_t hidden);
enum status reference_silu_gate_backward(void *context, void *dgate_up, const void *dout,
                                         const void *gate_up, size_t rows, size_t hidden);
enum status reference_activation_bias_backward(void *context, void *din, void *dbias,
                                               const void *dout, const void *in, size_t rows,
                                               size_t C, enum nn_activation f);
enum status reference_dropout_bias_backward(void *context, void *din, void *dbias, const void *dout,
                                            size_t rows, size_t C,
                                            const struct train_dropout *dropout);
enum status reference_dropout(void *context, void *out, const void *add, const void *in,
                              size_t count, const struct train_dropout *dropout);

enum status reference_layernorm(void *context, void *out, void *stats, void *sum, const void *add,
                                const void *in, const struct train_dropout *dropout,
                                const struct train_norm *norm, size_t rows, size_t C);
enum status reference_layernorm_backward(void *context, void *din,
                                         const struct train_norm_gradient *gradient,
                                         const void *dout, const void *in, const void *stats,
                                         const struct train_norm *norm, size_t rows, size_t C);
enum status reference_rmsnorm(void *context, void *out, void *stats, const void *in,
                              const struct train_norm *norm, size_t rows, size_t C);
enum status reference_rmsnorm_backward(void *context, void *din, const void *add,
                                       const struct train_norm_gradient *gradient, const void *dout,
                                       const void *in, const void *stats,
                                       const struct train_norm *norm, size_t rows, size_t C);

enum status reference_attention(void *context, void *out, void *lse,
                                const struct train_attention *attention);
enum status reference_attention_backward(void *context,
                                         const struct train_attention_gradient *gradient,
                                         const void *dout, const void *out, const void *lse,
                                         const struct train_attention *attention);
enum status reference_rope(void *context, void *x, const int32_t *positions, size_t rows,
                           size_t heads, size_t HS, size_t stride, float theta,
                           enum nn_rope_layout layout, bool back);

enum status reference_embedding(void *context, void *out, const void *table, const int32_t *ids,
                                size_t rows, size_t C, bool accumulate);
enum status reference_embedding_backward(void *context, void *dtable, const void *dout,
                                         const struct train_occurrences *occurrences, size_t C);
enum status reference_gather(void *context, void *out, const void *in, const int32_t *index,
                             size_t count, size_t C);
enum status reference_scatter(void *context, void *out, const void *in, const int32_t *index,
                              size_t count, size_t C);
enum status reference_cross_entropy(void *context, void *logits, void *loss, const int32_t *labels,
                                    float scale, size_t M, size_t V);

enum status reference_clip(void *context, void *scale, void *norm, const void *gradient,
                           size_t count, float most);
enum status reference_adamw(void *context, const struct train_adamw *adamw);

#endif
