/**
 * @file map.h
 * @brief Hash map from a pair of numbers to a number: names in scopes, places in the source.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_MAP_H_
#define WARPBOOK_COMMON_SIMT_PTX_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/ptx/memory.h"

struct ptx_entry;

/** Zero-initialise before use. */
struct ptx_map {
    struct ptx_entry *entries;
    size_t count, capacity;
};

/** @return the value of (a, b), valid until the next ptx_map_add(); NULL: there is none. */
uint32_t *ptx_map_find(const struct ptx_map *map, uint64_t a, uint64_t b);

/** Adds (a, b), which must not be there yet. @return false: out of memory */
bool ptx_map_add(struct ptx_map *map, uint64_t a, uint64_t b, uint32_t value);

void ptx_map_free(struct ptx_map *map);

/* Names of a module, each kept once. */

/** Every name once, so that equal names are equal pointers. */
struct ptx_names {
    struct ptx_memory *memory; /**< where the strings live */
    struct ptx_list list;      /**< of char *; item_size is to be set */
    struct ptx_map map;        /**< from the hash of a name to its place in the list */
};

/** @return the one copy of the name, NUL-terminated; NULL: out of memory. */
char *ptx_names_keep(struct ptx_names *names, const char *text, size_t length);

void ptx_names_free(struct ptx_names *names);

#endif
