/**
 * @file operators.h
 * @brief Every operator of both models on the GPU: given, simple and right. Do not edit.
 *
 * Shapes, semantics and aliasing are those of the functions of the same name in
 * common/nn/nn.h, all pointers are DEVICE memory, and the result is fp32
 * throughout. Each starts its kernel on a stream and does not wait. Sizes of 0
 * start nothing. All return STATUS_OK, or STATUS_DEVICE if the launch failed.
 *
 * Later labs replace these one by one: here simply one block works on a row, or
 * one thread on an element.
 */
#ifndef WARPBOOK_LABS_03_RESIDENT_WEIGHTS_GIVEN_OPERATORS_H_
#define WARPBOOK_LABS_03_RESIDENT_WEIGHTS_GIVEN_OPERATORS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** x (rows, C) += bias (C). */
MUST_CHECK enum status launch_bias_add(float *x, const float *bias, size_t rows, size_t C,
                                       device_stream stream, struct error *error);

/** out = f(in), elementwise; out may be in. */
MUST_CHECK enum status launch_activation(float *out, const float *in, size_t count,
                                         enum nn_activation f, device_stream stream,
                                         struct error *error);

/** out = silu(gate) * up, elementwise; out may be gate or up. */
MUST_CHECK enum status launch_silu_gate(float *out, const float *gate, const float *up,
                                        size_t count, device_stream stream, struct error *error);

/** out = a + b, elementwise; out may be a or b. */
MUST_CHECK enum status launch_residual(float *out, const float *a, const float *b, size_t count,
                                       device_stream stream, struct error *error);

/** LayerNorm of each row of in (rows, C); weight, bias (C); out may be in. */
MUST_CHECK enum status launch_layernorm(float *out, const float *in, const float *weight,
                                        const float *bias, size_t rows, size_t C, float eps,
                                        device_stream stream, struct error *error);

/** RMSNorm of each row of in (rows, C); weight (C); out may be in. */
MUST_CHECK enum status launch_rmsnorm(float *out, const float *in, const float *weight, size_t rows,
                                      size_t C, float eps, device_stream stream,
                                      struct error *error);

/** softmax of each row of in (rows, C); out may be in. */
MUST_CHECK enum status launch_softmax(float *out, const float *in, size_t rows, size_t C,
                                      device_stream stream, struct error *error);

/** Rotary embedding of x (T, heads, HS) in place, tokens `stride` floats apart. */
MUST_CHECK enum status launch_rope(float *x, size_t T, size_t heads, size_t HS, size_t stride,
                                   size_t position, float theta, enum nn_rope_layout layout,
                                   device_stream stream, struct error *error);

/** As launch_rope(), with the frequencies of the pairs in @p frequencies (HS/2). */
MUST_CHECK enum status launch_rope_table(float *x, size_t T, size_t heads, size_t HS, size_t stride,
                                         size_t position, const float *frequencies,
                                         enum nn_rope_layout layout, device_stream stream,
                                         struct error *error);

/** Most key positions of launch_attention(): their scores are in a block's shared memory. */
enum { ATTENTION_MAX_KEYS = 11 * 1024 };

/**
 * @brief Attention; the pointers inside @p a are device memory, @p a itself is host memory.
 * @return also STATUS_UNSUPPORTED for more than ATTENTION_MAX_KEYS key positions or a batch of
 *         more than 65,535
 */
MUST_CHECK enum status launch_attention(float *out, const struct nn_attention *a,
                                        device_stream stream, struct error *error);

/** Most tokens of one launch_embedding(). */
enum { EMBEDDING_MAX_IDS = 512 };

/** Token ids that travel with the launch itself, as kernel arguments do: no copy is made. */
struct embedding_ids {
    int32_t ids[EMBEDDING_MAX_IDS];
};

/** out[t] = table[ids[t]] for t < T, or += with @p accumulate; @p ids is HOST memory. */
MUST_CHECK enum status launch_embedding(float *out, const float *table,
                                        const struct embedding_ids *ids, size_t T, size_t C,
                                        bool accumulate, device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
