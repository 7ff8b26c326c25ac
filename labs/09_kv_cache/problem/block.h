/**
 * @file block.h
 * @brief Device memory of any type for a graded case of lab 09, with canaries and a copy that the
 *        submission never sees: device_buffer.h for any type.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_PROBLEM_BLOCK_H_
#define WARPBOOK_LABS_09_KV_CACHE_PROBLEM_BLOCK_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** `bytes` of device memory at `data`, between `before` and `after` bytes of canary. */
struct kv_block {
    void *data; /**< device; NULL without bytes */
    size_t bytes, before, after;
    void *memory;          /**< device: canary, data, canary */
    unsigned char *expect; /**< host: what memory must hold */
};

/**
 * @brief Allocates, and fills with bytes of 0xff, NaN in every type, until kv_block_put().
 * @param guarded whether there are canaries
 * @param skew    bytes that data begins past a 256-byte boundary
 */
MUST_CHECK enum status kv_block_create(struct kv_block *block, size_t bytes, bool guarded,
                                       size_t skew, struct error *error);

/** Sets the data from host memory, or to 0xff when @p values is NULL. */
MUST_CHECK enum status kv_block_put(struct kv_block *block, const void *values,
                                    struct error *error);

/**
 * @brief Reads all of it, after the work that writes it is done.
 * @param values  receives the data, host, or NULL
 * @param intact  receives whether the canaries are unchanged
 * @param changed receives whether the data differs from what was put
 */
MUST_CHECK enum status kv_block_get(const struct kv_block *block, void *values, bool *intact,
                                    bool *changed, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void kv_block_free(struct kv_block *block);

#ifdef __cplusplus
}
#endif

#endif
