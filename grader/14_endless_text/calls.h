/**
 * @file calls.h
 * @brief What the grader of lab 14 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_14_ENDLESS_TEXT_CALLS_H_
#define WARPBOOK_GRADER_14_ENDLESS_TEXT_CALLS_H_

#include "labs/14_endless_text/given/decoder.h"

/** "endless_attention"; "endless_record": in a CUDA graph, and nothing is run */
struct endless_attention_call {
    struct endless_attention attention;
    void *workspace;
    device_stream stream;
    void *graph; /**< "endless_record": receives it */
};

/** "endless_launch": runs the recorded graph, and waits */
struct endless_launch_call {
    void *graph;
    device_stream stream;
};

/** "endless_add_norms": as often as that, one call behind the other */
struct endless_add_norms_call {
    struct endless_add_norms add;
    device_stream stream;
    size_t repeats;
};

enum { ENDLESS_CALL_LAYERS = 4, ENDLESS_CALL_TOKENS = 64 };

/** "endless_open": a decoder, which ends with the worker */
struct endless_open_call {
    struct endless_model model; /**< its layers are: */
    struct endless_layer layers[ENDLESS_CALL_LAYERS];
    void *decoder; /**< receives it */
};

/** "endless_feed": tokens one after the other, each with its logits, and waits behind each */
struct endless_feed_call {
    void *decoder;
    bool singly; /**< their kernels one by one, without the graph */
    int32_t tokens[ENDLESS_CALL_TOKENS];
    size_t count, position; /**< of the first token */
    float *logits;          /**< device, (count, V) */
    size_t V;
};

#endif
