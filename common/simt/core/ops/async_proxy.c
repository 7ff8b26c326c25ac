#include "common/simt/core/ops/async_proxy.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/core/code.h"

enum {
    MOST_THREADS = 1024,
    WARPGROUP = 4,
    MOST_WARPGROUPS = MOST_THREADS / SIMT_LANES / WARPGROUP
};

/* Of a warpgroup: the last wgmma, in the order of the warp that is furthest. */
enum { HISTORY = 256 };

/* What a warp did with setmaxnreg. */
struct registers {
    struct simt_warp *warp;                     /* NULL: nothing so far */
    const struct simt_instruction *instruction; /* the last one */
    uint32_t count, times;
};

struct simt_async {
    struct bulk_copy *copies; /* pending, in the order of their issue */
    size_t count, capacity;
    uint32_t groups[MOST_THREADS]; /* bulk groups that a thread has committed */
    struct warpgroup_step steps[MOST_WARPGROUPS][HISTORY];
    uint64_t done[MOST_WARPGROUPS * WARPGROUP];      /* wgmma of a warp */
    uint32_t committed[MOST_WARPGROUPS * WARPGROUP]; /* groups of wgmma of a warp */
    uint32_t waits[MOST_WARPGROUPS * WARPGROUP];     /* mbarrier of a warp's last vain wait + 1 */
    struct simt_warp *warps[MOST_WARPGROUPS * WARPGROUP];
    struct registers registers[MOST_WARPGROUPS * WARPGROUP]; /* of a warp */
};

static struct simt_async *proxy_of(struct simt_block *block) {
    if (block->async == NULL) {
        block->async = calloc(1, sizeof *block->async);
    }
    return block->async;
}

void simt_async_free(struct simt_async *async) {
    if (async != NULL) {
        free(async->copies);
        free(async);
    }
}

void simt_async_reset(struct simt_async *async) {
    if (async != NULL) {
        async->count = 0;
        memset(async->groups, 0, sizeof async->groups);
        memset(async->done, 0, sizeof async->done);
        memset(async->waits, 0, sizeof async->waits);
        memset(async->committed, 0, sizeof async->committed);
        memset(async->warps, 0, sizeof async->warps);
        memset(async->registers, 0, sizeof async->registers);
    }
}

static enum status add(struct simt_block *block, const struct bulk_copy *copy) {
    struct simt_async *async = proxy_of(block);
    if (async == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (async->count == async->capacity) {
        size_t capacity = async->capacity == 0 ? 16 : 2 * async->capacity;
        struct bulk_copy *copies = realloc(async->copies, capacity * sizeof *copies);
        if (copies == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        async->copies = copies;
        async->capacity = capacity;
    }
    async->copies[async->count++] = *copy;
    return STATUS_OK;
}

/* The copy's home has returned. */
static bool fail_over(const struct bulk_copy *copy, const char *when) {
    const uint32_t *home = copy->home->index;
    simt_fail(copy->warp, copy->instruction, copy->lane, SIMT_FAULT_FREED, copy->shared,
              "copies %u bytes to offset %u of the shared memory of block (%u,%u,%u), all of whose "
              "threads have returned%s",
              copy->bytes, copy->shared, home[0], home[1], home[2], when);
    copy->warp->block->fault.hint =
        "a block must not return while others of its cluster copy to its shared memory: it waits "
        "for their mbarrier, or all end with a barrier of the cluster (cluster.sync())";
    return false;
}

bool async_proxy_start(const struct bulk_copy *copy) {
    struct simt_block *own = copy->warp->block;
    bool load = copy->direction == BULK_LOAD;
    if (load && copy->home->over) {
        return fail_over(copy, "");
    }
    if (add(load ? copy->home : own, copy) != STATUS_OK) {
        simt_fail(copy->warp, copy->instruction, copy->lane, SIMT_FAULT_UNSUPPORTED, 0,
                  "out of memory for bulk copies");
        return false;
    }
    return true;
}

static uint32_t thread_of(const struct bulk_copy *copy) {
    return copy->warp->index * SIMT_LANES + copy->lane;
}

/* Takes the n-th pending copy out and carries it out. */
static bool carry_out(struct simt_async *async, size_t n) {
    const struct bulk_copy copy = async->copies[n];
    async->count--;
    memmove(&async->copies[n], &async->copies[n + 1], (async->count - n) * sizeof *async->copies);
    if (copy.flight != 0) {
        simt_flights_end(copy.home->shadow, copy.flight);
    }
    if (copy.source_flight != 0) {
        simt_flights_end(copy.warp->block->shadow, copy.source_flight);
    }
    if (!bulk_copy_run(&copy)) {
        return false;
    }
    if (copy.direction == BULK_LOAD) {
        mbarrier_complete(&copy);
    }
    return copy.warp->block->fault.kind == SIMT_FAULT_NONE;
}

bool async_proxy_load(struct simt_block *block, uint32_t barrier) {
    struct simt_async *async = block->async;
    for (size_t n = 0; async != NULL && n < async->count; n++) {
        const struct bulk_copy *copy = &async->copies[n];
        if (copy->direction == BULK_LOAD && copy->barrier == barrier) {
            return carry_out(async, n);
        }
    }
    return false;
}

enum status async_proxy_commit(struct simt_block *block, uint32_t thread) {
    struct simt_async *async = proxy_of(block);
    if (async == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    async->groups[thread]++;
    for (size_t n = 0; n < async->count; n++) {
        struct bulk_copy *copy = &async->copies[n];
        if (copy->direction == BULK_STORE && copy->group == 0 && thread_of(copy) == thread) {
            copy->group = async->groups[thread];
        }
    }
    return STATUS_OK;
}

bool async_proxy_wait(struct simt_block *block, uint32_t thread, uint32_t pending) {
    struct simt_async *async = block->async;
    for (size_t n = 0; async != NULL && n < async->count;) {
        const struct bulk_copy *copy = &async->copies[n];
        bool mine = copy->direction == BULK_STORE && thread_of(copy) == thread;
        bool due = copy->group != 0 && (uint64_t)copy->group + pending <= async->groups[thread];
        if (!mine || !due) {
            n++;
        } else if (!carry_out(async, n)) {
            return false;
        }
    }
    return true;
}

bool async_proxy_step(struct simt_warp *warp, const struct warpgroup_step *step) {
    struct simt_async *async = proxy_of(warp->block);
    uint32_t group = warp->index / WARPGROUP;
    const uint32_t *threads = warp->block->run->threads;
    if (async == NULL ||
        (group + 1) * WARPGROUP * SIMT_LANES > threads[0] * threads[1] * threads[2]) {
        simt_fail(warp, step->instruction, 0, SIMT_FAULT_BARRIER, 0,
                  "executes %s in warp %u, whose warpgroup has fewer than four warps",
                  step->instruction->source->opcode, warp->index);
        return false;
    }
    uint64_t number = async->done[warp->index]++, most = 0;
    async->warps[warp->index] = warp;
    for (uint32_t n = 0; n < WARPGROUP; n++) {
        uint64_t done = async->done[WARPGROUP * group + n] - (n == warp->index % WARPGROUP);
        most = done > most ? done : most;
    }
    struct warpgroup_step *noted = &async->steps[group][number % HISTORY];
    if (number >= most) {
        *noted = *step;
        return true;
    }
    bool same =
        noted->instruction == step->instruction && noted->a == step->a && noted->b == step->b;
    if (same || most - number > HISTORY) {
        return true;
    }
    char place[320];
    simt_fail(warp, step->instruction, 0, SIMT_FAULT_BARRIER, 0,
              "executes %s with descriptors 0x%llx and 0x%llx as wgmma number %llu of warp %u, but "
              "another warp of its warpgroup executed one%s with 0x%llx and 0x%llx: the four warps "
              "execute each wgmma together",
              step->instruction->source->opcode, (unsigned long long)step->a,
              (unsigned long long)step->b, (unsigned long long)number, warp->index,
              simt_place_text(warp->block->run, noted->instruction, place, sizeof place),
              (unsigned long long)noted->a, (unsigned long long)noted->b);
    return false;
}

void async_proxy_follow_product(struct simt_warp *warp, struct simt_flight *flight) {
    struct simt_async *async = proxy_of(warp->block);
    if (async != NULL) {
        flight->group = async->committed[warp->index] + 1;
        simt_flights_begin(warp->block->shadow, flight);
    }
}

uint64_t simt_async_products(const struct simt_block *block, uint32_t warp) {
    return block->async != NULL ? block->async->done[warp] : 0;
}

void async_proxy_commit_products(struct simt_warp *warp) {
    struct simt_async *async = proxy_of(warp->block);
    if (async != NULL) {
        async->committed[warp->index]++;
    }
}

void async_proxy_wait_for_products(struct simt_warp *warp, uint32_t pending) {
    struct simt_async *async = proxy_of(warp->block);
    if (async != NULL && warp->block->shadow != NULL && async->committed[warp->index] > pending) {
        simt_flights_end_products(warp->block->shadow, warp->block, warp->index,
                                  async->committed[warp->index] - pending);
    }
}

void async_proxy_note_wait(struct simt_warp *warp, uint32_t barrier) {
    struct simt_async *async = proxy_of(warp->block);
    if (async != NULL) {
        async->waits[warp->index] = barrier + 1;
    }
}

void simt_async_explain(const struct simt_block *block, uint32_t warp, char *text, size_t size) {
    const struct simt_async *async = block->async;
    if (async != NULL && async->waits[warp] > 0) {
        mbarrier_explain(block, async->waits[warp] - 1, text, size);
    }
}

/* Of another warp of the warpgroup that has executed setmaxnreg as often, but another one. */
static const struct registers *find_other(const struct simt_async *async, uint32_t warp) {
    const struct registers *own = &async->registers[warp];
    for (uint32_t n = warp / WARPGROUP * WARPGROUP; n < (warp / WARPGROUP + 1) * WARPGROUP; n++) {
        const struct registers *other = &async->registers[n];
        if (other->times == own->times && other->count != own->count) {
            return other;
        }
    }
    return NULL;
}

bool async_proxy_set_registers(struct simt_warp *warp, const struct simt_instruction *i,
                               uint32_t count, bool more) {
    struct simt_async *async = proxy_of(warp->block);
    uint32_t initial = warp->block->run->registers;
    if (async == NULL) {
        return true; /* nothing is checked */
    }
    struct registers *own = &async->registers[warp->index];
    uint32_t before = own->warp != NULL ? own->count : initial;
    *own = (struct registers){warp, i, count, own->times + 1};
    if (before != 0 && (more ? count < before : count > before)) {
        simt_fail(warp, i, 0, SIMT_FAULT_BARRIER, 0,
                  "asks by %s for %u registers a thread, but its threads have %u: .inc asks for at "
                  "least as many, .dec for at most",
                  i->source->opcode, count, before);
        return false;
    }
    const struct registers *other = find_other(async, warp->index);
    if (other != NULL) {
        simt_fail(warp, i, 0, SIMT_FAULT_BARRIER, 0,
                  "asks for %u registers a thread, but warp %u of the same warpgroup for %u: the "
                  "four warps execute the same setmaxnreg",
                  count, other->warp->index, other->count);
        return false;
    }
    return true;
}

/* All warps of a warpgroup that there are have executed setmaxnreg equally often, or none
 * has. */
static bool check_together(struct simt_async *async, uint32_t warp, uint32_t warps) {
    const struct registers *own = &async->registers[warp];
    uint32_t first = warp / WARPGROUP * WARPGROUP;
    for (uint32_t n = first; n < first + WARPGROUP && n < warps; n++) {
        if (async->registers[n].times < own->times) {
            simt_fail(own->warp, own->instruction, 0, SIMT_FAULT_BARRIER, 0,
                      "executed setmaxnreg %u times, but warp %u of the same warpgroup %u times: "
                      "the four warps execute each together",
                      own->times, n, async->registers[n].times);
            return false;
        }
    }
    return true;
}

/* The block has no more registers than it was given. */
static void check_registers(struct simt_async *async, const struct simt_run *run) {
    uint32_t warps =
        (run->threads[0] * run->threads[1] * run->threads[2] + SIMT_LANES - 1) / SIMT_LANES;
    const struct registers *last = NULL;
    uint32_t sum = 0;
    for (uint32_t n = 0; n < warps; n++) {
        const struct registers *r = &async->registers[n];
        if (r->warp != NULL && !check_together(async, n, warps)) {
            return;
        }
        sum += r->warp != NULL ? r->count : run->registers;
        last = r->warp != NULL && r->count > run->registers ? r : last;
    }
    if (run->registers > 0 && last != NULL && sum > warps * run->registers) {
        simt_fail(last->warp, last->instruction, 0, SIMT_FAULT_BARRIER, 0,
                  "asks for %u registers a thread: with it the block's %u warps would have %u, and "
                  "they began with %u (%u each): on a GPU it waits for ever",
                  last->count, warps, sum, warps * run->registers, run->registers);
    }
}

/* The four warps of each warpgroup have executed equally many wgmma. */
static void check_warpgroups(struct simt_async *async) {
    for (uint32_t w = 0; w < MOST_WARPGROUPS * WARPGROUP; w++) {
        uint32_t first = w / WARPGROUP * WARPGROUP, other = first;
        for (uint32_t n = first; n < first + WARPGROUP; n++) {
            other = async->done[n] < async->done[w] ? n : other;
        }
        if (async->done[other] >= async->done[w]) {
            continue;
        }
        uint64_t last = async->done[w] - 1;
        const struct simt_instruction *i = async->steps[w / WARPGROUP][last % HISTORY].instruction;
        simt_fail(async->warps[w], i, 0, SIMT_FAULT_BARRIER, 0,
                  "executed %llu wgmma, but warp %u of the same warpgroup %llu: the four warps "
                  "execute each wgmma together",
                  (unsigned long long)async->done[w], other,
                  (unsigned long long)async->done[other]);
        return;
    }
}

void simt_async_finish(struct simt_block *block) {
    struct simt_async *async = block->async;
    for (size_t n = 0; async != NULL && n < async->count; n++) {
        if (async->copies[n].warp->block != block) {
            fail_over(&async->copies[n], " without having waited for them");
            return;
        }
    }
    while (async != NULL && async->count > 0 && carry_out(async, 0)) {
    }
    if (async != NULL && block->fault.kind == SIMT_FAULT_NONE) {
        check_warpgroups(async);
    }
    if (async != NULL && block->fault.kind == SIMT_FAULT_NONE) {
        check_registers(async, block->run);
    }
}
