/**
 * @file wordpiece_list.h
 * @brief A list of numbers that grows; for the WordPiece tokenizer and who reads its words.
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

/** @return false when there is no memory; the list is as before then. */
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
