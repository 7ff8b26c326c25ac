/**
 * @file device_matrices.h
 * @brief Copies the tensors of a model's file into one allocation of device memory, each converted
 *        to the type in which kernels read it; private to models.
 */
#ifndef WARPBOOK_COMMON_MODELS_DEVICE_MATRICES_H_
#define WARPBOOK_COMMON_MODELS_DEVICE_MATRICES_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/device/device.h"

enum { DEVICE_MATRIX_TENSORS = 3 };

struct device_matrices; /**< opaque: the state of a load */

/** A matrix on the device, 256-byte aligned: the rows of one to three stored tensors. */
struct device_matrix {
    /** NULL behind the last; the first NULL: the model has no such matrix. */
    const struct decoder_stored_tensor *tensors[DEVICE_MATRIX_TENSORS];
    enum nn_dtype dtype;  /**< on the device */
    const void **address; /**< receives the device address */
    size_t heads;         /**< not 0: one tensor, whose rows are q, k and v of each head in turn; on
                             the device all of q come first, then k, then v */
};

/** Calls device_matrices_place() for each matrix, in the same order whenever it is called. */
typedef enum status device_matrices_lister(void *context, struct device_matrices *matrices);

/** @return STATUS_OK, STATUS_OVERFLOW, STATUS_DEVICE, STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status device_matrices_place(struct device_matrices *matrices,
                                             const struct device_matrix *matrix);

/**
 * @brief Converts and copies all matrices, and waits for the copies. Takes a host buffer of at most
 *        64 MiB meanwhile.
 *
 * @param list   is called twice: to add up the sizes, then to copy
 * @param memory receives the allocation, for device_free(); NULL after a failure
 * @param bytes  receives its size
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY, with the bytes needed and the bytes free, before the
 *         first copy; STATUS_OVERFLOW; STATUS_DEVICE
 */
MUST_CHECK enum status device_matrices_load(device_matrices_lister *list, void *context,
                                            device_stream stream, void **memory, size_t *bytes,
                                            struct error *error);

#endif
