/* Whole kernels through parser, decoder, scheduler and memory, against the CPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/simt/core/launch.h"
#include "common/testing/testing.h"

/* A module of testdata/core.cu and its memory. */
struct fixture {
    struct simt_memory *memory;
    struct simt_global_shadow *shadow;
    struct simt_module *module;
    struct simt_counters counters;
    struct simt_fault fault;
    enum simt_check check;
    int host_threads;
};

static bool open_fixture(struct fixture *f) {
    char *text = NULL;
    size_t size = 0;
    struct error error = {0};
    struct ptx_module *ptx = NULL;
    *f = (struct fixture){.check = SIMT_CHECK_FULL, .host_threads = 2};
    enum status status = file_read(CORE_PTX, (size_t)1 << 24, &text, &size, &error);
    if (status == STATUS_OK) {
        status = ptx_parse(&ptx, text, size, &error);
    }
    free(text);
    if (status == STATUS_OK) {
        status = simt_memory_create(&f->memory, (size_t)1 << 30);
    }
    if (status == STATUS_OK) {
        status = simt_global_shadow_create(&f->shadow, f->memory);
    }
    if (status == STATUS_OK) {
        status = simt_module_load(&f->module, ptx, f->memory, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("cannot load the kernels: %s", error_text(&error, status));
    }
    return status == STATUS_OK;
}

static void close_fixture(struct fixture *f) {
    simt_module_unload(f->module);
    simt_global_shadow_free(f->shadow);
    simt_memory_free(f->memory);
}

/* Device memory with a copy of `bytes` bytes; NULL: left as it is. */
static uint64_t upload(struct fixture *f, const void *host, size_t bytes) {
    uint64_t address = 0;
    EXPECT_OK(simt_memory_alloc(f->memory, bytes, 256, "cudaMalloc", &address));
    if (host != NULL) {
        memcpy(simt_memory_host(f->memory, address), host, bytes);
        simt_memory_mark(f->memory, address, bytes);
    }
    return address;
}

static const void *result(const struct fixture *f, uint64_t address) {
    return simt_memory_host(f->memory, address);
}

/* Runs a kernel; the parameter block is `parameters`. @return true when no fault was found */
static bool run(struct fixture *f, const char *kernel, uint32_t grid_x, uint32_t grid_y,
                uint32_t threads_x, uint32_t threads_y, size_t shared, const void *parameters) {
    struct error error = {0};
    const struct simt_launch launch = {
        .module = f->module,
        .kernel = kernel,
        .grid = {grid_x, grid_y, 1},
        .threads = {threads_x, threads_y, 1},
        .dynamic_shared_bytes = shared,
        .parameters = parameters,
        .check = f->check,
        .global_shadow = f->shadow,
        .host_threads = f->host_threads,
        .instruction_limit = 20000000,
    };
    enum status status = simt_launch_run(&launch, &f->counters, &f->fault, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", kernel, error_text(&error, status));
        return false;
    }
    return f->fault.kind == SIMT_FAULT_NONE;
}

/* As run(), and a fault fails the test. */
static bool run_clean(struct fixture *f, const char *kernel, uint32_t grid, uint32_t threads,
                      const void *parameters) {
    bool clean = run(f, kernel, grid, 1, threads, 1, 0, parameters);
    if (!clean) {
        TEST_FAIL("%s line %u: %s", kernel, f->fault.line, f->fault.text);
    }
    return clean;
}

C_TEST(core, saxpy_with_a_partial_last_warp) {
    enum { N = 1000 };
    struct fixture f;
    float x[N], y[N];
    struct rng rng = rng_create(1);
    ASSERT_TRUE(open_fixture(&f));
    rng_fill_normal(&rng, x, N, 1.0f);
    rng_fill_normal(&rng, y, N, 1.0f);
    struct {
        uint64_t y, x;
        float a;
        int n;
    } parameters = {upload(&f, y, sizeof y), upload(&f, x, sizeof x), 1.5f, N};
    if (run_clean(&f, "saxpy", 4, 256, &parameters)) {
        const float *got = result(&f, parameters.y);
        for (int i = 0; i < N; i++) {
            EXPECT_TRUE(got[i] == fmaf(1.5f, x[i], y[i]));
        }
        /* 31 full warps and one of 8 lanes load x and y: 4 sectors each, the last one 1. */
        EXPECT_INT_EQ(2 * 32, f.counters.global_load_requests);
        EXPECT_INT_EQ(2 * (31 * 4 + 1), f.counters.global_load_sectors);
        EXPECT_INT_EQ(31 * 4 + 1, f.counters.global_store_sectors);
        EXPECT_INT_EQ(2 * N, f.counters.flops);
    }
    close_fixture(&f);
}

C_TEST(core, block_sums_with_barriers_and_shuffles) {
    enum { N = 5000, BLOCKS = 20 };
    struct fixture f;
    int values[N];
    ASSERT_TRUE(open_fixture(&f));
    for (int i = 0; i < N; i++) {
        values[i] = i * i % 977 - 300;
    }
    struct {
        uint64_t sums, values;
        int n;
    } parameters = {upload(&f, NULL, BLOCKS * sizeof(int)), upload(&f, values, sizeof values), N};
    if (run_clean(&f, "block_sums", BLOCKS, 256, &parameters)) {
        const int *got = result(&f, parameters.sums);
        for (int b = 0; b < BLOCKS; b++) {
            int want = 0;
            for (int i = b * 256; i < (b + 1) * 256 && i < N; i++) {
                want += values[i];
            }
            EXPECT_INT_EQ(want, got[b]);
        }
        EXPECT_INT_EQ(0, f.counters.shared_bank_conflicts);
    }
    close_fixture(&f);
}

C_TEST(core, sgemm_with_tiles_for_any_number_of_host_threads) {
    enum { N = 48 };
    static float A[N * N], B[N * N], first[N * N];
    struct simt_counters counters = {0};
    struct rng rng = rng_create(2);
    rng_fill_normal(&rng, A, N * N, 1.0f);
    rng_fill_normal(&rng, B, N * N, 1.0f);
    for (int threads = 1; threads <= 3; threads++) {
        struct fixture f;
        ASSERT_TRUE(open_fixture(&f));
        f.host_threads = threads;
        struct {
            uint64_t C, A, B;
            int n;
        } parameters = {upload(&f, NULL, sizeof A), upload(&f, A, sizeof A),
                        upload(&f, B, sizeof B), N};
        EXPECT_TRUE(run(&f, "sgemm_tile", 3, 3, 16, 16, 0, &parameters));
        const float *got = result(&f, parameters.C);
        for (int i = 0; i < N * N && threads == 1; i++) {
            double want = 0.0;
            for (int k = 0; k < N; k++) {
                want += (double)A[i / N * N + k] * B[k * N + i % N];
            }
            EXPECT_NEAR(want, got[i], 1e-4);
        }
        if (threads == 1) {
            memcpy(first, got, sizeof first);
            counters = f.counters;
        }
        EXPECT_INT_EQ(0, memcmp(first, got, sizeof first));
        EXPECT_INT_EQ(0, memcmp(&counters, &f.counters, sizeof counters));
        EXPECT_INT_EQ(2.0 * N * N * N, f.counters.flops);
        close_fixture(&f);
    }
}

C_TEST(core, dynamic_shared_memory) {
    struct fixture f;
    int values[192];
    ASSERT_TRUE(open_fixture(&f));
    for (int i = 0; i < 192; i++) {
        values[i] = 3 * i;
    }
    uint64_t address = upload(&f, values, sizeof values);
    EXPECT_TRUE(run(&f, "reverse", 2, 1, 96, 1, 96 * sizeof(int), &address));
    const int *got = result(&f, address);
    for (int i = 0; i < 192; i++) {
        EXPECT_INT_EQ(values[i / 96 * 96 + 95 - i % 96], got[i]);
    }
    EXPECT_TRUE(!run(&f, "reverse", 2, 1, 96, 1, 95 * sizeof(int), &address));
    EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, f.fault.kind);
    EXPECT_INT_EQ(95, f.fault.thread[0]);
    close_fixture(&f);
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

C_TEST(core, nested_loops_with_breaks_in_every_lane) {
    enum { N = 300 };
    struct fixture f;
    ASSERT_TRUE(open_fixture(&f));
    struct {
        uint64_t steps;
        int n;
    } parameters = {upload(&f, NULL, N * sizeof(int)), N};
    if (run_clean(&f, "collatz", 3, 128, &parameters)) {
        const int *got = result(&f, parameters.steps);
        for (int i = 0; i < N; i++) {
            EXPECT_INT_EQ(collatz_steps(i), got[i]);
        }
        EXPECT_TRUE(f.counters.divergent_branches > 0);
    }
    close_fixture(&f);
}

C_TEST(core, spin_lock_inside_a_warp) {
    struct fixture f;
    const int zero = 0;
    ASSERT_TRUE(open_fixture(&f));
    struct {
        uint64_t lock, count;
    } parameters = {upload(&f, &zero, sizeof zero), upload(&f, &zero, sizeof zero)};
    if (run_clean(&f, "spin_lock", 3, 64, &parameters)) {
        EXPECT_INT_EQ(192, *(const int *)result(&f, parameters.count));
    }
    close_fixture(&f);
}

static int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

C_TEST(core, recursion_with_lanes_at_different_depths) {
    struct fixture f;
    ASSERT_TRUE(open_fixture(&f));
    uint64_t out = upload(&f, NULL, 64 * sizeof(int));
    if (run_clean(&f, "recursion", 1, 64, &out)) {
        const int *got = result(&f, out);
        for (int t = 0; t < 64; t++) {
            EXPECT_INT_EQ(ackermann(t % 3, t % 4), got[t]);
        }
    }
    close_fixture(&f);
}

static int switched(int t) {
    const int values[11] = {5, t * 3, 77 - t + 1000, 1000, t << 3, -t, t * t, 42, t ^ 0x55, 9, 9};
    return values[t % 11];
}

C_TEST(core, switch_statements) {
    struct fixture f;
    ASSERT_TRUE(open_fixture(&f));
    uint64_t out = upload(&f, NULL, 64 * sizeof(int));
    if (run_clean(&f, "switches", 1, 64, &out)) {
        const int *got = result(&f, out);
        for (int t = 0; t < 64; t++) {
            EXPECT_INT_EQ(switched(t), got[t]);
        }
    }
    close_fixture(&f);
}

C_TEST(core, local_arrays_module_variables_and_constants) {
    static const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    struct fixture f;
    ASSERT_TRUE(open_fixture(&f));
    uint64_t out = upload(&f, NULL, 40 * sizeof(float));
    if (run_clean(&f, "locals", 1, 40, &out)) {
        const float *got = result(&f, out);
        for (int t = 0; t < 40; t++) {
            int index = (t * 5 % 8 - t % 8 + 8) % 8;
            float want = (float)(table[index] * (t + 1)) * (t & 1 ? 2.0f : 0.5f);
            EXPECT_NEAR(want, got[t], 0.0);
        }
        EXPECT_TRUE(f.counters.local_requests > 0);
    }
    close_fixture(&f);
}

C_TEST(core, atomics_in_shared_and_global_memory) {
    enum { N = 3000 };
    struct fixture f;
    unsigned char data[N];
    unsigned bins[256] = {0}, want[256] = {0};
    struct rng rng = rng_create(3);
    ASSERT_TRUE(open_fixture(&f));
    for (int i = 0; i < N; i++) {
        data[i] = (unsigned char)(rng_below(&rng, 40) * rng_below(&rng, 7));
        want[data[i]]++;
    }
    struct {
        uint64_t bins, data;
        int n;
    } parameters = {upload(&f, bins, sizeof bins), upload(&f, data, sizeof data), N};
    if (run_clean(&f, "histogram", 5, 128, &parameters)) {
        EXPECT_INT_EQ(0, memcmp(want, result(&f, parameters.bins), sizeof want));
        EXPECT_TRUE(f.counters.atomic_requests > 0);
    }
    close_fixture(&f);
}

C_TEST(core, votes_of_a_whole_and_of_a_split_warp) {
    struct fixture f;
    ASSERT_TRUE(open_fixture(&f));
    uint64_t out = upload(&f, NULL, 32 * sizeof(unsigned));
    if (run_clean(&f, "votes", 1, 32, &out)) {
        const unsigned *got = result(&f, out);
        for (unsigned t = 0; t < 32; t++) {
            unsigned half = t < 16 ? 0x0000aaaau : 0xcccc0000u;
            EXPECT_INT_EQ(0x49249249u ^ half ^ (t ^ 5), got[t]);
        }
    }
    close_fixture(&f);
}

/* What the kernel prints while stdout goes to a file. */
static void capture(struct fixture *f, uint64_t x, char *text, size_t size) {
    char path[512];
    test_temporary_path("says.txt", path, sizeof path);
    fflush(stdout);
    int saved = dup(1);
    FILE *file = freopen(path, "w", stdout);
    EXPECT_TRUE(file != NULL);
    bool clean = run(f, "says", 2, 1, 32, 1, 0, &x);
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    EXPECT_TRUE(clean);
    FILE *back = fopen(path, "r");
    size_t used = back != NULL ? fread(text, 1, size - 1, back) : 0;
    text[used] = '\0';
    if (back != NULL) {
        fclose(back);
    }
}

C_TEST(core, printf_of_a_kernel) {
    struct fixture f;
    const float x = 2.345f;
    char text[512];
    ASSERT_TRUE(open_fixture(&f));
    f.host_threads = 1;
    capture(&f, upload(&f, &x, sizeof x), text, sizeof text);
    EXPECT_STR_EQ("block 0: value  2.35 1099511627776 z%\nblock 1: value  2.35 1099511627776 z%\n",
                  text);
    close_fixture(&f);
}

C_TEST(core, reading_beyond_an_array_names_thread_and_line) {
    struct fixture f;
    float in[64] = {0};
    ASSERT_TRUE(open_fixture(&f));
    struct {
        uint64_t out, in;
    } parameters = {upload(&f, NULL, sizeof in), upload(&f, in, sizeof in)};
    EXPECT_TRUE(!run(&f, "reads_beyond", 1, 1, 64, 1, 0, &parameters));
    EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, f.fault.kind);
    EXPECT_INT_EQ(63, f.fault.thread[0]);
    EXPECT_STR_EQ("reads_beyond", f.fault.kernel);
    EXPECT_TRUE(strstr(f.fault.file, "core.cu") != NULL);
    EXPECT_TRUE(f.fault.line > 0);
    close_fixture(&f);
}

C_TEST(core, a_barrier_that_half_a_warp_misses) {
    struct fixture f;
    ASSERT_TRUE(open_fixture(&f));
    uint64_t out = upload(&f, NULL, 64 * sizeof(int));
    EXPECT_TRUE(!run(&f, "divergent_barrier", 1, 1, 64, 1, 0, &out));
    EXPECT_INT_EQ(SIMT_FAULT_BARRIER, f.fault.kind);
    close_fixture(&f);
}

C_TEST(core, a_loop_without_end) {
    struct fixture f;
    const int zero = 0;
    ASSERT_TRUE(open_fixture(&f));
    uint64_t flag = upload(&f, &zero, sizeof zero);
    EXPECT_TRUE(!run(&f, "never_ends", 1, 1, 32, 1, 0, &flag));
    EXPECT_INT_EQ(SIMT_FAULT_ENDLESS, f.fault.kind);
    close_fixture(&f);
}

C_TEST(core, launches_of_impossible_sizes_are_refused) {
    struct fixture f;
    struct error error = {0};
    ASSERT_TRUE(open_fixture(&f));
    struct simt_launch launch = {.module = f.module,
                                 .kernel = "saxpy",
                                 .grid = {1, 1, 1},
                                 .threads = {1025, 1, 1},
                                 .host_threads = 1};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_launch_run(&launch, &f.counters, &f.fault, &error));
    launch.threads[0] = 0;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_launch_run(&launch, &f.counters, &f.fault, &error));
    launch.threads[0] = 32;
    launch.kernel = "absent";
    EXPECT_STATUS(STATUS_NOT_FOUND, simt_launch_run(&launch, &f.counters, &f.fault, &error));
    EXPECT_TRUE(strstr(error.message, "absent") != NULL);
    close_fixture(&f);
}
