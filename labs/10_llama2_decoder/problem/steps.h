/**
 * @file steps.h
 * @brief Steps of a decoder in sequence, without waiting for any of them.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_STEPS_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_STEPS_H_

#include "labs/10_llama2_decoder/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which steps; "decoder_steps" of lab 10's worker. */
struct decoder_steps_call {
    struct decoder *decoder;
    size_t position, count; /**< of the first step, and how many */
    int32_t *drawn;         /**< device, (count): receives each one's token; or NULL */
    const int32_t *token;   /**< device: where a step leaves its own; with `drawn` */
    device_stream stream;   /**< the decoder's; with `drawn` */
};

typedef enum status decoder_steps_function(const struct decoder_steps_call *call,
                                           struct error *error);

/** Starts them. @param step decoder_step() or one like it */
MUST_CHECK enum status decoder_start_steps(const struct decoder_steps_call *call,
                                           enum status (*step)(struct decoder *decoder,
                                                               size_t position,
                                                               struct error *error),
                                           struct error *error);

#ifdef __cplusplus
}
#endif

#endif
