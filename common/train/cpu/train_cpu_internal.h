/**
 * @file train_cpu_internal.h
 * @brief The CPU engine's context and the entries of its table; private to train_cpu*.c.
 *
 * train_engine.h says what each entry does, and what may overlap. Here every tensor is fp32 in host
 * memory.
 */
#ifndef WARPBOOK_COMMON_TRAIN_CPU_TRAIN_CPU_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_CPU_TRAIN_CPU_INTERNAL_H_

#include "common/cpu/cpu_operators.h"
#include "common/cpu/scratch.h"
#include "common/cpu/team.h"
#include "common/train/train_engine.h"

struct train_cpu {
    struct team team;
    struct cpu_scratch scratch; /* of one operator */
    struct cpu_rope_table rope;
};

/** @return threads for `count` elements of `operations` vector operations each */
int train_cpu_threads(const struct train_cpu *cpu, size_t count, size_t operations);

enum status train_cpu_linear(void *context, void *out, const void *in, const void *weight,
                             const void *bias, size_t M, size_t N, size_t K);
enum status train_cpu_linear_backward(void *context, void *din, const void *add, void *dweight,
                                      void *dbias, const void *dout, const void *in,
                                      const void *weight, size_t M, size_t N, size_t K);

enum status train_cpu_activation(void *context, void *out, const void *in, size_t count,
                                 enum nn_activation f);
enum status train_cpu_activation_backward(void *context, void *din, const void *dout,
                                          const void *in, size_t count, enum nn_activation f);
enum status train_cpu_silu_gate(void *context, void *out, const void *gate_up, size_t rows,
                                size_t hidden);
enum status train_cpu_silu_gate_backward(void *context, void *dgate_up, const void *dout,
                                         const void *gate_up, size_t rows, size_t hidden);
enum status train_cpu_activation_bias_backward(void *context, void *din, void *dbias,
                                               const void *dout, const void *in, size_t rows,
                                               size_t C, enum nn_activation f);
enum status train_cpu_dropout_bias_backward(void *context, void *din, void *dbias, const void *dout,
                                            size_t rows, size_t C,
                                            const struct train_dropout *dropout);
/** sums (C) += the sums of the columns of x (rows, C), in double. */
void train_cpu_add_columns(struct train_cpu *cpu, float *sums, const float *x, size_t rows,
                           size_t C);
enum status train_cpu_dropout(void *context, void *out, const void *add, const void *in,
                              size_t count, const struct train_dropout *dropout);

enum status train_cpu_layernorm(void *context, void *out, void *stats, void *sum, const void *add,
                                const void *in, const struct train_dropout *dropout,
                                const struct train_norm *norm, size_t rows, size_t C);
enum status train_cpu_layernorm_backward(void *context, void *din,
                                         const struct train_norm_gradient *gradient,
                                         const void *dout, const void *in, const void *stats,
                                         const struct train_norm *norm, size_t rows, size_t C);
enum status train_cpu_rmsnorm(void *context, void *out, void *stats, const void *in,
                              const struct train_norm *norm, size_t rows, size_t C);
enum status train_cpu_rmsnorm_backward(void *context, void *din, const void *add,
                                       const struct train_norm_gradient *gradient, const void *dout,
                                       const void *in, const void *stats,
                                       const struct train_norm *norm, size_t rows, size_t C);

enum status train_cpu_attention(void *context, void *out, void *lse,
                                const struct train_attention *attention);
enum status train_cpu_attention_backward(void *context,
                                         const struct train_attention_gradient *gradient,
                                         const void *dout, const void *out, const void *lse,
                                         const struct train_attention *attention);
enum status train_cpu_rope(void *context, void *x, const int32_t *positions, size_t rows,
                           size_t heads, size_t HS, size_t stride, float theta,
                           enum nn_rope_layout layout, bool back);

enum status train_cpu_embedding(void *context, void *out, const void *table, const int32_t *ids,
                                size_t rows, size_t C, bool accumulate);
enum status train_cpu_embedding_backward(void *context, void *dtable, const void *dout,
                                         const struct train_occurrences *occurrences, size_t C);
enum status train_cpu_gather(void *context, void *out, const void *in, const int32_t *index,
                             size_t count, size_t C);
enum status train_cpu_scatter(void *context, void *out, const void *in, const int32_t *index,
                              size_t count, size_t C);
enum status train_cpu_cross_entropy(void *context, void *logits, void *loss, const int32_t *labels,
                                    float scale, size_t M, size_t V);

enum status train_cpu_clip(void *context, void *scale, void *norm, const void *gradient,
                           size_t count, float most);
enum status train_cpu_adamw(void *context, const struct train_adamw *adamw);

/** sum (count) = add + dropout(in), for elements first .. first + count - 1; add NULL: none. The
 * pointers are those of element 0. */
void train_cpu_residual(float *sum, const float *add, const float *in, size_t first, size_t count,
                        const struct train_dropout *dropout);

#endif
