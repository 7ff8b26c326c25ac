/**
 * @file resident.h
 * @brief Lists of tensors and buffers that a model makes resident on its engine; private to models.
 */
#ifndef WARPBOOK_COMMON_MODELS_RESIDENT_H_
#define WARPBOOK_COMMON_MODELS_RESIDENT_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"

/** A tensor of a checkpoint, its shape, and where its resident pointer goes. */
struct resident_tensor {
    const float *host;      /**< (rows, columns); NULL: not in the checkpoint, skipped */
    const float **resident; /**< NULL before resident_tensors_load() */
    size_t rows, columns;
};

/** A buffer of activations. */
struct resident_buffer {
    float **resident; /**< NULL before resident_buffers_alloc() */
    size_t rows, columns;
};

/** Makes tensors resident, in order, until one fails; those before it stay resident. */
MUST_CHECK enum status resident_tensors_load(const struct engine *engine,
                                             const struct resident_tensor *tensors, size_t count);

/** Ends the use of tensors, also of those never loaded; their pointers become NULL. */
void resident_tensors_unload(const struct engine *engine, const struct resident_tensor *tensors,
                             size_t count);

/** Allocates buffers, in order, until one fails; those before it stay allocated. An empty one is
 * NULL. */
MUST_CHECK enum status resident_buffers_alloc(const struct engine *engine,
                                              const struct resident_buffer *buffers, size_t count);

/** Releases buffers, also those never allocated; their pointers become NULL. */
void resident_buffers_release(const struct engine *engine, const struct resident_buffer *buffers,
                              size_t count);

#endif
