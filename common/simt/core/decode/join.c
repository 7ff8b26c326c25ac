/*
 * Finds shared accesses that ptxas makes one of.
 *
 * Loads of one thread from neighbouring words become one LDS.64 or LDS.128,
 * stores one STS.64 or STS.128, where the address is known to be aligned: same
 * base register, no barrier, no other access in between that may reach the same
 * memory. (Seen in the machine code of nvcc 13: three of the four words of an
 * aligned 16 bytes are loaded as four; global accesses are never joined, nor are
 * bytes and 16-bit words.) Each instruction still runs on its own; what is
 * counted is the joined access, by the first of them.
 */
#include <stdlib.h>

#include "common/simt/core/decode/decode_internal.h"
#include "common/simt/memory/access/request.h"

enum { CHUNK = 16, WORD = 4, WORDS = CHUNK / WORD, CHUNK_ZEROS = 4, HALF_ZEROS = 3 };

/* Accesses to one aligned piece of 16 bytes, as its words. */
struct chunk {
    bool open, store;
    uint32_t base; /* row of the address; NO_ROW: a constant */
    int64_t at;    /* offset from the base, a multiple of 16 */
    uint32_t zeros, bytes;
    int32_t guard;
    bool guard_negated;
    struct simt_instruction *words[WORDS]; /* who reaches a word; the first of an 8-byte access */
};

enum { NO_ROW = UINT32_MAX };

struct joiner {
    struct simt_code *code;
    struct simt_alignment alignment;
    struct chunk *chunks;
    size_t count;
};

static bool has_base(const struct simt_instruction *i, const char *base) {
    return i->source != NULL && ptx_is_same(i->source->base, base);
}

static bool is_in(const struct simt_instruction *i, const char *space) {
    return ptx_has_modifier(i->source, space);
}

/* A plain load or store of 4 or 8 bytes of shared memory. */
static bool can_join(const struct simt_instruction *i) {
    uint32_t bytes = simt_field(i, SIMT_BYTES_SHIFT);
    return (has_base(i, "ld") || has_base(i, "st")) && i->op_class == SIMT_CLASS_SHARED &&
           (i->detail[0] & SIMT_STRONG) == 0 && (bytes == WORD || bytes == 2 * WORD);
}

/* May change shared memory, or must not be passed by an access to it. */
static bool stops_loads(const struct simt_instruction *i) {
    static const char *const bases[] = {"bar",  "barrier",       "membar",   "fence",
                                        "call", "mbarrier",      "stmatrix", "wmma",
                                        "cp",   "griddepcontrol"};
    if (i->source == NULL) {
        return true;
    }
    for (size_t n = 0; n < sizeof bases / sizeof *bases; n++) {
        if (has_base(i, bases[n])) {
            return true;
        }
    }
    bool writes = has_base(i, "st") || has_base(i, "atom") || has_base(i, "red");
    return writes && !is_in(i, "global") && !is_in(i, "local") && !is_in(i, "param");
}

/* Sees shared memory. */
static bool stops_stores(const struct simt_instruction *i) {
    bool reads =
        has_base(i, "ldmatrix") || (has_base(i, "ld") && !is_in(i, "global") &&
                                    !is_in(i, "local") && !is_in(i, "param") && !is_in(i, "const"));
    return reads || stops_loads(i);
}

static struct simt_instruction *first_of(struct simt_instruction *const *words, size_t count) {
    struct simt_instruction *first = NULL;
    for (size_t n = 0; n < count; n++) {
        first = words[n] != NULL && (first == NULL || words[n] < first) ? words[n] : first;
    }
    return first;
}

/* Makes the accesses to some words one of `bytes`, counted by the first in the text. */
static void join(struct simt_instruction *const *words, size_t count, uint8_t bytes) {
    struct simt_instruction *first = first_of(words, count);
    for (size_t n = 0; n < count; n++) {
        if (words[n] != NULL) {
            words[n]->joined = words[n] == first ? bytes : SIMT_JOINED_RIDER;
        }
    }
}

static void close(struct chunk *chunk) {
    struct simt_instruction *const *words = chunk->words;
    uint32_t present = 0;
    chunk->open = false;
    for (size_t n = 0; n < WORDS; n++) {
        present += words[n] != NULL ? chunk->bytes / WORD : 0;
    }
    bool whole = present == WORDS || (present == WORDS - 1 && !chunk->store);
    if (whole && chunk->zeros >= CHUNK_ZEROS) {
        join(words, WORDS, CHUNK);
        return;
    }
    for (size_t n = 0; n < WORDS; n += 2) {
        if (chunk->bytes == WORD && chunk->zeros >= HALF_ZEROS && words[n] != NULL &&
            words[n + 1] != NULL) {
            join(words + n, 2, CHUNK / 2);
        }
    }
}

static bool writes_row(const struct simt_instruction *i, uint32_t row) {
    for (uint32_t n = 0; n < i->dst_count; n++) {
        if (i->dst[n] == row) {
            return true;
        }
    }
    return false;
}

static bool writes_predicate(const struct simt_instruction *i, int32_t predicate) {
    return predicate >= 0 && (i->pred_dst[0] == predicate || i->pred_dst[1] == predicate);
}

/* Where an access goes. @return false: not to whole words, or across two halves */
static bool find_place(const struct joiner *j, const struct simt_instruction *i,
                       struct chunk *chunk, size_t *word) {
    uint64_t address = 0;
    chunk->base = i->src[0];
    chunk->zeros = simt_alignment_zeros(&j->alignment, i->src[0]);
    if (simt_alignment_constant(&j->alignment, i->src[0], &address)) {
        chunk->base = NO_ROW;
        chunk->zeros = CHUNK_ZEROS;
    }
    int64_t at = (int64_t)address + i->immediate;
    chunk->at = at & ~(int64_t)(CHUNK - 1);
    *word = (size_t)(at - chunk->at) / WORD;
    return (at & (chunk->bytes - 1)) == 0;
}

static bool is_same_chunk(const struct chunk *a, const struct chunk *b) {
    return a->open && a->store == b->store && a->base == b->base && a->at == b->at &&
           a->bytes == b->bytes && a->guard == b->guard && a->guard_negated == b->guard_negated;
}

static void add_access(struct joiner *j, struct simt_instruction *i) {
    struct chunk wanted = {.open = true,
                           .store = has_base(i, "st"),
                           .bytes = simt_field(i, SIMT_BYTES_SHIFT),
                           .guard = i->guard,
                           .guard_negated = i->guard_negated};
    size_t word;
    if (!find_place(j, i, &wanted, &word)) {
        return;
    }
    for (size_t n = 0; n < j->count; n++) {
        struct chunk *chunk = &j->chunks[n];
        if (is_same_chunk(chunk, &wanted)) {
            if (chunk->words[word] == NULL) {
                chunk->words[word] = i;
                return;
            }
            close(chunk);
        }
    }
    wanted.words[word] = i;
    j->chunks[j->count++] = wanted;
}

/* Closes the groups that accesses after this instruction cannot join. */
static void pass(struct joiner *j, const struct simt_instruction *i) {
    bool joins = can_join(i);
    bool loads = stops_loads(i);
    bool stores = stops_stores(i);
    for (size_t n = 0; n < j->count; n++) {
        struct chunk *chunk = &j->chunks[n];
        bool own = joins && chunk->store && has_base(i, "st") && chunk->base == i->src[0];
        bool stops = chunk->store ? stores && !own : loads;
        if (chunk->open && stops) {
            close(chunk);
        }
    }
}

/* A new value in the base or in the guard: what follows is elsewhere. */
static void redefine(struct joiner *j, const struct simt_instruction *i) {
    for (size_t n = 0; n < j->count; n++) {
        struct chunk *chunk = &j->chunks[n];
        if (chunk->open && (writes_row(i, chunk->base) || writes_predicate(i, chunk->guard))) {
            close(chunk);
        }
    }
}

static void close_all(struct joiner *j) {
    for (size_t n = 0; n < j->count; n++) {
        if (j->chunks[n].open) {
            close(&j->chunks[n]);
        }
    }
    j->count = 0;
}

enum status simt_join_accesses(struct simt_code *code) {
    struct joiner j = {.code = code};
    j.chunks = calloc(code->count, sizeof *j.chunks);
    enum status status =
        j.chunks != NULL ? simt_alignment_find(&j.alignment, code) : STATUS_OUT_OF_MEMORY;
    for (size_t n = 0; n < code->count && status == STATUS_OK; n++) {
        struct simt_instruction *i = &code->instructions[n];
        if (code->leader[n]) {
            close_all(&j);
        }
        pass(&j, i);
        if (can_join(i)) {
            add_access(&j, i);
        }
        redefine(&j, i);
    }
    close_all(&j);
    simt_alignment_free(&j.alignment);
    free(j.chunks);
    return status;
}
