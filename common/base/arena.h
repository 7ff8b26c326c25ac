/**
 * @file arena.h
 * @brief An arena: one block of host memory, allocated from front to back and freed as a whole.
 */
#ifndef WARPBOOK_COMMON_BASE_ARENA_H_
#define WARPBOOK_COMMON_BASE_ARENA_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Alignment of every allocation: one cache line, one AVX-512 vector. */
#define ARENA_ALIGNMENT 64

/** Owns `size` bytes of host memory; the first `used` of them are allocated. */
struct arena {
    unsigned char *base;
    size_t size;
    size_t used;
};

/**
 * @brief Allocates the block, filled with zeros.
 * @param size bytes, rounded up to ARENA_ALIGNMENT; 0 is allowed
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status arena_create(struct arena *arena, size_t size);

/**
 * @brief Allocates @p count elements of @p element_size bytes, aligned to ARENA_ALIGNMENT.
 * @return the memory, zeros, or NULL if the arena is too small or the size overflows
 */
void *arena_alloc(struct arena *arena, size_t count, size_t element_size);

/** @return bytes that arena_alloc() takes for these arguments, with padding; SIZE_MAX on overflow.
 */
size_t arena_footprint(size_t count, size_t element_size);

/** Frees the block; a zero-initialised or freed arena is allowed. */
void arena_free(struct arena *arena);

#ifdef __cplusplus
}
#endif

#endif
