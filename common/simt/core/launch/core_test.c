/* Whole kernels through parser, decoder, scheduler and memory, against the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { LIMIT = 20000000, HOST_THREADS = 2 };

/* What most kernels here are launched with. */
#define ON_HOST_THREADS .host_threads = HOST_THREADS, .limit = LIMIT

/* Runs a kernel on `grid` blocks. @return true when no fault was found */
static bool run(struct launch_testing *t, const char *kernel, uint32_t grid, uint32_t threads,
                const void *parameters) {
    return launch_testing_run(t, LAUNCH(.kernel = kernel, .grid = {grid}, .threads = {threads},
                                        .parameters = parameters, ON_HOST_THREADS));
}

/* As run(), and a fault fails the test. */
static bool run_clean(struct launch_testing *t, const char *kernel, uint32_t grid, uint32_t threads,
                      const void *parameters) {
    return launch_testing_run_clean(t,
                                    LAUNCH(.kernel = kernel, .grid = {grid}, .threads = {threads},
                                           .parameters = parameters, ON_HOST_THREADS));
}

LAUNCH_TEST(core, saxpy_with_a_partial_last_warp, CORE_PTX) {
    enum { N = 1000 };
    float x[N], y[N];
    struct rng rng = rng_create(1);
    rng_fill_normal(&rng, x, N, 1.0f);
    rng_fill_normal(&rng, y, N, 1.0f);
    struct {
        uint64_t y, x;
        float a;
        int n;
    } parameters = {launch_testing_upload(t, y, sizeof y), launch_testing_upload(t, x, sizeof x),
                    1.5f, N};
    if (run_clean(t, "saxpy", 4, 256, &parameters)) {
        const float *got = launch_testing_result(t, parameters.y);
        for (int i = 0; i < N; i++) {
            EXPECT_TRUE(got[i] == fmaf(1.5f, x[i], y[i]));
        }
        /* 31 full warps and one of 8 lanes load x and y: 4 sectors each, the last one 1. */
        EXPECT_INT_EQ(2 * 32, t->counters.global_load_requests);
        EXPECT_INT_EQ(2 * (31 * 4 + 1), t->counters.global_load_sectors);
        EXPECT_INT_EQ(31 * 4 + 1, t->counters.global_store_sectors);
        EXPECT_INT_EQ(2 * N, t->counters.flops);
    }
}

LAUNCH_TEST(core, block_sums_with_barriers_and_shuffles, CORE_PTX) {
    enum { N = 5000, BLOCKS = 20 };
    int values[N];
    for (int i = 0; i < N; i++) {
        values[i] = i * i % 977 - 300;
    }
    struct {
        uint64_t sums, values;
        int n;
    } parameters = {launch_testing_upload(t, NULL, BLOCKS * sizeof(int)),
                    launch_testing_upload(t, values, sizeof values), N};
    if (run_clean(t, "block_sums", BLOCKS, 256, &parameters)) {
        const int *got = launch_testing_result(t, parameters.sums);
        for (int b = 0; b < BLOCKS; b++) {
            int want = 0;
            for (int i = b * 256; i < (b + 1) * 256 && i < N; i++) {
                want += values[i];
            }
            EXPECT_INT_EQ(want, got[b]);
        }
        EXPECT_INT_EQ(0, t->counters.shared_bank_conflicts);
    }
}

C_TEST(core, sgemm_with_tiles_for_any_number_of_host_threads) {
    enum { N = 48 };
    static float A[N * N], B[N * N], first[N * N];
    struct simt_counters counters = {0};
    struct rng rng = rng_create(2);
    rng_fill_normal(&rng, A, N * N, 1.0f);
    rng_fill_normal(&rng, B, N * N, 1.0f);
    for (int threads = 1; threads <= 3; threads++) {
        struct launch_testing t;
        ASSERT_TRUE(launch_testing_open(&t, CORE_PTX));
        struct {
            uint64_t C, A, B;
            int n;
        } parameters = {launch_testing_upload(&t, NULL, sizeof A),
                        launch_testing_upload(&t, A, sizeof A),
                        launch_testing_upload(&t, B, sizeof B), N};
        EXPECT_TRUE(launch_testing_run(&t, LAUNCH(.kernel = "sgemm_tile", .grid = {3, 3},
                                                  .threads = {16, 16}, .parameters = &parameters,
                                                  .host_threads = threads)));
        const float *got = launch_testing_result(&t, parameters.C);
        for (int i = 0; i < N * N && threads == 1; i++) {
            double want = 0.0;
            for (int k = 0; k < N; k++) {
                want += (double)A[i / N * N + k] * B[k * N + i % N];
            }
            EXPECT_NEAR(want, got[i], 1e-4);
        }
        if (threads == 1) {
            memcpy(first, got, sizeof first);
            counters = t.counters;
        }
        EXPECT_INT_EQ(0, memcmp(first, got, sizeof first));
        EXPECT_INT_EQ(0, memcmp(&counters, &t.counters, sizeof counters));
        EXPECT_INT_EQ(2.0 * N * N * N, t.counters.flops);
        launch_testing_close(&t);
    }
}

LAUNCH_TEST(core, dynamic_shared_memory, CORE_PTX) {
    int values[192];
    for (int i = 0; i < 192; i++) {
        values[i] = 3 * i;
    }
    uint64_t address = launch_testing_upload(t, values, sizeof values);
    struct testing_launch launch = {.kernel = "reverse",
                                    .grid = {2},
                                    .threads = {96},
                                    .shared = 96 * sizeof(int),
                                    .parameters = &address};
    EXPECT_TRUE(launch_testing_run_clean(t, &launch));
    const int *got = launch_testing_result(t, address);
    for (int i = 0; i < 192; i++) {
        EXPECT_INT_EQ(values[i / 96 * 96 + 95 - i % 96], got[i]);
    }
    launch.shared = 95 * sizeof(int);
    EXPECT_TRUE(!launch_testing_run(t, &launch));
    EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, t->fault.kind);
    EXPECT_INT_EQ(95, t->fault.thread[0]);
}

static int collatz_steps(int i) {
    int total = 0;
    for (int start = i + 1; start < i + 8; start++) {
        long long x = start;
        int count = 0;
        while (x != 1 && count <= 100) {
            x = x % 2 == 0 ? x / 2 : 3 * x + 1;
            count++;
        }
        total += count > 100 ? 0 : count;
    }
    return total;
}

LAUNCH_TEST(core, nested_loops_with_breaks_in_every_lane, CORE_PTX) {
    enum { N = 300 };
    struct {
        uint64_t steps;
        int n;
    } parameters = {launch_testing_upload(t, NULL, N * sizeof(int)), N};
    if (run_clean(t, "collatz", 3, 128, &parameters)) {
        const int *got = launch_testing_result(t, parameters.steps);
        for (int i = 0; i < N; i++) {
            EXPECT_INT_EQ(collatz_steps(i), got[i]);
        }
        EXPECT_TRUE(t->counters.divergent_branches > 0);
    }
}

/* As the kernel does. */
static int unrolled(const int *in, int t) {
    uint32_t sum = 0;
    for (int round = 0; round < 8; round++) {
        const int starts[] = {t, t * 33, t / 16 * 33 + t % 16, 5};
        for (int i = 0; i < 8 && (round < 4 || t % 3 == 0); i++) {
            sum = sum * 3 + (uint32_t)in[starts[round % 4] + 20 * i];
        }
    }
    return (int)sum;
}

/* Only halves of rows, 33 words apart, have a conflict. */
LAUNCH_TEST(core, reads_that_repeat_a_base_register, CORE_PTX) {
    enum { WORDS = 36 * 33, READS = 8 * 8, OF_HALVES = 2 * 8 };
    int in[WORDS];
    for (int i = 0; i < WORDS; i++) {
        in[i] = i * i % 1009;
    }
    for (int bounds_only = 0; bounds_only < 2; bounds_only++) {
        struct {
            uint64_t out, in;
        } parameters = {launch_testing_upload(t, NULL, 32 * sizeof(int)),
                        launch_testing_upload(t, in, sizeof in)};
        EXPECT_TRUE(launch_testing_run_clean(t, LAUNCH(.kernel = "unrolled", .grid = {1},
                                                       .threads = {32}, .parameters = &parameters,
                                                       .bounds_only = bounds_only != 0)));
        const int *got = launch_testing_result(t, parameters.out);
        for (int lane = 0; lane < 32; lane++) {
            EXPECT_INT_EQ(unrolled(in, lane), got[lane]);
        }
        EXPECT_INT_EQ(READS, t->counters.shared_load_requests);
        EXPECT_INT_EQ(READS + OF_HALVES, t->counters.shared_load_wavefronts);
        EXPECT_INT_EQ(OF_HALVES, t->counters.shared_bank_conflicts);
    }
}

LAUNCH_TEST(core, spin_lock_inside_a_warp, CORE_PTX) {
    const int zero = 0;
    struct {
        uint64_t lock, count;
    } parameters = {launch_testing_upload(t, &zero, sizeof zero),
                    launch_testing_upload(t, &zero, sizeof zero)};
    if (run_clean(t, "spin_lock", 3, 64, &parameters)) {
        EXPECT_INT_EQ(192, *(const int *)launch_testing_result(t, parameters.count));
    }
}

static int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

LAUNCH_TEST(core, recursion_with_lanes_at_different_depths, CORE_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 64 * sizeof(int));
    if (run_clean(t, "recursion", 1, 64, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int t = 0; t < 64; t++) {
            EXPECT_INT_EQ(ackermann(t % 3, t % 4), got[t]);
        }
    }
}

static int switched(int t) {
    const int values[11] = {5, t * 3, 77 - t + 1000, 1000, t << 3, -t, t * t, 42, t ^ 0x55, 9, 9};
    return values[t % 11];
}

LAUNCH_TEST(core, switch_statements, CORE_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 64 * sizeof(int));
    if (run_clean(t, "switches", 1, 64, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int t = 0; t < 64; t++) {
            EXPECT_INT_EQ(switched(t), got[t]);
        }
    }
}

LAUNCH_TEST(core, local_arrays_module_variables_and_constants, CORE_PTX) {
    static const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    uint64_t out = launch_testing_upload(t, NULL, 40 * sizeof(float));
    if (run_clean(t, "locals", 1, 40, &out)) {
        const float *got = launch_testing_result(t, out);
        for (int t = 0; t < 40; t++) {
            int index = (t * 5 % 8 - t % 8 + 8) % 8;
            float want = (float)(table[index] * (t + 1)) * (t & 1 ? 2.0f : 0.5f);
            EXPECT_NEAR(want, got[t], 0.0);
        }
        EXPECT_TRUE(t->counters.local_requests > 0);
    }
}

LAUNCH_TEST(core, atomics_in_shared_and_global_memory, CORE_PTX) {
    enum { N = 3000 };
    unsigned char data[N];
    unsigned bins[256] = {0}, want[256] = {0};
    struct rng rng = rng_create(3);
    for (int i = 0; i < N; i++) {
        data[i] = (unsigned char)(rng_below(&rng, 40) * rng_below(&rng, 7));
        want[data[i]]++;
    }
    struct {
        uint64_t bins, data;
        int n;
    } parameters = {launch_testing_upload(t, bins, sizeof bins),
                    launch_testing_upload(t, data, sizeof data), N};
    if (run_clean(t, "histogram", 5, 128, &parameters)) {
        EXPECT_INT_EQ(0, memcmp(want, launch_testing_result(t, parameters.bins), sizeof want));
        EXPECT_TRUE(t->counters.atomic_requests > 0);
    }
}

LAUNCH_TEST(core, votes_of_a_whole_and_of_a_split_warp, CORE_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 32 * sizeof(unsigned));
    if (run_clean(t, "votes", 1, 32, &out)) {
        const unsigned *got = launch_testing_result(t, out);
        for (unsigned t = 0; t < 32; t++) {
            unsigned half = t < 16 ? 0x0000aaaau : 0xcccc0000u;
            EXPECT_INT_EQ(0x49249249u ^ half ^ (t ^ 5), got[t]);
        }
    }
}

LAUNCH_TEST(core, printf_of_a_kernel, CORE_PTX) {
    const float x = 2.345f;
    char text[512];
    uint64_t address = launch_testing_upload(t, &x, sizeof x);
    launch_testing_run_printing(t,
                                LAUNCH(.kernel = "says", .grid = {2}, .threads = {32},
                                       .parameters = &address, ON_HOST_THREADS),
                                text, sizeof text);
    EXPECT_STR_EQ("block 0: value  2.35 1099511627776 z%\nblock 1: value  2.35 1099511627776 z%\n",
                  text);
}

LAUNCH_TEST(core, reading_beyond_an_array_names_thread_and_line, CORE_PTX) {
    float in[64] = {0};
    struct {
        uint64_t out, in;
    } parameters = {launch_testing_upload(t, NULL, sizeof in),
                    launch_testing_upload(t, in, sizeof in)};
    EXPECT_TRUE(!run(t, "reads_beyond", 1, 64, &parameters));
    EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, t->fault.kind);
    EXPECT_INT_EQ(63, t->fault.thread[0]);
    EXPECT_STR_EQ("reads_beyond", t->fault.kernel);
    EXPECT_TRUE(strstr(t->fault.file, "core.cu") != NULL);
    EXPECT_TRUE(t->fault.line > 0);
}

LAUNCH_TEST(core, a_barrier_that_half_a_warp_misses, CORE_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 64 * sizeof(int));
    EXPECT_TRUE(!run(t, "divergent_barrier", 1, 64, &out));
    EXPECT_INT_EQ(SIMT_FAULT_BARRIER, t->fault.kind);
}

LAUNCH_TEST(core, a_loop_without_end, CORE_PTX) {
    const int zero = 0;
    uint64_t flag = launch_testing_upload(t, &zero, sizeof zero);
    EXPECT_TRUE(!run(t, "never_ends", 1, 32, &flag));
    EXPECT_INT_EQ(SIMT_FAULT_ENDLESS, t->fault.kind);
}

LAUNCH_TEST(core, launches_of_impossible_sizes_are_refused, CORE_PTX) {
    struct error error = {0};
    struct simt_launch launch = {.module = t->module,
                                 .kernel = "saxpy",
                                 .grid = {1, 1, 1},
                                 .threads = {1025, 1, 1},
                                 .host_threads = 1};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  simt_launch_run(&launch, &t->counters, &t->fault, &error));
    launch.threads[0] = 0;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  simt_launch_run(&launch, &t->counters, &t->fault, &error));
    launch.threads[0] = 32;
    launch.kernel = "absent";
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_launch_run(&launch, &t->counters, &t->fault, &error));
    EXPECT_TRUE(strstr(error.message, "absent") != NULL);
}

/* A register that is read before it is written is zero in every block, though blocks follow one
 * another in the same frames; lanes that do not write it keep the zero. */
C_TEST(core, registers_are_zeros_in_every_block) {
    static const char text[] =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k(.param .u64 out) {\n"
        ".reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %a<4>;\n"
        "ld.param.u64 %a0, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
        "mad.lo.u32 %r2, %r1, 64, %r0;\nmul.wide.u32 %a1, %r2, 4;\nadd.u64 %a2, %a0, %a1;\n"
        "setp.lt.u32 %p0, %r0, 40;\n@%p0 bra DONE;\n"
        "add.u32 %r3, %r3, 5;\nadd.u64 %a3, %a3, 7;\n"
        "DONE:\ncvt.u32.u64 %r4, %a3;\nadd.u32 %r5, %r3, %r4;\n"
        "st.global.u32 [%a2], %r5;\nmov.u32 %r3, 1000;\nmov.u64 %a3, 1000;\nret;\n}\n";
    enum { BLOCKS = 5, THREADS = 64 };
    struct launch_testing t;
    if (launch_testing_open_text(&t, text)) {
        uint64_t out = launch_testing_upload(&t, NULL, BLOCKS * THREADS * sizeof(uint32_t));
        if (run_clean(&t, "k", BLOCKS, THREADS, &out)) {
            const uint32_t *got = launch_testing_result(&t, out);
            for (int n = 0; n < BLOCKS * THREADS; n++) {
                EXPECT_INT_EQ(n % THREADS < 40 ? 0 : 12, got[n]);
            }
        }
    }
    launch_testing_close(&t);
}

/* Blocks go to one multiprocessor after the other; the answer is the same on all host threads. */
C_TEST(core, each_block_knows_its_multiprocessor) {
    static const char text[] =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<5>;\n.reg .b64 %a<3>;\n"
        "ld.param.u64 %a0, [out];\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 %a1, %r1, 4;\n"
        "add.u64 %a2, %a0, %a1;\nmov.u32 %r2, %smid;\nmov.u32 %r3, %nsmid;\n"
        "mad.lo.u32 %r4, %r3, 100, %r2;\nst.global.u32 [%a2], %r4;\nret;\n}\n";
    enum { BLOCKS = 9, PROCESSORS = 4 };
    for (int threads = 1; threads <= 4; threads *= 2) {
        struct launch_testing t;
        if (launch_testing_open_text(&t, text)) {
            uint64_t out = launch_testing_upload(&t, NULL, BLOCKS * sizeof(uint32_t));
            launch_testing_run_clean(&t, LAUNCH(.kernel = "k", .grid = {BLOCKS}, .threads = {1},
                                                .processors = PROCESSORS, .parameters = &out,
                                                .host_threads = threads));
            const uint32_t *got = launch_testing_result(&t, out);
            for (int n = 0; n < BLOCKS; n++) {
                EXPECT_INT_EQ(100 * PROCESSORS + n % PROCESSORS, got[n]);
            }
        }
        launch_testing_close(&t);
    }
}
