/**
 * @file calls.h
 * @brief What the grader of lab 08 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_08_BERT_CLASSIFIER_CALLS_H_
#define WARPBOOK_GRADER_08_BERT_CLASSIFIER_CALLS_H_

#include "labs/08_bert_classifier/encoder.h"

/** "encoder_create" */
struct encoder_create_call {
    const struct encoder_model *model; /**< arena, its layers too: it outlives the encoder */
    size_t max_tokens;
    device_stream stream;
    struct encoder *encoder; /**< receives the encoder, an argument of the other calls */
};

/** "encoder_batch": a batch whose lists lie in the worker's page-locked memory until it ends. */
struct encoder_batch_call {
    struct encoder_batch batch;       /**< its lists in the arena */
    const struct encoder_batch *made; /**< receives the argument of "encoder_run" */
};

/** "encoder_run"; "encoder_free" uses encoder only. */
struct encoder_run_call {
    struct encoder *encoder;
    const struct encoder_batch *batch;
};

#endif
