#include "common/simt/memory/race/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/memory/race/byte_bits.h"

enum status simt_shadow_create(struct simt_shadow **shadow, const struct simt_shadow_size *size,
                               struct simt_watch *watch) {
    *shadow = NULL;
    struct simt_shadow *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->shared_bytes = size->shared_bytes;
    made->local_words = size->local_bytes / 4;
    made->warps = size->warps;
    made->watch = watch;
    made->agents = calloc((size_t)made->warps + 1, sizeof *made->agents);
    made->global = calloc((size_t)made->warps + 1, sizeof *made->global);
    made->written = calloc(byte_bits_words(made->shared_bytes), sizeof *made->written);
    made->local = calloc(made->local_words + 1, sizeof *made->local);
    if (size->has_async_reads) {
        made->generic = calloc(made->shared_bytes / SIMT_GENERIC_BYTES + 1, sizeof *made->generic);
    }
    if ((size->has_async_reads && made->generic == NULL) || made->agents == NULL ||
        made->global == NULL || made->written == NULL || made->local == NULL ||
        simt_history_create(&made->history, SIMT_WARPS_OF_SHARED, made->shared_bytes) !=
            STATUS_OK) {
        simt_shadow_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    simt_shadow_reset(made);
    *shadow = made;
    return STATUS_OK;
}

void simt_shadow_free(struct simt_shadow *shadow) {
    if (shadow != NULL) {
        simt_history_free(shadow->history);
        simt_copies_free(shadow->copies);
        simt_flights_free(shadow->flights);
        free(shadow->generic);
        free(shadow->agents);
        free(shadow->global);
        free(shadow->written);
        free(shadow->local);
        free(shadow);
    }
}

/* Bytes count as unwritten again. */
static void reopen(struct simt_shadow *shadow, size_t offset) {
    shadow->gap = offset / 64 < shadow->gap ? offset / 64 : shadow->gap;
    shadow->is_full = false;
}

void simt_shadow_reset(struct simt_shadow *shadow) {
    simt_shadow_barrier(shadow);
    memset(shadow->written, 0, byte_bits_words(shadow->shared_bytes) * sizeof *shadow->written);
    reopen(shadow, 0);
    memset(shadow->local, 0, shadow->local_words);
    if (shadow->copies != NULL) {
        simt_copies_reset(shadow->copies);
    }
    simt_flights_reset(shadow->flights);
    shadow->waited = 0;
    if (shadow->generic != NULL) {
        memset(shadow->generic, 0,
               (shadow->shared_bytes / SIMT_GENERIC_BYTES + 1) * sizeof *shadow->generic);
    }
    for (uint32_t n = 0; n < shadow->warps; n++) {
        shadow->agents[n] = (struct simt_agent){.id = n};
        shadow->global[n] = (struct simt_agent){.id = n};
    }
}

void simt_shadow_resume(struct simt_shadow *shadow) {
    if (shadow->watch != NULL) {
        simt_history_advance(shadow->watch->warps);
    }
}

static void find_gap(struct simt_shadow *shadow) {
    size_t whole = shadow->shared_bytes / 64;
    while (shadow->gap < whole && shadow->written[shadow->gap] == UINT64_MAX) {
        shadow->gap++;
    }
    shadow->is_full = shadow->gap == whole &&
                      byte_bits_all(shadow->written, 64 * whole, shadow->shared_bytes % 64);
}

void simt_shadow_wait(struct simt_shadow *shadow, uint32_t warp) {
    shadow->waited |= (uint32_t)1 << warp;
}

void simt_shadow_barrier(struct simt_shadow *shadow) {
    shadow->waited = shadow->waited != 0 ? UINT32_MAX : 0;
    if (!shadow->is_full) {
        find_gap(shadow);
    }
    simt_history_advance(shadow->history);
    simt_shadow_resume(shadow);
}

void simt_shadow_settle(struct simt_shadow *shadow) {
    simt_history_settle(shadow->history);
    if (shadow->watch != NULL) {
        simt_history_settle(shadow->watch->warps);
    }
}

bool simt_shadow_is_settled(const struct simt_shadow *shadow) {
    return simt_history_is_settled(shadow->history) &&
           (shadow->watch == NULL || simt_history_is_settled(shadow->watch->warps));
}

void simt_shadow_meet(struct simt_shadow *shadow, uint32_t warp) {
    simt_history_meet(&shadow->agents[warp]);
    simt_history_meet(&shadow->global[warp]);
}

void simt_shadow_release(struct simt_shadow *shadow, uint32_t warp) {
    simt_history_release(shadow->history, &shadow->agents[warp]);
    if (shadow->watch != NULL) {
        simt_history_release(shadow->watch->warps, &shadow->global[warp]);
    }
}

/* A lane may have waited for another one, so they have met, too. */
void simt_shadow_acquire(struct simt_shadow *shadow, uint32_t warp) {
    simt_shadow_meet(shadow, warp);
    if (shadow->others != NULL && atomic_load(shadow->others)) {
        simt_shadow_wait(shadow, warp);
    }
    simt_history_acquire(shadow->history, &shadow->agents[warp]);
    if (shadow->watch != NULL) {
        simt_history_acquire(shadow->watch->warps, &shadow->global[warp]);
    }
}

void simt_shadow_start_copy(struct simt_shadow *shadow, uint32_t warp,
                            const struct simt_copy *copy) {
    if (shadow->copies == NULL) {
        shadow->copies = simt_copies_create(shadow->warps, shadow->shared_bytes);
    }
    if (shadow->copies == NULL || !simt_copies_start(shadow->copies, warp, copy)) {
        return; /* memory is short: it is not watched */
    }
    for (uint32_t rest = copy->lanes; rest != 0; rest &= rest - 1) {
        simt_shadow_unmark(shadow, copy->offsets[__builtin_ctz(rest)], copy->bytes);
    }
}

void simt_shadow_mark(struct simt_shadow *shadow, size_t offset, size_t bytes) {
    byte_bits_set(shadow->written, offset, bytes);
}

void simt_shadow_unmark(struct simt_shadow *shadow, size_t offset, size_t bytes) {
    byte_bits_clear(shadow->written, offset, bytes);
    reopen(shadow, offset);
}

bool simt_shadow_written(const struct simt_shadow *shadow, size_t offset, size_t bytes) {
    return byte_bits_all(shadow->written, offset, bytes);
}
