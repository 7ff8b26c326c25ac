/**
 * @file text.h
 * @brief A layer whose tokens are fed one after the other through kv_attention(): random weights
 * and inputs, the results in double, and device memory.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_PROBLEM_TEXT_H_
#define WARPBOOK_LABS_09_KV_CACHE_PROBLEM_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/testing/device_buffer.h"
#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status kv_attention_function(const struct kv_attention *attention, void *workspace,
                                          device_stream stream, struct error *error);

struct kv_text_spec {
    size_t C, NH, KVH, HS, T;
    enum nn_dtype dtype;
    enum nn_rope_layout layout;
    bool inputs;    /**< whether the call has them; else every row before a token's is given */
    float loudness; /**< size of the scores; 0: about 1 */
    size_t skew;    /**< elements that every pointer is past a 256-byte boundary */
};

/** Inputs of the call, in device memory. */
enum kv_text_input { KV_X, KV_NORM, KV_QKV, KV_POSITION, KV_TEXT_INPUTS };

struct kv_text {
    struct kv_text_spec spec;
    struct kv_attention call;
    struct device_buffer in[KV_TEXT_INPUTS], inputs, k, v, out;
    struct rng rng;
    float *x, *norm, *qkv;  /**< host: (C), (C), ((NH + 2 KVH) * HS, C) as stored */
    double *y, *projected;  /**< (C), ((NH + 2 KVH) * HS): q, k and v, rotated */
    float *want_k, *want_v; /**< (T, KVH*HS), as stored */
    double *scores;         /**< (T) */
    double *want;           /**< (NH*HS): of the token that was checked last */
    float *got;             /**< (NH*HS): what kv_text_check() read */
    double largest_score, largest_key, largest_value; /**< of the token that was checked last */
    char name[200];
};

/** Creates weights and device memory. @param seed same seed, same values */
MUST_CHECK enum status kv_text_create(struct kv_text *t, const struct kv_text_spec *spec,
                                      uint64_t seed, bool guarded, struct error *error);

/**
 * @brief Draws the token at @p position: its x on the device, the position, NaN in out; without
 *        inputs also all rows of the cache before it, where they are not there yet.
 */
MUST_CHECK enum status kv_text_prepare(struct kv_text *t, size_t position, struct error *error);

/** Calls with the inputs of kv_text_prepare(), and waits. */
MUST_CHECK enum status kv_text_call(struct kv_text *t, size_t longest, kv_attention_function *run,
                                    void *workspace, device_stream stream, struct error *error);

/**
 * @brief Computes the result of the token that was prepared last, and checks out and the cache.
 *
 * Tolerance. q, k and v err like fp32 dot products of length C, and by the error of fp32 angles at
 * that position; scores err like sums of such; a result is an average of values, so it errs by the
 * scores' error times a value, and by the values' own. In 16 bits a key and a value are rounded
 * once: rows of the cache may be one step apart, results two roundings of each.
 *
 * @param text receives the mistake, or ""
 */
MUST_CHECK enum status kv_text_check(struct kv_text *t, size_t position, char *text, size_t size,
                                     struct error *error);

/** Frees; allowed after kv_text_create() has failed. */
void kv_text_free(struct kv_text *t);

#ifdef __cplusplus
}
#endif

#endif
