#include "common/simt/ptx/names.h"

#include <string.h>

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
        char *name = *(char **)ptx_list_at(&names->list, *found);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
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
