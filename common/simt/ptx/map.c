#include "common/simt/ptx/map.h"

#include <stdlib.h>
#include <string.h>

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

static uint64_t hash_text(const char *text, size_t length) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

char *ptx_names_keep(struct ptx_names *names, const char *text, size_t length) {
    uint64_t hash = hash_text(text, length);
    uint64_t attempt = length; /* sets names of equal hash apart */
    const uint32_t *found;
    while ((found = ptx_map_find(&names->map, hash, attempt)) != NULL) {
        char *name = *(char **)ptx_list_at(&names->list, *found); /* as long: that is in the key */
        if (memcmp(name, text, length) == 0) {
            return name;
        }
        attempt += UINT64_C(1) << 32;
    }
    char *name = ptx_memory_take(names->memory, length + 1, 1);
    char **item = name != NULL ? ptx_list_add(&names->list) : NULL;
    if (item == NULL ||
        !ptx_map_add(&names->map, hash, attempt, (uint32_t)(names->list.count - 1))) {
        return NULL;
    }
    memcpy(name, text, length);
    *item = name;
    return name;
}

void ptx_names_free(struct ptx_names *names) {
    ptx_map_free(&names->map);
    ptx_list_free(&names->list);
}
