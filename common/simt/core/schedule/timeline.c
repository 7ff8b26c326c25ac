#include "common/simt/core/schedule/timeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/draw.h"
#include "common/simt/memory/xray.h"

enum {
    WINDOWS = 32,       /* in which a warp is followed, at least, where there are blocks enough */
    WARPS_OF_ONE = 512, /* warps of a launch for one more window */
    LOAD_NOMINAL = SIMT_LOAD_NOMINAL, /* to find the longest chain; taken out again */
    CLUSTER_BARRIER = 850,            /* that its acquire waits behind its release */
    PEER_LATENCY = 190,               /* of a load from another block's shared memory */
    GROUPS = 8 /* of asynchronous copies that a warp may wait for one by one */
};

/* A point in time: cycles, the number of loads on the way to it, and what takes the time until
 * then. */
struct moment {
    uint64_t cycles;
    uint32_t loads;
    uint32_t cause; /* enum simt_wait */
};

struct simt_timeline {
    const struct simt_code *code;
    struct simt_xray *xray;     /* NULL: nobody asks who waited for what */
    uint32_t load_cycles;       /* that a load takes */
    uint64_t origin;            /* when the warp began, behind all that earlier ones did */
    uint64_t latest_ready;      /* of all registers' values so far */
    struct moment floor;        /* nothing starts before */
    struct moment last;         /* when the latest instruction so far started */
    uint64_t machine;           /* machine instructions since the floor */
    uint64_t loads;             /* so far, whether they wait for each other or not */
    struct moment copies;       /* when the asynchronous copies not yet in a group are done */
    struct moment done[GROUPS]; /* the same for the latest groups; [0] the newest */
    struct moment started;      /* the latest instruction of the kernel itself */
    uint32_t latest;            /* its place */
    bool calls;                 /* the latest instruction was one of a function that it calls */
    struct moment ready[];      /* (registers): when a register's value is there */
};

struct simt_timeline *simt_timeline_create(const struct simt_code *code) {
    size_t registers = code->function->register_count;
    struct simt_timeline *t = calloc(1, sizeof *t + registers * sizeof *t->ready);
    if (t != NULL) {
        t->code = code;
        t->load_cycles = LOAD_NOMINAL;
    }
    return t;
}

void simt_timeline_set_load(struct simt_timeline *timeline, uint32_t cycles) {
    timeline->load_cycles = cycles;
}

void simt_timeline_free(struct simt_timeline *timeline) {
    free(timeline);
}

bool simt_timeline_follows(const struct simt_timeline_grid *grid, uint64_t block, uint32_t warp) {
    uint64_t windows = WINDOWS + grid->blocks / WARPS_OF_ONE * grid->warps;
    uint64_t stride = grid->blocks / windows + 1;
    uint64_t window = block / stride;
    uint64_t first = window * stride;
    uint64_t count = grid->blocks - first < stride ? grid->blocks - first : stride;
    /* Each warp in its turn, so that the mean of unlike warps depends on no seed. */
    return window % grid->warps == warp && first + simt_draw(grid->seed, window) % count == block;
}

static uint64_t largest(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void simt_timeline_begin(struct simt_timeline *t, struct simt_xray *xray) {
    uint64_t started = largest(t->last.cycles, t->floor.cycles);
    /* What is ready now is ready before the new warp begins: no need to clear it. */
    const struct moment now = {.cycles = largest(started, t->latest_ready)};
    t->origin = now.cycles;
    t->floor = t->last = t->started = now;
    t->copies = (struct moment){0};
    memset(t->done, 0, sizeof t->done);
    t->machine = t->loads = 0;
    t->latest = 0;
    t->xray = xray;
}

static struct moment later(struct moment a, struct moment b) {
    return a.cycles >= b.cycles ? a : b;
}

static struct moment after(struct moment from, uint64_t cycles) {
    return (struct moment){from.cycles + cycles, from.loads, SIMT_WAIT_FIXED};
}

static struct moment loaded(const struct simt_timeline *t, struct moment from) {
    return (struct moment){from.cycles + t->load_cycles, from.loads + 1, SIMT_WAIT_LOAD};
}

/* All before has started, at one machine instruction a cycle at best. */
static void close_floor(struct simt_timeline *t, uint64_t cycles) {
    struct moment issued = after(t->floor, t->machine);
    t->floor = after(later(t->last, issued), cycles);
    t->last = t->floor;
    t->machine = 0;
}

static bool is_load(const struct simt_instruction *i) {
    return (i->timing & SIMT_TIMING_LOAD) != 0;
}

static uint32_t cause_of(const struct simt_instruction *i) {
    switch ((enum simt_class)i->op_class) {
    case SIMT_CLASS_SHARED:
    case SIMT_CLASS_WARP:
        return SIMT_WAIT_SHARED;
    case SIMT_CLASS_BARRIER:
        return SIMT_WAIT_BARRIER;
    default:
        return is_load(i) ? SIMT_WAIT_LOAD : SIMT_WAIT_FIXED;
    }
}

/* The warp stood still since `before`: that is noted with the instruction that waited. */
static void note_wait(const struct simt_timeline *t, const struct simt_code *code, uint32_t pc,
                      struct moment before, uint32_t cause) {
    if (t->xray != NULL) {
        struct simt_xray_instruction *record = &t->xray->instructions[code->first + pc];
        int64_t loads = (int64_t)t->last.loads - (int64_t)before.loads;
        record->loads += loads;
        record->wait[cause] +=
            (int64_t)(t->last.cycles - before.cycles) - loads * (int64_t)t->load_cycles;
    }
}

/* cp.async: a thread does not wait for the copy before wait_group. */
static void step_copy(struct simt_timeline *t, const struct simt_instruction *i,
                      struct moment start) {
    const struct ptx_instruction *in = i->source;
    if (ptx_has_modifier(in, "commit_group")) {
        memmove(t->done + 1, t->done, (GROUPS - 1) * sizeof *t->done);
        t->done[0] = t->copies;
        t->copies = (struct moment){0};
    } else if (ptx_has_modifier(in, "wait_group")) {
        uint64_t pending = in->operand_count > 0 ? in->operands[0].bits : 0;
        close_floor(t, 0);
        t->floor = later(t->floor, pending < GROUPS ? t->done[pending] : t->floor);
    } else if (ptx_has_modifier(in, "wait_all")) {
        close_floor(t, 0);
        t->floor = later(t->floor, later(t->copies, t->done[0]));
    } else {
        t->copies = later(t->copies, loaded(t, start));
    }
    t->last = later(t->last, t->floor);
}

/* A function that the kernel calls: one instruction after the other. */
static void step_callee(struct simt_timeline *t, const struct simt_instruction *i) {
    t->last = is_load(i) ? loaded(t, after(t->last, i->latency)) : after(t->last, i->latency);
    t->machine += i->machine;
    close_floor(t, 0);
}

/* Cycles of a barrier.cluster.wait, but for what the others are late. */
static uint64_t cluster_barrier(const struct simt_instruction *i) {
    return (i->timing & SIMT_TIMING_CLUSTER) != 0 ? CLUSTER_BARRIER : 0;
}

/* What the instruction at `pc` writes is there when it is done. */
static void set_ready(struct simt_timeline *t, const struct simt_code *code, uint32_t pc,
                      struct moment done) {
    const uint32_t *uses = &code->uses.start[2 * (size_t)pc];
    for (uint32_t w = uses[1]; w < uses[2]; w++) {
        t->ready[code->uses.list[w]] = done;
    }
    t->latest_ready = largest(t->latest_ready, done.cycles);
}

/* An instruction of the kernel itself: starts when what it reads is there. */
static void step_own(struct simt_timeline *t, const struct simt_code *code, uint32_t pc) {
    const struct simt_instruction *i = &code->instructions[pc];
    if (code->leader[pc]) {
        close_floor(t, 0);
    }
    const uint32_t *uses = &code->uses.start[2 * (size_t)pc];
    struct moment start = t->floor;
    for (uint32_t r = uses[0]; r < uses[1]; r++) {
        start = later(start, t->ready[code->uses.list[r]]);
    }
    t->last = later(t->last, start);
    t->started = start;
    t->latest = pc;
    t->machine += i->machine;
    struct moment done = is_load(i) ? loaded(t, start) : after(start, i->latency);
    done.cause = cause_of(i);
    set_ready(t, code, pc, done);
    if ((i->timing & SIMT_TIMING_COPY) != 0) {
        step_copy(t, i, start);
    } else if (i->op_class == SIMT_CLASS_BARRIER || i->op_class == SIMT_CLASS_CONTROL) {
        close_floor(t, i->latency + cluster_barrier(i));
    }
}

void simt_timeline_step(struct simt_timeline *t, const struct simt_code *code, uint32_t pc) {
    const struct simt_instruction *i = &code->instructions[pc];
    struct moment before = t->last;
    t->loads += is_load(i);
    t->calls = code != t->code;
    if (!t->calls) {
        step_own(t, code, pc);
    } else {
        step_callee(t, i);
    }
    bool barrier = i->op_class == SIMT_CLASS_BARRIER;
    note_wait(t, code, pc, before, barrier ? SIMT_WAIT_BARRIER : t->last.cause);
}

void simt_timeline_reach_peer(struct simt_timeline *t) {
    const struct simt_instruction *i = &t->code->instructions[t->latest];
    struct moment done = after(t->started, PEER_LATENCY);
    done.cause = SIMT_WAIT_SHARED;
    t->loads -= is_load(i);
    if (i->dst_count > 0) {
        set_ready(t, t->code, t->latest, done);
    }
}

void simt_timeline_load(struct simt_timeline *t, uint64_t earliest, uint32_t cycles) {
    const struct simt_instruction *i = &t->code->instructions[t->latest];
    struct moment start = t->started;
    start.cycles = largest(start.cycles, t->origin + earliest);
    struct moment done = after(start, cycles);
    done.cause = SIMT_WAIT_LOAD;
    if (t->calls) {
        return; /* one instruction after the other, as they are */
    }
    if (is_load(i)) {
        set_ready(t, t->code, t->latest, done);
    } else if ((i->timing & SIMT_TIMING_COPY) != 0) {
        t->copies = later(t->copies, done);
    }
}

void simt_timeline_hold(struct simt_timeline *t, uint64_t cycles) {
    uint64_t until = t->origin + cycles;
    if (until > t->floor.cycles && until > t->last.cycles) {
        close_floor(t, 0);
        t->floor = later(t->floor, (struct moment){.cycles = until, .loads = t->floor.loads});
        t->last = t->floor;
    }
}

uint64_t simt_timeline_now(const struct simt_timeline *t) {
    return largest(t->last.cycles, t->floor.cycles + t->machine) - t->origin;
}

/* Divided by 256; without overflow up to 2^36. */
static uint64_t square_of(uint64_t cycles) {
    return cycles >> 32 == 0 ? cycles * cycles / 256 : cycles / 16 * (cycles / 16);
}

void simt_timeline_end(const struct simt_timeline *t, struct simt_counters *counters) {
    counters->followed_warps++;
    counters->followed_loads += t->loads;
    uint64_t chain = t->last.cycles - t->origin;
    counters->chain_squares += square_of(chain);
    counters->chain_loads += t->last.loads;
    counters->chain_cycles += chain - t->last.loads * LOAD_NOMINAL;
}
