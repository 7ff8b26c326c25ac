/**
 * @file engine.h
 * @brief Stage 14 of the course: a Llama2 on the decoder that writes without end.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_ENGINE_H_

#include "common/models/engine.h"
#include "labs/14_endless_text/given/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Creates the engine.
 *
 * Its decoder takes a model with a streaming cache (llama2_config's sinks and recent), and any
 * other as one whose window is its context. What it does not take (heads of more than
 * ENDLESS_MAX_HS channels, scaled rotary embedding, a sliding window) runs operator by operator, as
 * on stage 07.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of device_open()
 */
MUST_CHECK enum status engine_endless_create(struct engine *engine, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
