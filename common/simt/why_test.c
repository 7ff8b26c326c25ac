/* Each limit has its sentence, and what is no profile does no harm. */
#include "common/simt/why.h"

#include <math.h>
#include <string.h>

#include "common/testing/testing.h"

/* A launch that fills the GPU and has nothing wrong. */
static struct simt_profile full(enum simt_unit unit) {
    struct simt_profile p = {.gpu = "NVIDIA H200",
                             .even = 1,
                             .kernel = "void tile<(int)128>(float const*, int)",
                             .modelled = true,
                             .grid = {33, 32, 1},
                             .block = {16, 16, 1},
                             .registers = 96,
                             .blocks = 33 * 32,
                             .processors = 132,
                             .busy = 132,
                             .warps = 16,
                             .most_warps = 64,
                             .at_a_time = 2,
                             .limit = SIMT_OCCUPANCY_THREADS,
                             .unit = unit,
                             .nanoseconds = 50000,
                             .overhead = 3500};
    p.share[unit] = 0.83;
    p.counters.global_load_sectors = 1000;
    p.counters.global_bytes = 32000;
    return p;
}

static void expect_advice(const char *part, const struct simt_profile *p) {
    char text[WHY_BYTES];
    EXPECT_STR_CONTAINS(part, why_advice(p, text, sizeof text));
}

C_TEST(why, line_names_shape_occupancy_and_unit) {
    char text[WHY_BYTES];
    struct simt_profile p = full(SIMT_UNIT_L1);
    EXPECT_STR_EQ("modelled NVIDIA H200, tile<128>: 1056 blocks of 256 threads on 132 of 132 "
                  "multiprocessors, 96 registers a thread, 16 of 64 warps resident (no more fit), "
                  "L1 and shared memory busy 83%",
                  why_line(&p, text, sizeof text));
    p.unit = SIMT_UNIT_LATENCY;
    p.share[SIMT_UNIT_L1] = 0.41;
    p.limit = SIMT_OCCUPANCY_REGISTERS;
    EXPECT_STR_CONTAINS(
        "(limited by registers), no unit busy for half of the time (L1 and shared memory "
        "41%)",
        why_line(&p, text, sizeof text));
    p.unit = SIMT_UNIT_BLOCKS;
    p.share[SIMT_UNIT_BLOCKS] = 0.93;
    EXPECT_STR_CONTAINS(", blocks wait for other blocks for 93% of the time",
                        why_line(&p, text, sizeof text));
    p.unit = SIMT_UNIT_LAUNCH;
    p.nanoseconds = 4100;
    EXPECT_STR_CONTAINS(", 3.5 of 4.1 us are the launch itself", why_line(&p, text, sizeof text));
}

C_TEST(why, line_of_a_real_gpu_says_nothing_of_the_unit) {
    char text[WHY_BYTES];
    struct simt_profile p = full(SIMT_UNIT_UNKNOWN);
    p.modelled = false;
    p.blocks = 1;
    p.busy = 1;
    EXPECT_STR_EQ("NVIDIA H200, tile<128>: 1 block of 256 threads on 1 of 132 multiprocessors, 96 "
                  "registers a thread, 16 of 64 warps resident (no more fit)",
                  why_line(&p, text, sizeof text));
    expect_advice("99% of the multiprocessors have nothing to do", &p);
    p = full(SIMT_UNIT_UNKNOWN);
    EXPECT_STR_EQ("", why_advice(&p, text, sizeof text));
}

C_TEST(why, each_unit_has_its_sentence) {
    static const struct {
        enum simt_unit unit;
        const char *part;
    } units[] = {
        {SIMT_UNIT_ISSUE, "most instructions are no arithmetic"},
        {SIMT_UNIT_L1, "loaded again and again"},
        {SIMT_UNIT_FLOAT, "fp32 units are near their peak"},
        {SIMT_UNIT_DOUBLE, "fp64 is slow"},
        {SIMT_UNIT_SPECIAL, "exponentials, divisions"},
        {SIMT_UNIT_TENSOR, "tensor cores are near"},
        {SIMT_UNIT_L2, "larger tiles in shared memory"},
        {SIMT_UNIT_MEMORY, "only fewer bytes help"},
        {SIMT_UNIT_ATOMICS, "queue up"},
        {SIMT_UNIT_BLOCKS, "one after the other"},
        {SIMT_UNIT_LATENCY, "several independent ones in flight"},
        {SIMT_UNIT_LAUNCH, "fewer launches with more work each"},
    };
    /* Every unit but the unknown one. */
    EXPECT_INT_EQ(SIMT_UNIT_COUNT - 1, sizeof units / sizeof *units);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct simt_profile p = full(units[i].unit);
        expect_advice(units[i].part, &p);
    }
}

C_TEST(why, idle_multiprocessors_come_before_the_unit) {
    struct simt_profile p = full(SIMT_UNIT_L1);
    p.blocks = p.busy = 64;
    expect_advice("52% of the multiprocessors have nothing to do: spread the work over more blocks "
                  "(smaller tiles, "
                  "split-K, fewer rows a block); and the same values are loaded again and again",
                  &p);
    p.blocks = p.busy = 99;
    expect_advice("loaded again and again", &p); /* a quarter of the GPU is not the first thing */
    p.blocks = 140;
    p.busy = 132;
    p.even = 0.53;
    expect_advice("multiprocessors have blocks for 53% of the time, on average", &p);
    p.unit = SIMT_UNIT_LAUNCH;
    expect_advice("fewer launches", &p);
}

C_TEST(why, l1_is_told_apart) {
    struct simt_profile p = full(SIMT_UNIT_L1);
    p.counters.global_bytes = 8000;
    expect_advice("neighbouring lanes", &p);
    p.counters.shared_load_wavefronts = 4000;
    p.counters.global_lines = 100;
    expect_advice("larger tile of registers", &p);
    p.counters.shared_bank_conflicts = 2000;
    expect_advice("bank conflicts", &p);
    p.counters.local_sectors = 500;
    expect_advice("spill", &p);
}

C_TEST(why, memory_that_brings_unasked_bytes_is_told) {
    for (uint32_t unit = SIMT_UNIT_L2; unit <= SIMT_UNIT_MEMORY; unit++) {
        struct simt_profile p = full((enum simt_unit)unit);
        p.counters.global_bytes = 4000;
        expect_advice("bytes that no lane asked for", &p);
    }
}

C_TEST(why, narrow_stores_beside_full_loads_are_told) {
    struct simt_profile p = full(SIMT_UNIT_L2);
    p.counters.global_store_sectors = 1000; /* a quarter of each, and all of the loads */
    p.counters.global_bytes = 32000 + 8000;
    expect_advice("store 16 bytes a thread", &p);
    p.counters.global_bytes = 64000;
    expect_advice("larger tiles in shared memory", &p);
    p.counters.global_store_sectors = 100; /* few stores: the loads leave bytes out */
    p.counters.global_bytes = 25000;
    expect_advice("larger tiles in shared memory", &p);
}

C_TEST(why, issue_of_arithmetic_is_no_waste) {
    struct simt_profile p = full(SIMT_UNIT_ISSUE);
    p.share[SIMT_UNIT_FLOAT] = 0.7;
    expect_advice("near the GPU's peak", &p);
}

C_TEST(why, latency_names_what_keeps_warps_out) {
    struct simt_profile p = full(SIMT_UNIT_LATENCY);
    p.limit = SIMT_OCCUPANCY_REGISTERS;
    expect_advice("registers leave room for few warps", &p);
    p.limit = SIMT_OCCUPANCY_SHARED;
    expect_advice("shared memory leaves room for few warps", &p);
    p.limit = SIMT_OCCUPANCY_GRID;
    expect_advice("more blocks", &p);
    p.warps = 48; /* enough: more would not help */
    expect_advice("several independent ones", &p);
}

C_TEST(why, nonsense_does_no_harm) {
    char text[WHY_BYTES];
    struct simt_profile p = {.nanoseconds = NAN};
    EXPECT_STR_CONTAINS("0 blocks", why_line(&p, text, sizeof text));
    EXPECT_STR_EQ("", why_advice(&p, text, sizeof text));
    memset(&p, 0xff, sizeof p);
    memset(p.gpu, 'x', sizeof p.gpu);
    memset(p.kernel, '(', sizeof p.kernel);
    p.gpu[sizeof p.gpu - 1] = p.kernel[sizeof p.kernel - 1] = '\0';
    p.modelled = true;
    EXPECT_STR_CONTAINS("limit unknown", why_line(&p, text, sizeof text));
    EXPECT_TRUE(strlen(text) < sizeof text);
    (void)why_advice(&p, text, sizeof text);
    (void)why_line(&p, text, 8);
    EXPECT_INT_EQ(7, strlen(text));
    EXPECT_STR_EQ("unknown", why_unit_name(SIMT_UNIT_COUNT));
}

/* What keeps a second block of 256 threads from an H200's multiprocessor, and what does not. */
C_TEST(profile, names_what_limits_occupancy) {
    static const struct {
        uint32_t threads, registers, at_a_time;
        uint64_t blocks;
        enum simt_occupancy_limit limit;
        uint32_t warps, busy;
        double even;
    } cases[] = {
        {256, 32, 8, 10000, SIMT_OCCUPANCY_THREADS, 64, 132, 0.997},
        {256, 128, 2, 10000, SIMT_OCCUPANCY_REGISTERS, 16, 132, 0.997},
        {64, 192, 4, 10000, SIMT_OCCUPANCY_REGISTERS, 8, 132, 0.997}, /* two warps a scheduler */
        {256, 40, 3, 10000, SIMT_OCCUPANCY_SHARED, 24, 132, 0.997},
        {32, 16, 32, 10000, SIMT_OCCUPANCY_BLOCKS, 32, 132, 0.997},
        {256, 32, 8, 132, SIMT_OCCUPANCY_GRID, 8, 132, 1},
        {250, 32, 8, 5, SIMT_OCCUPANCY_GRID, 8, 5, 0.038},
        {256, 0, 3, 10000, SIMT_OCCUPANCY_SHARED, 24, 132, 0.997},
    };
    const struct simt_processor processor = {.threads = 2048, .blocks = 32, .registers = 65536};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct simt_profile p = {.block = {cases[i].threads, 1, 1},
                                 .registers = cases[i].registers,
                                 .blocks = cases[i].blocks};
        simt_profile_set_occupancy(&p, &processor, 132, cases[i].at_a_time);
        EXPECT_INT_EQ(cases[i].limit, p.limit);
        EXPECT_INT_EQ(cases[i].warps, p.warps);
        EXPECT_INT_EQ(64, p.most_warps);
        EXPECT_INT_EQ(cases[i].busy, p.busy);
        EXPECT_NEAR(cases[i].even, p.even, 0.005);
    }
}
