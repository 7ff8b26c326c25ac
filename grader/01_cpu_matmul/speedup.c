/*
 * Lab 01, speedup: the kernel and the model against the naive triple loop, in
 * one run. The fastest of several calls counts, on both sides: other work on
 * the machine can only add time.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/bench/bench.h"
#include "common/models/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/01_cpu_matmul/calls.h"
#include "grader/01_cpu_matmul/remote.h"
#include "grader/harness/logits.h"
#include "grader/harness/no_vendor_library.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watch.h"
#include "grader/isolation/remote.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

static const char lab[] = "01_cpu_matmul";

enum { SIZE = 512, FLOATS = SIZE * SIZE, CALLS = 9, PATIENCE = 20 /* seconds */ };

/* One problem with values that change with each call, and copies in both workers. */
struct kernel_case {
    struct rng rng;
    struct matmul_data data;
    float *got;
    struct remote_matmul sides[REMOTE_SIDES];
};

static enum status kernel_create(struct kernel_case *k, struct error *error) {
    const struct matmul_shape shape = {SIZE, SIZE, SIZE};
    *k = (struct kernel_case){.rng = rng_create(grader_seed())};
    k->got = malloc(FLOATS * sizeof(float));
    if (k->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(matmul_data_allocate(&k->data, shape, 0, error));
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        TRY(remote_matmul_create(&k->sides[i], shape, 0, error));
    }
    return STATUS_OK;
}

static void kernel_free(struct kernel_case *k) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_matmul_free(&k->sides[i]);
    }
    matmul_data_free(&k->data);
    free(k->got);
}

/* One call. Its inputs are new, and the worker has them only just before the call. */
static enum status run_kernel(struct kernel_case *k, struct remote_matmul *side, double *ms,
                              struct error *error) {
    struct matmul_call call = {.out = side->out.data,
                               .in = side->in.data,
                               .weight = side->weight.data,
                               .M = SIZE,
                               .N = SIZE,
                               .K = SIZE,
                               .threads = bench_cpu_count()};
    matmul_data_draw(&k->data, MATMUL_ROWS, &k->rng);
    remote_matmul_put(side, &k->data);
    return remote_call_timed("matmul", &call, sizeof call, NULL, ms, error);
}

/* Every timed result of the subject is checked against the oracle. */
static enum status check_result(struct kernel_case *k, struct error *error) {
    bool intact;
    char text[512];
    TRY(remote_buffer_get(&k->sides[REMOTE_SUBJECT].out, k->got, &intact, NULL, error));
    matmul_data_calculate(&k->data);
    if (!matmul_check(&k->data, k->got, text, sizeof text)) {
        TEST_FAIL("a timed result is wrong: shape M=%d N=%d K=%d: %s", SIZE, SIZE, SIZE, text);
    } else if (!intact) {
        TEST_FAIL("shape M=%d N=%d K=%d: wrote outside of the output", SIZE, SIZE, SIZE);
    }
    return STATUS_OK;
}

static enum status run_checked(struct kernel_case *k, enum remote_side side, double *ms,
                               struct error *error) {
    grader_watch("kernel, shape M=512 N=512 K=512", PATIENCE);
    enum status status = run_kernel(k, &k->sides[side], ms, error);
    grader_watch("", 0);
    TRY(status);
    return side == REMOTE_SUBJECT ? check_result(k, error) : STATUS_OK;
}

/* Milliseconds of one call with fresh inputs. */
static double time_call(void *argument, bool subject) {
    struct kernel_case *k = argument;
    enum remote_side side = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct error error = {0};
    double ms = INFINITY;
    remote_use(side);
    enum status status = run_checked(k, side, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("kernel, shape M=%d N=%d K=%d: %s", SIZE, SIZE, SIZE, error_text(&error, status));
    }
    return ms;
}

/* Two units of 16 lanes that multiply and add, at 6 GHz: more than any core has. */
static const double MOST_FLOPS_A_CORE = 2.0 * 16.0 * 2.0 * 6e9;

static void check_possible(double ms) {
    double flops = 2.0 * SIZE * SIZE * SIZE;
    double least = 1e3 * flops / (bench_cpu_count() * MOST_FLOPS_A_CORE);
    if (ms < least) {
        TEST_FAIL("%.4g ms is less than any CPU of %d cores needs, %.4g ms: the work was not done",
                  ms, bench_cpu_count(), least);
    }
}

static struct speedup speedup_of(const char *measure) {
    return (struct speedup){.lab = lab,
                            .subject = GRADER_SUBJECT,
                            .measure = measure,
                            .margin = GRADER_MARGIN,
                            .baseline_ms = INFINITY,
                            .subject_ms = INFINITY};
}

C_TEST(speedup, kernel) {
    struct kernel_case k;
    struct error error = {0};
    struct speedup speedup = speedup_of("kernel");
    remote_close();
    enum status status = kernel_create(&k, &error);
    if (status == STATUS_OK) {
        speedup_measure(&speedup, CALLS, time_call, &k);
    } else {
        TEST_FAIL("%s", error_text(&error, status));
    }
    if (!test_has_failed()) {
        check_possible(speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    kernel_free(&k);
}

enum { DECODE_TOKENS = 24, DECODE_ROUNDS = 5, BUSY_ROUNDS = 20 };

/* The same model on both sides; logits of all tokens, (DECODE_TOKENS, V) each. */
struct decoders {
    struct remote_llama2 sides[REMOTE_SIDES];
    float *logits[REMOTE_SIDES];
    size_t V;
};

static enum status decoders_create(struct decoders *d, struct error *error) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    struct rng rng = rng_create(grader_seed());
    uint64_t seed = rng_u64(&rng);
    *d = (struct decoders){.V = config.V};
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        d->logits[i] = calloc(DECODE_TOKENS * config.V, sizeof(float));
        if (d->logits[i] == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
        }
        TRY(remote_llama2_create(&d->sides[i], &config, seed, 1, NULL, error));
    }
    return STATUS_OK;
}

static void decoders_free(struct decoders *d) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        remote_llama2_free(&d->sides[i]);
        free(d->logits[i]);
    }
}

/* Decodes all tokens; *best: the fastest step, in ms. */
static enum status decode(struct decoders *d, enum remote_side which, double *best,
                          struct error *error) {
    for (size_t i = 0; i < DECODE_TOKENS; i++) {
        int32_t token = (int32_t)(1 + 977 * (i % 32));
        double ms = INFINITY;
        TRY(remote_llama2_forward(&d->sides[which], &token, 1, i, d->logits[which] + i * d->V, &ms,
                                  error));
        *best = fmin(*best, ms);
    }
    return STATUS_OK;
}

/* Fastest decode step, in ms. */
static double time_decode(struct decoders *d, enum remote_side which) {
    struct error error = {0};
    double best = INFINITY;
    remote_use(which);
    grader_watch("Llama2 decode, 15M shape", PATIENCE);
    enum status status = decode(d, which, &best, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2 decode: %s", error_text(&error, status));
    }
    return best;
}

/* Whether another process runs, according to the kernel; this program's workers wait now. */
static bool machine_is_busy(void) {
    int running = 1;
    FILE *file = fopen("/proc/loadavg", "r");
    if (file != NULL) {
        if (fscanf(file, "%*f %*f %*f %d", &running) != 1) {
            running = 1;
        }
        fclose(file);
    }
    return running > 1;
}

/*
 * Other work on the machine slows threads that wait for each other most. So a speedup that was
 * missed is measured again a little later, on both sides, and more often while there is other
 * work; the fastest step of all rounds counts.
 */
static void measure_decode(struct speedup *speedup, struct decoders *d) {
    for (int round = 0; (round < DECODE_ROUNDS || (round < BUSY_ROUNDS && machine_is_busy())) &&
                        !test_has_failed();
         round++) {
        if (round > 0) {
            usleep(300000);
        }
        speedup->baseline_ms = fmin(speedup->baseline_ms, time_decode(d, REMOTE_BASELINE));
        speedup->subject_ms = fmin(speedup->subject_ms, time_decode(d, REMOTE_SUBJECT));
        grader_check_timed_logits(d->logits[REMOTE_SUBJECT], d->logits[REMOTE_BASELINE],
                                  DECODE_TOKENS * d->V, "decoding with your matmul");
        if (speedup_reached(speedup)) {
            break;
        }
    }
}

C_TEST(speedup, end_to_end) {
    struct decoders d;
    struct error error = {0};
    struct speedup speedup = speedup_of("end_to_end");
    remote_close();
    enum status status = decoders_create(&d, &error);
    if (status == STATUS_OK) {
        measure_decode(&speedup, &d);
    } else {
        TEST_FAIL("Llama2: %s", error_text(&error, status));
    }
    if (!test_has_failed()) {
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    decoders_free(&d);
}
