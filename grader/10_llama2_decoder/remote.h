/**
 * @file remote.h
 * @brief A decoder in the worker in use, called instead of decoder.h's functions.
 */
#ifndef WARPBOOK_GRADER_10_LLAMA2_DECODER_REMOTE_H_
#define WARPBOOK_GRADER_10_LLAMA2_DECODER_REMOTE_H_

#include "labs/10_llama2_decoder/given/engine.h"
#include "labs/10_llama2_decoder/problem/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief The four functions of decoder.h, in the worker that is in use when they are called.
 *
 * They fail with STATUS_INTERRUPTED if the worker has ended.
 */
struct decoder_functions remote_decoder(void);

/**
 * @brief Has the engine that the worker makes next pass @p model to its decoder in place of the
 *        weights that the engine was made with, which lie in the worker's memory.
 * @param model its pointers are the worker's device's; weights outlive the engine
 */
MUST_CHECK enum status remote_decoder_given(const struct decoder_model *model, struct error *error);

/** Starts steps by one call of the worker's. */
MUST_CHECK enum status remote_decoder_steps(const struct decoder_steps_call *call,
                                            struct error *error);

#ifdef __cplusplus
}
#endif

#endif
