/*
 * What L1 and L2 keep, on their own and behind the loads of a kernel's block.
 */
#include "common/simt/memory/access/memory_harness.h"
#include "common/simt/memory/cache/cache.h"
#include "common/testing/testing.h"

enum { ALL = 0xf, LINE = 128, MIB = 1 << 20 };

C_TEST(caches, l1_keeps_sectors) {
    struct simt_l1 *l1 = simt_l1_create(16384);
    ASSERT_TRUE(l1 != NULL);
    EXPECT_INT_EQ(0, simt_l1_touch(l1, 7, 1));
    EXPECT_INT_EQ(1, simt_l1_touch(l1, 7, 3));
    EXPECT_INT_EQ(3, simt_l1_touch(l1, 7, ALL));
    EXPECT_INT_EQ(ALL, simt_l1_touch(l1, 7, ALL));
    EXPECT_INT_EQ(0, simt_l1_touch(l1, 8, ALL));
    simt_l1_clear(l1);
    EXPECT_INT_EQ(0, simt_l1_touch(l1, 7, ALL));
    simt_l1_free(l1);
}

/* Passes over some lines. @return sectors found in the last one */
static uint32_t pass(struct simt_l1 *l1, uint64_t lines, int passes) {
    uint32_t found = 0;
    for (int p = 0; p < passes; p++) {
        found = 0;
        for (uint64_t line = 0; line < lines; line++) {
            found += (uint32_t)__builtin_popcount(simt_l1_touch(l1, line, ALL));
        }
    }
    return found;
}

C_TEST(caches, l1_has_its_size) {
    enum { LINES = 1024 };
    struct simt_l1 *l1 = simt_l1_create((size_t)LINES * LINE);
    ASSERT_TRUE(l1 != NULL);
    EXPECT_TRUE(pass(l1, LINES / 8, 4) > LINES / 8 * 4 * 95 / 100);
    simt_l1_clear(l1);
    uint32_t first = pass(l1, (uint64_t)LINES * 8, 2);
    EXPECT_TRUE(first < LINES * 8 * 4 / 100);
    simt_l1_clear(l1);
    EXPECT_INT_EQ(first, pass(l1, (uint64_t)LINES * 8, 2)); /* each block finds the same */
    simt_l1_free(l1);
}

/* A launch that touches `lines` lines from `begin` on, all in one part. */
static uint64_t launch(struct simt_l2 *l2, uint64_t begin, uint64_t lines, enum simt_l2_use use,
                       size_t capacity) {
    uint64_t uncached = 0;
    for (uint64_t n = 0; n < lines; n++) {
        uncached += simt_l2_touch(l2, begin + n, ALL, use, 0);
    }
    return simt_l2_end(l2, capacity, uncached);
}

C_TEST(caches, l2_keeps_what_fits) {
    struct simt_l2 *l2;
    ASSERT_OK(simt_l2_create(&l2, (size_t)64 * MIB));
    const uint64_t lines = 4 * MIB / LINE;
    EXPECT_INT_EQ(4 * MIB, launch(l2, 0, lines, SIMT_L2_LOAD, 8 * MIB));
    EXPECT_INT_EQ(0, launch(l2, 0, lines, SIMT_L2_LOAD, 8 * MIB));
    EXPECT_INT_EQ(4 * MIB, launch(l2, 0, lines, SIMT_L2_STORE, 8 * MIB));
    EXPECT_INT_EQ(0, launch(l2, 0, lines, SIMT_L2_STORE, 8 * MIB));
    /* 12 MiB of others push it out. */
    EXPECT_INT_EQ(12 * MIB, launch(l2, lines, 3 * lines, SIMT_L2_LOAD, 8 * MIB));
    EXPECT_INT_EQ(4 * MIB, launch(l2, 0, lines, SIMT_L2_LOAD, 8 * MIB));
    simt_l2_free(l2);
}

C_TEST(caches, l2_takes_copies) {
    struct simt_l2 *l2;
    ASSERT_OK(simt_l2_create(&l2, (size_t)64 * MIB));
    simt_l2_fill(l2, MIB, MIB);
    EXPECT_INT_EQ(0, launch(l2, MIB / LINE, MIB / LINE, SIMT_L2_LOAD, 8 * MIB));
    EXPECT_INT_EQ(MIB, launch(l2, 0, MIB / LINE, SIMT_L2_LOAD, 8 * MIB));
    simt_l2_fill(l2, 0, 16 * MIB);
    EXPECT_INT_EQ(MIB, launch(l2, 0, MIB / LINE, SIMT_L2_LOAD, 8 * MIB));
    EXPECT_INT_EQ(0, simt_l2_touch(l2, (uint64_t)1 << 40, ALL, SIMT_L2_LOAD, 0));
    simt_l2_free(l2);
}

C_TEST(caches, l2_reads_pairs_of_sectors) {
    struct simt_l2 *l2;
    ASSERT_OK(simt_l2_create(&l2, (size_t)64 * MIB));
    uint64_t uncached = simt_l2_touch(l2, 5, 2, SIMT_L2_LOAD, 0);
    EXPECT_INT_EQ(64, uncached);
    EXPECT_INT_EQ(64, simt_l2_end(l2, MIB, uncached));
    uncached = simt_l2_touch(l2, 5, 1, SIMT_L2_LOAD, 0);
    EXPECT_INT_EQ(0, simt_l2_end(l2, MIB, uncached));
    uncached = simt_l2_touch(l2, 5, 4, SIMT_L2_UPDATE, 0);
    EXPECT_INT_EQ(96, simt_l2_end(l2, MIB, uncached));
    simt_l2_free(l2);
}

/* Every part of a launch reads the same 16 MiB: once if they fit, each time if they do not. */
C_TEST(caches, l2_loses_what_a_launch_reads_again) {
    const uint64_t lines = 16 * MIB / LINE;
    const size_t sizes[] = {32 * MIB, 8 * MIB};
    const uint64_t times[] = {1, 4};
    for (int n = 0; n < 2; n++) {
        struct simt_l2 *l2;
        uint64_t uncached = 0;
        ASSERT_OK(simt_l2_create(&l2, (size_t)64 * MIB));
        for (uint32_t part = 0; part < 4; part++) {
            for (uint64_t line = 0; line < lines; line++) {
                uncached += simt_l2_touch(l2, line, ALL, SIMT_L2_LOAD, part);
            }
        }
        EXPECT_INT_EQ(times[n] * 16 * MIB, simt_l2_end(l2, sizes[n], uncached));
        simt_l2_free(l2);
    }
}

/* A block's loads: found again unless they pass L1 by; stores and atomics go through. */
C_TEST(caches, requests_ask_them) {
    struct harness h;
    struct simt_l1 *l1 = simt_l1_create(16384);
    ASSERT_TRUE(harness_create(&h, SIMT_CHECK_BOUNDS) && l1 != NULL);
    uint64_t address = harness_alloc(&h, 4096);
    h.block.caches = (struct simt_caches){.modelled = true,
                                          .l1 = l1,
                                          .l2 = simt_memory_l2(h.memory),
                                          .first_line = simt_memory_window(h.memory).begin / LINE};
    harness_addresses(&h, R64, address, 4);
    const struct harness_operands load = {.address = R64, .dst = {R32 + 1}, .dst_count = 1};
    const struct harness_operands store = {.address = R64, .src = {R32 + 1}, .src_count = 1};
    EXPECT_TRUE(harness_run(&h, "ld.global.u32", &load));
    EXPECT_INT_EQ(0, h.counters.l1_hit_sectors);
    EXPECT_TRUE(harness_run(&h, "ld.global.u32", &load));
    EXPECT_INT_EQ(4, h.counters.l1_hit_sectors);
    EXPECT_TRUE(harness_run(&h, "st.global.u32", &store));
    EXPECT_TRUE(harness_run(&h, "red.global.add.u32", &store));
    EXPECT_INT_EQ(4, h.counters.l1_hit_sectors);
    EXPECT_INT_EQ(16, h.counters.l2_sectors); /* before hits are taken off: at the launch's end */
    EXPECT_INT_EQ(128 + 128 + 256, h.counters.dram_bytes);
    EXPECT_INT_EQ(256, simt_l2_end(h.block.caches.l2, MIB, h.counters.dram_bytes));
    simt_l1_free(l1);
    harness_free(&h);
}
