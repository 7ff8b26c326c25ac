/**
 * @file remote_buffer.h
 * @brief Host memory of a graded case in the worker in use, with canaries, and a copy that the
 *        worker never sees. What device_buffer.h is for device memory.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_REMOTE_BUFFER_H_
#define WARPBOOK_GRADER_ISOLATION_REMOTE_BUFFER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Floats of the canary before the data, and of the one behind it. */
enum { REMOTE_BUFFER_GUARD = 1024 };

/** `count` floats at `data`, between `before` and `after` floats of canary. */
struct remote_buffer {
    float *data; /**< arena: what the worker is given */
    size_t count;
    size_t before, after;
    float *block;  /**< arena: canary, data, canary */
    float *expect; /**< host: what block must hold */
};

/**
 * @brief Takes memory from the worker's arena; the data is NaN until remote_buffer_put().
 * @param skew floats that the data begins past a 64-byte boundary
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY or what starting the worker gives
 */
MUST_CHECK enum status remote_buffer_create(struct remote_buffer *buffer, size_t count, size_t skew,
                                            struct error *error);

/** Sets the data from private memory, or to NaN when @p values is NULL; renews the canaries. */
void remote_buffer_put(struct remote_buffer *buffer, const float *values);

/**
 * @brief Copies all of it out, once, and looks at the copy.
 * @param values  receives the data, (count) floats of private memory, or NULL
 * @param intact  receives whether the canaries hold what they held
 * @param changed receives whether the data differs from what was put, or NULL
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status remote_buffer_get(const struct remote_buffer *buffer, float *values,
                                         bool *intact, bool *changed, struct error *error);

/** Frees the copy; the arena goes as a whole. A zero-initialised one is allowed. */
void remote_buffer_free(struct remote_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
