/**
 * @file wordpiece_list.h
 * @brief A growing list of integers, for the WordPiece tokenizer and the readers of its words.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_LIST_H_
#define WARPBOOK_COMMON_TOKENIZERS_WORDPIECE_WORDPIECE_LIST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** Zero-initialise before use; free(items) after. */
struct list {
    int32_t *items;
    size_t count, capacity;
};

/** Appends an item. @return false if there is no memory; then the list is unchanged. */
static inline bool list_push(struct list *list, int32_t item) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        if (capacity > SIZE_MAX / sizeof *list->items) {
            return false;
        }
        int32_t *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL) {
            return false;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}

#endif
