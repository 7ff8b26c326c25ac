/* Where blocks go, and when the last one ends. */
#include "common/simt/runtime/gpu/placement.h"

#include "common/testing/testing.h"

enum { PROCESSORS = 132, MOST_SPANS = 600 };

/* A block of one warp that needs `issue` cycles of one unit, and waits for `wait`. */
static struct simt_need need_of(double issue, double wait) {
    struct simt_need need = {.warps = 1, .together = 1};
    need.demand[SIMT_STATION_ISSUE] = issue;
    need.wait[SIMT_LATENCY_CHAIN] = wait;
    return need;
}

static struct simt_placement place(const struct simt_need *needs,
                                   const struct simt_block_span *spans, size_t count,
                                   uint32_t slots) {
    const struct simt_blocks blocks = {.needs = needs,
                                       .spans = spans,
                                       .span_count = count,
                                       .processors = PROCESSORS,
                                       .slots = slots};
    struct simt_placement placement;
    if (!simt_place(&placement, &blocks, true)) {
        TEST_FAIL("no placement");
    }
    return placement;
}

static double end_of(const struct simt_need *needs, const struct simt_block_span *spans,
                     size_t count, uint32_t slots) {
    struct simt_placement placement = place(needs, spans, count, slots);
    double end = simt_placement_last(&placement)->end;
    simt_placement_free(&placement);
    return end;
}

static uint64_t blocks_in(const struct simt_placement *placement) {
    uint64_t blocks = 0;
    for (size_t n = 0; n < placement->count; n++) {
        blocks += placement->lanes[n].blocks * placement->lanes[n].processors;
    }
    return blocks;
}

/* Full waves of equal blocks are one lane; a block more makes two. */
C_TEST(placement, equal_blocks_run_in_waves) {
    const struct simt_need need = need_of(100, 1000);
    struct simt_block_span span = {.blocks = PROCESSORS * 4 * 3};
    struct simt_placement placement = place(&need, &span, 1, 4);
    ASSERT_TRUE(placement.count == 1 && placement.lanes[0].period_count == 3);
    EXPECT_INT_EQ(12, placement.lanes[0].blocks);
    EXPECT_NEAR(3 * simt_batch_cycles(&need, 4), placement.lanes[0].end, 1e-3);
    simt_placement_free(&placement);
    span.blocks++;
    placement = place(&need, &span, 1, 4);
    EXPECT_INT_EQ(2, placement.count);
    EXPECT_INT_EQ(span.blocks, blocks_in(&placement));
    EXPECT_INT_EQ(1, simt_placement_last(&placement)->processors);
    EXPECT_NEAR(3 * simt_batch_cycles(&need, 4) + simt_batch_cycles(&need, 1),
                simt_placement_last(&placement)->end, 1e-3);
    simt_placement_free(&placement);
}

C_TEST(placement, first_blocks_go_round) {
    const struct simt_need need = need_of(100, 1000);
    struct simt_block_span span = {.blocks = 200};
    struct simt_placement placement = place(&need, &span, 1, 8);
    ASSERT_TRUE(placement.count == 2);
    EXPECT_INT_EQ(68, placement.lanes[0].processors); /* the lowest numbers have two */
    EXPECT_INT_EQ(2, placement.lanes[0].blocks);
    EXPECT_INT_EQ(1, placement.lanes[1].blocks);
    simt_placement_free(&placement);
    span.blocks = 5;
    placement = place(&need, &span, 1, 8);
    ASSERT_TRUE(placement.count == 1); /* the others have none */
    EXPECT_INT_EQ(5, placement.lanes[0].processors);
    simt_placement_free(&placement);
}

/* However many idle blocks stand beside it, a busy block takes its time. */
C_TEST(placement, idle_blocks_hide_nothing) {
    const struct simt_need needs[] = {need_of(1e5, 1e5), need_of(1, 10)};
    const struct simt_block_span alone = {.blocks = 64};
    const struct simt_block_span beside[] = {{.blocks = 64, .of = 0}, {.blocks = 20000, .of = 1}};
    double least = end_of(needs, &alone, 1, 16);
    double end = end_of(needs, beside, 2, 16);
    EXPECT_TRUE(end >= least && end < 1.05 * least);
}

/* Blocks that are as far apart as there are multiprocessors meet on one. */
C_TEST(placement, work_may_be_on_one_multiprocessor) {
    struct simt_block_span spans[MOST_SPANS];
    const struct simt_need needs[] = {need_of(1e4, 100), need_of(1, 10)};
    for (size_t n = 0; n < 16; n++) {
        spans[n] = (struct simt_block_span){.blocks = n % 2 == 0 ? 1 : PROCESSORS - 1,
                                            .of = (uint32_t)(n % 2)};
    }
    double end = end_of(needs, spans, 16, 8);
    EXPECT_TRUE(end > 8e4 && end < 8.5e4);
}

/* The same grid where eight multiprocessors are served ahead, as on the H100 that
 * calibration/placement_h100.jsonl is from: one multiprocessor has one of the blocks with work, one
 * three and one four. */
C_TEST(placement, served_ahead_of_their_turn) {
    struct simt_block_span spans[MOST_SPANS];
    const struct simt_need needs[] = {need_of(1e4, 100), need_of(1, 10)};
    uint64_t found[5] = {0}, most = 0;
    for (size_t n = 0; n < 16; n++) {
        spans[n] = (struct simt_block_span){.blocks = n % 2 == 0 ? 1 : PROCESSORS - 1,
                                            .of = (uint32_t)(n % 2)};
    }
    const struct simt_blocks blocks = {.needs = needs,
                                       .spans = spans,
                                       .span_count = 16,
                                       .processors = PROCESSORS,
                                       .ahead = 8,
                                       .slots = 8};
    struct simt_placement placement;
    ASSERT_TRUE(simt_place(&placement, &blocks, true));
    for (size_t n = 0; n < placement.count; n++) {
        const struct simt_lane *lane = &placement.lanes[n];
        uint64_t busy = (uint64_t)(lane->work[SIMT_STATION_ISSUE] / 1e4 + 0.5);
        ASSERT_TRUE(busy < 5);
        found[busy] += lane->processors;
        most = lane->blocks > most ? lane->blocks : most;
    }
    EXPECT_INT_EQ(PROCESSORS * 8, blocks_in(&placement));
    EXPECT_INT_EQ(8, most);
    EXPECT_INT_EQ(1, found[1]);
    EXPECT_INT_EQ(0, found[2]);
    EXPECT_INT_EQ(1, found[3]);
    EXPECT_INT_EQ(1, found[4]);
    simt_placement_free(&placement);
}

/* Of 300 blocks two rounds are whole: block 264 comes in turn, to the multiprocessor of block 0. */
C_TEST(placement, the_rest_of_a_grid_comes_in_turn) {
    const struct simt_need needs[] = {need_of(1e4, 100), need_of(1, 10)};
    const struct simt_block_span spans[] = {{.blocks = 1, .of = 0},
                                            {.blocks = 2 * PROCESSORS - 1, .of = 1},
                                            {.blocks = 1, .of = 0},
                                            {.blocks = 35, .of = 1}};
    const struct simt_blocks blocks = {.needs = needs,
                                       .spans = spans,
                                       .span_count = 4,
                                       .processors = PROCESSORS,
                                       .ahead = 8,
                                       .slots = 8};
    struct simt_placement placement;
    ASSERT_TRUE(simt_place(&placement, &blocks, false));
    EXPECT_INT_EQ(300, blocks_in(&placement));
    EXPECT_NEAR(2e4, simt_placement_last(&placement)->work[SIMT_STATION_ISSUE], 100);
    EXPECT_INT_EQ(1, simt_placement_last(&placement)->processors);
    simt_placement_free(&placement);
}

/* Whom the order serves first changes nothing where blocks are alike. */
C_TEST(placement, equal_blocks_take_as_long_in_any_order) {
    const struct simt_need need = need_of(100, 1000);
    for (uint32_t blocks = 1; blocks < 20 * PROCESSORS; blocks += 61) {
        const struct simt_block_span span = {.blocks = blocks};
        struct simt_blocks plain = {
            .needs = &need, .spans = &span, .span_count = 1, .processors = PROCESSORS, .slots = 8};
        struct simt_blocks ahead = plain;
        struct simt_placement one, other;
        ahead.ahead = 8;
        ASSERT_TRUE(simt_place(&one, &plain, false) && simt_place(&other, &ahead, false));
        EXPECT_INT_EQ(blocks, blocks_in(&other));
        EXPECT_NEAR(simt_placement_last(&one)->end, simt_placement_last(&other)->end, 1e-3);
        simt_placement_free(&one);
        simt_placement_free(&other);
    }
}

/* A block that lasts as long as the rest costs nothing at the beginning, and its length at the
 * end. */
C_TEST(placement, long_blocks_cost_where_they_come_last) {
    const struct simt_need needs[] = {need_of(10, 1000), need_of(10, 30000)};
    const struct simt_block_span first[] = {{.blocks = 1, .of = 1},
                                            {.blocks = PROCESSORS * 40 - 1, .of = 0}};
    const struct simt_block_span last[] = {{.blocks = PROCESSORS * 40 - 1, .of = 0},
                                           {.blocks = 1, .of = 1}};
    double even =
        end_of(needs, (const struct simt_block_span[]){{.blocks = PROCESSORS * 40}}, 1, 1);
    double early = end_of(needs, first, 2, 1), late = end_of(needs, last, 2, 1);
    EXPECT_TRUE(early < 1.05 * even);
    EXPECT_TRUE(late > even + 28000 && late < even + 31000);
}

C_TEST(placement, growing_blocks_end_later_than_shrinking_ones) {
    struct simt_need needs[2 * PROCESSORS];
    struct simt_block_span up[2 * PROCESSORS], down[2 * PROCESSORS];
    for (uint32_t n = 0; n < 2 * PROCESSORS; n++) {
        needs[n] = need_of(10, 1000 * (n + 1));
        up[n] = (struct simt_block_span){.blocks = 1, .of = n};
        down[n] = (struct simt_block_span){.blocks = 1, .of = 2 * PROCESSORS - 1 - n};
    }
    double growing = end_of(needs, up, 2 * PROCESSORS, 1);
    double shrinking = end_of(needs, down, 2 * PROCESSORS, 1);
    EXPECT_NEAR(1000 * (PROCESSORS + 2 * PROCESSORS), growing, 0.01 * growing);
    EXPECT_NEAR(1000 * (2 * PROCESSORS + 1), shrinking, 0.01 * shrinking);
}

/* Blocks of two kinds use other units: together they take hardly longer than one kind alone. */
C_TEST(placement, kinds_share_a_multiprocessor) {
    struct simt_need needs[] = {need_of(1000, 10), need_of(0, 10)};
    needs[1].demand[SIMT_STATION_MEMORY] = 1000;
    const struct simt_block_span one = {.blocks = PROCESSORS * 8};
    const struct simt_block_span both[] = {{.blocks = PROCESSORS * 4, .of = 0},
                                           {.blocks = PROCESSORS * 4, .of = 1}};
    double mixed = end_of(needs, both, 2, 8);
    EXPECT_TRUE(mixed < 0.7 * end_of(needs, &one, 1, 8));
    EXPECT_TRUE(mixed > 0.45 * end_of(needs, &one, 1, 8));
}

/* Every block has been somewhere, and its work was done there. */
C_TEST(placement, work_is_kept) {
    struct simt_block_span spans[MOST_SPANS];
    struct simt_need needs[7];
    double work = 0, done = 0;
    uint64_t blocks = 0;
    for (uint32_t n = 0; n < 7; n++) {
        needs[n] = need_of(100 << n, 1000);
    }
    for (uint32_t n = 0; n < MOST_SPANS; n++) {
        spans[n] = (struct simt_block_span){.blocks = n * n % 31 + 1, .of = n * 5 % 7};
        work += (double)spans[n].blocks * needs[spans[n].of].demand[SIMT_STATION_ISSUE];
        blocks += spans[n].blocks;
    }
    struct simt_placement placement = place(needs, spans, MOST_SPANS, 6);
    for (size_t n = 0; n < placement.count; n++) {
        const struct simt_lane *lane = &placement.lanes[n];
        done += lane->work[SIMT_STATION_ISSUE] * lane->processors;
        EXPECT_TRUE(lane->period_count > 0);
        EXPECT_NEAR(lane->end, lane->periods[lane->period_count - 1].end, 1e-6);
    }
    EXPECT_NEAR(work, done, 1e-5 * work);
    EXPECT_INT_EQ(blocks, blocks_in(&placement));
    simt_placement_free(&placement);
}
