/**
 * @file grow.h
 * @brief Growing arrays; private to this package.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_GROW_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_GROW_H_

#include <stddef.h>
#include <stdlib.h>

#include "common/base/checked.h"

/**
 * @brief Makes room for @p wanted elements of @p size bytes, by doubling the capacity.
 * @param items    NULL or an array from this function; unchanged on failure
 * @param capacity elements that the array has room for; updated
 * @return the array, which may have moved; NULL if there is no memory
 */
static inline void *vocab_grow(void *items, size_t *capacity, size_t wanted, size_t size) {
    if (wanted <= *capacity && items != NULL) {
        return items;
    }
    size_t grown = *capacity < 8 ? 8 : *capacity, bytes;
    while (grown < wanted) {
        if (!checked_multiply(grown, 2, &grown)) {
            return NULL;
        }
    }
    if (!checked_multiply(grown, size, &bytes)) {
        return NULL;
    }
    void *memory = realloc(items, bytes);
    if (memory != NULL) {
        *capacity = grown;
    }
    return memory;
}

#endif
