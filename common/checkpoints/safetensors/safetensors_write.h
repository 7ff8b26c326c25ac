/**
 * @file safetensors_write.h
 * @brief Writes a safetensors file tensor by tensor, with only one tensor in memory at a time.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_SAFETENSORS_SAFETENSORS_WRITE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_SAFETENSORS_SAFETENSORS_WRITE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/safetensors/safetensors.h"

/** Supplies the values of the tensors. */
struct safetensors_source {
    /** Writes the values of tensor @p index to @p data, host, as many bytes as the tensor has. */
    enum status (*fill)(void *context, size_t index, void *data, struct error *error);
    void *context;
};

/**
 * @brief Writes a new file and syncs it.
 *
 * A failure leaves no file. Other programs can see the file while it is incomplete, so write it
 * into a folder that they do not read yet.
 *
 * @param path    of a file that does not exist
 * @param tensors name, dtype, rank, shape and bytes; data is not read
 * @return STATUS_OK, STATUS_IO with the path, the statuses of safetensors_serialize(), or that of
 *         source->fill
 */
MUST_CHECK enum status safetensors_write(const char *path, const struct safetensors_tensor *tensors,
                                         size_t count, const struct safetensors_source *source,
                                         struct error *error);

#endif
