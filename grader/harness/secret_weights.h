/**
 * @file secret_weights.h
 * @brief A model's random weights in the memory of the submission's device, and nowhere in its
 *        process.
 *
 * A submission that knows the weights can compute on the CPU, in no modelled time, while kernels do
 * as many operations as are counted. So its worker makes the model with others
 * (SECRET_WEIGHTS_OTHERS is their seed), and each is replaced on the device by one of these
 * (grader/isolation/given_weights.h). Who would fetch them is noticed: remote_check_fetched().
 */
#ifndef WARPBOOK_GRADER_HARNESS_SECRET_WEIGHTS_H_
#define WARPBOOK_GRADER_HARNESS_SECRET_WEIGHTS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Seed of the weights that a worker has in its own memory instead. */
#define SECRET_WEIGHTS_OTHERS 1

/** All that a model sends to its engine when it is created, in that order. */
struct secret_weights {
    unsigned char *bytes; /**< host */
    size_t count, room;
};

/** Creates a model on the engine, and frees it again. */
typedef enum status secret_weights_create(const struct engine *engine, const void *model);

/**
 * @brief Writes the weights of a model to the device of the worker in use.
 * @param create is called once, with an engine that has no operators
 * @param model  passed on to it
 * @param given  receives device memory, for device_free() when the worker has made its model
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what @p create or the device says
 */
MUST_CHECK enum status secret_weights_write(secret_weights_create *create, const void *model,
                                            void **given, struct error *error);

/** Writes what a model sends, which the caller knows. @param given as above */
MUST_CHECK enum status secret_weights_send(const void *weights, size_t bytes, void **given,
                                           struct error *error);

#ifdef __cplusplus
}
#endif

#endif
