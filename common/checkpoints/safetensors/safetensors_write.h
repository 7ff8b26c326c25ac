/**
 * @file safetensors_write.h
 * @brief Writes a safetensors file tensor by tensor: no more than one of them is in memory.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_SAFETENSORS_SAFETENSORS_WRITE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_SAFETENSORS_SAFETENSORS_WRITE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/safetensors/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where the values come from. */
struct safetensors_source {
    /** Puts the values of tensor @p index into @p data, (bytes) of it. */
    enum status (*fill)(void *context, size_t index, void *data, struct error *error);
    void *context;
};

/**
 * @brief Writes a new file and syncs it.
 *
 * A failure leaves no file. It is not atomic: for a file in a folder that nobody sees yet.
 *
 * @param path    of a file that does not exist
 * @param tensors name, dtype, rank, shape and bytes; data is not looked at
 * @return STATUS_OK, STATUS_IO with the path, as safetensors_serialize(), or the source's
 */
MUST_CHECK enum status safetensors_write(const char *path, const struct safetensors_tensor *tensors,
                                         size_t count, const struct safetensors_source *source,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
