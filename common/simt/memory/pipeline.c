#include "common/simt/memory/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum {
    WARPS = 32,
    QUADRANTS = 4, /* of a multiprocessor: each has its warps and its tensor core */
    GROUPS = 8,    /* that a warp may wait for one by one */
    PHASES = 256   /* mbarriers of a block that are told apart */
};

/* Cycles, fitted on twelve kernels that an H100 timed (MODEL.md). */
enum {
    ARRIVE = 25,        /* from an arrival to its phase's end */
    WAKE = 24,          /* from a phase's end to the next instruction of who waits for it */
    REMOTE = 225,       /* more for a message to another block of the cluster */
    REMOTE_ISSUE = 100, /* that a warp takes to send one */
    COPY_ISSUE = 100,   /* that a warp takes to start a copy */
    COPY_LATENCY = 230, /* of a load, from its start until its first bytes are there */
    STORE_LATENCY = 230,
    COPY_REQUEST = 32, /* that the TMA takes for a copy, however small */
    COPY_BYTES = 64,   /* that it moves in a cycle */
    PAIR_BYTES = 16,   /* the same, to the other block of a cluster of two */
    FAR_BYTES = 8,     /* to a block of a larger cluster */
    PRODUCT_LATENCY = 60,
    PRODUCT_FIFTHS = 6 /* of the cycles that a product takes at the datasheet's rate */
};

struct phase {
    uint32_t offset;  /* of the mbarrier, plus one; 0: free */
    uint64_t latest;  /* arrival of the phase that goes on */
    uint64_t ends[2]; /* of the last phases, by parity */
};

/* Groups of products or stores of a warp. */
struct groups {
    uint64_t open,
        done[GROUPS]; /* of what is in no group yet; of the latest groups, newest first */
};

struct simt_pipeline {
    uint64_t now[WARPS], until[WARPS], waited[WARPS];
    uint64_t others; /* of these clocks: waited for other blocks of the launch */
    bool polls[WARPS];
    uint64_t tensor[QUADRANTS], tma; /* when they are free */
    struct groups products[WARPS], stores[WARPS];
    struct phase phases[PHASES];
};

struct simt_pipeline *simt_pipeline_create(void) {
    return calloc(1, sizeof(struct simt_pipeline));
}

void simt_pipeline_free(struct simt_pipeline *pipeline) {
    free(pipeline);
}

void simt_pipeline_reset(struct simt_pipeline *pipeline) {
    memset(pipeline, 0, sizeof *pipeline);
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void simt_pipeline_set(struct simt_pipeline *p, uint32_t warp, uint64_t now) {
    p->now[warp] = now;
}

uint64_t simt_pipeline_until(const struct simt_pipeline *p, uint32_t warp) {
    return p->until[warp];
}

void simt_pipeline_hold(struct simt_pipeline *p, uint32_t warp, uint64_t when) {
    uint64_t now = simt_pipeline_now(p, warp);
    p->waited[warp] += when > now ? when - now : 0;
    p->until[warp] = later(p->until[warp], when);
}

uint64_t simt_pipeline_now(const struct simt_pipeline *p, uint32_t warp) {
    return later(p->now[warp], p->until[warp]);
}

void simt_pipeline_delay(struct simt_pipeline *p, uint32_t warp, uint64_t when) {
    p->until[warp] = later(p->until[warp], when);
}

uint64_t simt_pipeline_last(const struct simt_pipeline *p) {
    uint64_t last = 0;
    for (uint32_t n = 0; n < WARPS; n++) {
        last = later(last, simt_pipeline_now(p, n));
    }
    return last;
}

void simt_pipeline_wait_for_block(struct simt_pipeline *p, uint64_t when) {
    uint64_t last = simt_pipeline_last(p);
    p->others += when > last ? when - last : 0;
    for (uint32_t n = 0; n < WARPS; n++) {
        simt_pipeline_delay(p, n, when);
    }
}

/* The phases of an mbarrier; NULL: there are too many of these. */
static struct phase *phase_of(struct simt_pipeline *p, uint32_t offset) {
    for (uint32_t n = 0; n < PHASES; n++) {
        struct phase *phase = &p->phases[(offset / 8 + n) % PHASES];
        if (phase->offset == 0) {
            phase->offset = offset + 1;
        }
        if (phase->offset == offset + 1) {
            return phase;
        }
    }
    return NULL;
}

/* A warp is busy for some cycles, which is no waiting. */
static void take(struct simt_pipeline *p, uint32_t warp, uint64_t cycles) {
    p->until[warp] = simt_pipeline_now(p, warp) + cycles;
}

void pipeline_arrive_at(const struct simt_block *home, uint32_t offset, uint64_t when) {
    struct phase *phase = home->pipeline != NULL ? phase_of(home->pipeline, offset) : NULL;
    if (phase != NULL) {
        phase->latest = later(phase->latest, when);
    }
}

void pipeline_arrive(const struct simt_warp *warp, const struct simt_block *home, uint32_t offset) {
    const struct simt_block *own = warp->block;
    if (own->pipeline != NULL) {
        uint64_t way = home == own ? ARRIVE : ARRIVE + REMOTE;
        pipeline_arrive_at(home, offset, simt_pipeline_now(own->pipeline, warp->index) + way);
        if (home != own) {
            take(own->pipeline, warp->index, REMOTE_ISSUE);
        }
    }
}

void pipeline_end_phase(const struct simt_block *home, uint32_t offset, uint32_t parity) {
    struct phase *phase = home->pipeline != NULL ? phase_of(home->pipeline, offset) : NULL;
    if (phase != NULL) {
        phase->ends[parity & 1] = phase->latest;
        phase->latest = 0;
    }
}

void pipeline_wait(const struct simt_warp *warp, uint32_t offset, uint32_t parity) {
    struct simt_pipeline *p = warp->block->pipeline;
    const struct phase *phase = p != NULL ? phase_of(p, offset) : NULL;
    if (phase != NULL) {
        simt_pipeline_hold(p, warp->index,
                           later(phase->ends[parity & 1], p->now[warp->index]) + WAKE);
    }
}

void pipeline_poll(const struct simt_warp *warp) {
    struct simt_pipeline *p = warp->block->pipeline;
    if (p != NULL) {
        p->polls[warp->index] = true;
    }
}

bool pipeline_is_polling(struct simt_pipeline *p, uint32_t warp, bool asks) {
    bool polls = p->polls[warp];
    p->polls[warp] = polls && !asks;
    return polls;
}

static uint32_t bytes_of(const struct simt_block *block, enum pipeline_way way) {
    bool far = way == PIPELINE_PEER && block->cluster != NULL && block->cluster->size > 2;
    return way != PIPELINE_PEER ? COPY_BYTES : far ? FAR_BYTES : PAIR_BYTES;
}

uint64_t pipeline_copy(const struct simt_warp *warp, uint32_t bytes, enum pipeline_way way) {
    struct simt_pipeline *p = warp->block->pipeline;
    if (p == NULL) {
        return 0;
    }
    take(p, warp->index, COPY_ISSUE);
    uint64_t begin = later(p->tma, simt_pipeline_now(p, warp->index));
    p->tma = begin + later(COPY_REQUEST, bytes / bytes_of(warp->block, way));
    uint64_t done = p->tma + (way != PIPELINE_STORE ? COPY_LATENCY : STORE_LATENCY);
    if (way == PIPELINE_STORE) {
        p->stores[warp->index].open = later(p->stores[warp->index].open, done);
    }
    return done;
}

uint64_t pipeline_message(const struct simt_warp *warp) {
    const struct simt_pipeline *p = warp->block->pipeline;
    return p != NULL ? simt_pipeline_now(p, warp->index) + ARRIVE + REMOTE : 0;
}

void pipeline_multiply(const struct simt_warp *warp, uint32_t cycles) {
    struct simt_pipeline *p = warp->block->pipeline;
    if (p != NULL) {
        uint64_t *tensor = &p->tensor[warp->index % QUADRANTS];
        *tensor = later(*tensor, simt_pipeline_now(p, warp->index)) + cycles * PRODUCT_FIFTHS / 5;
        p->products[warp->index].open = *tensor + PRODUCT_LATENCY;
    }
}

static struct groups *groups_of(const struct simt_warp *warp, bool products) {
    struct simt_pipeline *p = warp->block->pipeline;
    return p == NULL ? NULL : products ? &p->products[warp->index] : &p->stores[warp->index];
}

void pipeline_commit(const struct simt_warp *warp, bool products) {
    struct groups *g = groups_of(warp, products);
    if (g != NULL) {
        memmove(g->done + 1, g->done, (GROUPS - 1) * sizeof *g->done);
        g->done[0] = g->open;
        g->open = 0;
    }
}

void pipeline_wait_for(const struct simt_warp *warp, bool products, uint32_t pending) {
    const struct groups *g = groups_of(warp, products);
    if (g != NULL && pending < GROUPS) {
        simt_pipeline_hold(warp->block->pipeline, warp->index, g->done[pending]);
    }
}

void pipeline_end(const struct simt_block *block, uint32_t warps) {
    const struct simt_pipeline *p = block->pipeline;
    struct simt_counters *c = block->counters;
    uint64_t last = 0;
    for (uint32_t n = 0; p != NULL && n < warps; n++) {
        last = later(last, simt_pipeline_now(p, n));
        c->role_waits[n / 4] += p->waited[n];
        c->role_cycles[n / 4] += simt_pipeline_now(p, n);
    }
    if (p != NULL) {
        c->pipelined_blocks++;
        c->pipelined_cycles += later(last, p->others) - p->others;
    }
}
