/*
 * Lab 13, speedup: one row times int8 and times int4 weights, and eight rows at once, against what
 * the course had before: solved lab 09's product with weights in bf16, a call for each row. Both in
 * one run. On a GPU time is measured and the fastest of several calls counts,
 * on both sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>

#include "common/testing/testing.h"
#include "grader/13_low_bit/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/gpu.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/13_low_bit/problem/problem.h"

static const char lab[] = "13_low_bit";

enum { PATIENCE = 60 /* seconds */, CALLS = 7, CHECKED = 64 /* columns, on a GPU */ };

struct race {
    struct low_bit_case c;
    struct rng rng;
    struct low_bit_data data; /* in the subject's worker */
    bool made[REMOTE_SIDES];
    struct kv_linear bf16; /* in the baseline's */
    void *d_weight, *d_in, *d_out;
};

/* The matrix, in the subject's worker, prepared there; not timed. */
static enum status make_subject(struct race *race, struct error *error) {
    struct low_bit_data *data = &race->data;
    TRY(low_bit_data_create(data, &race->c, error));
    struct low_bit_prepare_call call = {data->matrix, data->prepared.data, NULL};
    TRY(remote_finish_watched(remote_call("low_bit_prepare", &call, sizeof call, error), NULL,
                              error));
    struct simt_profile untimed; /* so that "why" is about what is timed */
    (void)remote_device_longest(&untimed);
    return STATUS_OK;
}

/* A matrix and rows as large in bf16 and fp32; the time does not depend on the numbers. */
static enum status make_baseline(struct race *race, struct error *error) {
    const struct low_bit_case *c = &race->c;
    size_t weights = c->N * c->K * 2, in = c->M * c->K * sizeof(float);
    TRY(device_alloc(&race->d_weight, weights, error));
    TRY(device_alloc(&race->d_in, in, error));
    TRY(device_alloc(&race->d_out, c->M * c->N * sizeof(float), error));
    TRY(device_set(race->d_weight, 0x3c, weights, NULL, error));
    TRY(device_set(race->d_in, 0x3c, in, NULL, error));
    race->bf16 = (struct kv_linear){.N = c->N,
                                    .K = c->K,
                                    .dtype = NN_BF16,
                                    .weight = race->d_weight,
                                    .in = race->d_in,
                                    .out = race->d_out};
    return device_synchronize(NULL, error);
}

static enum status time_subject(struct race *race, double *ms, struct error *error) {
    struct low_bit_data *data = &race->data;
    TRY(low_bit_data_redraw(data, grader_secret(&race->rng), error));
    struct low_bit_linear_call call = {data->linear, data->workspace, NULL};
    return remote_call_timed("low_bit_linear", &call, sizeof call, NULL, ms, error);
}

static enum status time_baseline(struct race *race, double *ms, struct error *error) {
    struct bf16_linear_call call = {race->bf16, race->c.M, NULL};
    return remote_call_timed("bf16_linear", &call, sizeof call, NULL, ms, error);
}

static enum status time_side(struct race *race, enum remote_side which, double *ms,
                             struct error *error) {
    const bool subject = which == REMOTE_SUBJECT;
    if (!race->made[which]) {
        race->made[which] = true;
        TRY((subject ? make_subject : make_baseline)(race, error));
    }
    return (subject ? time_subject : time_baseline)(race, ms, error);
}

static void check_result(struct race *race) {
    struct error error = {0};
    char wrong[400];
    double out = (double)race->c.M * (double)race->c.N * 2.0;
    remote_check_counted(low_bit_case_flops(&race->c), REMOTE_16_BIT_PRODUCTS);
    remote_check_counted_bytes(low_bit_case_bytes(&race->c));
    remote_check_sent(0.0, out);
    enum status status = low_bit_data_check(&race->data, wrong, sizeof wrong, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else if (wrong[0] != '\0') {
        TEST_FAIL("a timed result is wrong: %s: %s", race->data.name, wrong);
    }
}

/* Milliseconds of one call with fresh rows; the subject's result is checked. */
static double time_call(void *argument, bool subject) {
    struct race *race = argument;
    struct error error = {0};
    double ms = INFINITY;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    remote_use(which);
    grader_watch(subject ? "product, timed" : "lab 09's product in bf16", PATIENCE);
    enum status status = time_side(race, which, &ms, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", subject ? race->data.name : "lab 09's product in bf16",
                  error_text(&error, status));
    } else if (subject) {
        check_result(race);
    }
    return ms;
}

/* Bytes beyond L2's size come from memory, at its bandwidth. */
static void check_possible(const struct race *race, const struct grader_gpu *gpu, double ms) {
    double outside = low_bit_case_bytes(&race->c) - (double)gpu->properties.l2_bytes;
    double least = 1e3 * outside / gpu->properties.memory_bandwidth;
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's memory allows, %.4g ms: the work was not done",
                  ms, least);
    }
}

static void free_race(struct race *race) {
    remote_use(REMOTE_SUBJECT);
    low_bit_data_free(&race->data);
    remote_use(REMOTE_BASELINE);
    device_free(race->d_weight);
    device_free(race->d_in);
    device_free(race->d_out);
}

static void compare(const char *measure, struct low_bit_case c) {
    struct grader_gpu gpu;
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    if (gpu.properties.code < 80) {
        TEST_SKIP("products of bf16 need compute capability 8.0");
    }
    struct race race = {.c = c, .rng = grader_rng()};
    race.c.N = gpu.modelled ? 4096 : 32768;
    race.c.K = gpu.modelled ? 2048 : 8192;
    race.c.out_dtype = NN_BF16;
    race.c.checked = gpu.modelled ? 0 : CHECKED;
    race.c.only_out = !gpu.modelled;
    race.c.seed = grader_secret(&race.rng) | 1;
    const struct work work = {.read_bytes = low_bit_case_bytes(&race.c), .warm = true};
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, measure);
    ASSERT_DONE(remote_open_side(REMOTE_BASELINE, &error), &error);
    speedup.least = grader_gpu_least_time(&work);
    speedup_measure(&speedup, CALLS, time_call, &race);
    if (!test_has_failed()) {
        check_possible(&race, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    free_race(&race);
}

static const struct low_bit_case int4 = {
    .type = LOW_BIT_INT4, .group = 128, .scale_dtype = NN_BF16, .has_zeros = true};

C_TEST(speedup, int8) {
    compare("int8", (struct low_bit_case){.type = LOW_BIT_INT8, .M = 1});
}

C_TEST(speedup, int4) {
    struct low_bit_case c = int4;
    c.M = 1;
    compare("int4", c);
}

C_TEST(speedup, eight_rows) {
    struct low_bit_case c = int4;
    c.M = 8;
    compare("eight_rows", c);
}
