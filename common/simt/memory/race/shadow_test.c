/*
 * Uninitialised reads and races: found where they are, not found where there
 * are none.
 */
#include "common/simt/memory/race/shadow.h"

#include <string.h>

#include "common/simt/memory/access/memory_harness.h"
#include "common/testing/fixture.h"

enum { BYTES = 4096 };

/* Small programs: warps and blocks take turns on one harness. */
struct play {
    struct harness h;
    uint64_t global;
};

static bool start(struct play *p) {
    bool made = harness_create(&p->h, SIMT_CHECK_FULL);
    p->global = harness_alloc(&p->h, BYTES);
    if (made) {
        harness_next_block(&p->h, 0);
        simt_memory_mark(p->h.memory, p->global, BYTES);
    }
    return made && p->global != 0;
}

static void warp(struct play *p, uint32_t index) {
    p->h.warp = &p->h.warps[index];
    harness_mask(&p->h, UINT32_MAX);
}

/* Another block of the same launch; shared memory counts as written. */
static void block(struct play *p, uint64_t order) {
    harness_next_block(&p->h, order);
    simt_shadow_mark(p->h.block.shadow, 0, HARNESS_SHARED);
    warp(p, 0);
}

static bool load(struct play *p, const char *opcode, uint64_t first, int64_t stride) {
    const struct harness_operands o = {.dst = {R32}, .dst_count = 1, .address = R64};
    harness_addresses(&p->h, R64, first, stride);
    return harness_run(&p->h, opcode, &o);
}

/* Lane n stores first_value + n * step. */
static bool store(struct play *p, const char *opcode, uint64_t first, int64_t stride,
                  uint32_t value, uint32_t step) {
    const struct harness_operands o = {.address = R64, .src = {R32 + 1}, .src_count = 1};
    harness_addresses(&p->h, R64, first, stride);
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        harness_row(&p->h, R32 + 1)->u32[n] = value + n * step;
    }
    return harness_run(&p->h, opcode, &o);
}

static bool atomic(struct play *p, const char *opcode, uint64_t first, int64_t stride) {
    const struct harness_operands o = {
        .dst = {R32}, .dst_count = 1, .address = R64, .src = {R32 + 1}, .src_count = 1};
    harness_addresses(&p->h, R64, first, stride);
    harness_addresses(&p->h, R32 + 1, 1, 0);
    return harness_run(&p->h, opcode, &o);
}

static void fence(struct play *p, const char *opcode) {
    const struct harness_operands none = {.address = R64};
    EXPECT_TRUE(harness_run(&p->h, opcode, &none));
}

static void barrier(struct play *p) {
    simt_shadow_barrier(p->h.block.shadow);
    simt_sync_met(&p->h.block);
}

/* __syncwarp() */
static void meet(struct play *p) {
    simt_shadow_meet(p->h.block.shadow, p->h.warp->index);
    simt_sync_met(&p->h.block);
}

static void expect(struct play *p, enum simt_fault_kind kind, const char *text) {
    EXPECT_INT_EQ(kind, p->h.block.fault.kind);
    if (strstr(p->h.block.fault.text, text) == NULL) {
        TEST_FAIL("\"%s\" is not in \"%s\"", text, p->h.block.fault.text);
    }
}

#define PLAY_TEST(suite, name) \
    FIXTURE_TEST(suite, name, struct play, p, start(p), harness_free(&p->h))

PLAY_TEST(uninitialised, global) {
    uint64_t fresh = harness_alloc(&p->h, BYTES);
    EXPECT_TRUE(store(p, "st.global.u32", fresh, 4, 1, 1));
    EXPECT_TRUE(load(p, "ld.global.u32", fresh, 4));
    meet(p);
    EXPECT_TRUE(load(p, "ld.global.u8", fresh + 96, 1));
    EXPECT_TRUE(!load(p, "ld.global.u32", fresh + 8, 4));
    expect(p, SIMT_FAULT_UNINITIALISED,
           "128 bytes into allocation #2 (cudaMalloc, 4096 bytes), that nothing has written");
    EXPECT_INT_EQ(30, p->h.block.fault.thread[0]);
}

PLAY_TEST(uninitialised, global_holes_between_lanes_do_not_matter) {
    uint64_t fresh = harness_alloc(&p->h, BYTES);
    EXPECT_TRUE(store(p, "st.global.u32", fresh, 16, 1, 1));
    EXPECT_TRUE(load(p, "ld.global.u32", fresh, 16));
    EXPECT_TRUE(atomic(p, "atom.global.exch.b32", fresh + 4, 16));
    EXPECT_TRUE(load(p, "ld.global.u32", fresh + 4, 16));
    EXPECT_TRUE(!atomic(p, "atom.global.add.u32", fresh + 8, 16));
    expect(p, SIMT_FAULT_UNINITIALISED, "updates 4 bytes");
}

PLAY_TEST(uninitialised, shared) {
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 1, 1));
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
    meet(p);
    EXPECT_TRUE(!load(p, "ld.shared.u32", 4, 4));
    expect(p, SIMT_FAULT_UNINITIALISED,
           "reads 4 bytes at offset 128 of shared memory that no thread of the block has written");
    EXPECT_INT_EQ(31, p->h.block.fault.thread[0]);
    /* The next block starts with nothing written. */
    harness_next_block(&p->h, 1);
    EXPECT_TRUE(!load(p, "ld.shared.u32", 0, 4));
}

/* When all is written a barrier notes it, and reads are not looked at; bytes may become unwritten
 * again. */
PLAY_TEST(uninitialised, shared_that_was_written_as_a_whole) {
    struct simt_shadow *shadow = p->h.block.shadow;
    simt_shadow_mark(shadow, 0, shadow->shared_bytes - 1);
    simt_shadow_barrier(shadow);
    EXPECT_TRUE(!shadow->is_full);
    simt_shadow_mark(shadow, shadow->shared_bytes - 1, 1);
    EXPECT_TRUE(!shadow->is_full);
    simt_shadow_barrier(shadow);
    EXPECT_TRUE(shadow->is_full);
    simt_shadow_unmark(shadow, 64, 4);
    EXPECT_TRUE(!shadow->is_full);
    simt_shadow_barrier(shadow);
    EXPECT_TRUE(!shadow->is_full);
    simt_shadow_mark(shadow, 64, 4);
    simt_shadow_barrier(shadow);
    EXPECT_TRUE(shadow->is_full);
    block(p, 1);
    EXPECT_TRUE(!shadow->is_full);
}

/* Reads of memory that was written as a whole are put off; the write that comes behind them still
 * meets them. */
PLAY_TEST(shared_race, write_after_a_quiet_read) {
    block(p, 0);
    simt_shadow_mark(p->h.block.shadow, 0, p->h.block.shadow->shared_bytes);
    simt_shadow_barrier(p->h.block.shadow);
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4)); /* sets the words of the pattern */
    EXPECT_TRUE(load(p, "ld.shared.u32", 256, 4));
    warp(p, 1);
    EXPECT_TRUE(!store(p, "st.shared.u32", 256, 4, 1, 1));
}

PLAY_TEST(shared_race, read_after_write_without_a_barrier) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 7, 1));
    warp(p, 1);
    EXPECT_TRUE(!load(p, "ld.shared.u32", 120, 4));
    expect(
        p, SIMT_FAULT_SHARED_RACE,
        "(in warp 1) reads 4 bytes at offset 120 of shared memory that a thread of warp 0 wrote, "
        "with no barrier in between");
    EXPECT_INT_EQ(32, p->h.block.fault.thread[0]);
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 9, 1));
    barrier(p);
    warp(p, 1);
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
}

PLAY_TEST(shared_race, write_after_read_without_a_barrier) {
    block(p, 0);
    EXPECT_TRUE(load(p, "ld.shared.u32", 64, 0));
    warp(p, 2);
    EXPECT_TRUE(!store(p, "st.shared.u32", 0, 4, 7, 1));
    expect(p, SIMT_FAULT_SHARED_RACE,
           "writes 4 bytes at offset 64 of shared memory that a thread of warp 0 "
           "read, with no barrier");
    EXPECT_INT_EQ(80, p->h.block.fault.thread[0]);
}

PLAY_TEST(shared_race, write_after_write) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 1000, 1));
    warp(p, 1);
    /* The same values again are a usual way to set something up. */
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 1000, 1));
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
    EXPECT_TRUE(!store(p, "st.shared.u32", 0, 4, 2000, 1));
    expect(p, SIMT_FAULT_SHARED_RACE, "writes 4 bytes at offset 0");
}

PLAY_TEST(shared_race, within_one_instruction) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 16, 0, 5, 0));
    EXPECT_TRUE(!store(p, "st.shared.u32", 16, 0, 5, 1));
    expect(p, SIMT_FAULT_SHARED_RACE, "another value there in the same instruction");
}

/* A warp may read what it wrote itself; bytes of one word may belong to several warps. */
PLAY_TEST(shared_race, own_data_and_neighbouring_bytes) {
    block(p, 0);
    for (uint32_t w = 0; w < HARNESS_WARPS; w++) {
        warp(p, w);
        EXPECT_TRUE(store(p, "st.shared.u8", w, 4, 10 * w, 3));
        EXPECT_TRUE(load(p, "ld.shared.u8", w, 4));
        EXPECT_TRUE(store(p, "st.shared.u32", 1024 + 128 * w, 4, w, 1));
        EXPECT_TRUE(load(p, "ld.shared.u32", 1024 + 128 * w, 4));
    }
    warp(p, 0);
    EXPECT_TRUE(!load(p, "ld.shared.u8", 3, 4));
}

/* The usual tile: store, barrier, read all, barrier, store again. */
PLAY_TEST(shared_race, tiles_with_both_barriers) {
    block(p, 0);
    for (uint32_t tile = 0; tile < 5000; tile++) {
        for (uint32_t w = 0; w < HARNESS_WARPS; w++) {
            warp(p, w);
            EXPECT_TRUE(store(p, "st.shared.u32", 128 * w, 4, tile, 1));
        }
        barrier(p);
        for (uint32_t w = 0; w < HARNESS_WARPS; w++) {
            warp(p, w);
            EXPECT_TRUE(load(p, "ld.shared.u32", 0, 16));
            EXPECT_TRUE(load(p, "ld.shared.u32", 128 * ((w + 1) % HARNESS_WARPS), 4));
        }
        if (test_has_failed()) {
            break;
        }
        barrier(p);
    }
    /* Without the second barrier it is found at once. */
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
    warp(p, 0);
    EXPECT_TRUE(!store(p, "st.shared.u32", 0, 4, 77, 5));
}

PLAY_TEST(shared_race, atomics_meet_but_do_not_replace_a_barrier) {
    block(p, 0);
    for (uint32_t w = 0; w < HARNESS_WARPS; w++) {
        warp(p, w);
        EXPECT_TRUE(atomic(p, "atom.shared.add.u32", 0, 4));
    }
    EXPECT_TRUE(!load(p, "ld.shared.u32", 0, 4));
    expect(p, SIMT_FAULT_SHARED_RACE, "that a thread of another warp wrote");
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 3, 1));
    warp(p, 1);
    EXPECT_TRUE(!atomic(p, "atom.shared.add.u32", 0, 4));
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 4, 1));
    barrier(p);
    warp(p, 1);
    EXPECT_TRUE(atomic(p, "atom.shared.add.u32", 0, 4));
    warp(p, 2);
    EXPECT_TRUE(atomic(p, "atom.shared.max.u32", 0, 4));
    barrier(p);
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
}

/* Data, fence, flag on one side; flag, data on the other. */
PLAY_TEST(shared_race, volatile_flags_with_fences) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 7, 1));
    fence(p, "membar.cta");
    EXPECT_TRUE(store(p, "st.volatile.shared.u32", 512, 0, 1, 0));
    warp(p, 1);
    EXPECT_TRUE(load(p, "ld.volatile.shared.u32", 512, 0));
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
    /* A warp that did not look at the flag knows nothing. */
    warp(p, 2);
    EXPECT_TRUE(!load(p, "ld.shared.u32", 0, 4));
}

/* What a warp stored long before its fence is released with the rest. */
PLAY_TEST(shared_race, a_fence_behind_a_meeting_releases_all) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 4, 7, 1));
    meet(p);
    EXPECT_TRUE(store(p, "st.shared.u32", 128, 4, 7, 1));
    meet(p);
    fence(p, "membar.cta");
    EXPECT_TRUE(store(p, "st.volatile.shared.u32", 512, 0, 1, 0));
    EXPECT_TRUE(store(p, "st.shared.u32", 256, 4, 7, 1));
    warp(p, 1);
    EXPECT_TRUE(load(p, "ld.volatile.shared.u32", 512, 0));
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 4));
    EXPECT_TRUE(load(p, "ld.shared.u32", 128, 4));
    EXPECT_TRUE(!load(p, "ld.shared.u32", 256, 4));
}

PLAY_TEST(lanes, what_another_lane_wrote) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 16, 7, 1));
    EXPECT_TRUE(load(p, "ld.shared.u32", 0, 16));
    meet(p);
    EXPECT_TRUE(load(p, "ld.shared.u32", 496, -16));
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u32", 0, 16, 9, 1));
    EXPECT_TRUE(!load(p, "ld.shared.u32", 496, -16));
    expect(p, SIMT_FAULT_SHARED_RACE,
           "reads 4 bytes at offset 496 of shared memory that thread (31,0,0) of the same warp "
           "wrote, with no barrier in between");
    EXPECT_INT_EQ(0, p->h.block.fault.thread[0]);
}

PLAY_TEST(lanes, what_another_lane_has_read) {
    block(p, 0);
    EXPECT_TRUE(load(p, "ld.shared.u32", 64, 4));
    EXPECT_TRUE(store(p, "st.shared.u32", 64, 4, 3, 1));
    block(p, 0);
    EXPECT_TRUE(load(p, "ld.shared.u32", 68, 4));
    meet(p);
    EXPECT_TRUE(store(p, "st.shared.u32", 64, 4, 4, 1));
    block(p, 0);
    EXPECT_TRUE(load(p, "ld.shared.u32", 68, 4));
    EXPECT_TRUE(!store(p, "st.shared.u32", 64, 4, 5, 1));
    expect(
        p, SIMT_FAULT_SHARED_RACE,
        "writes 4 bytes at offset 68 of shared memory that thread (0,0,0) of the same warp read, "
        "with no barrier in between");
    EXPECT_INT_EQ(1, p->h.block.fault.thread[0]);
    block(p, 0);
    EXPECT_TRUE(load(p, "ld.shared.u32", 64, 0));
    EXPECT_TRUE(!store(p, "st.shared.u32", 64, 4, 6, 1));
    expect(p, SIMT_FAULT_SHARED_RACE, "that another thread of the same warp read");
}

/* Bytes of one word that belong to several lanes; values that all lanes store. */
PLAY_TEST(lanes, shares_of_a_word_are_fine) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.shared.u8", 0, 1, 7, 1));
    EXPECT_TRUE(load(p, "ld.shared.u8", 0, 1));
    EXPECT_TRUE(store(p, "st.shared.u8", 0, 1, 8, 1));
    EXPECT_TRUE(store(p, "st.shared.u16", 64, 2, 9, 1));
    EXPECT_TRUE(load(p, "ld.shared.u16", 64, 2));
    EXPECT_TRUE(store(p, "st.shared.u32", 256, 0, 1, 0));
    EXPECT_TRUE(load(p, "ld.shared.u32", 256, 0));
    EXPECT_TRUE(atomic(p, "atom.shared.add.u32", 512, 0));
    EXPECT_TRUE(load(p, "ld.shared.u32", 512, 0));
}

PLAY_TEST(lanes, of_global_memory) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 7, 1));
    EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
    EXPECT_TRUE(!load(p, "ld.global.u32", p->global + 124, -4));
    expect(p, SIMT_FAULT_BLOCK_RACE,
           "124 bytes into allocation #1 (cudaMalloc, 4096 bytes), that thread (31,0,0) of the "
           "same warp "
           "wrote, with no barrier in between");
    block(p, 1);
    EXPECT_TRUE(!store(p, "st.global.u32", p->global + 1024, 0, 5, 1));
    expect(p, SIMT_FAULT_BLOCK_RACE, "thread (0,0,0) of the same warp writes another value there");
}

PLAY_TEST(block_race, threads_of_a_block_in_global_memory) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 7, 1));
    warp(p, 1);
    EXPECT_TRUE(!load(p, "ld.global.u32", p->global, 4));
    expect(p, SIMT_FAULT_BLOCK_RACE, "(in warp 1) reads 4 bytes at 0x");
    expect(p, SIMT_FAULT_BLOCK_RACE,
           ", 0 bytes into allocation #1 (cudaMalloc, 4096 bytes), that a thread of warp 0 wrote, "
           "with "
           "no barrier in between");
    block(p, 1);
    EXPECT_TRUE(load(p, "ld.global.u32", p->global + 1024, 4));
    warp(p, 3);
    EXPECT_TRUE(!store(p, "st.global.u32", p->global + 1024, 4, 7, 1));
    expect(p, SIMT_FAULT_BLOCK_RACE, "that a thread of warp 0 read, with no barrier in between");
}

PLAY_TEST(block_race, what_orders_them) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 7, 1));
    EXPECT_TRUE(store(p, "st.global.u32", p->global + 512, 4, 1, 0));
    warp(p, 1);
    EXPECT_TRUE(store(p, "st.global.u32", p->global + 512, 4, 1, 0)); /* the same values */
    EXPECT_TRUE(atomic(p, "atom.global.add.u32", p->global + 1024, 4));
    barrier(p);
    EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
    EXPECT_TRUE(atomic(p, "atom.global.add.u32", p->global + 1024, 4));
    warp(p, 2);
    EXPECT_TRUE(load(p, "ld.global.u32", p->global + 1024, 4)); /* lenient */
    EXPECT_TRUE(store(p, "st.global.u32", p->global + 2048, 4, 7, 1));
    meet(p);
    fence(p, "membar.gl");
    EXPECT_TRUE(store(p, "st.volatile.global.u32", p->global + 3072, 0, 1, 0));
    warp(p, 3);
    EXPECT_TRUE(load(p, "ld.volatile.global.u32", p->global + 3072, 0));
    EXPECT_TRUE(load(p, "ld.global.u32", p->global + 2048, 4));
    EXPECT_TRUE(store(p, "st.global.u32", p->global + 2048, 4, 8, 1));
    /* Each block's threads are looked at apart. */
    simt_global_shadow_free(NULL);
    EXPECT_INT_EQ(1, simt_global_shadow_begin(p->h.global_shadow, 1));
    block(p, 1);
    warp(p, 1);
    EXPECT_TRUE(load(p, "ld.global.u32", p->global + 2048, 4));
}

PLAY_TEST(global_race, between_blocks) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 7, 1));
    barrier(p);
    warp(p, 1);
    EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
    block(p, 9);
    EXPECT_TRUE(!load(p, "ld.global.u32", p->global + 124, 4));
    expect(p, SIMT_FAULT_GLOBAL_RACE,
           "124 bytes into allocation #1 (cudaMalloc, 4096 bytes), that block (0,0,0) wrote in the "
           "same launch");
    EXPECT_INT_EQ(1, p->h.block.fault.block[1]);
}

PLAY_TEST(global_race, reads_by_several_then_a_write) {
    for (uint64_t order = 0; order < 3; order++) {
        block(p, order);
        EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
    }
    EXPECT_TRUE(!store(p, "st.global.u32", p->global, 4, 7, 1));
    expect(p, SIMT_FAULT_GLOBAL_RACE, "that block (0,0,0) read in the same launch");
}

PLAY_TEST(global_race, a_launch_orders) {
    for (uint32_t launch = 0; launch < 3; launch++) {
        EXPECT_INT_EQ(1, simt_global_shadow_begin(p->h.global_shadow, 1));
        block(p, launch);
        EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
        EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 7 + launch, 1));
    }
}

/* Own parts, shared input, flags that all set, counters: all as they should be. */
PLAY_TEST(global_race, usual_patterns_are_fine) {
    for (uint64_t order = 0; order < 8; order++) {
        block(p, order);
        EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
        EXPECT_TRUE(store(p, "st.global.u32", p->global + 512 + 128 * order, 4, 5, 1));
        EXPECT_TRUE(load(p, "ld.global.u32", p->global + 512 + 128 * order, 4));
        EXPECT_TRUE(store(p, "st.global.u32", p->global + 256, 0, 1, 0));
        EXPECT_TRUE(atomic(p, "atom.global.add.u32", p->global + 260, 0));
        EXPECT_TRUE(load(p, "ld.volatile.global.u32", p->global + 260, 0));
        EXPECT_TRUE(store(p, "st.global.u8", p->global + 2048 + order, 8, 3, 1));
    }
}

/* Partial sums, __threadfence(), a counter; the last block reads what all wrote. */
PLAY_TEST(global_race, last_block_reads_partial_sums) {
    for (uint64_t order = 0; order < 4; order++) {
        block(p, order);
        EXPECT_TRUE(store(p, "st.global.u32", p->global + 128 * order, 4, 5, 1));
        fence(p, "membar.gl");
        EXPECT_TRUE(atomic(p, "atom.global.inc.u32", p->global + 1024, 0));
    }
    barrier(p);
    EXPECT_TRUE(load(p, "ld.global.u32", p->global, 16));
    EXPECT_TRUE(load(p, "ld.global.u32", p->global, 4));
    meet(p);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 50, 1));
}

PLAY_TEST(global_race, last_block_without_a_fence_is_found) {
    block(p, 0);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 5, 1));
    EXPECT_TRUE(atomic(p, "atom.global.inc.u32", p->global + 1024, 0));
    block(p, 1);
    EXPECT_TRUE(atomic(p, "atom.global.inc.u32", p->global + 1024, 0));
    EXPECT_TRUE(!load(p, "ld.global.u32", p->global, 4));
    /* A fence for the block alone does not reach others. */
    EXPECT_INT_EQ(1, simt_global_shadow_begin(p->h.global_shadow, 1));
    block(p, 0);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 6, 1));
    fence(p, "membar.cta");
    EXPECT_TRUE(atomic(p, "atom.global.inc.u32", p->global + 1024, 0));
    block(p, 1);
    EXPECT_TRUE(atomic(p, "atom.global.inc.u32", p->global + 1024, 0));
    EXPECT_TRUE(!load(p, "ld.global.u32", p->global, 4));
}

/* The writer's fence alone does not order what the same thread reads behind the counter. */
PLAY_TEST(global_race, a_reader_needs_a_fence_a_barrier_or_an_acquire) {
    static const char *const between[] = {"membar.gl", "fence.acq_rel.gpu", NULL};
    for (uint64_t n = 0; n < 5; n++) {
        EXPECT_INT_EQ(1, simt_global_shadow_begin(p->h.global_shadow, 1));
        block(p, 0);
        EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 5 + (uint32_t)n, 1));
        fence(p, "membar.gl");
        EXPECT_TRUE(atomic(p, "atom.global.inc.u32", p->global + 1024, 0));
        block(p, 1);
        EXPECT_TRUE(atomic(p, n == 3 ? "atom.acquire.gpu.global.inc.u32" : "atom.global.inc.u32",
                           p->global + 1024, 0));
        if (n < 2) {
            fence(p, between[n]);
        } else if (n == 2) {
            barrier(p);
        }
        EXPECT_INT_EQ(n < 4, load(p, "ld.global.u32", p->global, 4));
    }
    expect(p, SIMT_FAULT_GLOBAL_RACE, "reads 4 bytes");
}

PLAY_TEST(global_race, a_counter_must_be_set_before_the_launch) {
    block(p, 0);
    harness_mask(&p->h, 1);
    EXPECT_TRUE(store(p, "st.global.u32", p->global, 4, 5, 1));
    block(p, 1);
    EXPECT_TRUE(!atomic(p, "atom.global.add.u32", p->global, 0));
    expect(p, SIMT_FAULT_GLOBAL_RACE, "updates 4 bytes");
}

/* A lock by cas and exch with fences: what it guards is no race. */
PLAY_TEST(global_race, locks_with_fences) {
    const struct harness_operands cas = {.dst = {R32},
                                         .dst_count = 1,
                                         .address = R64,
                                         .src = {R32 + 2},
                                         .src_count = 1,
                                         .compare = R32 + 1};
    for (uint64_t order = 0; order < 6; order++) {
        block(p, order);
        harness_mask(&p->h, 1);
        harness_addresses(&p->h, R64, p->global + 1024, 0);
        EXPECT_TRUE(harness_run(&p->h, "atom.global.cas.b32", &cas));
        fence(p, "membar.gl");
        EXPECT_TRUE(load(p, "ld.global.u32", p->global, 0));
        EXPECT_TRUE(store(p, "st.global.u32", p->global, 0, 5 + (uint32_t)order, 0));
        fence(p, "membar.gl");
        EXPECT_TRUE(atomic(p, "atom.global.exch.b32", p->global + 1024, 0));
    }
}
