/**
 * @file memory.h
 * @brief Memory of a parsed module: a chain of blocks freed as a whole, and lists that grow while
 *        the text is read.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_MEMORY_H_
#define WARPBOOK_COMMON_SIMT_PTX_MEMORY_H_

#include <stddef.h>

struct ptx_block;

/** Owns its blocks; zero-initialise before use. */
struct ptx_memory {
    struct ptx_block *blocks;
};

/** @return @p count elements of @p size bytes, zeroed, aligned to 16; NULL: out of memory. */
void *ptx_memory_take(struct ptx_memory *memory, size_t count, size_t size);

void ptx_memory_free(struct ptx_memory *memory);

/** Moves all that @p from owns to @p memory. */
void ptx_memory_join(struct ptx_memory *memory, struct ptx_memory *from);

/** A growing array; set item_size, leave the rest zero. */
struct ptx_list {
    void *items;
    size_t count, capacity, item_size;
};

/** @return a new zeroed item at the end, valid until the next call; NULL: out of memory. */
void *ptx_list_add(struct ptx_list *list);

/** @return item @p index, valid until the next ptx_list_add(). */
void *ptx_list_at(const struct ptx_list *list, size_t index);

/**
 * @brief Copies the items from @p first on into @p memory and takes them off the list.
 * @param count receives how many there were
 * @return the copy; NULL: there were none, or out of memory (then *count > 0)
 */
void *ptx_list_move(struct ptx_list *list, size_t first, struct ptx_memory *memory, size_t *count);

void ptx_list_free(struct ptx_list *list);

#endif
