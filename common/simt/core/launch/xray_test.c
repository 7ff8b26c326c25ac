/*
 * The record of a launch: its sums are the counters, its requests those that the kernel makes.
 */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { BLOCKS = 6, STRIDE = 8, LOAD = 5, STORE_SHARED, LOAD_SHARED = 8, STORE = 10 };

/** A launch of the kernel "sites", whose lines are named above. */
struct recorded {
    struct simt_xray xray;
    struct simt_sites sites;
    struct simt_counters counters;
};

static void record(struct launch_testing *t, int host_threads, bool xray, struct recorded *r) {
    struct {
        uint64_t out, in;
        int stride;
    } parameters = {launch_testing_upload(t, NULL, sizeof(float[BLOCKS * 32 + 32])),
                    launch_testing_upload(t, (float[32 * STRIDE]){0}, sizeof(float[32 * STRIDE])),
                    STRIDE};
    *r = (struct recorded){.sites = {0}};
    launch_testing_run_clean(t, LAUNCH(.kernel = "sites", .grid = {BLOCKS}, .threads = {32},
                                       .parameters = &parameters, .bounds_only = true,
                                       .host_threads = host_threads, .sites = &r->sites,
                                       .xray = xray ? &r->xray : NULL));
    r->counters = t->counters;
}

static void forget(struct recorded *r) {
    simt_xray_free(&r->xray);
    simt_sites_free(&r->sites);
}

#define XRAY_TEST(name) LAUNCH_TEST(xray, name, SITES_PTX)

XRAY_TEST(sums_are_the_counters) {
    struct recorded r;
    uint64_t executed = 0, lanes = 0, instructions = 0;
    int64_t cycles = 0, loads = 0;
    record(t, 1, true, &r);
    for (size_t n = 0; n < r.xray.count; n++) {
        const struct simt_xray_instruction *i = &r.xray.instructions[n];
        executed += i->executed;
        lanes += i->lanes;
        loads += i->loads;
        for (size_t w = 0; w < SIMT_WAIT_COUNT; w++) {
            cycles += i->wait[w];
        }
    }
    for (size_t c = 0; c < SIMT_CLASS_COUNT; c++) {
        instructions += r.counters.instructions[c];
    }
    EXPECT_TRUE(instructions > 0 && r.counters.chain_cycles > 0 && r.counters.chain_loads > 0);
    EXPECT_INT_EQ(instructions, executed);
    EXPECT_INT_EQ(r.counters.active_lanes, lanes);
    EXPECT_INT_EQ(r.counters.chain_cycles, cycles);
    EXPECT_INT_EQ(r.counters.chain_loads, loads);
    forget(&r);
}

/* What is recorded does not change what is counted. */
XRAY_TEST(leaves_the_counters_alone) {
    struct recorded with, without;
    record(t, 1, true, &with);
    record(t, 1, false, &without);
    EXPECT_INT_EQ(without.counters.machine_instructions, with.counters.machine_instructions);
    EXPECT_INT_EQ(without.counters.chain_cycles, with.counters.chain_cycles);
    EXPECT_INT_EQ(without.counters.global_load_sectors, with.counters.global_load_sectors);
    EXPECT_INT_EQ(0, without.xray.count);
    forget(&with);
    forget(&without);
}

XRAY_TEST(does_not_depend_on_host_threads) {
    struct recorded one, three;
    record(t, 1, true, &one);
    record(t, 3, true, &three);
    ASSERT_TRUE(one.xray.count == three.xray.count && one.xray.count > 0);
    for (size_t n = 0; n < one.xray.count; n++) {
        EXPECT_TRUE(memcmp(&one.xray.instructions[n], &three.xray.instructions[n],
                           sizeof *one.xray.instructions) == 0);
    }
    for (size_t n = 0; n < 2 * one.xray.site_count; n++) {
        struct simt_xray_request *a = &one.xray.requests[n], *b = &three.xray.requests[n];
        EXPECT_INT_EQ(a->first - a->allocation, b->first - b->allocation);
        EXPECT_INT_EQ(a->block, b->block);
        EXPECT_INT_EQ(a->mask, b->mask);
        EXPECT_TRUE(memcmp(a->relative, b->relative, sizeof a->relative) == 0);
    }
    forget(&one);
    forget(&three);
}

/* The request of a line, of which there is one. */
static const struct simt_xray_request *request_at(const struct recorded *r, uint32_t line,
                                                  bool shared) {
    static const struct simt_xray_request none = {.mask = 0};
    for (size_t n = 0; n < r->sites.count; n++) {
        const struct simt_xray_request *request = &r->xray.requests[2 * n + shared];
        if (r->sites.sites[n].source->line == line && request->mask != 0) {
            return request;
        }
    }
    TEST_FAIL("line %u has no request", line);
    return &none;
}

static void expect_stride(const struct simt_xray_request *request, int32_t stride, uint32_t cost,
                          uint32_t least) {
    EXPECT_INT_EQ(UINT32_MAX, request->mask);
    EXPECT_INT_EQ(0, request->block);
    EXPECT_INT_EQ(0, request->warp);
    EXPECT_INT_EQ(4, request->bytes);
    EXPECT_INT_EQ(cost, request->cost);
    EXPECT_INT_EQ(least, request->least);
    for (int32_t lane = 0; lane < SIMT_LANES; lane++) {
        EXPECT_INT_EQ(stride * lane, request->relative[lane]);
    }
}

XRAY_TEST(keeps_the_first_request_of_a_line) {
    struct recorded r;
    record(t, 2, true, &r);
    expect_stride(request_at(&r, LOAD, false), 4 * STRIDE, 32, 4);
    expect_stride(request_at(&r, STORE_SHARED, true), 128, 32, 1);
    expect_stride(request_at(&r, LOAD_SHARED, true), -132, 1, 1);
    expect_stride(request_at(&r, STORE, false), 4, 4, 4);
    EXPECT_INT_EQ(128,
                  request_at(&r, STORE, false)->first - request_at(&r, STORE, false)->allocation);
    forget(&r);
}
