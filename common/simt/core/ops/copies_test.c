/* Asynchronous copies that are waited for in time pass full checks; those that are not are found at
 * the line that comes too early. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { THREADS = 64, INPUTS = 10 * THREADS };

/* The kernels, and numbers for them. */
struct stage {
    struct launch_testing t;
    int in[INPUTS];
    struct {
        uint64_t out, in;
    } parameters;
};

static bool open_stage(struct stage *s) {
    if (!launch_testing_open(&s->t, COPIES_PTX)) {
        return false;
    }
    for (int i = 0; i < INPUTS; i++) {
        s->in[i] = i * i % 1009;
    }
    s->parameters.in = launch_testing_upload(&s->t, s->in, sizeof s->in);
    s->parameters.out = launch_testing_upload(&s->t, NULL, THREADS * sizeof(int));
    return true;
}

static void expect(const char *kernel, int want(const int *in, int t)) {
    struct stage s;
    ASSERT_TRUE(open_stage(&s));
    if (launch_testing_block_clean(&s.t, kernel, THREADS, &s.parameters)) {
        const int *got = launch_testing_result(&s.t, s.parameters.out);
        for (int t = 0; t < THREADS; t++) {
            EXPECT_INT_EQ(want(s.in, t), got[t]);
        }
    }
    launch_testing_close(&s.t);
}

/* ---- In time ---- */

static int round_the_ring(const int *in, int t) {
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        sum = 3 * sum + in[THREADS * i + t];
    }
    return sum;
}

C_TEST(copies, a_ring_without_barriers) {
    expect("ring", round_the_ring);
}

static int same(const int *in, int t) {
    return in[t];
}

static int reversed(const int *in, int t) {
    return in[THREADS - 1 - t];
}

static int seven_times(const int *in, int t) {
    (void)in;
    return 7 * t;
}

C_TEST(copies, groups_of_lanes_differ) {
    expect("uneven_groups", reversed);
}

C_TEST(copies, wait_all_needs_no_commit) {
    expect("not_committed", same);
}

C_TEST(copies, nobody_reads_them) {
    expect("never_read", seven_times);
}

static int turns_of(const int *in, int t) {
    int sums[THREADS] = {0}, tile[THREADS];
    for (int i = 0; i < 4; i++) {
        for (int n = 0; n < THREADS; n++) {
            sums[n] += in[THREADS * i + (n + 33) % THREADS];
            tile[THREADS - 1 - n] = sums[n];
        }
        for (int n = 0; n < THREADS; n++) {
            sums[n] += tile[n];
        }
    }
    return sums[t];
}

C_TEST(copies, stores_in_between) {
    expect("in_turn", turns_of);
}

/* ---- Too early ---- */

struct mistake {
    const char *kernel;
    uint32_t threads;
    enum simt_fault_kind kind;
    const char *words[2];
};

static const struct mistake mistakes[] = {
    {"reads_at_once", 64, SIMT_FAULT_COPY, {"reads 4 bytes at offset 0 of", "of the same thread"}},
    {"barrier_instead", 64, SIMT_FAULT_COPY, {"reads 4 bytes", "(cp.async) of thread ("}},
    {"waits_for_too_few", 64, SIMT_FAULT_COPY, {"at offset 256 of", "of the same thread"}},
    {"waits_for_no_group", 64, SIMT_FAULT_COPY, {"reads 4 bytes", "of the same thread"}},
    {"some_lanes_wait",
     64,
     SIMT_FAULT_COPY,
     {"at offset 64 of", "(cp.async) of thread (16,0,0) at "}},
    {"ring_too_short", 64, SIMT_FAULT_COPY, {"at offset 256 of", "of the same thread"}},
    {"stores_over_it", 64, SIMT_FAULT_COPY, {"writes 4 bytes", "of the same thread"}},
    {"copies_over_it", 64, SIMT_FAULT_COPY, {"writes 4 bytes", "of the same thread"}},
    {"waits_behind_the_barrier", 64, SIMT_FAULT_SHARED_RACE, {"warp 0 wrote", "with no barrier"}},
    {"matrix_too_early", 32, SIMT_FAULT_COPY, {"reads", "asynchronous copy"}},
};

/* The line with MISTAKE behind the head of the kernel. */
static uint32_t marked_line(const char *source, const char *kernel) {
    char head[80];
    snprintf(head, sizeof head, "void %s(", kernel);
    const char *at = strstr(source, head);
    at = at != NULL ? strstr(at, "// MISTAKE") : NULL;
    uint32_t line = at != NULL ? 1 : 0;
    for (const char *c = source; at != NULL && c < at; c++) {
        line += *c == '\n';
    }
    return line;
}

static void make_mistake(const struct mistake *m, const char *source) {
    struct stage s;
    ASSERT_TRUE(open_stage(&s));
    EXPECT_TRUE(!launch_testing_block(&s.t, m->kernel, m->threads, &s.parameters));
    char *message = launch_testing_message(&s.t.fault);
    if (message != NULL && (s.t.fault.kind != m->kind || strstr(message, m->words[0]) == NULL ||
                            strstr(message, m->words[1]) == NULL)) {
        TEST_FAIL("%s: %s", m->kernel, message);
    }
    EXPECT_INT_EQ(marked_line(source, m->kernel), s.t.fault.line);
    free(message);
    launch_testing_close(&s.t);
}

C_TEST(copies, touched_too_early) {
    char *source = NULL;
    size_t size = 0;
    struct error error = {0};
    ASSERT_OK(file_read(COPIES_CU, (size_t)1 << 20, &source, &size, &error));
    for (size_t n = 0; n < sizeof mistakes / sizeof *mistakes; n++) {
        make_mistake(&mistakes[n], source);
    }
    free(source);
}

/* Without full checks a copy is there at once. */
C_TEST(copies, not_watched_without_full_checks) {
    struct stage s;
    ASSERT_TRUE(open_stage(&s));
    launch_testing_run_clean(&s.t, LAUNCH(.kernel = "reads_at_once", .threads = {THREADS},
                                          .parameters = &s.parameters, .bounds_only = true));
    launch_testing_close(&s.t);
}
