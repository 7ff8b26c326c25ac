/**
 * @file device_buffer.h
 * @brief Device memory of a graded case, with canaries, and a host copy out of the submission's
 *        reach.
 *
 * On simt a buffer without canaries ends where its allocation ends, so that simt
 * reports the first access beyond it with kernel and source line. A GPU does not
 * report that; there the canaries show it.
 */
#ifndef WARPBOOK_COMMON_TESTING_DEVICE_BUFFER_H_
#define WARPBOOK_COMMON_TESTING_DEVICE_BUFFER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Floats of each canary zone. */
enum { DEVICE_BUFFER_GUARD = 64 };

/** `bytes` bytes of device memory at `data`, between `before` and `after` bytes of canary. */
struct device_buffer {
    float *data;  /**< device */
    size_t count; /**< whole floats of the data */
    size_t bytes;
    size_t before, after;
    uint32_t poison; /**< NaN as data and canaries hold it */
    void *block;     /**< device: canary, data, canary */
    void *expect;    /**< host: the values that block must hold */
};

/**
 * @brief Allocates @p count floats; data and canaries are NaN until device_buffer_put().
 * @param guarded whether there are canaries
 * @param skew    floats by which data is shifted from a 256-byte boundary, in addition to the
 * canary
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY or the status of the device
 */
MUST_CHECK enum status device_buffer_create(struct device_buffer *buffer, size_t count,
                                            bool guarded, size_t skew, struct error *error);

/** The same for other types: @p bytes and @p skew are in bytes, and NaN is one in fp16 and bf16. */
MUST_CHECK enum status device_buffer_create_bytes(struct device_buffer *buffer, size_t bytes,
                                                  bool guarded, size_t skew, struct error *error);

/** Copies @p values (host) to the data, or NaN if it is NULL; renews the canaries. */
MUST_CHECK enum status device_buffer_put(struct device_buffer *buffer, const void *values,
                                         struct error *error);

/**
 * @brief Reads the whole buffer back; waits for the device.
 * @param values  host, receives the data; or NULL
 * @param intact  receives whether the canaries are unchanged
 * @param changed receives whether the data differs from the last device_buffer_put()
 */
MUST_CHECK enum status device_buffer_get(const struct device_buffer *buffer, void *values,
                                         bool *intact, bool *changed, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void device_buffer_free(struct device_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
