/**
 * @file attention.h
 * @brief Contract of lab 07: scaled dot-product attention on the GPU.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_ATTENTION_H_
#define WARPBOOK_LABS_07_ATTENTION_ATTENTION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest head. */
#define ATTENTION_MAX_HS ((size_t)128)

/** Largest B, T, S, NH, KVH, and largest stride. */
#define ATTENTION_MAX_SIZE ((size_t)1 << 28)

/**
 * @brief One call: for each query t of each head h,
 *        out[t] = sum over s of softmax over s of (scale * q[t] . k[s]) * v[s].
 *
 * q, k, v, out, mask and starts are device memory. Elements are fp32, fp16 or
 * bf16, all four tensors alike, at least aligned as their elements; arithmetic
 * is fp32. Strides are in elements, from one token to the next; within a token
 * the heads follow each other, HS elements each. So q, k and v may be thirds of
 * one (tokens, 3 * NH * HS) matrix. out overlaps nothing.
 *
 * A query that sees no key gets zeros. The values of a masked key (mask 0) in k
 * and v have no part in the result: they may be NaN. A key that only the causal
 * mask excludes for some of the queries must be finite.
 *
 * Any size may be 0; with S = 0 the results are zeros.
 *
 * Padded form: starts = NULL. q and out are (B, T, NH, HS), k and v
 * (B, S, KVH, HS). With causal, query t sees the keys 0 .. S - T + t: needs S >= T.
 *
 * Packed form: starts given. Sequence b is the tokens starts[b] .. starts[b + 1] - 1
 * of q, k, v and out, and sees only itself; T = S = the longest length. No mask.
 * starts and host_starts hold the same numbers, not falling, the first one 0.
 */
struct attention_problem {
    enum nn_dtype dtype;
    const void *q;              /**< tokens q_stride apart */
    const void *k, *v;          /**< tokens kv_stride apart */
    void *out;                  /**< tokens out_stride apart; what lies between is not written */
    const uint8_t *mask;        /**< (B, S): 0 masks the key; NULL: no mask */
    const int32_t *starts;      /**< (B + 1), or NULL: padded */
    const int32_t *host_starts; /**< (B + 1), HOST memory, or NULL: padded */
    size_t B, T, S;             /**< batch, query positions, key positions */
    size_t NH, KVH, HS;         /**< NH a multiple of KVH: head h reads key head h / (NH / KVH) */
    size_t q_stride;            /**< at least NH * HS */
    size_t kv_stride;           /**< at least KVH * HS */
    size_t out_stride;          /**< at least NH * HS */
    bool causal;
    float scale; /**< positive and finite, usually 1 / sqrt(HS) */
};

/**
 * @brief Starts the computation on a stream; does not wait for it.
 *
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for sizes above the largest, a stride too small, NH no
 *         multiple of KVH, causal with S < T, a scale that is not positive and finite, only one of
 *         starts and host_starts, packed with a mask or with T != S; STATUS_DEVICE when the launch
 *         failed
 */
MUST_CHECK enum status attention(const struct attention_problem *problem, device_stream stream,
                                 struct error *error);

typedef enum status attention_function(const struct attention_problem *problem,
                                       device_stream stream, struct error *error);

/** One version of attention(), for the bench's table. */
struct attention_step {
    const char *name; /**< "v2_flash" */
    attention_function *run;
};

/**
 * @brief The versions worth comparing, in the order they were written; each does all of the above.
 * @param count receives how many; the last one is what attention() calls
 */
const struct attention_step *attention_ladder(size_t *count);

/**
 * @brief What every version checks first: given, so that a submission need not write it.
 * @return as attention(), without STATUS_DEVICE
 */
MUST_CHECK enum status attention_check(const struct attention_problem *problem,
                                       struct error *error);

#ifdef __cplusplus
}
#endif

#endif
