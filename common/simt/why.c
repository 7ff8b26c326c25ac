#include "common/simt/why.h"

#include <stdio.h>
#include <string.h>

#include "common/simt/kernel_name.h"

/* ---- The line ---- */

const char *why_unit_name(uint32_t unit) {
    static const char *const names[SIMT_UNIT_COUNT] = {
        [SIMT_UNIT_UNKNOWN] = "unknown",         [SIMT_UNIT_ISSUE] = "instruction issue",
        [SIMT_UNIT_L1] = "L1 and shared memory", [SIMT_UNIT_FLOAT] = "fp32 units",
        [SIMT_UNIT_DOUBLE] = "fp64 units",       [SIMT_UNIT_SPECIAL] = "special functions",
        [SIMT_UNIT_TENSOR] = "tensor cores",     [SIMT_UNIT_L2] = "L2",
        [SIMT_UNIT_MEMORY] = "device memory",    [SIMT_UNIT_ATOMICS] = "atomics",
        [SIMT_UNIT_BLOCKS] = "waits for blocks", [SIMT_UNIT_LATENCY] = "latency",
        [SIMT_UNIT_LAUNCH] = "launch",
    };
    return names[unit < SIMT_UNIT_COUNT ? unit : SIMT_UNIT_UNKNOWN];
}

static const char *limit_name(uint32_t limit) {
    static const char *const names[SIMT_OCCUPANCY_COUNT] = {
        [SIMT_OCCUPANCY_UNKNOWN] = "limit unknown",
        [SIMT_OCCUPANCY_GRID] = "no more blocks",
        [SIMT_OCCUPANCY_THREADS] = "no more fit",
        [SIMT_OCCUPANCY_REGISTERS] = "limited by registers",
        [SIMT_OCCUPANCY_SHARED] = "limited by shared memory",
        [SIMT_OCCUPANCY_BLOCKS] = "limited by blocks a multiprocessor",
    };
    return names[limit < SIMT_OCCUPANCY_COUNT ? limit : SIMT_OCCUPANCY_UNKNOWN];
}

static uint32_t busiest_unit(const struct simt_profile *p) {
    uint32_t busiest = SIMT_UNIT_ISSUE;
    for (uint32_t unit = 0; unit < SIMT_UNIT_COUNT; unit++) {
        busiest = p->share[unit] > p->share[busiest] ? unit : busiest;
    }
    return busiest;
}

/* ", L2 busy 71%": of the time that the work takes. */
static void print_unit(const struct simt_profile *p, char *text, size_t size) {
    uint32_t busiest = busiest_unit(p);
    if (p->unit == SIMT_UNIT_UNKNOWN || p->unit >= SIMT_UNIT_COUNT) {
        text[0] = '\0';
    } else if (p->unit == SIMT_UNIT_LAUNCH) {
        snprintf(text, size, ", %.1f of %.1f us are the launch itself", 1e-3 * p->overhead,
                 1e-3 * p->nanoseconds);
    } else if (p->unit == SIMT_UNIT_BLOCKS) {
        snprintf(text, size, ", blocks wait for other blocks for %.0f%% of the time",
                 100.0 * p->share[p->unit]);
    } else if (p->unit == SIMT_UNIT_LATENCY) {
        snprintf(text, size, ", no unit busy for half of the time (%s %.0f%%)",
                 why_unit_name(busiest), 100.0 * p->share[busiest]);
    } else {
        snprintf(text, size, ", %s busy %.0f%%", why_unit_name(p->unit), 100.0 * p->share[p->unit]);
    }
}

const char *why_line(const struct simt_profile *p, char *text, size_t size) {
    char name[96], unit[96];
    print_unit(p, unit, sizeof unit);
    unsigned long long threads = (unsigned long long)p->block[0] * p->block[1] * p->block[2];
    snprintf(text, size,
             "%s%s, %s: %llu block%s of %llu thread%s on %u of %u multiprocessors, %u registers a "
             "thread, %u of %u warps resident (%s)%s",
             p->modelled ? "modelled " : "", p->gpu,
             kernel_name_shorten(p->kernel, name, sizeof name), (unsigned long long)p->blocks,
             p->blocks == 1 ? "" : "s", threads, threads == 1 ? "" : "s", p->busy, p->processors,
             p->registers, p->warps, p->most_warps, limit_name(p->limit), unit);
    return text;
}

/* ---- The sentence ---- */

static double ratio(double part, double whole) {
    return whole > 0.0 ? part / whole : 0.0;
}

static bool is_short(const struct simt_profile *p) {
    return p->unit == SIMT_UNIT_LAUNCH;
}

static bool has_idle_processors(const struct simt_profile *p) {
    return 4 * (uint64_t)p->busy < 3 * (uint64_t)p->processors;
}

static bool has_tail(const struct simt_profile *p) {
    return p->blocks > p->processors && p->even * 1.3 < 1.0;
}

static bool spills(const struct simt_profile *p) {
    const struct simt_counters *c = &p->counters;
    double others = (double)c->global_load_sectors + (double)c->global_store_sectors;
    return (double)c->local_sectors > 0.2 * others && c->local_sectors > 0;
}

static bool has_conflicts(const struct simt_profile *p) {
    const struct simt_counters *c = &p->counters;
    double wavefronts = (double)c->shared_load_wavefronts + (double)c->shared_store_wavefronts;
    return ratio((double)c->shared_bank_conflicts, wavefronts) > 0.25;
}

/* Sectors bring bytes that no lane asked for. Lanes that ask for the same word make up for some. */
static bool is_scattered(const struct simt_profile *p) {
    const struct simt_counters *c = &p->counters;
    double sectors = (double)c->global_load_sectors + (double)c->global_store_sectors;
    return ratio((double)c->global_bytes, 32.0 * sectors) < 0.6 && sectors > 0.0;
}

/* Loads make up for stores of a few bytes of each sector, so that is_scattered() does not see them.
 */
static bool stores_parts_of_sectors(const struct simt_profile *p) {
    const struct simt_counters *c = &p->counters;
    double stores = (double)c->global_store_sectors;
    double sectors = (double)c->global_load_sectors + stores;
    return ratio((double)c->global_bytes, 32.0 * sectors) < 0.8 && stores > 0.25 * sectors;
}

static bool reads_shared_most(const struct simt_profile *p) {
    const struct simt_counters *c = &p->counters;
    return c->shared_load_wavefronts + c->shared_store_wavefronts > c->global_lines;
}

static bool multiplies_most(const struct simt_profile *p) {
    return p->share[SIMT_UNIT_FLOAT] > 0.6;
}

static bool has_few_warps(const struct simt_profile *p) {
    return 4 * (uint64_t)p->warps <= p->most_warps;
}

static bool has_few_for_registers(const struct simt_profile *p) {
    return has_few_warps(p) && p->limit == SIMT_OCCUPANCY_REGISTERS;
}

static bool has_few_for_shared(const struct simt_profile *p) {
    return has_few_warps(p) && p->limit == SIMT_OCCUPANCY_SHARED;
}

static bool has_few_for_grid(const struct simt_profile *p) {
    return has_few_warps(p) && p->limit == SIMT_OCCUPANCY_GRID;
}

/* What to try: the first row that fits of those for any limit, SIMT_UNIT_COUNT, and the first that
   fits of the limiting unit. */
struct advice {
    uint32_t unit;
    bool (*applies)(const struct simt_profile *p); /* NULL: always */
    const char *text;
};

static const struct advice advices[] = {
    {SIMT_UNIT_COUNT, is_short,
     "the launch takes longer than its work: fewer launches with more work each (fused kernels, a "
     "CUDA graph) gain most"},
    {SIMT_UNIT_COUNT, has_idle_processors, NULL}, /* see why_advice() */
    {SIMT_UNIT_COUNT, has_tail, NULL},
    {SIMT_UNIT_L1, spills,
     "registers spill to local memory: fewer values a thread, or looser __launch_bounds__"},
    {SIMT_UNIT_L1, has_conflicts,
     "lanes wait for each other's bank conflicts: pad the rows of the shared tile, or swizzle it"},
    {SIMT_UNIT_L1, reads_shared_most,
     "each value read from shared memory serves too little arithmetic: a larger tile of registers "
     "a thread, and loads of 16 bytes"},
    {SIMT_UNIT_L1, is_scattered,
     "the lanes of a warp touch sectors far apart: let neighbouring lanes read neighbouring "
     "addresses"},
    {SIMT_UNIT_L1, NULL,
     "the same values are loaded again and again: keep them in shared memory or in registers"},
    {SIMT_UNIT_L2, is_scattered,
     "sectors carry bytes that no lane asked for: let neighbouring lanes read neighbouring "
     "addresses"},
    {SIMT_UNIT_L2, stores_parts_of_sectors,
     "each store writes a part of many sectors: collect the results in shared memory, and store 16 "
     "bytes a thread"},
    {SIMT_UNIT_L2, NULL,
     "blocks load the same bytes from L2 again: larger tiles in shared memory load them less "
     "often"},
    {SIMT_UNIT_MEMORY, is_scattered,
     "sectors carry bytes that no lane asked for: let neighbouring lanes read neighbouring "
     "addresses"},
    {SIMT_UNIT_MEMORY, NULL,
     "device memory gives what it can: only fewer bytes help (fused kernels, smaller types, each "
     "byte read once)"},
    {SIMT_UNIT_ISSUE, multiplies_most,
     "most instructions are fp32 arithmetic, near the GPU's peak: only fewer operations, or tensor "
     "cores, are faster"},
    {SIMT_UNIT_ISSUE, NULL,
     "most instructions are no arithmetic: loads of 16 bytes, unrolled loops and a larger tile of "
     "registers need fewer of them"},
    {SIMT_UNIT_FLOAT, NULL,
     "the fp32 units are near their peak: only fewer operations, or tensor cores, are faster"},
    {SIMT_UNIT_DOUBLE, NULL,
     "fp64 is slow: use float where it will do, and look for constants without an f (1.0)"},
    {SIMT_UNIT_SPECIAL, NULL,
     "exponentials, divisions and conversions are the limit: fewer of them, multiplication by a "
     "reciprocal, exp2f() with the factor folded in"},
    {SIMT_UNIT_TENSOR, NULL,
     "the tensor cores are near what this instruction gives: only fewer operations, or wgmma on "
     "Hopper, are faster"},
    {SIMT_UNIT_ATOMICS, NULL,
     "atomics on the same addresses queue up: add up in registers or shared memory first, then "
     "once a block"},
    {SIMT_UNIT_BLOCKS, NULL,
     "blocks wait for what other blocks of the launch store, one after the other: fewer "
     "such steps, or more work in each"},
    {SIMT_UNIT_LATENCY, has_few_for_registers,
     "registers leave room for few warps to hide latency: a smaller tile a thread, or "
     "__launch_bounds__ with a second argument"},
    {SIMT_UNIT_LATENCY, has_few_for_shared,
     "shared memory leaves room for few warps to hide latency: smaller tiles or fewer stages"},
    {SIMT_UNIT_LATENCY, has_few_for_grid,
     "too few warps to hide latency: more blocks (smaller tiles, split-K) or more threads a block"},
    {SIMT_UNIT_LATENCY, NULL,
     "warps wait for their own loads and sums: several independent ones in flight (unrolled loops, "
     "double buffering, cp.async)"},
};

static void print_idle(const struct simt_profile *p, char *text, size_t size) {
    snprintf(text, size,
             "%.0f%% of the multiprocessors have nothing to do: spread the work over more blocks "
             "(smaller tiles, split-K, fewer rows a block)",
             100.0 * (1.0 - ratio(p->busy, p->processors)));
}

static void print_tail(const struct simt_profile *p, char *text, size_t size) {
    snprintf(
        text, size,
        "multiprocessors have blocks for %.0f%% of the time, on average, then they wait for the "
        "last one: another tile size, or long blocks first, spreads the work more evenly over "
        "%u",
        100.0 * p->even, p->processors);
}

static void print_advice(const struct advice *advice, const struct simt_profile *p, char *text,
                         size_t size) {
    if (advice->text != NULL) {
        snprintf(text, size, "%s", advice->text);
    } else if (advice->applies == has_idle_processors) {
        print_idle(p, text, size);
    } else {
        print_tail(p, text, size);
    }
}

/* The first row for this unit that fits, or NULL. */
static const struct advice *find_advice(const struct simt_profile *p, uint32_t unit) {
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
        const struct advice *advice = &advices[i];
        if (advice->unit == unit && (advice->applies == NULL || advice->applies(p))) {
            return advice;
        }
    }
    return NULL;
}

const char *why_advice(const struct simt_profile *p, char *text, size_t size) {
    const struct advice *shape = find_advice(p, SIMT_UNIT_COUNT), *unit = find_advice(p, p->unit);
    text[0] = '\0';
    if (shape != NULL) {
        print_advice(shape, p, text, size);
    }
    if (unit != NULL && unit != shape) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", used > 0 ? "; and " : "", unit->text);
    }
    return text;
}
