#include "common/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

size_t arena_footprint(size_t count, size_t element_size) {
    size_t bytes;
    if (!checked_multiply(count, element_size, &bytes) ||
        !checked_add(bytes, ARENA_ALIGNMENT - 1, &bytes)) {
        return SIZE_MAX;
    }
    return bytes / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

enum status arena_create(struct arena *arena, size_t size) {
    *arena = (struct arena){0};
    size_t bytes = arena_footprint(size, 1);
    if (bytes == SIZE_MAX) {
        return STATUS_OVERFLOW;
    }
    if (bytes == 0) {
        return STATUS_OK;
    }
    arena->base = aligned_alloc(ARENA_ALIGNMENT, bytes);
    if (arena->base == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memset(arena->base, 0, bytes);
    arena->size = bytes;
    return STATUS_OK;
}

void *arena_alloc(struct arena *arena, size_t count, size_t element_size) {
    size_t bytes = arena_footprint(count, element_size);
    if (bytes > arena->size - arena->used) {
        return NULL;
    }
    void *memory = arena->base + arena->used;
    arena->used += bytes;
    return memory;
}

void arena_free(struct arena *arena) {
    free(arena->base);
    *arena = (struct arena){0};
}
