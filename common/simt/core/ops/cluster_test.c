/* Clusters of several blocks: what they compute, and what is found of what is wrong with them. */
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/simt/tensor_map/tensor_map.h"
#include "common/testing/testing.h"

enum { THREADS = 64, WORDS = 64 * 64 };

struct out_and_number {
    uint64_t out;
    int number;
};

static uint64_t new_out(struct launch_testing *t) {
    return launch_testing_upload(t, NULL, WORDS * sizeof(int));
}

static void expect_fault(const struct launch_testing *t, enum simt_fault_kind kind,
                         const char *words) {
    if (t->fault.kind != kind || strstr(t->fault.text, words) == NULL) {
        TEST_FAIL("wanted %s: %s, found %s: %s", simt_fault_name(kind), words,
                  simt_fault_name(t->fault.kind), t->fault.text);
    }
}

/* Runs a kernel of two blocks, or more, and expects a fault. */
static void expect_faulty(struct launch_testing *t, const char *kernel, uint32_t blocks, int number,
                          enum simt_fault_kind kind, const char *words) {
    const struct out_and_number arguments = {new_out(t), number};
    bool clean =
        launch_testing_run(t, LAUNCH(.kernel = kernel, .grid = {blocks}, .threads = {THREADS},
                                     .cluster = {blocks}, .parameters = &arguments));
    if (clean) {
        TEST_FAIL("%s %d: nothing was found", kernel, number);
        return;
    }
    expect_fault(t, kind, words);
}

/* Runs a kernel that is right. @return its results, or NULL */
static const int *run(struct launch_testing *t, const char *kernel, uint32_t blocks,
                      uint32_t cluster, int number) {
    const struct out_and_number arguments = {new_out(t), number};
    bool clean =
        launch_testing_run_clean(t, LAUNCH(.kernel = kernel, .grid = {blocks}, .threads = {THREADS},
                                           .cluster = {cluster}, .parameters = &arguments));
    return clean ? launch_testing_result(t, arguments.out) : NULL;
}

LAUNCH_TEST(cluster, registers, CLUSTER_PTX) {
    enum { X = 4, Y = 6, Z = 3 };
    const uint32_t cluster[3] = {2, 3, 1};
    uint64_t out = new_out(t);
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "registers", .grid = {X, Y, Z},
                                            .cluster = {2, 3, 1}, .parameters = &out))) {
        return;
    }
    const unsigned *got = launch_testing_result(t, out);
    const uint32_t grid[3] = {X, Y, Z};
    for (uint32_t block = 0; block < X * Y * Z; block++, got += 16) {
        const uint32_t index[3] = {block % X, block / X % Y, block / X / Y};
        for (int axis = 0; axis < 3; axis++) {
            EXPECT_INT_EQ(index[axis] / cluster[axis], got[axis]);
            EXPECT_INT_EQ(grid[axis] / cluster[axis], got[3 + axis]);
            EXPECT_INT_EQ(index[axis] % cluster[axis], got[6 + axis]);
            EXPECT_INT_EQ(cluster[axis], got[9 + axis]);
        }
        EXPECT_INT_EQ(index[0] % 2 + 2 * (index[1] % 3), got[12]);
        EXPECT_INT_EQ(6, got[13]);
        EXPECT_INT_EQ(1, got[14]);
        EXPECT_INT_EQ(0, got[15]);
    }
}

static void check_histogram(struct launch_testing *t, uint32_t cluster, int host_threads) {
    enum { COUNT = 2000, BLOCKS = 16 };
    unsigned in[COUNT], wanted[64 * BLOCKS] = {0};
    struct rng rng = rng_create(cluster);
    for (int n = 0; n < COUNT; n++) {
        in[n] = (unsigned)rng_u64(&rng);
        wanted[in[n] % (64 * cluster)]++;
    }
    struct {
        uint64_t in, out;
        int count;
    } arguments = {launch_testing_upload(t, in, sizeof in), new_out(t), COUNT};
    if (!launch_testing_run_clean(t,
                                  LAUNCH(.kernel = "histogram", .grid = {BLOCKS}, .threads = {96},
                                         .cluster = {cluster}, .shared = 256,
                                         .parameters = &arguments, .host_threads = host_threads))) {
        return;
    }
    const unsigned *got = launch_testing_result(t, arguments.out);
    for (uint32_t n = 0; n < 64 * BLOCKS; n++) {
        EXPECT_INT_EQ(wanted[n % (64 * cluster)], got[n]);
    }
}

LAUNCH_TEST(cluster, a_histogram_in_all_blocks, CLUSTER_PTX) {
    for (uint32_t cluster = 1; cluster <= 16; cluster *= 2) {
        check_histogram(t, cluster, 1);
    }
    check_histogram(t, 4, 3);
}

LAUNCH_TEST(cluster, a_ring, CLUSTER_PTX) {
    enum { BLOCKS = 6, CLUSTER = 3 };
    const int *got = run(t, "ring", BLOCKS, CLUSTER, 0);
    for (int n = 0; got != NULL && n < 64 * BLOCKS; n++) {
        int block = n / 64, thread = n % 64, first = block / CLUSTER * CLUSTER;
        int before = first + (block - first + CLUSTER - 1) % CLUSTER;
        EXPECT_INT_EQ(100 * before + thread + 1000 + 100 * before + 63 - thread, got[n]);
    }
    expect_faulty(
        t, "ring", CLUSTER, 1, SIMT_FAULT_SHARED_RACE,
        "of the shared memory of block (0,0,0) that thread (63,0,0) of block (0,0,0) wrote "
        "at ");
    expect_faulty(t, "ring", CLUSTER, 2, SIMT_FAULT_SHARED_RACE,
                  "of shared memory that thread (0,0,0) of block (2,0,0) wrote at ");
}

LAUNCH_TEST(cluster, barriers_in_two_halves, CLUSTER_PTX) {
    const int *got = run(t, "split_barrier", 4, 2, 0);
    for (int n = 0; got != NULL && n < 256; n++) {
        int thread = n % 64, sum = thread % 3 == 0 ? thread * (thread - 1) / 2 : 0;
        EXPECT_INT_EQ(sum + 7 * thread + (n / 64 % 2 == 0), got[n]);
    }
    got = run(t, "fewer_and_fewer", 8, 8, 0);
    for (int n = 0; got != NULL && n < 8; n++) {
        EXPECT_INT_EQ(n, got[n]);
    }
}

LAUNCH_TEST(cluster, races_of_two_blocks, CLUSTER_PTX) {
    expect_faulty(
        t, "relaxed", 2, 0, SIMT_FAULT_SHARED_RACE,
        "of the shared memory of block (1,0,0) that thread (0,0,0) of block (1,0,0) wrote");
    EXPECT_TRUE(t->fault.other.line > 0);
    expect_faulty(t, "two_writers", 3, 0, SIMT_FAULT_SHARED_RACE,
                  "of the shared memory of block (2,0,0) that thread");
}

LAUNCH_TEST(cluster, a_block_returns_too_early, CLUSTER_PTX) {
    expect_faulty(t, "late_reader", 2, 0, SIMT_FAULT_FREED, "all of whose threads have returned");
    expect_faulty(
        t, "late_writer", 2, 0, SIMT_FAULT_SHARED_RACE,
        "returns as the last of its block, but thread (0,0,0) of block (0,0,0) wrote at ");
    expect_faulty(t, "late_writer", 2, 2000, SIMT_FAULT_FREED,
                  "all of whose threads have returned");
    expect_faulty(t, "pass_on", 2, 2, SIMT_FAULT_FREED, "without having waited for them");
}

LAUNCH_TEST(cluster, addresses_that_are_none, CLUSTER_PTX) {
    expect_faulty(t, "no_such_block", 2, 0, SIMT_FAULT_OUT_OF_BOUNDS,
                  "block 2 of its cluster, which has 2 blocks");
    uint64_t out = new_out(t);
    EXPECT_TRUE(!launch_testing_run(t, LAUNCH(.kernel = "beyond", .grid = {2}, .threads = {32},
                                              .cluster = {2}, .shared = 128, .parameters = &out)));
    expect_fault(t, SIMT_FAULT_OUT_OF_BOUNDS, "past the end of block (1,0,0)'s 128 bytes");
    expect_faulty(t, "unwritten", 2, 0, SIMT_FAULT_UNINITIALISED, "block (1,0,0)");
}

LAUNCH_TEST(cluster, barriers_out_of_turn, CLUSTER_PTX) {
    static const char *const wanted[] = {"again, without having waited",
                                         "at which it has not arrived",
                                         "threads that wait elsewhere"};
    for (int fault = 1; fault <= 3; fault++) {
        EXPECT_TRUE(
            !launch_testing_run(t, LAUNCH(.kernel = "barriers", .grid = {2}, .threads = {THREADS},
                                          .cluster = {2}, .parameters = &fault)));
        expect_fault(t, SIMT_FAULT_BARRIER, wanted[fault - 1]);
    }
}

struct hand_over {
    uint64_t out;
    int steps, fault;
};

LAUNCH_TEST(cluster, mbarriers_of_other_blocks, CLUSTER_PTX) {
    enum { STEPS = 7 };
    for (int fault = 0; fault <= 3; fault++) {
        const struct hand_over arguments = {new_out(t), STEPS, fault};
        const struct testing_launch *launch =
            LAUNCH(.kernel = "hand_over", .grid = {2}, .threads = {THREADS}, .cluster = {2},
                   .parameters = &arguments);
        if (fault > 0) {
            EXPECT_TRUE(!launch_testing_run(t, launch));
            expect_fault(t, fault == 1 ? SIMT_FAULT_SHARED_RACE : SIMT_FAULT_ENDLESS,
                         fault == 1 ? "of the shared memory of block (1,0,0) that thread"
                                    : "lacks 64 of 64 arrivals");
        } else if (launch_testing_run_clean(t, launch)) {
            const int *got = launch_testing_result(t, arguments.out);
            for (int n = 0; n < 64 * STEPS; n++) {
                EXPECT_INT_EQ(n / 64 * 64 + 63 - n % 64, got[n]);
            }
        }
    }
}

LAUNCH_TEST(cluster, values_that_are_sent, CLUSTER_PTX) {
    const int *got = run(t, "send", 4, 2, 0);
    for (int n = 0; got != NULL && n < 256; n++) {
        int other = n / 64 % 2 == 0, thread = n % 64;
        EXPECT_INT_EQ(1000 * other + thread - 3 * (63 - thread), got[n]);
    }
    got = run(t, "send_sum", 2, 2, 0);
    if (got != NULL) {
        EXPECT_INT_EQ(10 + 2 * 63 * 32 + 6400, got[0]);
        EXPECT_INT_EQ(43, got[1]);
    }
    expect_faulty(t, "send", 2, 1, SIMT_FAULT_UNINITIALISED, "shared memory");
    expect_faulty(t, "send", 2, 2, SIMT_FAULT_UNINITIALISED, "shared memory");
    expect_faulty(t, "send", 2, 3, SIMT_FAULT_BARRIER, "names an mbarrier in that of another");
}

/* What a block adds to the other one's words is what it got from there. */
LAUNCH_TEST(cluster, words_that_are_sent_and_added, CLUSTER_PTX) {
    const int *got = run(t, "send_and_add", 2, 2, 0);
    for (int n = 0; got != NULL && n < 512; n++) {
        EXPECT_INT_EQ(7 * (n % 256) + 1000 * (n / 256) + n % 256, got[n]);
    }
}

LAUNCH_TEST(cluster, copies_to_all_blocks, CLUSTER_PTX) {
    enum { BLOCKS = 4 };
    int in[512];
    for (int n = 0; n < 512; n++) {
        in[n] = n * n % 1009;
    }
    const struct {
        uint64_t in, out;
        int fault;
    } arguments = {launch_testing_upload(t, in, sizeof in), new_out(t), 0};
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "multicast_rows", .grid = {BLOCKS},
                                            .threads = {THREADS}, .cluster = {BLOCKS},
                                            .parameters = &arguments))) {
        return;
    }
    const int *got = launch_testing_result(t, arguments.out);
    for (int n = 0; n < 2 * 64 * BLOCKS; n++) {
        int wanted = 0;
        for (int k = 0; k < BLOCKS; k++) {
            wanted = wanted * 3 + in[n / 64 % 2 * 256 + 64 * k + (n % 64 + k) % 64];
        }
        EXPECT_INT_EQ(wanted, got[n]);
    }
}

LAUNCH_TEST(cluster, faulty_copies_to_all_blocks, CLUSTER_PTX) {
    static const struct {
        int fault;
        enum simt_fault_kind kind;
        const char *words;
    } cases[] = {{1, SIMT_FAULT_BARRIER, "0x001f of its cluster (a bit a block), which has 4"},
                 {2, SIMT_FAULT_COPY, "is still on its way"},
                 {3, SIMT_FAULT_SHARED_RACE, " read at "}};
    int in[512] = {0};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const struct {
            uint64_t in, out;
            int fault;
        } arguments = {launch_testing_upload(t, in, sizeof in), new_out(t), cases[n].fault};
        EXPECT_TRUE(!launch_testing_run(t, LAUNCH(.kernel = "multicast_rows", .grid = {4},
                                                  .threads = {THREADS}, .cluster = {4},
                                                  .parameters = &arguments)));
        expect_fault(t, cases[n].kind, cases[n].words);
    }
}

LAUNCH_TEST(cluster, boxes_to_both_blocks, CLUSTER_PTX) {
    enum { ROWS = 64, COLUMNS = 32 };
    static int tensor[ROWS * COLUMNS];
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        tensor[n] = 3 * n + 1;
    }
    struct {
        struct tensor_map map;
        uint64_t out;
    } arguments = {{.magic = TENSOR_MAP_MAGIC,
                    .element_bytes = 4,
                    .rank = 2,
                    .address = launch_testing_upload(t, tensor, sizeof tensor),
                    .last = {COLUMNS - 1, ROWS - 1},
                    .box = {COLUMNS, 16},
                    .steps = {1, 1},
                    .strides = {4 * COLUMNS}},
                   new_out(t)};
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "multicast_box", .grid = {4},
                                            .threads = {THREADS}, .cluster = {2},
                                            .parameters = &arguments))) {
        return;
    }
    const int *got = launch_testing_result(t, arguments.out);
    for (int n = 0; n < 4096; n++) {
        EXPECT_INT_EQ(tensor[n / 2048 * 1024 + n % 1024], got[n]);
    }
}

LAUNCH_TEST(cluster, copies_between_blocks, CLUSTER_PTX) {
    const int *got = run(t, "pass_on", 3, 3, 0);
    for (int n = 0; got != NULL && n < 192; n++) {
        EXPECT_INT_EQ((n / 64 + 2) % 3 * 1000 + n % 64, got[n]);
    }
    expect_faulty(t, "pass_on", 2, 1, SIMT_FAULT_COPY, "which a bulk copy of the same thread at ");
}

LAUNCH_TEST(cluster, a_block_that_waits_long_for_another, CLUSTER_PTX) {
    enum { ROUNDS = 500000 };
    const struct out_and_number arguments = {new_out(t), ROUNDS};
    if (launch_testing_run_clean(t, LAUNCH(.kernel = "patient", .grid = {2}, .threads = {32},
                                           .cluster = {2}, .parameters = &arguments,
                                           .limit = 100000000))) {
        unsigned wanted = 1;
        for (int n = 0; n < ROUNDS; n++) {
            wanted = wanted * 1664525 + 1013904223;
        }
        EXPECT_INT_EQ((int)wanted, ((const int *)launch_testing_result(t, arguments.out))[0]);
    }
}

LAUNCH_TEST(cluster, a_cluster_that_the_kernel_says, CLUSTER_PTX) {
    const int *got = run(t, "fixed", 6, 0, 0);
    for (int n = 0; got != NULL && n < 6; n++) {
        EXPECT_INT_EQ(40 + (n ^ 1), got[n]);
    }
    struct simt_counters counters;
    struct simt_fault fault;
    struct error error = {0};
    const struct out_and_number arguments = {new_out(t), 0};
    const struct simt_launch launch = {.module = t->module,
                                       .kernel = "fixed",
                                       .grid = {3, 1, 1},
                                       .threads = {32, 1, 1},
                                       .parameters = &arguments,
                                       .check = SIMT_CHECK_FULL,
                                       .host_threads = 1};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_launch_run(&launch, &counters, &fault, &error));
    EXPECT_TRUE(strstr(error.message, "clusters of 2x1x1 blocks") != NULL);
}

LAUNCH_TEST(cluster, all_blocks_of_a_cooperative_grid, CLUSTER_PTX) {
    const struct out_and_number arguments = {new_out(t), 0};
    if (launch_testing_run_clean(t, LAUNCH(.kernel = "ring", .grid = {4}, .threads = {THREADS},
                                           .cluster = {2}, .cooperative = true,
                                           .parameters = &arguments))) {
        const int *got = launch_testing_result(t, arguments.out);
        for (int n = 0; n < 256; n++) {
            int other = n / 64 ^ 1;
            EXPECT_INT_EQ(200 * other + 1063, got[n]);
        }
    }
}

/* Random programs of exchange(), carried out here one step after another. */
struct exchange_step {
    int operation, distance, number;
};

enum { MOST_BLOCKS = 8, MOST_STEPS = 6, OPERATIONS = 6 };

struct exchange {
    int in[64 * MOST_BLOCKS], own[MOST_BLOCKS][64], got[MOST_BLOCKS][64];
    struct exchange_step program[MOST_STEPS];
    int blocks, steps;
};

static void carry_out(struct exchange *e, const struct exchange_step *s) {
    static int before[MOST_BLOCKS][64];
    int all = e->blocks;
    memcpy(before, e->own, sizeof before);
    for (int rank = 0; rank < all; rank++) {
        int other = (rank + s->distance) % all;
        for (int t = 0; t < 64; t++) {
            switch (s->operation) {
            case 0:
                e->own[other][t] = before[rank][t] - s->number;
                break;
            case 1:
                e->own[rank][t] += before[other][t * s->number % 64];
                break;
            case 2:
                e->own[other][(t + s->number) % 64] += t + s->number * rank;
                break;
            case 3:
                e->own[other][63 - t] += before[rank][t] ^ s->number;
                break;
            case 4:
                e->own[other][t] += before[rank][t];
                break;
            default:
                e->own[rank][t] += e->in[4 * s->number + t];
                break;
            }
        }
    }
}

static void check_exchange(struct launch_testing *t, uint64_t seed) {
    static struct exchange e;
    struct rng rng = rng_create(seed);
    e.blocks = 2 + (int)rng_below(&rng, MOST_BLOCKS - 1);
    e.steps = 1 + (int)rng_below(&rng, MOST_STEPS);
    for (int n = 0; n < 64 * e.blocks; n++) {
        e.in[n] = (int)rng_below(&rng, 2001) - 1000;
        e.own[n / 64][n % 64] = e.in[n];
    }
    for (int n = 0; n < e.steps; n++) {
        e.program[n] = (struct exchange_step){(int)rng_below(&rng, OPERATIONS),
                                              (int)rng_below(&rng, (uint64_t)e.blocks),
                                              (int)rng_below(&rng, 16)};
        carry_out(&e, &e.program[n]);
    }
    const struct {
        uint64_t in, out, program;
        int steps;
    } arguments = {launch_testing_upload(t, e.in, sizeof e.in), new_out(t),
                   launch_testing_upload(t, e.program, sizeof e.program), e.steps};
    if (!launch_testing_run_clean(t, LAUNCH(.kernel = "exchange", .grid = {(uint32_t)e.blocks},
                                            .threads = {64}, .cluster = {(uint32_t)e.blocks},
                                            .parameters = &arguments))) {
        TEST_FAIL("seed %llu", (unsigned long long)seed);
        return;
    }
    const int *got = launch_testing_result(t, arguments.out);
    for (int n = 0; n < 64 * e.blocks && !test_has_failed(); n++) {
        if (got[n] != e.own[n / 64][n % 64]) {
            TEST_FAIL("seed %llu: number %d: want %d, got %d", (unsigned long long)seed, n,
                      e.own[n / 64][n % 64], got[n]);
        }
    }
}

LAUNCH_TEST(cluster, random_programs, CLUSTER_PTX) {
    for (uint64_t seed = 0; seed < 60 && !test_has_failed(); seed++) {
        check_exchange(t, seed);
    }
}
