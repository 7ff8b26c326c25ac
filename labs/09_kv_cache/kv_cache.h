/**
 * @file kv_cache.h
 * @brief Contract of lab 09: what a decoder does for one new token.
 *
 * Two operators. kv_linear() multiplies a matrix with one vector, and takes in what lies before
 * and after it; kv_attention() is the rest of a layer's attention, from the residual stream to the
 * heads' results. Weights and cache are fp32, fp16 or bf16, everything else is fp32, and so is all
 * arithmetic.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_KV_CACHE_H_
#define WARPBOOK_LABS_09_KV_CACHE_KV_CACHE_H_

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
#define KV_MAX_HS ((size_t)256)

/** Scratch memory of every call: 16 MiB, 256-byte aligned, contents undefined before and after. */
#define KV_WORKSPACE_BYTES ((size_t)16 << 20)

/** Largest of N, K and T, of C, and of the channels of q, k and v together. */
#define KV_MAX_SIZE ((size_t)1 << 30)
#define KV_MAX_C ((size_t)1 << 20)

/**
 * @brief out (N) = residual (N) + weight (N, K) * n(in) (K).
 *
 * n(in) is in itself, or, with `norm`, RMSNorm(in) = in * norm / sqrt(mean(in^2) + eps). Device
 * memory, row-major. Pointers are aligned as their elements at least; 16 bytes, and K a multiple of
 * 8, make it fast. out may be residual; in overlaps neither. Every size may be 0: without N nothing
 * happens, with K = 0 the product is zeros.
 *
 * weight and norm are weights: no kernel of the stream writes them while calls are under way, so
 * that a kernel may read them before the one in front of it is done.
 */
struct kv_linear {
    size_t N, K;
    enum nn_dtype dtype;   /**< of weight */
    const void *weight;    /**< (N, K) */
    const float *in;       /**< (K) */
    const float *norm;     /**< (K); NULL: no norm */
    float eps;             /**< with norm */
    const float *residual; /**< (N); NULL: none */
    float *out;            /**< (N) */
};

/**
 * @brief Starts the work on a stream; does not wait for it.
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, with a line that names it, for a type or a size that
 *         it does not take; STATUS_DEVICE when a launch failed
 */
MUST_CHECK enum status kv_linear(const struct kv_linear *linear, device_stream stream,
                                 struct error *error);

/**
 * @brief Attention of one layer for the token at `*position`: out = attention(q, keys, values).
 *
 * With y = RMSNorm(x): q, k and v are qkv * y, one after the other; q and k are rotated by rotary
 * embedding; k and v become row *position of the cache; each query head h attends to rows
 * 0 .. *position of key head h / (NH / KVH).
 *
 * Tokens of a text come one by one, from position 0 on, in order, each layer with its own `inputs`,
 * `k` and `v`, which keep what a call leaves there; or `inputs` is NULL, and rows of the cache
 * before *position are there already. norm and qkv are weights, as in kv_linear. Sizes are at least
 * 1.
 *
 * After the call rows 0 .. *position of k and v hold the rotated keys and the values. Rows behind
 * them are not touched.
 */
struct kv_attention {
    size_t C, NH, KVH, HS; /**< channels; query heads, a multiple of key heads; head size, even */
    size_t T;              /**< rows of the cache */
    enum nn_dtype dtype;   /**< of qkv, k and v */
    float eps;             /**< of the norm */
    float theta;           /**< of rotary embedding */
    enum nn_rope_layout layout;
    const int32_t *position; /**< DEVICE memory, one number: 0 .. longest - 1 */
    size_t longest;          /**< 1 .. T: *position is below it, whenever the work is done. A graph
                                of this call is launched for many positions */
    const float *x;          /**< (C): the layer's input for the token */
    const float *norm;       /**< (C) */
    const void *qkv;         /**< ((NH + 2 KVH) * HS, C) */
    float *inputs;           /**< (T, C), yours: what you want to remember of inputs; or NULL */
    void *k, *v;             /**< (T, KVH*HS): the cache */
    float *out;              /**< (NH*HS); overlaps nothing */
};

/**
 * @brief Starts the work on a stream; does not wait for it. Scale is 1 / sqrt(HS).
 * @param workspace device memory of KV_WORKSPACE_BYTES; calls of one stream may share it
 * @return as kv_linear()
 */
MUST_CHECK enum status kv_attention(const struct kv_attention *attention, void *workspace,
                                    device_stream stream, struct error *error);

/** Given: may a call be so? @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line */
MUST_CHECK enum status kv_linear_check(const struct kv_linear *linear, struct error *error);
MUST_CHECK enum status kv_attention_check(const struct kv_attention *attention,
                                          struct error *error);

#ifdef __cplusplus
}
#endif

#endif
