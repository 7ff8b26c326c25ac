#include "common/simt/memory/shadow.h"

#include <stdlib.h>
#include <string.h>

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
    made->written = calloc(made->shared_bytes / 64 + 1, sizeof *made->written);
    made->local = calloc(made->local_words + 1, sizeof *made->local);
    if (made->agents == NULL || made->global == NULL || made->written == NULL ||
        made->local == NULL ||
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
        free(shadow->agents);
        free(shadow->global);
        free(shadow->written);
        free(shadow->local);
        free(shadow);
    }
}

void simt_shadow_reset(struct simt_shadow *shadow) {
    simt_shadow_barrier(shadow);
    memset(shadow->written, 0, (shadow->shared_bytes / 64 + 1) * sizeof *shadow->written);
    memset(shadow->local, 0, shadow->local_words);
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

void simt_shadow_barrier(struct simt_shadow *shadow) {
    simt_history_advance(shadow->history);
    simt_shadow_resume(shadow);
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
    simt_history_acquire(shadow->history, &shadow->agents[warp]);
    if (shadow->watch != NULL) {
        simt_history_acquire(shadow->watch->warps, &shadow->global[warp]);
    }
}

static uint64_t bits_of(size_t offset, size_t bytes) {
    uint64_t ones = bytes >= 64 ? UINT64_MAX : ((uint64_t)1 << bytes) - 1;
    return ones << (offset % 64);
}

void simt_shadow_mark(struct simt_shadow *shadow, size_t offset, size_t bytes) {
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t at = offset + done;
        step = bytes - done < 64 - at % 64 ? bytes - done : 64 - at % 64;
        shadow->written[at / 64] |= bits_of(at, step);
    }
}

bool simt_shadow_written(const struct simt_shadow *shadow, size_t offset, size_t bytes) {
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t at = offset + done;
        step = bytes - done < 64 - at % 64 ? bytes - done : 64 - at % 64;
        uint64_t bits = bits_of(at, step);
        if ((shadow->written[at / 64] & bits) != bits) {
            return false;
        }
    }
    return true;
}
