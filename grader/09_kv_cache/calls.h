/**
 * @file calls.h
 * @brief What the grader of lab 09 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_09_KV_CACHE_CALLS_H_
#define WARPBOOK_GRADER_09_KV_CACHE_CALLS_H_

#include "labs/09_kv_cache/kv_cache.h"

/** "kv_linear" */
struct kv_linear_call {
    struct kv_linear linear;
    device_stream stream;
};

/** "kv_attention"; "kv_record": in a CUDA graph, and nothing is run */
struct kv_attention_call {
    struct kv_attention attention;
    void *workspace;
    device_stream stream;
    void *graph; /**< "kv_record": receives it */
};

/** "kv_launch": runs the recorded graph, and waits */
struct kv_launch_call {
    void *graph;
    device_stream stream;
};

/** "kv_given": the weights of the models that are made from then on */
struct kv_given_call {
    const void
        *weights; /**< device: as llama2_device_load() lays them out; NULL: the models' own */
};

#endif
