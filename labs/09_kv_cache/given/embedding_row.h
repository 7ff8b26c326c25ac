/**
 * @file embedding_row.h
 * @brief Given: a token's row of the embedding's table.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_GIVEN_EMBEDDING_ROW_H_
#define WARPBOOK_LABS_09_KV_CACHE_GIVEN_EMBEDDING_ROW_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Starts copying row @p id of a table to fp32; does not wait for it.
 * @param out   device, (C)
 * @param table device, (V, C) of @p dtype
 * @param id    below V
 * @return STATUS_OK, or STATUS_DEVICE when the launch failed
 */
MUST_CHECK enum status embedding_row(float *out, const void *table, enum nn_dtype dtype, size_t id,
                                     size_t C, device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
