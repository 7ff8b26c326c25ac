/* What blocks cost: classes, their order, and that nothing depends on who adds which block. */
#include "common/simt/memory/block_costs.h"

#include "common/testing/testing.h"

static struct simt_counters block_of(uint64_t machine) {
    struct simt_counters c = {.machine_instructions = machine, .longest_warps = machine};
    return c;
}

static uint64_t blocks_of(const struct simt_block_costs *costs) {
    uint64_t sum = 0;
    for (size_t n = 0; n < costs->class_count; n++) {
        sum += costs->classes[n].blocks;
    }
    return sum;
}

static void note(struct simt_block_costs *costs, uint64_t order, uint64_t machine) {
    struct simt_counters own = block_of(machine);
    ASSERT_TRUE(simt_block_costs_note(costs, order, &own));
}

C_TEST(block_costs, equal_blocks_are_one_class_and_one_span) {
    struct simt_block_costs costs;
    ASSERT_TRUE(simt_block_costs_begin(&costs, 1000));
    for (uint64_t b = 0; b < 1000; b++) {
        note(&costs, b, 500);
    }
    simt_block_costs_sort(&costs);
    ASSERT_TRUE(costs.class_count == 1 && costs.span_count == 1);
    EXPECT_INT_EQ(1000, costs.spans[0].blocks);
    EXPECT_INT_EQ(500000, costs.classes[0].sum.machine_instructions);
    simt_block_costs_free(&costs);
    EXPECT_TRUE(costs.classes == NULL && costs.spans == NULL);
}

/* Two that differ by more than a class is wide, and two that differ in kind alone. */
C_TEST(block_costs, what_differs_is_another_class) {
    struct simt_block_costs costs;
    struct simt_counters memory = {.l2_sectors = 1250}; /* 5000, like 1000 instructions */
    ASSERT_TRUE(simt_block_costs_begin(&costs, 4));
    note(&costs, 0, 1000);
    note(&costs, 1, 1100);
    ASSERT_TRUE(simt_block_costs_note(&costs, 2, &memory));
    note(&costs, 3, 1000);
    EXPECT_INT_EQ(3, costs.class_count);
    EXPECT_INT_EQ(4, blocks_of(&costs));
    simt_block_costs_sort(&costs);
    ASSERT_TRUE(costs.span_count == 4);
    EXPECT_INT_EQ(costs.spans[0].of, costs.spans[3].of);
    EXPECT_TRUE(costs.spans[0].of != costs.spans[1].of && costs.spans[1].of != costs.spans[2].of);
    simt_block_costs_free(&costs);
}

/* As many instructions, some of them loads: what waits is not hidden among what computes. */
C_TEST(block_costs, loads_make_another_class) {
    struct simt_block_costs costs;
    struct simt_counters loads = block_of(100000);
    ASSERT_TRUE(simt_block_costs_begin(&costs, 3));
    note(&costs, 0, 100000);
    loads.global_load_requests = 1000;
    ASSERT_TRUE(simt_block_costs_note(&costs, 1, &loads));
    EXPECT_INT_EQ(2, costs.class_count);
    loads.global_load_requests = 10000;
    ASSERT_TRUE(simt_block_costs_note(&costs, 2, &loads));
    EXPECT_INT_EQ(3, costs.class_count);
    simt_block_costs_free(&costs);
}

/* Blocks n = 0, 7, 14 ... mod 1000 have 100 n instructions; `members` host threads take ten at a
 * time. */
static void collect(struct simt_block_costs *all, uint64_t blocks, uint64_t members) {
    ASSERT_TRUE(simt_block_costs_begin(all, blocks));
    for (uint64_t m = 0; m < members; m++) {
        struct simt_block_costs own;
        ASSERT_TRUE(simt_block_costs_begin(&own, blocks));
        for (uint64_t b = 0; b < blocks; b++) {
            if (b / 10 % members == (m + 1) % members) {
                note(&own, b, 100 * (7 * b % 1000));
            }
        }
        ASSERT_TRUE(simt_block_costs_add(all, &own));
        simt_block_costs_free(&own);
    }
    simt_block_costs_sort(all);
}

static void expect_same(const struct simt_block_costs *a, const struct simt_block_costs *b) {
    ASSERT_TRUE(a->class_count == b->class_count && a->span_count == b->span_count);
    for (size_t n = 0; n < a->class_count; n++) {
        EXPECT_INT_EQ(a->classes[n].key, b->classes[n].key);
        EXPECT_INT_EQ(a->classes[n].sum.machine_instructions,
                      b->classes[n].sum.machine_instructions);
    }
    for (size_t n = 0; n < a->span_count; n++) {
        EXPECT_INT_EQ(a->spans[n].blocks, b->spans[n].blocks);
        EXPECT_INT_EQ(a->spans[n].of, b->spans[n].of);
    }
}

C_TEST(block_costs, do_not_depend_on_who_ran_which_block) {
    const uint64_t grids[] = {1, 2000, 3 * SIMT_ORDERED_BLOCKS};
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++) {
        struct simt_block_costs one, three;
        collect(&one, grids[g], 1);
        collect(&three, grids[g], 3);
        expect_same(&one, &three);
        EXPECT_INT_EQ(grids[g], blocks_of(&one));
        simt_block_costs_free(&one);
        simt_block_costs_free(&three);
    }
}

/* Of a large grid each window of blocks is kept by class; of alternating ones half as many spans.
 */
C_TEST(block_costs, take_bounded_memory) {
    enum { BLOCKS = 4 * SIMT_ORDERED_BLOCKS };
    struct simt_block_costs costs;
    ASSERT_TRUE(simt_block_costs_begin(&costs, BLOCKS));
    EXPECT_INT_EQ(4, costs.window);
    for (uint64_t b = 0; b < BLOCKS; b++) {
        note(&costs, b, b % 2 == 0 ? 100 : 10000);
    }
    EXPECT_TRUE(costs.span_count <= 2 * SIMT_ORDERED_BLOCKS);
    EXPECT_INT_EQ(BLOCKS, blocks_of(&costs));
    simt_block_costs_free(&costs);
}

C_TEST(block_costs, blocks_without_any_cost_are_counted) {
    struct simt_block_costs costs;
    struct simt_counters none = {0};
    ASSERT_TRUE(simt_block_costs_begin(&costs, 1));
    ASSERT_TRUE(simt_block_costs_note(&costs, 0, &none));
    EXPECT_INT_EQ(1, blocks_of(&costs));
    note(&costs, 0, UINT64_MAX / 8); /* the longest there can be */
    EXPECT_INT_EQ(2, costs.class_count);
    simt_block_costs_free(&costs);
}
