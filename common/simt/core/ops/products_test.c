/* What runs beside the threads: wgmma and bulk copies that are used too early, too late, or not
 * waited for; and right kernels that look like it. */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { ROWS = 64, COLUMNS = 8, DEPTH = 16, SUMS = ROWS * COLUMNS };

static const struct {
    const char *kernel;
    enum simt_fault_kind kind;
    const char *words;
    bool has_other; /* the other side's line is told */
} faulty[] = {
    {"no_fence", SIMT_FAULT_PRODUCT, "no wgmma.fence before the first one", false},
    {"no_wait", SIMT_FAULT_PRODUCT, "uses a sum of the wgmma at ", true},
    {"wait_for_older", SIMT_FAULT_PRODUCT, "uses a sum of the wgmma at ", true},
    {"no_commit", SIMT_FAULT_PRODUCT, "uses a sum of the wgmma at ", true},
    {"read_before_next", SIMT_FAULT_PRODUCT, "uses a sum of the wgmma at ", true},
    {"changed_sums", SIMT_FAULT_PRODUCT, "with a register that was written at ", true},
    {"rewritten", SIMT_FAULT_COPY, "of shared memory, which a wgmma of warp ", true},
    {"no_proxy_fence", SIMT_FAULT_PROXY, "by the async proxy, which thread ", true},
};

static double product_of(int row, int column, int shift) {
    double sum = 0.0;
    for (int k = 0; k < DEPTH; k++) {
        sum += (double)(row % 7 - k % 3) * (column - k % 5 + shift);
    }
    return sum;
}

static void expect_product(struct launch_testing *t, const char *kernel) {
    uint64_t out = launch_testing_upload(t, NULL, SUMS * sizeof(float));
    if (!launch_testing_block_clean(t, kernel, 128, &out)) {
        return;
    }
    const float *got = launch_testing_result(t, out);
    for (int n = 0; n < SUMS; n++) {
        int row = n / COLUMNS, column = n % COLUMNS;
        int thread = row / 16 * 32 + row % 8 * 4 + column / 2;
        EXPECT_NEAR(thread + product_of(row, column, 0), got[n], 0.0);
    }
}

LAUNCH_TEST(products, one_product, PRODUCTS_PTX) {
    expect_product(t, "right");
}

/* A group is over for all four warps when one has waited for it. */
LAUNCH_TEST(products, operands_written_again_behind_the_wait, PRODUCTS_PTX) {
    expect_product(t, "rewritten_behind");
}

LAUNCH_TEST(products, sums_of_integers_that_saturate, PRODUCTS_PTX) {
    static const struct {
        int first, b, wanted;
    } cases[] = {{100, 127, 100 + 32 * 127 * 127},
                 {INT32_MAX - 5, 127, INT32_MAX},
                 {INT32_MIN + 5, -128, INT32_MIN},
                 {INT32_MAX - 5, -128, INT32_MAX - 5 - 32 * 127 * 128}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const struct {
            uint64_t out;
            int first, b;
        } arguments = {launch_testing_upload(t, NULL, SUMS * sizeof(int)), cases[n].first,
                       cases[n].b};
        bool clean = launch_testing_block_clean(t, "saturating", 128, &arguments);
        const int *got = launch_testing_result(t, arguments.out);
        for (int i = 0; i < SUMS && clean; i++) {
            EXPECT_INT_EQ(cases[n].wanted, got[i]);
        }
    }
}

LAUNCH_TEST(products, a_pipeline, PRODUCTS_PTX) {
    enum { STEPS = 3 };
    struct {
        uint64_t out;
        int steps;
    } arguments = {launch_testing_upload(t, NULL, 2 * SUMS * sizeof(float)), STEPS};
    if (!launch_testing_block_clean(t, "pipeline", 128, &arguments)) {
        return;
    }
    const float *got = launch_testing_result(t, arguments.out);
    for (int n = 0; n < SUMS; n++) {
        int row = n / COLUMNS, column = n % COLUMNS;
        double sum = 0.0, last = product_of(row, column, STEPS - 1);
        for (int step = 0; step < STEPS; step++) {
            sum = 0.5 * (sum + product_of(row, column, step));
        }
        EXPECT_NEAR(sum + last, got[n], 0.0);
        EXPECT_NEAR(2.0 * last, got[SUMS + n], 0.0);
    }
}

LAUNCH_TEST(products, faulty, PRODUCTS_PTX) {
    for (size_t n = 0; n < sizeof faulty / sizeof *faulty; n++) {
        uint64_t out = launch_testing_upload(t, NULL, SUMS * sizeof(float));
        bool clean = launch_testing_block(t, faulty[n].kernel, 128, &out);
        if (clean || t->fault.kind != faulty[n].kind ||
            strstr(t->fault.text, faulty[n].words) == NULL || t->fault.line == 0 ||
            (t->fault.other.line > 0) != faulty[n].has_other) {
            TEST_FAIL("%s: wanted %s: %s, found %s: %s (line %u, other %u)", faulty[n].kernel,
                      simt_fault_name(faulty[n].kind), faulty[n].words,
                      simt_fault_name(t->fault.kind), t->fault.text, t->fault.line,
                      t->fault.other.line);
        }
    }
}

/* Without the check of copies nothing is said, and the sums are those that were asked for. */
LAUNCH_TEST(products, not_watched_without_full_checks, PRODUCTS_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, SUMS * sizeof(float));
    for (size_t n = 0; n < sizeof faulty / sizeof *faulty; n++) {
        EXPECT_TRUE(launch_testing_run_clean(t, LAUNCH(.kernel = faulty[n].kernel, .threads = {128},
                                                       .bounds_only = true, .parameters = &out)));
    }
}

LAUNCH_TEST(products, stages_of_bulk_copies, PRODUCTS_PTX) {
    static const struct {
        enum simt_fault_kind kind;
        const char *words;
    } wanted[] = {
        {SIMT_FAULT_NONE, ""},
        {SIMT_FAULT_COPY, "to which a bulk copy of the same thread at "},
        {SIMT_FAULT_ENDLESS,
         "lacks 1 of 1 arrivals and received 512 bytes more than were announced"},
        {SIMT_FAULT_UNINITIALISED, "of shared memory"},
        {SIMT_FAULT_PROXY, "wrote at "},
    };
    int in[256];
    for (int n = 0; n < 256; n++) {
        in[n] = 3 * n;
    }
    for (int mistake = 0; mistake < 5; mistake++) {
        const struct {
            uint64_t in, out;
            int mistake;
        } arguments = {launch_testing_upload(t, in, sizeof in),
                       launch_testing_upload(t, NULL, sizeof in), mistake};
        bool clean = launch_testing_block(t, "stages", 128, &arguments);
        if (t->fault.kind != wanted[mistake].kind ||
            strstr(t->fault.text, wanted[mistake].words) == NULL) {
            TEST_FAIL("%d: wanted %s, found %s: %s", mistake, simt_fault_name(wanted[mistake].kind),
                      simt_fault_name(t->fault.kind), t->fault.text);
        }
        const int *got = launch_testing_result(t, arguments.out);
        for (int n = 0; n < 256 && clean; n++) {
            EXPECT_INT_EQ(in[n / 128 * 128 + 127 - n % 128] + n / 128, got[n]);
        }
    }
}

LAUNCH_TEST(products, registers_of_warpgroups, PRODUCTS_PTX) {
    static const char *const wanted[] = {"", "would have 2048, and they began with 2016 (168 each)",
                                         "warp 6 of the same warpgroup 0 times",
                                         "the four warps execute the same setmaxnreg",
                                         "for 160 registers a thread, but its threads have 168"};
    for (int mistake = 0; mistake < 5; mistake++) {
        bool clean = launch_testing_block(t, "registers", 384, &mistake);
        EXPECT_INT_EQ(mistake == 0, clean);
        if (!clean && (t->fault.kind != SIMT_FAULT_BARRIER ||
                       strstr(t->fault.text, wanted[mistake]) == NULL)) {
            TEST_FAIL("%d: wanted %s, found %s", mistake, wanted[mistake], t->fault.text);
        }
    }
}
