/**
 * @file endless_text.h
 * @brief Contract of lab 14: what a decoder needs to write a text that never ends.
 *
 * Two operators. endless_attention() is the attention of one new token over a cache of constant
 * size: the first tokens of the text (attention sinks) and the most recent ones.
 * endless_add_norms() adds what two sublayers have computed to the residual stream, and norms the
 * sum for the sublayers that come next. The cache is fp32, fp16 or bf16, everything else is fp32,
 * and so is all arithmetic.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_ENDLESS_TEXT_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_ENDLESS_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest head size. */
#define ENDLESS_MAX_HS ((size_t)256)

/** Largest of C and of NH * HS. */
#define ENDLESS_MAX_C ((size_t)1 << 18)

/** Largest NH * (sinks + window): a score for each fits the workspace. */
#define ENDLESS_MAX_SCORES ((size_t)1 << 22)

/**
 * Scratch memory, 16 MiB, 256-byte aligned. It is zeros before the first call; a call finds what
 * the call before it, perhaps of another layer, has left there.
 */
#define ENDLESS_WORKSPACE_BYTES ((size_t)16 << 20)

/**
 * @brief Attention of one layer for token `*position` of a text: out = attention(q, keys, values).
 *
 * The token sees `sinks + window` tokens at most, itself included: while the text is no longer than
 * that, all of them; later the first `sinks` tokens of the text and the last `window` ones. They
 * have PLACES 0, 1, 2, ... in this order, so that the new token has the last place, n - 1 with n =
 * min(*position + 1, sinks + window). Query and keys are rotated by their places, NOT by their
 * positions in the text: a key's place sinks by one with each token once the text is longer than
 * the cache.
 *
 * Rotation of a head at place s: pair i of its first `rotary` channels, (x, y), becomes
 * (x cos - y sin, x sin + y cos) with cos = angles[s][i][0] and sin = angles[s][i][1]. Pair i is
 * channels 2i and 2i + 1 (NN_ROPE_INTERLEAVED) or i and i + rotary / 2 (NN_ROPE_HALVES). The other
 * channels stay as they are. Query head h attends to key head h / (NH / KVH). The scale is
 * 1 / sqrt(HS).
 *
 * Tokens of a text come one by one, from position 0 on, in order; position 0 begins a new text.
 * Each layer has a k and a v of its own, and calls of several layers alternate. Both are yours:
 * which token is in which row is not looked at. A row that nobody has written may hold NaN.
 *
 * Device memory; pointers are aligned as their elements at least, 16 bytes make it fast. Nothing
 * overlaps. Sizes are at least 1, sinks and rotary may be 0.
 */
struct endless_attention {
    size_t NH, KVH, HS;         /**< query heads, a multiple of key heads; head size */
    size_t rotary;              /**< channels of a head that are rotated: even, 0 .. HS */
    enum nn_rope_layout layout; /**< which channels are a pair */
    size_t sinks, window;       /**< tokens that stay, and the last ones */
    enum nn_dtype dtype;        /**< of k and v */
    const int32_t *position; /**< one number: 0, 1, 2, ...; a recorded call is launched for many */
    const float *angles;     /**< (sinks + window, rotary / 2, 2): cosine and sine */
    const float *q;          /**< (NH*HS): the token's queries, not rotated */
    const float *k_new, *v_new; /**< (KVH*HS): its keys, not rotated, and values */
    void *k, *v;                /**< (sinks + window, KVH*HS): the cache */
    float *out;                 /**< (NH*HS) */
};

/**
 * @brief Starts the work on a stream; does not wait for it.
 * @param workspace device memory of ENDLESS_WORKSPACE_BYTES, the same for all calls of a stream
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, with a line that names it, for a type or a size that
 *         it does not take; STATUS_DEVICE when a launch failed
 */
MUST_CHECK enum status endless_attention(const struct endless_attention *attention, void *workspace,
                                         device_stream stream, struct error *error);

/** A norm of the residual stream. */
struct endless_norm {
    const float *weight; /**< (C) */
    const float *bias;   /**< (C); NULL: none */
    float *out;          /**< (C) */
};

/**
 * @brief x += a + b, then out = norm(x) for one norm or two.
 *
 * LayerNorm(x) = (x - mean) / sqrt(variance + eps) * weight + bias, with the mean of (x - mean)^2
 * as variance; RMSNorm(x) = x / sqrt(mean(x^2) + eps) * weight + bias. A model with parallel
 * residual has two norms of the same x in each layer. Device memory; nothing overlaps; C is at
 * least 1.
 */
struct endless_add_norms {
    size_t C;
    bool layernorm;               /**< else RMSNorm */
    float eps;                    /**< inside the square root */
    const float *a, *b;           /**< (C): what is added; NULL: nothing */
    float *x;                     /**< (C): the residual stream */
    struct endless_norm norms[2]; /**< of the sum */
    size_t count;                 /**< norms: 1 or 2 */
};

/** Starts the work on a stream; does not wait for it. @return as endless_attention() */
MUST_CHECK enum status endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                         struct error *error);

/** A step's own kernel for a whole token, which the given decoder describes (given/decoder.h). */
struct endless_whole;

/** The two operators of one step. */
struct endless_functions {
    enum status (*attention)(const struct endless_attention *attention, void *workspace,
                             device_stream stream, struct error *error);
    enum status (*add_norms)(const struct endless_add_norms *add, device_stream stream,
                             struct error *error);
    const struct endless_whole *whole; /**< NULL: the decoder launches products and operators */
};

/** A step that the bench shows. */
struct endless_step {
    const char *name; /**< "v2_ring" */
    struct endless_functions functions;
};

/** @return your steps, the one that counts last; @p count receives how many there are. */
const struct endless_step *endless_ladder(size_t *count);

/** Given: may a call be so? @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line */
MUST_CHECK enum status endless_attention_check(const struct endless_attention *attention,
                                               struct error *error);
MUST_CHECK enum status endless_add_norms_check(const struct endless_add_norms *add,
                                               struct error *error);

#ifdef __cplusplus
}
#endif

#endif
