/**
 * @file grow.h
 * @brief Growing arrays.
 */
#ifndef WARPBOOK_COMMON_BASE_GROW_H_
#define WARPBOOK_COMMON_BASE_GROW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

/**
 * @brief Makes room for @p wanted elements of @p size bytes, by doubling the capacity.
 * @param array    address of a pointer to the elements: NULL at first, then memory that the caller
 *                 frees; it may move
 * @param capacity elements that there is room for
 * @return false if there is no memory; then the array is unchanged
 */
static inline bool array_grow(void *array, size_t *capacity, size_t wanted, size_t size) {
    if (wanted <= *capacity) {
        return true;
    }
    size_t grown = *capacity < 8 ? 8 : *capacity, bytes;
    while (grown < wanted) {
        if (!checked_multiply(grown, 2, &grown)) {
            return false;
        }
    }
    void *items;
    memcpy(&items, array, sizeof items);
    items = checked_multiply(grown, size, &bytes) ? realloc(items, bytes) : NULL;
    if (items == NULL) {
        return false;
    }
    memcpy(array, &items, sizeof items);
    *capacity = grown;
    return true;
}

#endif
