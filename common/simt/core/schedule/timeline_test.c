/* What the model of time learns from a launch: chains of waiting, machine instructions, atomics
 * that meet. */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { ELEMENTS = 4096 };

/*
 * Runs the only kernel, "k", of a body; %a0 is the address of ELEMENTS zeros of 32 bits, %r0 is 8.
 * @return what was counted; zeros when it did not run
 */
static struct simt_counters count_with(const char *body, const struct testing_launch *shape) {
    char text[8192];
    static const uint32_t zeros[ELEMENTS];
    struct launch_testing t;
    struct {
        uint64_t data;
        uint32_t eight;
    } parameters = {.eight = 8};
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_80\n.address_size 64\n"
             ".visible .entry k(.param .u64 p, .param .u32 n) {\n"
             ".reg .pred %%p<8>;\n.reg .b32 %%r<64>;\n.reg .b64 %%a<32>;\n.reg .f32 %%f<32>;\n"
             ".shared .align 16 .b8 tile[4096];\n"
             "ld.param.u64 %%a0, [p];\nld.param.u32 %%r0, [n];\n%s\nret;\n}\n",
             body);
    if (launch_testing_open_text(&t, text)) {
        parameters.data = launch_testing_upload(&t, zeros, sizeof zeros);
        struct testing_launch launch = *shape;
        launch.kernel = "k";
        launch.parameters = &parameters;
        launch.bounds_only = true;
        launch.limit = 100000;
        launch_testing_run_clean(&t, &launch);
    }
    launch_testing_close(&t);
    return t.counters;
}

static struct simt_counters count(const char *body, uint32_t blocks, uint32_t threads,
                                  int host_threads) {
    return count_with(body,
                      LAUNCH(.grid = {blocks}, .threads = {threads}, .host_threads = host_threads));
}

static uint64_t loads_in_chain(const char *body) {
    struct simt_counters counters = count(body, 1, 32, 1);
    EXPECT_INT_EQ(1, counters.followed_warps);
    return counters.chain_loads;
}

C_TEST(timeline, loads_that_need_each_other_wait) {
    EXPECT_INT_EQ(0, loads_in_chain(""));
    EXPECT_INT_EQ(1, loads_in_chain("ld.global.u32 %r1, [%a0];\n"
                                    "st.global.u32 [%a0], %r1;\n"));
    EXPECT_INT_EQ(3, loads_in_chain("ld.global.u64 %a1, [%a0];\nadd.u64 %a2, %a0, %a1;\n"
                                    "ld.global.u64 %a3, [%a2];\nadd.u64 %a4, %a0, %a3;\n"
                                    "ld.global.u32 %r1, [%a4];\nst.global.u32 [%a0], %r1;\n"));
}

C_TEST(timeline, loads_that_do_not_wait_together) {
    EXPECT_INT_EQ(1, loads_in_chain("ld.global.u32 %r1, [%a0];\nld.global.u32 %r2, [%a0+4];\n"
                                    "ld.global.u32 %r3, [%a0+8];\nadd.u32 %r1, %r1, %r2;\n"
                                    "add.u32 %r1, %r1, %r3;\nst.global.u32 [%a0], %r1;\n"));
}

/* What one turn of a loop waits for is there before the next one begins. */
C_TEST(timeline, turns_of_a_loop_follow_each_other) {
    EXPECT_INT_EQ(8, loads_in_chain("mov.u32 %r1, 0;\nmov.u32 %r3, 0;\n"
                                    "loop:\nld.global.u32 %r2, [%a0];\nadd.u32 %r3, %r3, %r2;\n"
                                    "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %r0;\n"
                                    "@%p1 bra loop;\nst.global.u32 [%a0], %r3;\n"));
}

/* A load whose result is needed much later costs nothing by then. */
C_TEST(timeline, early_loads_are_hidden) {
    static const char late[] = "mov.u32 %r1, 0;\n"
                               "loop:\n"
                               "sqrt.rn.f32 %f1, %f1;\nsqrt.rn.f32 %f1, %f1;\n"
                               "sqrt.rn.f32 %f1, %f1;\nsqrt.rn.f32 %f1, %f1;\n"
                               "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %r0;\n"
                               "@%p1 bra loop;\n";
    char body[2048];
    snprintf(body, sizeof body, "ld.global.u32 %%r5, [%%a0];\n%sst.global.u32 [%%a0], %%r5;\n",
             late);
    EXPECT_INT_EQ(0, loads_in_chain(body));
    snprintf(body, sizeof body, "%sld.global.u32 %%r5, [%%a0];\nst.global.u32 [%%a0], %%r5;\n",
             late);
    EXPECT_INT_EQ(1, loads_in_chain(body));
}

/* A barrier keeps what is behind it behind; stores before it wait for their values. */
C_TEST(timeline, barriers_part_loads) {
    static const char format[] = "mov.u64 %%a1, tile;\ncvta.shared.u64 %%a1, %%a1;\n"
                                 "ld.global.u32 %%r1, [%%a0];\nst.shared.u32 [tile], %%r1;\n"
                                 "%s"
                                 "ld.global.u32 %%r2, [%%a0+4];\nst.shared.u32 [tile+4], %%r2;\n";
    char body[1024];
    snprintf(body, sizeof body, format, "");
    EXPECT_INT_EQ(1, loads_in_chain(body));
    snprintf(body, sizeof body, format, "bar.sync 0;\n");
    EXPECT_INT_EQ(2, loads_in_chain(body));
}

/* With one group in flight a wait for all but one is over at once. */
C_TEST(timeline, asynchronous_copies_are_waited_for_by_group) {
    static const char format[] = "mov.u32 %%r1, tile;\n"
                                 "cp.async.ca.shared.global [%%r1], [%%a0], 16;\n"
                                 "cp.async.commit_group;\n"
                                 "cp.async.wait_group %d;\n"
                                 "bar.sync 0;\nld.shared.u32 %%r2, [tile];\n"
                                 "st.global.u32 [%%a0+64], %%r2;\n";
    char body[1024];
    snprintf(body, sizeof body, format, 0);
    EXPECT_INT_EQ(1, loads_in_chain(body));
    snprintf(body, sizeof body, format, 1);
    EXPECT_INT_EQ(0, loads_in_chain(body));
}

C_TEST(timeline, arithmetic_takes_its_time) {
    uint64_t none = count("", 1, 32, 1).chain_cycles;
    uint64_t chain = count("add.u32 %r1, %r0, 1;\nadd.u32 %r1, %r1, 1;\nadd.u32 %r1, %r1, 1;\n"
                           "add.u32 %r1, %r1, 1;\nst.global.u32 [%a0], %r1;\n",
                           1, 32, 1)
                         .chain_cycles;
    uint64_t wide = count("add.u32 %r1, %r0, 1;\nadd.u32 %r2, %r0, 1;\nadd.u32 %r3, %r0, 1;\n"
                          "add.u32 %r4, %r0, 1;\nst.global.u32 [%a0], %r4;\n",
                          1, 32, 1)
                        .chain_cycles;
    EXPECT_INT_EQ(3 * 4, chain - wide); /* three more that wait, four cycles each */
    EXPECT_TRUE(wide > none);
}

/* A loop of %ctaid.x % 8 turns: blocks differ. */
static const char uneven[] = "mov.u32 %r1, %ctaid.x;\nand.b32 %r1, %r1, 7;\nmov.u32 %r2, 0;\n"
                             "loop:\nadd.u32 %r2, %r2, 1;\nsetp.le.u32 %p1, %r2, %r1;\n"
                             "@%p1 bra loop;\nst.global.u32 [%a0], %r2;\n";

static struct simt_counters count_seeded(const char *body, uint64_t seed) {
    return count_with(body, LAUNCH(.grid = {1000}, .threads = {128}, .seed = seed));
}

/* Another seed follows other blocks, as many; where blocks are alike that makes no difference. */
C_TEST(timeline, seed_draws_blocks) {
    static const char even[] = "ld.global.u32 %r1, [%a0];\nadd.u32 %r1, %r1, 1;\n";
    struct simt_counters first = count_seeded(uneven, 1);
    bool differs = false;
    for (uint64_t seed = 2; seed < 8; seed++) {
        struct simt_counters other = count_seeded(uneven, seed);
        EXPECT_INT_EQ(first.followed_warps, other.followed_warps);
        differs = differs || other.chain_cycles != first.chain_cycles;
        EXPECT_INT_EQ(count_seeded(even, 1).chain_cycles, count_seeded(even, seed).chain_cycles);
    }
    EXPECT_TRUE(differs);
    EXPECT_INT_EQ(first.chain_cycles, count_seeded(uneven, 1).chain_cycles);
}

/* What a launch's blocks cost, with one host thread or some. */
static void expect_costs(int host_threads, bool cooperative, struct simt_block_costs *costs) {
    struct simt_counters sum = {0};
    struct simt_counters all =
        count_with(uneven, LAUNCH(.grid = {96}, .threads = {64}, .host_threads = host_threads,
                                  .cooperative = cooperative, .costs = costs));
    ASSERT_TRUE(costs->class_count > 4 && costs->span_count >= 90);
    for (size_t n = 0; n < costs->class_count; n++) {
        simt_counters_add(&sum, &costs->classes[n].sum);
    }
    EXPECT_INT_EQ(all.machine_instructions, sum.machine_instructions);
    EXPECT_INT_EQ(all.global_store_sectors, sum.global_store_sectors);
    EXPECT_INT_EQ(all.longest_warps, sum.longest_warps);
    EXPECT_INT_EQ(all.machine_instructions, 2 * all.longest_warps); /* two equal warps a block */
    EXPECT_INT_EQ(all.followed_warps, sum.followed_warps);
}

C_TEST(timeline, blocks_have_their_own_costs) {
    struct simt_block_costs one = {0}, three = {0}, together = {0};
    expect_costs(1, false, &one);
    expect_costs(3, false, &three);
    expect_costs(1, true, &together);
    ASSERT_TRUE(one.span_count == three.span_count && one.span_count == together.span_count);
    for (size_t n = 0; n < one.span_count; n++) {
        EXPECT_INT_EQ(one.spans[n].of, three.spans[n].of);
        EXPECT_INT_EQ(one.spans[n].of, together.spans[n].of);
    }
    simt_block_costs_free(&one);
    simt_block_costs_free(&three);
    simt_block_costs_free(&together);
}

/* An idle warp is not the longest: that of the other is what the block takes. */
C_TEST(timeline, longest_warp_is_known) {
    static const char half[] = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra end;\n"
                               "sqrt.rn.f32 %f1, %f1;\nsqrt.rn.f32 %f1, %f1;\n"
                               "sqrt.rn.f32 %f1, %f1;\nsqrt.rn.f32 %f1, %f1;\nend:\n";
    struct simt_counters c = count(half, 10, 64, 1);
    EXPECT_TRUE(10 * c.longest_warps > 6 * c.machine_instructions);
    EXPECT_TRUE(c.longest_warps < c.machine_instructions);
}

/* Which warps are followed depends on the shape of the launch and the seed alone. */
C_TEST(timeline, does_not_depend_on_host_threads) {
    static const char body[] = "mov.u32 %r1, %tid.x;\nmul.wide.u32 %a1, %r1, 4;\n"
                               "add.u64 %a1, %a1, %a0;\nld.global.u32 %r2, [%a1];\n"
                               "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra end;\n"
                               "ld.global.u32 %r3, [%a1];\nadd.u32 %r2, %r2, %r3;\n"
                               "sqrt.rn.f32 %f1, %f1;\nend:\nadd.u32 %r2, %r2, 1;\n";
    struct simt_counters one = count(body, 2000, 128, 1);
    struct simt_counters four = count(body, 2000, 128, 4);
    EXPECT_TRUE(one.followed_warps > 16 && one.followed_warps <= 64);
    EXPECT_INT_EQ(one.followed_warps, four.followed_warps);
    EXPECT_INT_EQ(one.chain_cycles, four.chain_cycles);
    EXPECT_INT_EQ(one.chain_loads, four.chain_loads);
    EXPECT_INT_EQ(one.machine_instructions, four.machine_instructions);
}

C_TEST(cost, moves_vanish_and_divisions_grow) {
    uint64_t none = count("", 1, 32, 1).machine_instructions;
    EXPECT_INT_EQ(none,
                  count("mov.u32 %r1, %r0;\nmov.u32 %r2, 5;\ncvta.global.u64 %a1, %a0;\n", 1, 32, 1)
                      .machine_instructions);
    EXPECT_INT_EQ(
        none + 2,
        count("add.u32 %r1, %r0, 1;\nmov.u32 %r2, %tid.x;\n", 1, 32, 1).machine_instructions);
    EXPECT_TRUE(count("div.u32 %r1, %r0, 3;\n", 1, 32, 1).machine_instructions >= none + 10);
    EXPECT_TRUE(count("div.u64 %a1, %a0, 3;\n", 1, 32, 1).machine_instructions >= none + 40);
}

C_TEST(cost, atomics_meet_on_lines) {
    static const char one_line[] = "mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 31;\n"
                                   "mul.wide.u32 %a1, %r1, 4;\nadd.u64 %a1, %a1, %a0;\n"
                                   "red.global.add.u32 [%a1], 1;\n";
    static const char many_lines[] = "mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 31;\n"
                                     "mul.wide.u32 %a1, %r1, 128;\nadd.u64 %a1, %a1, %a0;\n"
                                     "red.global.add.u32 [%a1], 1;\n";
    EXPECT_INT_EQ(0, count("", 4, 64, 1).atomic_hottest);
    EXPECT_INT_EQ(4 * 64, count(one_line, 4, 64, 1).atomic_hottest);
    EXPECT_INT_EQ(4 * 64, count(one_line, 4, 64, 3).atomic_hottest);
    EXPECT_INT_EQ(4 * 2, count(many_lines, 4, 64, 2).atomic_hottest);
    EXPECT_INT_EQ(0, count("atom.shared.add.u32 %r1, [tile], 1;\n", 4, 64, 1).atomic_hottest);
}

/* As loads and stores do: atomics are no cheaper way to move words. */
C_TEST(cost, atomics_take_shared_memory) {
    static const char side_by_side[] = "mov.u32 %r1, %laneid;\nmul.lo.u32 %r1, %r1, 4;\n"
                                       "mov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\n"
                                       "atom.shared.exch.b32 %r3, [%r1], 1;\n";
    static const char of_two_words[] = "mov.u32 %r1, %laneid;\nand.b32 %r1, %r1, 1;\n"
                                       "mul.lo.u32 %r1, %r1, 4;\n"
                                       "mov.u32 %r2, tile;\nadd.u32 %r1, %r1, %r2;\n"
                                       "red.shared.add.u32 [%r1], 1;\n";
    struct simt_counters each = count(side_by_side, 4, 64, 1), two = count(of_two_words, 4, 64, 1);
    EXPECT_INT_EQ(4 * 2, each.atomic_serial);
    EXPECT_INT_EQ(4 * 2 * (1 + 30), two.atomic_serial);
}

/* How often a warp asks an mbarrier is chance. */
C_TEST(cost, questions_at_mbarriers_take_none) {
    static const char asks[] = "mov.u32 %r2, tile;\n"
                               "mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0;\n";
    struct simt_counters asked = count(asks, 4, 64, 1);
    EXPECT_INT_EQ(4 * 2, asked.atomic_requests);
    EXPECT_INT_EQ(0, asked.atomic_serial);
}
