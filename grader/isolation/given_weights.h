/**
 * @file given_weights.h
 * @brief In the worker: a model whose weights the grader has written into device memory.
 *
 * While a model is created, its engine gets weights from the worker's host memory. Here each of
 * them is replaced by the grader's as soon as it is in device memory, before any code of the lab
 * sees it. For engines whose resident memory is device memory: of lab 04 and later.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_GIVEN_WEIGHTS_H_
#define WARPBOOK_GRADER_ISOLATION_GIVEN_WEIGHTS_H_

#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Changes the engine's weights() and write() until given_weights_end().
 * @param given device memory: all that the model sends to its engine when it is created, in that
 *              order (grader/harness/secret_weights.h); NULL: the engine stays as it is
 */
void given_weights_begin(struct engine *engine, const void *given);

/** Gives the engine its own functions back. */
void given_weights_end(struct engine *engine);

#ifdef __cplusplus
}
#endif

#endif
