#include "common/simt/memory/lane_shadow.h"

#include <stdlib.h>
#include <string.h>

enum { LANE_BITS = 5, LANE_MASK = 31 };

/* Meetings are numbered up to here; then all is forgotten and they start anew. */
#define MEETINGS ((uint32_t)1 << (32 - LANE_BITS))

struct simt_lane_shadow {
    uint32_t *words; /* number of the writer's last meeting, and its lane; 0: nobody known */
    size_t word_count;
    uint32_t *meetings; /* of each warp, the last one's number */
    bool *wrote;        /* each warp, since then */
    uint32_t warps;
    uint32_t next;
};

enum status simt_lane_shadow_create(struct simt_lane_shadow **shadow, size_t shared_bytes,
                                    uint32_t warps) {
    struct simt_lane_shadow *made = calloc(1, sizeof *made);
    *shadow = NULL;
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->word_count = shared_bytes / 4 + 1;
    made->warps = warps;
    made->next = 1;
    made->words = calloc(made->word_count, sizeof *made->words);
    made->meetings = calloc((size_t)warps + 1, sizeof *made->meetings);
    made->wrote = calloc((size_t)warps + 1, sizeof *made->wrote);
    if (made->words == NULL || made->meetings == NULL || made->wrote == NULL) {
        simt_lane_shadow_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    *shadow = made;
    return STATUS_OK;
}

void simt_lane_shadow_free(struct simt_lane_shadow *shadow) {
    if (shadow != NULL) {
        free(shadow->words);
        free(shadow->meetings);
        free(shadow->wrote);
        free(shadow);
    }
}

void simt_lane_shadow_meet(struct simt_lane_shadow *shadow, uint32_t warp) {
    shadow->wrote[warp] = false;
}

void simt_lane_shadow_meet_all(struct simt_lane_shadow *shadow) {
    memset(shadow->wrote, 0, shadow->warps * sizeof *shadow->wrote);
}

/* The first store after a meeting gives the time since then its number. */
static uint32_t current_meeting(struct simt_lane_shadow *shadow, uint32_t warp) {
    if (!shadow->wrote[warp]) {
        if (shadow->next == MEETINGS) {
            memset(shadow->words, 0, shadow->word_count * sizeof *shadow->words);
            simt_lane_shadow_meet_all(shadow);
            shadow->next = 1;
        }
        shadow->meetings[warp] = shadow->next++;
        shadow->wrote[warp] = true;
    }
    return shadow->meetings[warp];
}

void simt_lane_shadow_write(struct simt_lane_shadow *shadow, uint32_t warp, size_t offset,
                            const int32_t relative[32], uint32_t lanes, size_t bytes, bool alone) {
    bool watched = alone && bytes % 4 == 0;
    uint32_t mark = watched ? current_meeting(shadow, warp) << LANE_BITS : 0;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        size_t word = (offset + (size_t)(int64_t)relative[lane]) / 4;
        for (size_t n = 0; n < (bytes + 3) / 4; n++) {
            shadow->words[word + n] = watched ? mark | lane : 0;
        }
    }
}

int simt_lane_shadow_read(const struct simt_lane_shadow *shadow, uint32_t warp, size_t offset,
                          const int32_t relative[32], uint32_t lanes, size_t bytes,
                          uint32_t *writer) {
    if (!shadow->wrote[warp]) {
        return -1;
    }
    uint32_t mark = shadow->meetings[warp] << LANE_BITS;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        size_t word = (offset + (size_t)(int64_t)relative[lane]) / 4;
        for (size_t n = 0; n < (bytes + 3) / 4; n++) {
            uint32_t seen = shadow->words[word + n];
            if ((seen & ~(uint32_t)LANE_MASK) == mark && (seen & LANE_MASK) != lane) {
                *writer = seen & LANE_MASK;
                return (int)lane;
            }
        }
    }
    return -1;
}
