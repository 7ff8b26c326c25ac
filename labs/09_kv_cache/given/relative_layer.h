/**
 * @file relative_layer.h
 * @brief A layer of a relative of Llama2 for one token: biases, scaled rotary embedding, a sliding
 *        window. Given.
 *
 * Products are by kv_linear(), so that weights of 16 bits are read as such; the rest is lab 03's
 * operators, with a cache in fp32. kv_attention() computes Llama2's own attention alone.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_GIVEN_RELATIVE_LAYER_H_
#define WARPBOOK_LABS_09_KV_CACHE_GIVEN_RELATIVE_LAYER_H_

#include "common/models/llama2_device.h"
#include "labs/09_kv_cache/kv_cache.h"

/** What a layer works on; pointers are device memory where nothing else is said. */
struct relative_layer {
    const struct llama2_config *config;        /**< host */
    const struct llama2_device_layer *weights; /**< host */
    enum nn_dtype dtype;                       /**< of the matrices */
    enum status (*linear)(const struct kv_linear *linear, device_stream stream,
                          struct error *error);
    size_t number;            /**< of the layer: the first ones may have no window */
    const float *frequencies; /**< (HS/2); NULL: rotary embedding is not scaled */
    float *x;                 /**< (C): the residual stream */
    float *q, *heads;         /**< (NH*HS) */
    float *k, *v;             /**< (T, KVH*HS): this layer's cache */
    float *gate_up;           /**< (2 * hidden) */
    device_stream stream;
};

/**
 * @brief Runs the layer for the token at @p position, below the cache's rows; does not wait.
 * @return STATUS_OK, STATUS_DEVICE, or STATUS_UNSUPPORTED for more keys than launch_attention()
 *         takes
 */
MUST_CHECK enum status relative_layer_run(const struct relative_layer *layer, size_t position);

#endif
