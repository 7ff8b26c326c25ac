#include "common/simt/memory/cache/l1.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, LINE_BYTES = 128, SECTORS = 4 };

/* A line: its number above, the sectors that are there in the low bits; 0: empty. */
struct set {
    uint64_t lines[WAYS];
};

struct simt_l1 {
    size_t count; /* of sets */
    uint64_t random;
    bool used;
    struct set sets[];
};

static const uint64_t golden = 0x9e3779b97f4a7c15u;

struct simt_l1 *simt_l1_create(size_t bytes) {
    size_t count = bytes / (WAYS * LINE_BYTES);
    count = count > 0 ? count : 1;
    struct simt_l1 *l1 = calloc(1, sizeof *l1 + count * sizeof *l1->sets);
    if (l1 != NULL) {
        l1->count = count;
        l1->random = golden;
    }
    return l1;
}

void simt_l1_free(struct simt_l1 *l1) {
    free(l1);
}

void simt_l1_clear(struct simt_l1 *l1) {
    if (l1->used) {
        memset(l1->sets, 0, l1->count * sizeof *l1->sets);
    }
    l1->random = golden;
    l1->used = false;
}

static uint32_t random_way(struct simt_l1 *l1) {
    l1->random = l1->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(l1->random >> 62);
}

uint32_t simt_l1_touch(struct simt_l1 *l1, uint64_t line, uint32_t sectors) {
    uint64_t mixed = (line * golden) >> 32;
    struct set *set = &l1->sets[mixed * l1->count >> 32];
    l1->used = true;
    for (uint32_t way = 0; way < WAYS; way++) {
        if (set->lines[way] >> SECTORS == line) {
            uint32_t found = (uint32_t)set->lines[way] & sectors;
            set->lines[way] |= sectors;
            return found;
        }
    }
    set->lines[random_way(l1)] = line << SECTORS | sectors;
    return 0;
}
