/**
 * @file engine.h
 * @brief Stage 15 of the course on one GPU: the stage before it. On several, ranks run decoder.h.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_ENGINE_H_

#include "labs/10_llama2_decoder/given/engine.h"
#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As engine_decoder_create(). */
MUST_CHECK enum status engine_many_gpus_create(struct engine *engine, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
