#include "common/simt/memory/access/late.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/access/request.h"

enum { MOST_STORES = 2048, MOST_BYTES = 16, WORD = 8 };

/* A launch gives up its turn behind about half of an instruction's first accesses, and then behind
 * some stores. */
enum { SITES = 256, FIRST = 32, PERIOD = 13 };

struct store {
    unsigned char *host;
    size_t bytes;
    unsigned char before[MOST_BYTES], after[MOST_BYTES];
    bool hidden, torn; /* torn: the second half of a vector, which may come later than the first */
};

struct simt_late {
    struct store stores[MOST_STORES];
    size_t count, current; /* `current`: of the instruction that runs from here on */
    enum simt_late_way way;
    uint64_t accesses;   /* so far, of those behind which it may give up its turn */
    uint8_t seen[SITES]; /* how often an instruction ran, up to FIRST */
    bool tears;          /* the next turn that is given up */
    bool is_over;        /* the launch has waited for too long, and ends */
};

struct simt_late *simt_late_create(enum simt_late_way way) {
    struct simt_late *late = way != SIMT_LATE_NONE ? calloc(1, sizeof *late) : NULL;
    if (late != NULL) {
        late->way = way;
    }
    return late;
}

void simt_late_free(struct simt_late *late) {
    free(late);
}

void simt_late_settle(struct simt_late *late) {
    if (late != NULL) {
        late->count = late->current = 0;
    }
}

static void add(struct simt_late *late, unsigned char *host, size_t bytes, bool torn) {
    struct store *store = &late->stores[late->count++];
    store->host = host;
    store->bytes = bytes;
    store->hidden = false;
    store->torn = torn;
    memcpy(store->before, host, bytes);
}

void simt_late_note(struct simt_late *late, unsigned char *host, size_t bytes, bool may_tear) {
    if (late->count + 2 > MOST_STORES) {
        simt_late_settle(late);
    }
    if (may_tear && bytes > WORD) {
        add(late, host, WORD, false);
        add(late, host + WORD, bytes - WORD, true);
    } else {
        add(late, host, bytes, false);
    }
}

static bool overlap(const struct store *a, const struct store *b) {
    return a->host < b->host + b->bytes && b->host < a->host + a->bytes;
}

/* The instruction that ran writes there, too: its value, which is seen, is the newer one. */
static bool is_replaced(const struct simt_late *late, const struct store *store) {
    for (size_t n = late->current; n < late->count; n++) {
        if (overlap(store, &late->stores[n])) {
            return true;
        }
    }
    return false;
}

static void swap_in(struct store *store, const unsigned char *from, const unsigned char *to) {
    if (memcmp(store->host, from, store->bytes) == 0) {
        memcpy(store->host, to, store->bytes);
        store->hidden = !store->hidden;
    }
}

/* What the instruction that ran has stored. */
static void keep_current(struct simt_late *late) {
    for (size_t n = late->current; n < late->count; n++) {
        memcpy(late->stores[n].after, late->stores[n].host, late->stores[n].bytes);
    }
}

/* The newest first, so that a word that was stored twice gets its oldest value. */
static void hide(struct simt_late *late) {
    late->tears = !late->tears;
    for (size_t n = late->count; n > 0; n--) {
        struct store *store = &late->stores[n - 1];
        bool later = n <= late->current ? !is_replaced(late, store) : late->tears && store->torn;
        if (later) {
            swap_in(store, store->after, store->before);
        }
    }
}

/* What others have stored meanwhile stays. */
static void show(struct simt_late *late) {
    for (size_t n = 0; n < late->count; n++) {
        if (late->stores[n].hidden) {
            swap_in(&late->stores[n], late->stores[n].before, late->stores[n].after);
        }
    }
}

static struct simt_late *late_of(const struct simt_warp *warp, const struct simt_instruction *in) {
    const struct simt_block *block = warp->block;
    const struct simt_yield *yield = block->run->yield;
    bool applies = yield != NULL && (in->detail[0] & SIMT_SYSTEM) != 0 && block->shadow != NULL &&
                   block->fault.kind == SIMT_FAULT_NONE;
    return applies ? yield->late : NULL;
}

void simt_late_begin(const struct simt_warp *warp, const struct simt_instruction *in) {
    struct simt_late *late = late_of(warp, in);
    if (late != NULL && (in->detail[0] & SIMT_RELEASES_DEVICE) != 0) {
        simt_late_settle(late);
    } else if (late != NULL) {
        late->current = late->count;
    }
}

/* Whether others run now. */
static bool is_due(struct simt_late *late, const struct simt_instruction *in, bool stores) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint8_t *seen = &late->seen[in->site % SITES];
    bool is_new = *seen < FIRST;
    if (late->is_over || stores != (late->way == SIMT_LATE_STORES)) {
        return false;
    }
    *seen = (uint8_t)(*seen + is_new);
    uint64_t access = ++late->accesses;
    return is_new ? (access * odd >> 62 & 1) != 0 : stores && access % PERIOD == 0;
}

void simt_late_end(const struct simt_warp *warp, const struct simt_instruction *in, bool stores) {
    struct simt_late *late = late_of(warp, in);
    struct simt_yield *yield = warp->block->run->yield;
    if (late == NULL) {
        return;
    }
    keep_current(late);
    if (yield->has_others(yield->context) && is_due(late, in, stores)) {
        hide(late);
        yield->has_yielded = true;
        late->is_over = !yield->function(yield->context, true, true);
        show(late);
        simt_late_settle(late);
    }
}
