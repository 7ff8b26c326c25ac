/**
 * @file map.h
 * @brief Hash map from a pair of numbers to a number: names in scopes, places in the source.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_MAP_H_
#define WARPBOOK_COMMON_SIMT_PTX_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
