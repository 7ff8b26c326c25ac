#include "common/simt/ptx/map.h"

#include <stdlib.h>

struct ptx_entry {
    uint64_t a, b;
    uint32_t value;
    bool used;
};

/* The last steps of splitmix64: every bit of the key reaches the low bits. */
static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The entry of the key, or the free one where it belongs; the map is never full. */
static struct ptx_entry *locate(const struct ptx_map *map, uint64_t a, uint64_t b) {
    size_t mask = map->capacity - 1;
    size_t i = (size_t)mix(a, b) & mask;
    while (map->entries[i].used && (map->entries[i].a != a || map->entries[i].b != b)) {
        i = (i + 1) & mask;
    }
    return &map->entries[i];
}

static bool grow(struct ptx_map *map) {
    size_t capacity = map->capacity > 0 ? map->capacity * 2 : 64;
    struct ptx_map larger = {calloc(capacity, sizeof *larger.entries), map->count, capacity};
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        const struct ptx_entry *entry = &map->entries[i];
        if (entry->used) {
            *locate(&larger, entry->a, entry->b) = *entry;
        }
    }
    free(map->entries);
    *map = larger;
    return true;
}

uint32_t *ptx_map_find(const struct ptx_map *map, uint64_t a, uint64_t b) {
    if (map->capacity == 0) {
        return NULL;
    }
    struct ptx_entry *entry = locate(map, a, b);
    return entry->used ? &entry->value : NULL;
}

bool ptx_map_add(struct ptx_map *map, uint64_t a, uint64_t b, uint32_t value) {
    if (map->count >= map->capacity / 2 && !grow(map)) {
        return false;
    }
    *locate(map, a, b) = (struct ptx_entry){a, b, value, true};
    map->count++;
    return true;
}

void ptx_map_free(struct ptx_map *map) {
    free(map->entries);
    *map = (struct ptx_map){0};
}
