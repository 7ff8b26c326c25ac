/**
 * @file begin_token.h
 * @brief Given: what a token begins with.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_BEGIN_TOKEN_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_BEGIN_TOKEN_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Starts x (C) = the token's row of table (V, C) of @p dtype, and *number = position. All
 *        pointers are device memory.
 */
MUST_CHECK enum status begin_token(float *x, int32_t *number, const void *table,
                                   enum nn_dtype dtype, int32_t token, int32_t position, size_t C,
                                   device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
