/**
 * @file device_buffer.h
 * @brief Device memory of a graded case, with canaries, and a copy that the submission never sees.
 *
 * On simt a buffer without canaries ends where its allocation ends, so that the
 * first access beyond it is reported with kernel and source line. On a GPU
 * nobody watches that; there the canaries tell.
 */
#ifndef WARPBOOK_COMMON_TESTING_DEVICE_BUFFER_H_
#define WARPBOOK_COMMON_TESTING_DEVICE_BUFFER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Floats of each canary zone. */
enum { DEVICE_BUFFER_GUARD = 64 };

/** `count` floats of device memory at `data`, between `before` and `after` floats of canary. */
struct device_buffer {
    float *data; /**< device */
    size_t count;
    size_t before, after;
    float *block;  /**< device: canary, data, canary */
    float *expect; /**< host: what block must hold */
};

/**
 * @brief Allocates; data and canaries are NaN until device_buffer_put().
 * @param guarded whether there are canaries
 * @param skew    floats that data begins past a 256-byte boundary, beside those of the canary
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY or what the device says
 */
MUST_CHECK enum status device_buffer_create(struct device_buffer *buffer, size_t count,
                                            bool guarded, size_t skew, struct error *error);

/** Sets the data from host memory, or to NaN when @p values is NULL; renews the canaries. */
MUST_CHECK enum status device_buffer_put(struct device_buffer *buffer, const float *values,
                                         struct error *error);

/**
 * @brief Reads all of it back; waits for the device.
 * @param values  receives the data, (count) floats of host memory, or NULL
 * @param intact  receives whether the canaries hold what they held
 * @param changed receives whether the data differs from what was put
 */
MUST_CHECK enum status device_buffer_get(const struct device_buffer *buffer, float *values,
                                         bool *intact, bool *changed, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void device_buffer_free(struct device_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
