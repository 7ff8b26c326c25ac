#include "common/simt/ptx/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct ptx_block {
    struct ptx_block *next;
    size_t size, used; /* bytes behind this header */
};

/* Bytes of the header, rounded up so that what follows is aligned. */
static const size_t HEADER = (sizeof(struct ptx_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

/* calloc: large zeroed data costs nothing until it is touched. */
static struct ptx_block *add_block(struct ptx_memory *memory, size_t bytes) {
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    size_t total;
    if (!checked_add(size, HEADER, &total)) {
        return NULL;
    }
    struct ptx_block *block = calloc(1, total);
    if (block != NULL) {
        *block = (struct ptx_block){memory->blocks, size, 0};
        memory->blocks = block;
    }
    return block;
}

void *ptx_memory_take(struct ptx_memory *memory, size_t count, size_t size) {
    size_t bytes;
    if (!checked_multiply(count, size, &bytes) || !checked_add(bytes, ALIGNMENT - 1, &bytes)) {
        return NULL;
    }
    bytes = bytes / ALIGNMENT * ALIGNMENT;
    struct ptx_block *block = memory->blocks;
    if (block == NULL || block->size - block->used < bytes) {
        block = add_block(memory, bytes);
        if (block == NULL) {
            return NULL;
        }
    }
    void *start = (char *)block + HEADER + block->used;
    block->used += bytes;
    return start;
}

void ptx_memory_free(struct ptx_memory *memory) {
    while (memory->blocks != NULL) {
        struct ptx_block *next = memory->blocks->next;
        free(memory->blocks);
        memory->blocks = next;
    }
}

void ptx_memory_join(struct ptx_memory *memory, struct ptx_memory *from) {
    struct ptx_block **last = &memory->blocks;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = from->blocks;
    from->blocks = NULL;
}

void *ptx_list_add(struct ptx_list *list) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : 16;
        size_t bytes;
        void *items = checked_multiply(capacity, list->item_size, &bytes)
                          ? realloc(list->items, bytes)
                          : NULL;
        if (items == NULL) {
            return NULL;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->count++;
    return memset(ptx_list_at(list, list->count - 1), 0, list->item_size);
}

void *ptx_list_at(const struct ptx_list *list, size_t index) {
    return (char *)list->items + index * list->item_size;
}

void *ptx_list_move(struct ptx_list *list, size_t first, struct ptx_memory *memory, size_t *count) {
    *count = list->count - first;
    if (*count == 0) {
        return NULL;
    }
    void *copy = ptx_memory_take(memory, *count, list->item_size);
    if (copy != NULL) {
        memcpy(copy, ptx_list_at(list, first), *count * list->item_size);
        list->count = first;
    }
    return copy;
}

void ptx_list_free(struct ptx_list *list) {
    free(list->items);
    *list = (struct ptx_list){.item_size = list->item_size};
}
