/**
 * @file cpu_operators.h
 * @brief The operators of common/nn in fp32, vectorised, on several threads; those that
 * cpu_engine.c puts into its table.
 *
 * Shapes and aliasing are those of the functions in common/nn/nn.h. Sums of a norm are in double.
 * The results do not depend on the number of threads.
 */
#ifndef WARPBOOK_COMMON_CPU_CPU_OPERATORS_H_
#define WARPBOOK_COMMON_CPU_CPU_OPERATORS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/cpu/scratch.h"
#include "common/nn/nn.h"

void cpu_bias_add(int threads, float *x, const float *bias, size_t rows, size_t C);

void cpu_activation(int threads, float *out, const float *in, size_t count, enum nn_activation f);

/** x (rows, C) = f(x + bias), in place. */
void cpu_bias_activation(int threads, float *x, const float *bias, size_t rows, size_t C,
                         enum nn_activation f);

void cpu_silu_gate(int threads, float *out, const float *gate, const float *up, size_t count);

void cpu_residual(int threads, float *out, const float *a, const float *b, size_t count);

void cpu_embedding(int threads, float *out, const float *table, const int32_t *ids, size_t T,
                   size_t C, bool accumulate);

/** One call of cpu_layernorm(): out = LayerNorm(in + residual + bias). */
struct cpu_layernorm {
    float *out;            /**< (rows, C), may be in or residual */
    const float *in;       /**< (rows, C) */
    const float *residual; /**< (rows, C) or NULL */
    const float *bias;     /**< (C) or NULL; NULL without residual */
    struct nn_norm norm;
    size_t rows, C;
};

void cpu_layernorm(int threads, const struct cpu_layernorm *call);

void cpu_rmsnorm(int threads, float *out, const float *in, const float *weight, size_t rows,
                 size_t C, float eps);

void cpu_softmax(int threads, float *out, const float *in, size_t rows, size_t C);

/** Cosines and sines of rotary embedding for the positions so far; zero-initialised when empty. */
struct cpu_rope_table {
    float *angles;      /**< (positions, 2, HS / 2): cosines, then sines */
    float *frequencies; /**< (HS / 2): of each pair, where theta does not give them; else NULL */
    size_t positions, HS;
    float theta;
};

/**
 * @brief Rotary embedding of the tokens at position .. position + T - 1.
 * @param frequencies (HS / 2), angle a position of each pair; NULL: those of theta
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY, when the table must grow
 */
MUST_CHECK enum status cpu_rope(struct cpu_rope_table *table, float *x, size_t T, size_t heads,
                                size_t HS, size_t stride, size_t position, float theta,
                                const float *frequencies, enum nn_rope_layout layout);

/** Makes sure that the table has the positions 0 .. positions - 1. @return as cpu_rope() */
MUST_CHECK enum status cpu_rope_reserve(struct cpu_rope_table *table, size_t HS, float theta,
                                        const float *frequencies, size_t positions);

/** Rotates the heads of one token, backwards if @p back. @param position is in the table */
void cpu_rope_token(const struct cpu_rope_table *table, float *x, size_t heads, size_t position,
                    enum nn_rope_layout layout, bool back);

void cpu_rope_table_free(struct cpu_rope_table *table);

/**
 * Attention. With @p starts, sequence b is the tokens starts[b] .. starts[b + 1] - 1 of q, k, v and
 * out, and a->T and a->S are the length of the longest; without, sequences are a->T and a->S long.
 * @param lse NULL, or (tokens, NH): log of the sum of exp(scale q.k)
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY, when the scratch must grow
 */
MUST_CHECK enum status cpu_attention(int threads, struct cpu_scratch *scratch, float *out,
                                     float *lse, const struct nn_attention *a,
                                     const int32_t *starts);

#endif
