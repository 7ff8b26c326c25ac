/**
 * @file calls.h
 * @brief What the grader of lab 15 asks its workers for. Ranks are threads of the worker.
 */
#ifndef WARPBOOK_GRADER_15_MANY_GPUS_CALLS_H_
#define WARPBOOK_GRADER_15_MANY_GPUS_CALLS_H_

#include "labs/10_llama2_decoder/decoder.h"
#include "labs/15_many_gpus/given/rig.h"

/** "many_devices" */
struct many_devices_call {
    int count; /**< receives how many GPUs reach each other */
};

/** "many_open", "many_close" */
struct many_open_call {
    int ranks;
    size_t bytes; /**< of data on each rank */
    void *rig;    /**< receives it */
};

/** "many_load", "many_record" (in a graph, where the ladder says that it can be), "many_sum",
 *  "many_store" */
struct many_sums_call {
    void *rig;
    struct many_sums sums;
    const void *in; /**< device 0 */
    void *out;      /**< device 0 */
};

/** "many_multiply": pointers are memory of device 0 */
struct many_products_call {
    void *rig;
    struct many_products products;
};

/** "many_cut" */
struct many_cut_call {
    enum many_matrix matrix;
    struct many_shape shape;
    int rank, ranks;
    struct many_part part; /**< receives it */
};

enum { MANY_CALL_TOKENS = 32 };

/** "many_decode_open": decoders of all ranks, which end with the worker */
struct many_decode_open_call {
    int ranks;
    const struct decoder_model *model; /**< arena, its layers too; weights on device 0 */
    void *decoders;                    /**< receives them */
};

/** "many_decode_feed": tokens one after the other */
struct many_decode_feed_call {
    void *decoders;
    int32_t tokens[MANY_CALL_TOKENS];
    size_t count, position;
    float *logits; /**< device 0, (count, ranks, V) */
};

#endif
