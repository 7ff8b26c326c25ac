#include "common/simt/memory/access/harmless.h"

#include <stdlib.h>

#include "common/base/hash.h"
#include "common/simt/memory/access/request.h"

enum { WORD = 4, PLACES = 1 << 16, MOST_PLACES = PLACES / 2, WRITERS = 1 << 18 };

/* A word as a block sees it, and who writes it there. */
struct key {
    uint64_t order; /* of the block */
    uint64_t word;  /* number of the word; of shared memory its complement */
};

struct place {
    struct key key;
    uint32_t thread; /* of the block; NOBODY: the entry is free */
    uint32_t run;    /* a writer's: entries of earlier runs are free, too */
};

enum { NOBODY = 0 }; /* threads are counted from 1 here */

struct simt_harmless {
    bool denied, grown;
    uint32_t count, run;
    struct place places[PLACES];   /* words that race, found by probing */
    struct place writers[WRITERS]; /* of this run; a later word takes an earlier one's entry */
};

struct simt_harmless *simt_harmless_create(void) {
    return calloc(1, sizeof(struct simt_harmless));
}

void simt_harmless_free(struct simt_harmless *harmless) {
    free(harmless);
}

bool simt_harmless_possible(const struct simt_run *run, const struct simt_encounter *race) {
    enum { NEEDED = SIMT_CHECK_UNINITIALISED | SIMT_CHECK_RACES };
    return race->raced && !race->blocks && (run->check & NEEDED) == NEEDED;
}

void simt_harmless_begin(struct simt_harmless *harmless) {
    harmless->grown = false;
    harmless->run++;
}

void simt_harmless_deny(struct simt_harmless *harmless) {
    harmless->denied = true;
}

bool simt_harmless_is_denied(const struct simt_harmless *harmless) {
    return harmless->denied;
}

bool simt_harmless_has_grown(const struct simt_harmless *harmless) {
    return harmless->grown;
}

static struct key key_of(const struct simt_request *request, uint64_t word) {
    return (struct key){request->warp->block->order, request->space == PTX_SHARED ? ~word : word};
}

static bool is_same(const struct key *a, const struct key *b) {
    return a->order == b->order && a->word == b->word;
}

static uint64_t hash_of(const struct key *key) {
    uint64_t sum = checksum_bytes(key, sizeof *key);
    return sum ^ sum >> 32;
}

/* The word's entry, or the free one where it belongs. */
static struct place *find(struct simt_harmless *harmless, const struct key *key) {
    uint64_t at = hash_of(key) % PLACES;
    while (harmless->places[at].thread != NOBODY && !is_same(&harmless->places[at].key, key)) {
        at = (at + 1) % PLACES;
    }
    return &harmless->places[at];
}

static struct place *writer_of(struct simt_harmless *harmless, const struct key *key) {
    return &harmless->writers[hash_of(key) % WRITERS];
}

/* The words of a lane's access. */
struct words {
    uint64_t first, last;
};

static struct words words_of(const struct simt_request *request, uint32_t lane) {
    uint64_t address = request->first + (uint64_t)(int64_t)request->relative[lane];
    return (struct words){address / WORD, (address + request->bytes - 1) / WORD};
}

static uint32_t thread_of(const struct simt_request *request, uint32_t lane) {
    return request->warp->index * SIMT_LANES + lane + 1;
}

bool simt_harmless_covers(const struct simt_request *request, uint32_t lane) {
    struct simt_harmless *harmless = request->warp->block->run->harmless;
    struct words words = words_of(request, lane);
    for (uint64_t word = words.first; word <= words.last; word++) {
        const struct key key = key_of(request, word);
        if (find(harmless, &key)->thread == NOBODY) {
            return false;
        }
    }
    return true;
}

static bool note(struct simt_harmless *harmless, const struct key *key, uint32_t thread) {
    struct place *place = find(harmless, key);
    if (place->thread == NOBODY) {
        if (harmless->count == MOST_PLACES) {
            return false;
        }
        *place = (struct place){.key = *key, .thread = thread};
        harmless->count++;
        harmless->grown = true;
    }
    return place->thread == thread;
}

bool simt_harmless_note(const struct simt_request *request, uint32_t lane,
                        const struct simt_race *race) {
    struct simt_harmless *harmless = request->warp->block->run->harmless;
    bool writes = request->kind == SIMT_WRITE;
    struct words words = words_of(request, lane);
    bool fine = request->kind != SIMT_ATOMIC && !request->async && race->wrote != writes &&
                request->home == request->warp->block;
    for (uint64_t word = words.first; word <= words.last && fine; word++) {
        const struct key key = key_of(request, word);
        const struct place *writer = writer_of(harmless, &key);
        bool known = writes || (writer->run == harmless->run && is_same(&writer->key, &key));
        fine = known && note(harmless, &key, writes ? thread_of(request, lane) : writer->thread);
    }
    if (!fine) {
        simt_harmless_deny(harmless);
    }
    return fine;
}

/* What a lane has to do with words that are noted. */
static bool touches_others(const struct simt_request *request, uint32_t lane) {
    struct simt_harmless *harmless = request->warp->block->run->harmless;
    struct words words = words_of(request, lane);
    bool others = false;
    for (uint64_t word = words.first; word <= words.last; word++) {
        const struct key key = key_of(request, word);
        uint32_t thread = find(harmless, &key)->thread;
        others = others || (thread != NOBODY && thread != thread_of(request, lane));
        if (request->kind == SIMT_WRITE) {
            *writer_of(harmless, &key) =
                (struct place){key, thread_of(request, lane), harmless->run};
        }
    }
    return others;
}

uint32_t simt_harmless_reads(const struct simt_request *request) {
    struct simt_harmless *harmless = request->warp->block->run->harmless;
    uint32_t lanes = 0;
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        lanes |= touches_others(request, lane) ? 1u << lane : 0;
    }
    bool is_plain_read = request->kind == SIMT_READ && !request->strong && !request->async;
    if (lanes != 0 && !is_plain_read) {
        simt_harmless_deny(harmless);
    }
    return is_plain_read ? lanes : 0;
}
