#include "common/simt/memory/undefined.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORIGINS = 128, KEPT = 64, WHAT_BYTES = 640, PLACE_BYTES = 300, NAME_BYTES = 64 };

/* Rows are counted in those of 4-byte lanes. */
enum { CELL_BYTES = 4 * SIMT_LANES };

/* Bytes of memory that hold an undefined value. */
struct kept {
    enum ptx_space space;
    uint64_t begin, end; /* end 0: free */
    uint32_t origin;
};

struct simt_undefined {
    struct simt_undefined_origin origins[ORIGINS];
    struct kept kept[KEPT];
    uint32_t next_origin, next_kept;
};

struct simt_undefined *simt_undefined_create(void) {
    return calloc(1, sizeof(struct simt_undefined));
}

void simt_undefined_free(struct simt_undefined *undefined) {
    free(undefined);
}

void simt_undefined_reset(struct simt_undefined *undefined) {
    for (uint32_t n = 0; n < ORIGINS && undefined->origins[n].instruction != NULL; n++) {
        undefined->origins[n].instruction = NULL;
    }
    for (uint32_t n = 0; n < KEPT && undefined->kept[n].end != 0; n++) {
        undefined->kept[n].end = 0;
    }
    undefined->next_origin = 0;
    undefined->next_kept = 0;
}

struct simt_undefined_origin *simt_undefined_last(struct simt_undefined *undefined,
                                                  const struct simt_instruction *instruction,
                                                  uint32_t warp) {
    for (uint32_t n = 0; n < ORIGINS && undefined->origins[n].instruction != NULL; n++) {
        struct simt_undefined_origin *known = &undefined->origins[n];
        if (known->instruction == instruction && known->warp == warp) {
            return known;
        }
    }
    return NULL;
}

uint32_t simt_undefined_note(struct simt_undefined *undefined,
                             const struct simt_undefined_origin *origin) {
    struct simt_undefined_origin *entry =
        simt_undefined_last(undefined, origin->instruction, origin->warp);
    if (entry == NULL) {
        entry = &undefined->origins[undefined->next_origin];
        undefined->next_origin = (undefined->next_origin + 1) % ORIGINS;
        *entry = *origin;
    }
    for (uint32_t rest = origin->lanes & ~entry->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        entry->addresses[lane] = origin->addresses[lane];
    }
    entry->lanes |= origin->lanes;
    entry->racing = entry->racing || origin->racing;
    return (uint32_t)(entry - undefined->origins);
}

struct simt_undefined_origin *simt_undefined_entry(struct simt_undefined *undefined,
                                                   uint32_t origin) {
    return &undefined->origins[origin];
}

bool simt_undefined_set(struct simt_warp *warp, uint32_t row, uint32_t lanes, uint32_t origin) {
    if (*warp->cells == NULL) {
        *warp->cells = calloc(warp->cell_count, sizeof **warp->cells);
    }
    if (*warp->cells == NULL) {
        return false;
    }
    struct simt_undefined_cell *cell = *warp->cells + row / CELL_BYTES;
    cell->lanes |= lanes;
    cell->origin = origin;
    warp->attention |= SIMT_ATTENTION_UNDEFINED;
    return true;
}

void simt_undefined_clear(struct simt_warp *warp, uint32_t row, uint32_t lanes) {
    if (*warp->cells != NULL) {
        (*warp->cells)[row / CELL_BYTES].lanes &= ~lanes;
    }
}

uint32_t simt_undefined_lanes(const struct simt_warp *warp, uint32_t row, uint32_t *origin) {
    if (warp->cells == NULL || *warp->cells == NULL) {
        return 0;
    }
    const struct simt_undefined_cell *cell = *warp->cells + row / CELL_BYTES;
    if (cell->lanes != 0) {
        *origin = cell->origin;
    }
    return cell->lanes;
}

static bool touches(const struct kept *kept, enum ptx_space space, uint64_t begin, uint64_t end) {
    return kept->space == space && kept->end != 0 && begin <= kept->end && kept->begin <= end;
}

void simt_undefined_keep(struct simt_warp *warp, enum ptx_space space, uint64_t address,
                         uint32_t bytes, uint32_t origin) {
    struct simt_undefined *undefined = warp->block->undefined;
    uint64_t end = address + bytes;
    for (uint32_t n = 0; n < KEPT; n++) { /* lanes mostly store side by side */
        struct kept *kept = &undefined->kept[n];
        if (kept->origin == origin && touches(kept, space, address, end)) {
            kept->begin = address < kept->begin ? address : kept->begin;
            kept->end = end > kept->end ? end : kept->end;
            return;
        }
    }
    undefined->kept[undefined->next_kept] =
        (struct kept){.space = space, .begin = address, .end = end, .origin = origin};
    undefined->next_kept = (undefined->next_kept + 1) % KEPT;
}

bool simt_undefined_kept(const struct simt_warp *warp, enum ptx_space space, uint64_t address,
                         uint32_t bytes, uint32_t *origin) {
    const struct simt_undefined *undefined = warp->block->undefined;
    for (uint32_t n = 0; n < KEPT; n++) {
        const struct kept *kept = &undefined->kept[n];
        if (touches(kept, space, address + 1, address + bytes - 1)) {
            *origin = kept->origin;
            return true;
        }
    }
    return false;
}

/* What the use does with "the value", or with "an undefined value". */
static void describe_use(enum simt_undefined_use use, const char *value, char *text, size_t size) {
    static const char *const uses[] = {
        [SIMT_USE_NONE] = "uses %s",
        [SIMT_USE_ADDRESS] = "takes %s for an address",
        [SIMT_USE_BRANCH] = "decides by %s where to go on",
        [SIMT_USE_STORE] = "stores %s in global memory",
        [SIMT_USE_STORE_FOR_PEER] = "stores %s in the shared memory of another block",
        [SIMT_USE_UPDATE] = "updates memory with %s",
        [SIMT_USE_BARRIER] = "passes %s to an operation of its warp or block",
        [SIMT_USE_CALL] = "passes %s to a function of the system",
        [SIMT_USE_PRINT] = "prints %s",
    };
    const char *at = strchr(uses[use], '%');
    snprintf(text, size, "%.*s%s%s", (int)(at - uses[use]), uses[use], value, at + 2);
}

/* "at sum.cu:12, " where the value was not read by the instruction that uses it. */
static const char *place_of(const struct simt_warp *warp,
                            const struct simt_instruction *instruction,
                            const struct simt_instruction *use, char *text, size_t size) {
    char line[PLACE_BYTES], here[PLACE_BYTES];
    const struct simt_run *run = warp->block->run;
    simt_place_text(run, instruction, line, sizeof line);
    simt_place_text(run, use, here, sizeof here);
    text[0] = '\0';
    if (strcmp(line, here) != 0) {
        snprintf(text, size, "%s", line);
    }
    return text;
}

static void describe_memory(const struct simt_warp *warp,
                            const struct simt_undefined_origin *origin, uint64_t address,
                            char *text, size_t size) {
    const struct simt_run *run = warp->block->run;
    const char *verb = origin->instruction->op_class == SIMT_CLASS_ATOMIC ? "updates" : "reads";
    char where[WHAT_BYTES / 2];
    if (origin->space == PTX_SHARED && origin->home != NULL && origin->home != warp->block) {
        const uint32_t *home = origin->home->index;
        snprintf(text, size,
                 "%s %u bytes at offset %" PRIu64
                 " of the shared memory of block (%u,%u,%u) that nothing has written so far",
                 verb, origin->bytes, address, home[0], home[1], home[2]);
    } else if (origin->space == PTX_SHARED) {
        snprintf(text, size,
                 "%s %u bytes at offset %" PRIu64
                 " of shared memory that no thread of the block has written so far (it has %u "
                 "threads, %u of them have returned)",
                 verb, origin->bytes, address, run->threads[0] * run->threads[1] * run->threads[2],
                 warp->block->returned);
    } else if (origin->space == PTX_LOCAL) {
        snprintf(text, size,
                 "%s %u bytes of a local array (one of the function's own) where the thread has "
                 "written nothing",
                 verb, origin->bytes);
    } else {
        simt_memory_describe(run->memory, address, where, sizeof where);
        snprintf(text, size, "%s %u bytes at 0x%" PRIx64 ", %s, that nothing has written", verb,
                 origin->bytes, address, where);
    }
}

struct description {
    char what[WHAT_BYTES], reason[WHAT_BYTES / 2];
};

/* Where the lane was whose value a shuffle wanted. */
static void describe_source(const struct simt_warp *warp,
                            const struct simt_undefined_origin *origin, uint32_t lane, char *text,
                            size_t size) {
    const struct simt_run *run = warp->block->run;
    uint32_t threads = run->threads[0] * run->threads[1] * run->threads[2];
    char line[PLACE_BYTES];
    const char *named = (origin->mask >> lane & 1) != 0 ? "named in" : "not named in";
    if (warp->index * SIMT_LANES + lane >= threads) {
        snprintf(text, size, "; there is no such lane: the block has %u threads", threads);
    } else if ((origin->ended >> lane & 1) != 0) {
        snprintf(text, size, "; that lane has returned, and is %s the mask 0x%08x", named,
                 origin->mask);
    } else if (origin->other != NULL && (origin->other_mask >> lane & 1) != 0) {
        snprintf(text, size, "; that lane is %s the mask 0x%08x, and is%s", named, origin->mask,
                 simt_place_text(run, origin->other, line, sizeof line));
    } else {
        snprintf(text, size, "; that lane is %s the mask 0x%08x", named, origin->mask);
    }
}

static const char *hint_of(const struct simt_warp *warp,
                           const struct simt_undefined_origin *origin) {
    bool remote = origin->home != NULL && origin->home != warp->block;
    switch (origin->space) {
    case PTX_SHARED:
        return remote ? "let a thread write these bytes first; if one does so, a barrier of the "
                        "cluster (cluster.sync()) is missing between its write and this read"
                      : "let a thread of the block write these bytes first; if one does so, a "
                        "__syncthreads() is missing between its write and this read";
    case PTX_LOCAL:
        return "give each element of the array a value before it is read";
    default:
        return NULL;
    }
}

/* What the value is, and of a shuffle behind it why it is none. */
static void describe(const struct simt_warp *warp, const struct simt_undefined_origin *origin,
                     uint32_t lane, struct description *d) {
    d->reason[0] = '\0';
    if (origin->space != PTX_REGISTER) {
        describe_memory(warp, origin, origin->addresses[lane], d->what, sizeof d->what);
        return;
    }
    uint32_t source = (uint32_t)origin->addresses[lane];
    snprintf(d->what, sizeof d->what, "takes the value of lane %u in a shuffle", source);
    describe_source(warp, origin, source, d->reason, sizeof d->reason);
}

void simt_undefined_fail(struct simt_warp *warp, const struct simt_instruction *instruction,
                         uint32_t lane, const struct simt_undefined_origin *origin,
                         enum simt_undefined_use use) {
    bool shuffle = origin->space == PTX_REGISTER;
    bool own = origin->warp == warp->index && (origin->lanes >> lane & 1) != 0;
    uint32_t from = own ? lane : (uint32_t)__builtin_ctz(origin->lanes);
    enum simt_fault_kind kind = shuffle ? SIMT_FAULT_SHUFFLE : SIMT_FAULT_UNINITIALISED;
    uint64_t address = shuffle ? 0 : origin->addresses[from];
    struct description d;
    char place[PLACE_BYTES], done[NAME_BYTES], thread[NAME_BYTES];
    simt_place_text(warp->block->run, instruction, place, sizeof place);
    instruction = place[0] != '\0' ? instruction : origin->instruction; /* of code without a line */
    describe(warp, origin, from, &d);
    place_of(warp, origin->instruction, instruction, place, sizeof place);
    describe_use(use, own ? "the value" : "an undefined value", done, sizeof done);
    if (use == SIMT_USE_NONE) {
        simt_fail(warp, instruction, lane, kind, address, "%s", d.what);
    } else if (own) {
        simt_fail(warp, instruction, lane, kind, address, "%s%s, and %s%s", d.what, place, done,
                  d.reason);
    } else {
        uint32_t number = origin->warp * SIMT_LANES + from;
        simt_thread_text(warp->block->run, number, thread, sizeof thread);
        simt_fail(warp, instruction, lane, kind, address, "%s: it comes from %s, which %s%s%s",
                  done, thread, d.what, place, d.reason);
    }
    warp->block->fault.hint = hint_of(warp, origin);
    warp->block->fault.racing = origin->racing;
    if (origin->instruction != instruction) {
        simt_place_find(warp->block->run, origin->instruction, &warp->block->fault.other);
    }
}
