#include "common/simt/memory/race/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/race/byte_bits.h"

/* A warp's copies, oldest first. */
struct list {
    struct simt_copy *copies;
    size_t count, room;
    uint32_t committed[SIMT_LANES]; /* groups */
};

struct simt_copies {
    struct list *lists; /* (warps) */
    uint32_t warps;
    size_t count;       /* of all lists */
    uint64_t *expected; /* bytes of shared memory to which something is on its way */
    size_t words;
};

struct simt_copies *simt_copies_create(uint32_t warps, size_t shared_bytes) {
    struct simt_copies *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->warps = warps;
    c->words = byte_bits_words(shared_bytes);
    c->lists = calloc((size_t)warps + 1, sizeof *c->lists);
    c->expected = calloc(c->words, sizeof *c->expected);
    if (c->lists == NULL || c->expected == NULL) {
        simt_copies_free(c);
        return NULL;
    }
    return c;
}

void simt_copies_free(struct simt_copies *c) {
    if (c == NULL) {
        return;
    }
    for (uint32_t n = 0; n < c->warps && c->lists != NULL; n++) {
        free(c->lists[n].copies);
    }
    free(c->lists);
    free(c->expected);
    free(c);
}

void simt_copies_reset(struct simt_copies *c) {
    for (uint32_t n = 0; n < c->warps; n++) {
        c->lists[n].count = 0;
        memset(c->lists[n].committed, 0, sizeof c->lists[n].committed);
    }
    c->count = 0;
    memset(c->expected, 0, c->words * sizeof *c->expected);
}

static bool make_room(struct list *list) {
    enum { FIRST_ROOM = 16 };
    if (list->count < list->room) {
        return true;
    }
    size_t room = list->room > 0 ? 2 * list->room : FIRST_ROOM;
    struct simt_copy *copies = realloc(list->copies, room * sizeof *copies);
    if (copies == NULL) {
        return false;
    }
    list->copies = copies;
    list->room = room;
    return true;
}

bool simt_copies_start(struct simt_copies *c, uint32_t warp, const struct simt_copy *copy) {
    struct list *list = &c->lists[warp];
    if (!make_room(list)) {
        return false;
    }
    struct simt_copy *started = &list->copies[list->count++];
    *started = *copy;
    memcpy(started->groups, list->committed, sizeof started->groups);
    c->count++;
    for (uint32_t rest = copy->lanes; rest != 0; rest &= rest - 1) {
        byte_bits_set(c->expected, copy->offsets[__builtin_ctz(rest)], copy->bytes);
    }
    return true;
}

void simt_copies_commit(struct simt_copies *c, uint32_t warp, uint32_t lanes) {
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        c->lists[warp].committed[lane] += lanes >> lane & 1;
    }
}

/* Lanes of a copy that have waited long enough. */
static uint32_t landed_lanes(const struct list *list, const struct simt_copy *copy,
                             uint32_t pending) {
    uint32_t lanes = 0;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        lanes |= (uint32_t)(list->committed[lane] - copy->groups[lane] > pending) << lane;
    }
    return pending == SIMT_COPIES_ALL ? copy->lanes : lanes & copy->lanes;
}

static void forget_lanes(struct simt_copies *c, struct list *list, size_t n, uint32_t lanes) {
    struct simt_copy *copy = &list->copies[n];
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        byte_bits_clear(c->expected, copy->offsets[__builtin_ctz(rest)], copy->bytes);
    }
    copy->lanes &= ~lanes;
    if (copy->lanes == 0) {
        list->count--;
        c->count--;
        memmove(copy, copy + 1, (list->count - n) * sizeof *copy);
    }
}

bool simt_copies_land(struct simt_copies *c, uint32_t warp, uint32_t lanes, uint32_t pending,
                      size_t *next, struct simt_copy *landed) {
    struct list *list = &c->lists[warp];
    for (size_t n = *next; n < list->count; n++) {
        uint32_t done = landed_lanes(list, &list->copies[n], pending) & lanes;
        if (done != 0) {
            *landed = list->copies[n];
            landed->lanes = done;
            *next = n + (landed->lanes == list->copies[n].lanes ? 0 : 1);
            forget_lanes(c, list, n, done);
            return true;
        }
    }
    return false;
}

bool simt_copies_expects(const struct simt_copies *c, size_t offset, size_t bytes) {
    return c->count > 0 && byte_bits_any(c->expected, offset, bytes);
}

static bool overlaps(const struct simt_copy *copy, uint32_t lane, size_t offset, size_t bytes) {
    return (copy->lanes >> lane & 1) != 0 && copy->offsets[lane] < offset + bytes &&
           offset < copy->offsets[lane] + copy->bytes;
}

bool simt_copies_find(const struct simt_copies *c, size_t offset, size_t bytes,
                      struct simt_copier *copier) {
    for (uint32_t warp = 0; warp < c->warps; warp++) {
        const struct list *list = &c->lists[warp];
        for (size_t n = 0; n < list->count; n++) {
            for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
                if (overlaps(&list->copies[n], lane, offset, bytes)) {
                    *copier = (struct simt_copier){warp, lane, list->copies[n].instruction};
                    return true;
                }
            }
        }
    }
    return false;
}
