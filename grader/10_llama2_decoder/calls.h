/**
 * @file calls.h
 * @brief Calls of lab 10's grader to its workers, beside "decoder_steps".
 */
#ifndef WARPBOOK_GRADER_10_LLAMA2_DECODER_CALLS_H_
#define WARPBOOK_GRADER_10_LLAMA2_DECODER_CALLS_H_

#include "labs/10_llama2_decoder/decoder.h"
#include "labs/10_llama2_decoder/problem/steps.h"

/** "decoder_create" */
struct decoder_create_call {
    const struct decoder_model *model; /**< arena, its layers too */
    struct decoder_io io;
    size_t batch;
    device_stream stream;
    struct decoder *decoder; /**< receives it */
};

/** "decoder_given": the engine's next decoder is made with these weights in place of its own. */
struct decoder_given_call {
    const struct decoder_model *model; /**< arena, its layers too */
};

/** "decoder_prefill" */
struct decoder_prefill_call {
    struct decoder *decoder;
    const int32_t *tokens; /**< arena */
    size_t count, position;
};

/** "decoder_free" */
struct decoder_free_call {
    struct decoder *decoder;
};

#endif
