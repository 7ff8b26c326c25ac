#include "common/simt/core/launch/launch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/core/draw.h"
#include "common/simt/core/launch/module.h"
#include "common/simt/core/launch/sample.h"
#include "common/simt/core/schedule/gang.h"
#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/access/harmless.h"
#include "common/simt/memory/access/witness.h"
#include "common/simt/memory/cache/cache.h"

enum { MAX_THREADS_PER_BLOCK = 1024, MAX_SHARED_BYTES = 227 * 1024 };

/* What the host threads of a launch share. */
struct crew {
    struct simt_block_shape shape;
    struct simt_sample sample;       /* blocks that are checked beside what `shape` says */
    struct simt_block_shape checked; /* theirs */
    struct simt_run checked_run;     /* and what it points to */
    uint64_t blocks;
    uint64_t gangs;             /* clusters, or blocks where there are none */
    uint64_t at_a_time;         /* gangs that a host thread takes */
    atomic_uint_fast64_t next;  /* gang to take */
    atomic_uint_fast64_t worst; /* lowest gang with a fault so far; later ones do not matter */
    atomic_uint members;        /* host threads that have come */
    uint32_t site_count;        /* 0: no counts by site */
    struct simt_global_shadow *shadow; /* NULL: races in global memory are not looked for */
    pthread_mutex_t lock;              /* guards the members below */
    struct simt_counters counters;
    struct simt_block_costs *costs;   /* NULL: not wanted */
    struct simt_site *sites;          /* (site_count) */
    struct simt_xray *xray;           /* NULL: no record */
    struct simt_block_clocks *clocks; /* NULL: no block waits for another one */
    struct simt_fault fault;
    enum status status;
};

static enum status check_launch(const struct simt_launch *launch, const struct simt_kernel *kernel,
                                uint64_t *blocks, struct error *error) {
    uint64_t threads = 1;
    *blocks = 1;
    for (int axis = 0; axis < 3; axis++) {
        threads *= launch->threads[axis];
        *blocks *= launch->grid[axis];
        if (launch->threads[axis] == 0 || launch->threads[axis] > MAX_THREADS_PER_BLOCK ||
            launch->grid[axis] == 0 || launch->grid[axis] > (axis == 0 ? INT32_MAX : 65535)) {
            threads = 0;
            break;
        }
    }
    if (threads == 0 || threads > MAX_THREADS_PER_BLOCK || *blocks > UINT32_MAX) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "%s: grid %ux%ux%u of blocks %ux%ux%u: a block has 1 to %d threads, a grid "
            "at least one block",
            launch->kernel, launch->grid[0], launch->grid[1], launch->grid[2], launch->threads[0],
            launch->threads[1], launch->threads[2], MAX_THREADS_PER_BLOCK);
    }
    if (launch->dynamic_shared_bytes > MAX_SHARED_BYTES ||
        kernel->dynamic_shared + launch->dynamic_shared_bytes > MAX_SHARED_BYTES) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s: %zu bytes of static and %zu of dynamic shared memory; a block has %d",
                         launch->kernel, kernel->static_shared_bytes, launch->dynamic_shared_bytes,
                         MAX_SHARED_BYTES);
    }
    return STATUS_OK;
}

/* Blocks of a cluster: what the launch says, else the kernel. @return whether there are clusters */
static bool find_cluster(const struct simt_launch *launch, const struct simt_kernel *kernel,
                         uint32_t cluster[3]) {
    const uint32_t *said = launch->cluster[0] > 0 ? launch->cluster : kernel->function->cluster;
    for (int axis = 0; axis < 3; axis++) {
        cluster[axis] = said[0] > 0 && said[axis] > 1 ? said[axis] : 1;
    }
    return said[0] > 0;
}

static enum status check_cluster(const struct simt_launch *launch, const struct simt_kernel *kernel,
                                 struct error *error) {
    uint32_t cluster[3];
    uint64_t blocks = 1;
    (void)find_cluster(launch, kernel, cluster);
    for (int axis = 0; axis < 3; axis++) {
        blocks = cluster[axis] > SIMT_CLUSTER_BLOCKS ? UINT32_MAX : blocks * cluster[axis];
        if (blocks > SIMT_CLUSTER_BLOCKS || launch->grid[axis] % cluster[axis] != 0) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "%s: clusters of %ux%ux%u blocks in a grid of %ux%ux%u: a cluster has "
                             "at most %d, and the grid is a multiple of it",
                             launch->kernel, cluster[0], cluster[1], cluster[2], launch->grid[0],
                             launch->grid[1], launch->grid[2], SIMT_CLUSTER_BLOCKS);
        }
    }
    return STATUS_OK;
}

/* Keeps the fault of the lowest gang: which one that is does not depend on the host threads. */
static void note_fault(struct crew *crew, const struct simt_fault *fault, uint64_t gang) {
    pthread_mutex_lock(&crew->lock);
    if (crew->fault.kind == SIMT_FAULT_NONE || gang < atomic_load(&crew->worst)) {
        crew->fault = *fault;
        atomic_store(&crew->worst, gang);
    }
    pthread_mutex_unlock(&crew->lock);
}

static void note_status(struct crew *crew, enum status status) {
    pthread_mutex_lock(&crew->lock);
    crew->status = crew->status == STATUS_OK ? status : crew->status;
    pthread_mutex_unlock(&crew->lock);
    atomic_store(&crew->worst, 0);
}

/* Adds a host thread's counts to the total; sums do not depend on the order. */
static void note_counts(struct crew *crew, const struct simt_block_counts *counts,
                        const struct simt_block_costs *costs) {
    pthread_mutex_lock(&crew->lock);
    simt_counters_add(&crew->counters, counts->counters);
    if (crew->costs != NULL && !simt_block_costs_add(crew->costs, costs)) {
        crew->status = STATUS_OUT_OF_MEMORY;
    }
    for (uint32_t n = 0; n < crew->site_count && counts->sites != NULL; n++) {
        simt_site_add(&crew->sites[n], &counts->sites[n]);
    }
    if (counts->xray != NULL && counts->xray->instructions != NULL) {
        simt_xray_add(crew->xray, counts->xray);
    }
    pthread_mutex_unlock(&crew->lock);
}

static struct simt_watch *watch_of(const struct crew *crew, uint32_t member) {
    return crew->shadow != NULL ? simt_global_shadow_watch(crew->shadow, member) : NULL;
}

/* Neighbours mostly work on neighbouring bytes: a host thread takes some blocks at a time. */
static uint64_t gangs_at_a_time(uint64_t gangs, uint64_t host_threads) {
    enum { MOST = 32, TURNS = 8 };
    uint64_t each = gangs / (host_threads * TURNS);
    return each < 1 ? 1 : each < MOST ? each : MOST;
}

/* A gang is finished. @param costs NULL: not wanted */
static enum status end_gang(struct simt_gang *gang, struct simt_block_costs *costs) {
    for (uint32_t rank = 0; rank < gang->size; rank++) {
        const struct simt_counters *own = simt_block_end(gang->blocks[rank]);
        if (costs != NULL && !simt_block_costs_note(costs, gang->blocks[rank]->block.order, own)) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    return STATUS_OK;
}

/* What a host thread works with. */
struct member {
    struct simt_block_counts counts;
    struct simt_block_costs costs;
    struct simt_gang *gang;    /* NULL: none was needed so far; */
    struct simt_gang *checked; /* likewise, of those that the sample has */
};

static const struct simt_block_shape *shape_of(const struct crew *crew, uint64_t number) {
    return simt_sample_has(&crew->sample, number) ? &crew->checked : &crew->shape;
}

/* Starts gang number `number`. The caller frees what `member` holds, on failure too. */
static enum status begin_gang(const struct crew *crew, struct member *member, uint64_t number,
                              struct simt_gang **gang) {
    const struct simt_block_shape *shape = shape_of(crew, number);
    struct simt_gang **own = shape == &crew->shape ? &member->gang : &member->checked;
    if (*own == NULL) {
        TRY(simt_gang_create(own, shape, &member->counts));
    }
    *gang = *own;
    return simt_gang_begin(*gang, number);
}

/* Runs some gangs, but none after one with a fault. */
static enum status run_some(struct crew *crew, struct member *member, uint64_t first,
                            uint64_t end) {
    for (uint64_t number = first; number < end && number <= atomic_load(&crew->worst); number++) {
        struct simt_gang *gang = NULL;
        TRY(begin_gang(crew, member, number, &gang));
        while (!simt_gang_go(gang, false)) {
        }
        struct simt_block_run *faulty = simt_gang_faulty(gang);
        if (faulty != NULL) {
            note_fault(crew, &faulty->block.fault, number);
            simt_block_run_on(faulty);
        }
        TRY(end_gang(gang, crew->costs != NULL ? &member->costs : NULL));
    }
    return STATUS_OK;
}

/* Runs gangs until none is left. The caller frees what `member` holds, on failure too. */
static enum status run_until_none_left(struct crew *crew, struct member *member) {
    struct simt_block_counts *counts = &member->counts;
    if (crew->costs != NULL && !simt_block_costs_begin(&member->costs, crew->blocks)) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (crew->site_count > 0) {
        counts->sites = calloc(crew->site_count, sizeof *counts->sites);
        if (counts->sites == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    if (counts->xray != NULL &&
        !simt_xray_create(counts->xray, crew->xray->count, crew->xray->site_count)) {
        simt_xray_free(counts->xray);
        return STATUS_OUT_OF_MEMORY;
    }
    for (;;) {
        uint64_t first = atomic_fetch_add(&crew->next, crew->at_a_time);
        if (first >= crew->gangs || first > atomic_load(&crew->worst)) {
            return STATUS_OK;
        }
        uint64_t left = crew->gangs - first;
        TRY(run_some(crew, member, first,
                     first + (left < crew->at_a_time ? left : crew->at_a_time)));
    }
}

/* A host thread of a launch. */
static void *work(void *argument) {
    struct crew *crew = argument;
    struct simt_counters counters = {0};
    struct simt_xray xray = {0};
    struct member member = {
        .counts = {.counters = &counters,
                   .xray = crew->xray != NULL ? &xray : NULL,
                   .watch = watch_of(crew, atomic_fetch_add(&crew->members, 1))}};
    enum status status = run_until_none_left(crew, &member);
    simt_gang_free(member.gang);
    simt_gang_free(member.checked);
    if (status != STATUS_OK) {
        note_status(crew, status);
    }
    note_counts(crew, &member.counts, &member.costs);
    free(member.counts.sites);
    simt_block_costs_free(&member.costs);
    simt_xray_free(&xray);
    return NULL;
}

/* Starts all gangs, then gives each a turn until all have finished or one has a fault. */
static enum status take_turns(struct crew *crew, struct simt_gang **gangs) {
    const struct simt_block_counts counts = {.counters = &crew->counters,
                                             .sites = crew->sites,
                                             .xray = crew->xray,
                                             .watch = watch_of(crew, 0)};
    for (uint64_t n = 0; n < crew->gangs; n++) {
        TRY(simt_gang_create(&gangs[n], shape_of(crew, n), &counts));
        TRY(simt_gang_begin(gangs[n], n));
    }
    uint64_t left = crew->gangs;
    while (left > 0 && crew->fault.kind == SIMT_FAULT_NONE) {
        for (uint64_t n = 0; n < crew->gangs; n++) {
            if (gangs[n] == NULL || !simt_gang_go(gangs[n], true)) {
                continue;
            }
            const struct simt_block_run *faulty = simt_gang_faulty(gangs[n]);
            if (faulty != NULL) {
                note_fault(crew, &faulty->block.fault, n);
            }
            TRY(end_gang(gangs[n], crew->costs));
            simt_gang_free(gangs[n]);
            gangs[n] = NULL;
            left--;
        }
    }
    return STATUS_OK;
}

/* A cooperative grid: all blocks are resident at the same time. */
static void work_together(struct crew *crew) {
    struct simt_gang **gangs = calloc(crew->gangs, sizeof *gangs);
    crew->status = gangs != NULL ? take_turns(crew, gangs) : STATUS_OUT_OF_MEMORY;
    for (uint64_t n = 0; gangs != NULL && n < crew->gangs; n++) {
        simt_gang_free(gangs[n]);
    }
    free(gangs);
}

static void work_in_parallel(struct crew *crew, uint32_t host_threads) {
    pthread_t threads[SIMT_MOST_HOST_THREADS];
    uint32_t started = 0;
    while (started + 1 < host_threads && pthread_create(&threads[started], NULL, work, crew) == 0) {
        started++;
    }
    work(crew);
    for (uint32_t n = 0; n < started; n++) {
        pthread_join(threads[n], NULL);
    }
}

/* Memory for the counter of grid.sync(); %envreg1 and %envreg2 hold its address. */
static enum status take_workspace(const struct simt_launch *launch, uint64_t *address) {
    enum { BYTES = 256 };
    *address = 0;
    if (!launch->cooperative) {
        return STATUS_OK;
    }
    struct simt_memory *memory = launch->module->memory;
    TRY(simt_memory_alloc(memory, BYTES, BYTES, "workspace of a cooperative grid", address));
    memset(simt_memory_host(memory, *address), 0, BYTES);
    simt_memory_mark(memory, *address, BYTES);
    return STATUS_OK;
}

static enum status give_workspace_back(const struct simt_launch *launch, uint64_t address) {
    return address != 0 ? simt_memory_release(launch->module->memory, address) : STATUS_OK;
}

/* Number of waves of blocks that run one after the other, at most SIMT_L2_PARTS. */
static uint32_t parts_of(const struct simt_launch *launch, uint64_t blocks) {
    uint64_t resident = launch->resident_blocks > 0 ? launch->resident_blocks : 1;
    uint64_t waves = launch->cooperative ? 1 : ceil_div(blocks, resident);
    return waves < SIMT_L2_PARTS ? (uint32_t)waves : SIMT_L2_PARTS;
}

/* Without memory for them nothing is counted. */
static uint64_t most_of(const uint64_t *atomic_lines) {
    uint64_t most = 0;
    for (size_t n = 0; n < SIMT_ATOMIC_LINES && atomic_lines != NULL; n++) {
        most = atomic_lines[n] > most ? atomic_lines[n] : most;
    }
    return most;
}

/* Counts the sectors that reached L2, and the bytes that device memory moved. A class of blocks has
 * moved as large a share of these as of what would be moved without L2, and has as large a share of
 * the busiest line's atomics as of all. */
static void settle_caches(const struct simt_launch *launch, struct simt_l2 *l2,
                          struct simt_counters *counters) {
    enum { SECTOR_BYTES = 32 };
    uint64_t uncached = counters->dram_bytes;
    counters->l2_sectors -= counters->l1_hit_sectors;
    counters->dram_bytes = l2 != NULL ? simt_l2_end(l2, launch->l2_bytes, uncached)
                                      : counters->l2_sectors * SECTOR_BYTES;
    for (size_t n = 0; launch->costs != NULL && n < launch->costs->class_count; n++) {
        struct simt_counters *of = &launch->costs->classes[n].sum;
        double part = uncached > 0 ? (double)of->dram_bytes / (double)uncached : 0;
        of->l2_sectors -= of->l1_hit_sectors;
        of->dram_bytes = l2 != NULL ? (uint64_t)(part * (double)counters->dram_bytes)
                                    : of->l2_sectors * SECTOR_BYTES;
        of->atomic_hottest =
            counters->atomic_lanes > 0
                ? (uint64_t)((double)counters->atomic_hottest * (double)of->atomic_lanes /
                             (double)counters->atomic_lanes)
                : 0;
    }
}

/* Of blocks that do not count. */
static void forget_touches(struct simt_l2 *l2) {
    if (l2 != NULL) {
        simt_l2_cancel(l2);
    }
}

/* How many host threads a launch gets. Blocks whose results depend on their order run alone. */
static uint32_t count_host_threads(const struct simt_launch *launch,
                                   const struct simt_kernel *kernel, uint64_t gangs) {
    uint64_t threads = launch->host_threads > 1 ? (uint64_t)launch->host_threads : 1;
    threads = threads < SIMT_MOST_HOST_THREADS ? threads : SIMT_MOST_HOST_THREADS;
    threads = threads < gangs ? threads : gangs;
    bool alone = launch->cooperative || kernel->order_sensitive || kernel->may_wait;
    return alone ? 1 : (uint32_t)threads;
}

/* @return false: out of memory, the launch has failed */
static bool begin_costs(struct crew *crew) {
    if (crew->costs == NULL) {
        return true;
    }
    simt_block_costs_free(crew->costs);
    bool begun = simt_block_costs_begin(crew->costs, crew->blocks);
    crew->status = begun ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    return begun;
}

/* Clears what an earlier attempt left. @return host threads that race detection can serve */
static uint32_t begin(struct crew *crew, struct simt_run *run, uint32_t host_threads) {
    crew->next = 0;
    crew->at_a_time = gangs_at_a_time(crew->gangs, host_threads);
    crew->worst = UINT64_MAX;
    crew->members = 0;
    crew->counters = (struct simt_counters){0};
    crew->fault = (struct simt_fault){0};
    crew->status = STATUS_OK;
    if (crew->site_count > 0) {
        memset(crew->sites, 0, crew->site_count * sizeof *crew->sites);
    }
    if (crew->xray != NULL) {
        simt_xray_clear(crew->xray);
    }
    if (crew->clocks != NULL) {
        simt_block_clocks_clear(crew->clocks);
    }
    if (run->atomic_lines != NULL) {
        memset(run->atomic_lines, 0, SIMT_ATOMIC_LINES * sizeof *run->atomic_lines);
    }
    run->undo = NULL;
    if (crew->shadow != NULL) {
        host_threads = simt_global_shadow_begin(crew->shadow, host_threads);
        run->undo = simt_global_shadow_undo(crew->shadow);
    }
    crew->checked_run = *run;
    crew->checked_run.check |= SIMT_CHECK_RACES | SIMT_CHECK_COPIES;
    return host_threads;
}

/* After a race memory is brought back: what it means and its other side are to be found. The run
 * that finds the other side leaves memory as it is. */
static bool has_to_find(const struct crew *crew, const struct simt_run *run) {
    bool mixed = run->yield != NULL && run->yield->has_yielded; /* with what other launches wrote */
    return run->witness == NULL && run->undo != NULL && crew->fault.race.raced && !mixed;
}

/* What was found in some blocks is looked at in all of them, where memory can be brought back. */
static bool is_suspect(const struct crew *crew, const struct simt_run *run) {
    return crew->sample.some && run->undo != NULL && crew->fault.kind != SIMT_FAULT_NONE;
}

/* Whether values of races are used (harmless.h) is not known after this run, or they are. */
static bool is_undecided(const struct crew *crew, const struct simt_run *run) {
    return run->harmless != NULL &&
           (simt_harmless_is_denied(run->harmless) || simt_harmless_has_grown(run->harmless) ||
            crew->fault.race.raced || crew->fault.racing);
}

/* Runs all blocks. @return true when that has to be done again by one host thread */
static bool try_to_run(struct crew *crew, struct simt_run *run, const struct simt_launch *launch,
                       uint32_t host_threads) {
    bool again = false;
    if (!begin_costs(crew)) {
        return false;
    }
    host_threads = begin(crew, run, host_threads);
    if (launch->cooperative) {
        work_together(crew);
    } else {
        work_in_parallel(crew, host_threads);
    }
    if (crew->shadow != NULL) {
        bool take_back = has_to_find(crew, run) || is_undecided(crew, run) || is_suspect(crew, run);
        enum status status = simt_global_shadow_end(crew->shadow, take_back, &again);
        again = again || is_suspect(crew, run);
        crew->status = crew->status == STATUS_OK ? status : crew->status;
    }
    return again && crew->status == STATUS_OK;
}

static bool is_same_fault(const struct simt_fault *a, const struct simt_fault *b) {
    return a->kind == b->kind && a->order == b->order && a->address == b->address &&
           a->line == b->line && memcmp(a->thread, b->thread, sizeof a->thread) == 0;
}

/* All blocks are checked, and those of a sample no longer beside others. */
static void check_all(struct crew *crew, struct simt_run *run) {
    run->check |= crew->sample.some ? SIMT_CHECK_RACES | SIMT_CHECK_COPIES : SIMT_CHECK_OFF;
    crew->sample.some = false;
}

/* Blocks that are not checked mark nothing that they write: all counts as written. */
static void follow_values(struct simt_run *run) {
    if ((run->check & SIMT_CHECK_SAMPLED) != 0) {
        simt_memory_mark_all(run->memory);
        run->check |= SIMT_CHECK_UNINITIALISED;
    }
}

/* Runs a launch that ended in a race again until all words that race are known. @return true when
 * no value of them was used: the last run is the launch, and may have found another fault */
static bool is_harmless(struct crew *crew, struct simt_run *run, const struct simt_launch *launch) {
    enum { MOST_RUNS = 4 };
    const struct simt_fault first = crew->fault;
    bool undecided = true;
    follow_values(run);
    if (!simt_harmless_possible(run, &first.race) ||
        (run->harmless = simt_harmless_create()) == NULL) {
        return false;
    }
    for (int n = 0; n < MOST_RUNS && undecided && crew->status == STATUS_OK; n++) {
        simt_harmless_begin(run->harmless);
        forget_touches(run->l2);
        try_to_run(crew, run, launch, 1);
        undecided = is_undecided(crew, run);
        if (crew->fault.race.raced || crew->fault.racing ||
            simt_harmless_is_denied(run->harmless)) {
            break;
        }
    }
    simt_harmless_free(run->harmless);
    run->harmless = NULL;
    if (undecided) {
        crew->fault = first;
    }
    return !undecided;
}

/* Runs a launch that ended in a race again, to find the other access. Where it does not end in the
 * same fault again, the first one's words stay. */
static void find_other_side(struct crew *crew, struct simt_run *run,
                            const struct simt_launch *launch) {
    const struct simt_fault first = crew->fault;
    struct simt_witness witness = simt_witness_of(&first);
    run->witness = &witness;
    run->yield = NULL;
    forget_touches(run->l2);
    try_to_run(crew, run, launch, 1);
    run->witness = NULL;
    if (!is_same_fault(&first, &crew->fault)) {
        crew->fault = first;
        crew->status = STATUS_OK;
    } else if (!first.race.blocks) {
        crew->fault.hint = simt_witness_hint(&witness);
    }
}

static enum status run_blocks(struct crew *crew, struct simt_run *run,
                              const struct simt_launch *launch, const struct simt_kernel *kernel) {
    uint32_t host_threads = count_host_threads(launch, kernel, crew->gangs);
    pthread_mutex_init(&crew->lock, NULL);
    run->yield = host_threads == 1 ? launch->yield : NULL;
    if (try_to_run(crew, run, launch, host_threads)) {
        forget_touches(run->l2);
        check_all(crew, run);
        try_to_run(crew, run, launch, 1);
    }
    if (crew->status == STATUS_OK && has_to_find(crew, run) && !is_harmless(crew, run, launch) &&
        crew->status == STATUS_OK) {
        find_other_side(crew, run, launch);
    }
    pthread_mutex_destroy(&crew->lock);
    return crew->status;
}

/* Timing decides which blocks after a fault have run, so after a fault nothing counts. */
static void tell(const struct crew *crew, const struct simt_launch *launch, struct simt_l2 *l2,
                 struct simt_counters *counters, struct simt_fault *fault) {
    *fault = crew->fault;
    if (fault->kind != SIMT_FAULT_NONE || crew->status != STATUS_OK) {
        forget_touches(l2);
        if (crew->xray != NULL) {
            simt_xray_clear(crew->xray);
        }
        if (crew->costs != NULL) {
            simt_block_costs_free(crew->costs);
        }
        return;
    }
    *counters = crew->counters;
    if (crew->costs != NULL) {
        simt_block_costs_sort(crew->costs);
    }
    settle_caches(launch, l2, counters);
    if (crew->clocks != NULL && launch->waited != NULL) {
        *launch->waited = simt_block_clocks_latest(crew->clocks);
    }
    for (uint32_t n = 0; n < crew->site_count; n++) {
        simt_site_add(&launch->sites->sites[n], &crew->sites[n]);
    }
}

/* At most what a GPU's thread has as local memory. */
static size_t stack_of(const struct simt_launch *launch) {
    enum { DEFAULT = 1024, MOST = 512 * 1024 };
    size_t wanted = launch->stack_bytes > 0 ? launch->stack_bytes : DEFAULT;
    return wanted < MOST ? wanted : MOST;
}

/* Registers of a thread before setmaxnreg: .maxnreg, or what __launch_bounds__(threads, blocks)
 * leaves. 0: ptxas takes as many as it needs. */
static uint32_t registers_of(const struct ptx_function *function) {
    enum { ALL = 65536, UNIT = 8, MOST = 255 };
    const uint32_t *said =
        function->required_threads[0] > 0 ? function->required_threads : function->max_threads;
    uint64_t threads = (uint64_t)said[0] * said[1] * said[2] * function->min_blocks;
    uint64_t each = threads > 0 ? ALL / threads / UNIT * UNIT : 0;
    each = function->max_registers > 0 ? function->max_registers : each;
    return (uint32_t)(each < MOST ? each : MOST);
}

static struct simt_run make_run(const struct simt_launch *launch, const struct simt_kernel *kernel,
                                uint64_t blocks) {
    return (struct simt_run){
        .memory = launch->module->memory,
        .module = launch->module->ptx,
        .textures = launch->textures,
        .conditions = launch->conditions,
        .kernel = launch->kernel,
        .parameters = launch->parameters,
        .parameter_bytes = kernel->function->parameter_bytes,
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .threads = {launch->threads[0], launch->threads[1], launch->threads[2]},
        .registers = registers_of(kernel->function),
        .check = launch->check,
        .stack_bytes = stack_of(launch),
        .footprint = launch->footprint,
        .primaries = launch->primaries,
        .trace = launch->trace,
        .start_nanoseconds = launch->start_nanoseconds,
        .clock_khz = launch->clock_khz > 0 ? launch->clock_khz : 1000000,
        .processors = launch->processors > 0 ? launch->processors : 1,
        .tensor_code = launch->tensor_code,
        .l1_bytes = launch->l1_bytes,
        .l2 = launch->l2_bytes > 0 ? simt_memory_l2(launch->module->memory) : NULL,
        .l2_parts = parts_of(launch, blocks),
        .atomic_lines = kernel->has_atomics ? calloc(SIMT_ATOMIC_LINES, sizeof(uint64_t)) : NULL,
    };
}

/* Beyond what every kernel has that calls functions. */
static size_t extra_stack(const struct simt_run *run, const struct simt_kernel *kernel) {
    size_t more =
        run->stack_bytes > SIMT_CALL_STACK_BYTES ? run->stack_bytes - SIMT_CALL_STACK_BYTES : 0;
    return kernel->code_count > 1 ? ceil_div(more, 16) * 16 : 0;
}

/* What a block has of its own, and behind it what the system reserves. */
static size_t shared_of(const struct simt_launch *launch, const struct simt_kernel *kernel) {
    size_t own = launch->dynamic_shared_bytes > 0
                     ? kernel->dynamic_shared + launch->dynamic_shared_bytes
                     : kernel->static_shared_bytes;
    return kernel->reserves_shared
               ? ceil_div(own, SIMT_RESERVED_ALIGNMENT) * SIMT_RESERVED_ALIGNMENT +
                     SIMT_RESERVED_BYTES
               : own;
}

static struct simt_block_shape make_shape(const struct simt_run *run,
                                          const struct simt_launch *launch,
                                          const struct simt_kernel *kernel) {
    return (struct simt_block_shape){
        .run = run,
        .code = kernel->code,
        .shared_bytes = shared_of(launch, kernel),
        .reserves_shared = kernel->reserves_shared,
        .has_async_reads = kernel->has_async_reads,
        .is_pipelined = kernel->is_pipelined,
        .dynamic_shared_bytes = launch->dynamic_shared_bytes,
        .local_bytes = kernel->local_bytes + extra_stack(run, kernel),
        .instruction_limit = launch->instruction_limit,
        .seed = launch->seed,
    };
}

/* Clocks for blocks that may wait for each other. Those of a cooperative launch take turns, and
 * what they do while they wait counts. */
static enum status take_clocks(struct crew *crew, const struct simt_launch *launch,
                               const struct simt_kernel *kernel) {
    if (launch->alone == NULL || launch->cooperative || !kernel->may_wait || crew->blocks < 2) {
        return STATUS_OK;
    }
    crew->clocks = crew->shape.clocks = simt_block_clocks_create(launch->alone);
    return crew->clocks != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/* A list of sites of the launch's own: it may have to be run again. */
static enum status take_sites(struct crew *crew, const struct simt_launch *launch,
                              const struct simt_kernel *kernel) {
    if (launch->sites == NULL || kernel->site_count == 0) {
        return STATUS_OK;
    }
    crew->site_count = kernel->site_count;
    crew->sites = calloc(kernel->site_count, sizeof *crew->sites);
    return crew->sites != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/* Which blocks are checked, where not all are. Where other launches may run beside this one memory
 * cannot be brought back: then it is not checked as a whole, nor races in global memory. */
static void take_sample(struct crew *crew, struct simt_run *run, const struct simt_launch *launch) {
    if ((run->check & (SIMT_CHECK_SAMPLED | SIMT_CHECK_RACES)) != SIMT_CHECK_SAMPLED) {
        return;
    }
    bool whole = crew->shadow != NULL && simt_sample_is_whole(launch->seed, launch->number);
    crew->sample = (struct simt_sample){
        .some = true, .seed = simt_draw(~launch->seed, launch->number), .gangs = crew->gangs};
    crew->checked = crew->shape;
    crew->checked.run = &crew->checked_run;
    if (whole) {
        check_all(crew, run);
    }
}

enum status simt_launch_run(const struct simt_launch *launch, struct simt_counters *counters,
                            struct simt_fault *fault, struct error *error) {
    const struct simt_kernel *kernel;
    struct crew crew = {.blocks = 0};
    *counters = (struct simt_counters){0};
    *fault = (struct simt_fault){0};
    if (launch->waited != NULL) {
        *launch->waited = 0;
    }
    TRY(simt_module_kernel(launch->module, launch->kernel, &kernel, error));
    TRY(check_launch(launch, kernel, &crew.blocks, error));
    TRY(check_cluster(launch, kernel, error));
    TRY(simt_sites_prepare(launch->sites, launch->module, kernel, error));
    TRY(simt_xray_prepare(launch->xray, kernel, error));
    crew.xray = launch->xray;
    crew.costs = launch->costs;
    simt_memory_launched(launch->module->memory);
    struct simt_run run = make_run(launch, kernel, crew.blocks);
    bool is_cluster = find_cluster(launch, kernel, run.cluster);
    enum status status = take_workspace(launch, &run.grid_workspace);
    if (status != STATUS_OK) {
        free(run.atomic_lines);
        return error_set(error, status, "%s: no memory for a cooperative launch", launch->kernel);
    }
    crew.shape = make_shape(&run, launch, kernel);
    crew.shape.is_cluster = is_cluster;
    crew.gangs = crew.blocks / ((uint64_t)run.cluster[0] * run.cluster[1] * run.cluster[2]);
    crew.shadow = (launch->check & (SIMT_CHECK_RACES | SIMT_CHECK_SAMPLED)) != 0
                      ? launch->global_shadow
                      : NULL;
    status = take_clocks(&crew, launch, kernel);
    take_sample(&crew, &run, launch);
    status = status == STATUS_OK ? take_sites(&crew, launch, kernel) : status;
    if (status == STATUS_OK) {
        status = run_blocks(&crew, &run, launch, kernel);
        crew.counters.atomic_hottest = most_of(run.atomic_lines);
        tell(&crew, launch, run.l2, counters, fault);
    }
    free(crew.sites);
    simt_block_clocks_free(crew.clocks);
    free(run.atomic_lines);
    enum status given_back = give_workspace_back(launch, run.grid_workspace);
    status = status == STATUS_OK ? given_back : status;
    if (status != STATUS_OK) {
        return error_set(error, status, "%s: %s", launch->kernel, status_message(status));
    }
    return STATUS_OK;
}
