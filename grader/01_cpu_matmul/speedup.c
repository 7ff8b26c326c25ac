/*
 * Lab 01, speedup: the kernel and the model against what this CPU can do, found
 * by probes in the same run. Rounds of probe, baseline and subject repeat until
 * the verdict is certain, see rounds.h; other work on the machine slows all three.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/models/decode_model.h"
#include "common/models/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/01_cpu_matmul/calls.h"
#include "grader/01_cpu_matmul/cpu_limit.h"
#include "grader/01_cpu_matmul/remote.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/rounds_speedup.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

static const char lab[] = "01_cpu_matmul";

enum { SIZE = 512, FLOATS = SIZE * SIZE, PATIENCE = 20 /* seconds */ };

static const struct matmul_shape SHAPE = {SIZE, SIZE, SIZE};

/* One problem with values that change with each call, and copies in both workers. */
struct kernel_case {
    struct rng rng;
    struct matmul_data data;
    float *got;
    struct remote_matmul sides[REMOTE_SIDES];
    struct cpu_limit limit;
    double before_ms, ran_ms;  /* by the limit's probes, before there is a worker */
    double baseline_before_ms; /* before there is the subject's */
};

/* The baseline is slow, and nothing is decided by it. */
enum { PROBES = 4, CALLS = 4, BASELINE_ROUNDS = 4, BASELINE_BEFORE = 2 };

static void kernel_free(struct kernel_case *k) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_matmul_free(&k->sides[i]);
    }
    matmul_data_free(&k->data);
    cpu_limit_free(&k->limit);
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
                               .threads = graded_threads()};
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

/* Milliseconds of the fastest of some calls, each with fresh inputs. @param all_ms receives their
 * sum
 */
static double time_calls(struct kernel_case *k, enum remote_side side, int calls, double *all_ms) {
    struct error error = {0};
    double best = INFINITY;
    remote_use(side);
    *all_ms = 0.0;
    for (int i = 0; i < calls && !test_has_failed(); i++) {
        double ms = INFINITY;
        enum status status = run_checked(k, side, &ms, &error);
        if (status != STATUS_OK) {
            TEST_FAIL("kernel, shape M=%d N=%d K=%d: %s", SIZE, SIZE, SIZE,
                      error_text(&error, status));
        }
        best = fmin(best, ms);
        *all_ms += ms;
    }
    return best;
}

static enum status kernel_create(struct kernel_case *k, struct error *error) {
    *k = (struct kernel_case){.rng = grader_rng()};
    k->got = malloc(FLOATS * sizeof(float));
    if (k->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    const struct cpu_work work = {matmul_flops(SHAPE), matmul_bytes(SHAPE), .loops = 1};
    double ignored;
    TRY(cpu_limit_create(&k->limit, graded_threads(), work, error));
    k->before_ms = cpu_limit_ms(&k->limit, PROBES, &k->ran_ms);
    TRY(matmul_data_allocate(&k->data, SHAPE, 0, error));
    remote_use(REMOTE_BASELINE);
    TRY(remote_matmul_create(&k->sides[REMOTE_BASELINE], SHAPE, 0, error));
    k->baseline_before_ms = time_calls(k, REMOTE_BASELINE, BASELINE_BEFORE, &ignored);
    remote_use(REMOTE_SUBJECT);
    return remote_matmul_create(&k->sides[REMOTE_SUBJECT], SHAPE, 0, error);
}

static struct round_times kernel_round(void *argument, int number) {
    struct kernel_case *k = argument;
    struct round_times times = {.baseline_ms = INFINITY};
    double ignored;
    times.ideal_ms = cpu_limit_ms(&k->limit, PROBES, &times.ran_ms);
    if (number < BASELINE_ROUNDS) {
        times.baseline_ms = time_calls(k, REMOTE_BASELINE, 1, &ignored);
    }
    remote_use(REMOTE_SUBJECT);
    times.waited_ms = -remote_waited_ms();
    times.subject_ms = time_calls(k, REMOTE_SUBJECT, speedup_calls(CALLS), &times.called_ms);
    remote_check_threads(graded_threads());
    times.waited_ms += remote_waited_ms();
    return times;
}

/* Two units of 16 lanes that multiply and add, at 6 GHz: more than any core has. */
static const double MOST_FLOPS_A_CORE = 2.0 * 16.0 * 2.0 * 6e9;

static void check_possible(double ms) {
    double flops = 2.0 * SIZE * SIZE * SIZE;
    double least = 1e3 * flops / (graded_threads() * MOST_FLOPS_A_CORE);
    if (ms < least) {
        TEST_FAIL("%.4g ms is less than any CPU of %d cores needs, %.4g ms: the work was not done",
                  ms, graded_threads(), least);
    }
}

static struct speedup speedup_of(const char *measure, const char *limit) {
    return (struct speedup){.lab = lab,
                            .subject = graded_subject.name,
                            .measure = measure,
                            .margin = graded_subject.margin,
                            .one_cpu = graded_threads() == 1,
                            .least = {.limit = limit}};
}

C_TEST(speedup, kernel) {
    struct kernel_case k;
    struct error error = {0};
    struct speedup speedup = speedup_of("kernel", "the CPU's fp32 speed");
    struct rounds rounds = {0};
    remote_close();
    enum status status = kernel_create(&k, &error);
    if (status == STATUS_OK) {
        rounds.before_ms = k.before_ms;
        rounds.ran_ms = k.ran_ms;
        rounds.baseline_before_ms = k.baseline_before_ms;
        rounds_measure(&rounds, &speedup, kernel_round, &k);
    } else {
        TEST_FAIL("%s", error_text(&error, status));
    }
    if (!test_has_failed()) {
        check_possible(speedup.subject_ms);
        rounds_check(&rounds, &speedup, __FILE__, __LINE__);
    }
    kernel_free(&k);
}

enum { DECODE_TOKENS = 24 };

/* The same model on both sides; logits of all tokens, (DECODE_TOKENS, V) each. */
struct decoders {
    struct remote_llama2 sides[REMOTE_SIDES];
    float *logits[REMOTE_SIDES];
    size_t V;
    struct rng rng; /* of the tokens */
    int32_t tokens[DECODE_TOKENS];
    struct cpu_limit limit;
    double before_ms, ran_ms;  /* by the limit's probes, before there is a worker */
    double baseline_before_ms; /* before there is the subject's */
};

/* What a token takes: each weight is read once, and multiplied with one number; one loop for each
   of the matrices, seven in a layer and the classifier. */
static struct cpu_work token_work(const struct llama2_config *config) {
    double bytes = decode_token_bytes(config, NN_F32);
    return (struct cpu_work){
        .flops = 2.0 * bytes / sizeof(float), .bytes = bytes, .loops = 7 * (int)config->L + 1};
}

static void decoders_free(struct decoders *d) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        remote_llama2_free(&d->sides[i]);
        free(d->logits[i]);
    }
    cpu_limit_free(&d->limit);
}

/* Decodes this round's tokens; *best: the fastest step, in ms, *all: all steps. */
static enum status decode(struct decoders *d, enum remote_side which, double *best, double *all,
                          struct error *error) {
    for (size_t i = 0; i < DECODE_TOKENS; i++) {
        double ms = INFINITY;
        TRY(remote_llama2_forward(&d->sides[which], &d->tokens[i], 1, i,
                                  d->logits[which] + i * d->V, &ms, error));
        *best = fmin(*best, ms);
        *all += ms;
    }
    return STATUS_OK;
}

/* Fastest decode step, in ms. @param all_ms receives the sum of all */
static double time_decode(struct decoders *d, enum remote_side which, double *all_ms) {
    struct error error = {0};
    double best = INFINITY;
    remote_use(which);
    *all_ms = 0.0;
    grader_watch("Llama2 decode, 15M shape", PATIENCE);
    enum status status = decode(d, which, &best, all_ms, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2 decode: %s", error_text(&error, status));
    }
    return best;
}

static void draw_tokens(struct decoders *d) {
    for (size_t i = 0; i < DECODE_TOKENS; i++) {
        d->tokens[i] = (int32_t)rng_below(&d->rng, d->V);
    }
}

/* The baseline first: it is timed before there is the subject's process. */
static enum status decoders_create(struct decoders *d, struct error *error) {
    static const enum remote_side order[] = {REMOTE_BASELINE, REMOTE_SUBJECT};
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    struct rng rng = grader_rng();
    uint64_t seed = grader_secret(&rng);
    double ignored;
    *d = (struct decoders){.V = config.V, .rng = grader_text_rng(&rng)};
    TRY(cpu_limit_create(&d->limit, graded_threads(), token_work(&config), error));
    d->before_ms = cpu_limit_ms(&d->limit, DECODE_TOKENS, &d->ran_ms);
    for (int i = 0; i < REMOTE_SIDES; i++) {
        enum remote_side side = order[i];
        remote_use(side);
        d->logits[side] = calloc(DECODE_TOKENS * config.V, sizeof(float));
        if (d->logits[side] == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
        }
        TRY(remote_llama2_create(&d->sides[side], &config, seed, 1, NULL, error));
        if (side == REMOTE_BASELINE) {
            draw_tokens(d);
            d->baseline_before_ms = time_decode(d, side, &ignored);
        }
    }
    return STATUS_OK;
}

/* Each round has tokens of its own, which the baseline decodes, too: its logits must come. */
static struct round_times decode_round(void *argument, int number) {
    struct decoders *d = argument;
    struct round_times times;
    double ignored;
    (void)number;
    draw_tokens(d);
    times.ideal_ms = cpu_limit_ms(&d->limit, DECODE_TOKENS, &times.ran_ms);
    times.baseline_ms = time_decode(d, REMOTE_BASELINE, &ignored);
    remote_use(REMOTE_SUBJECT);
    times.waited_ms = -remote_waited_ms();
    times.subject_ms = time_decode(d, REMOTE_SUBJECT, &times.called_ms);
    remote_check_threads(graded_threads());
    times.waited_ms += remote_waited_ms();
    grader_check_timed_logits(d->logits[REMOTE_SUBJECT], d->logits[REMOTE_BASELINE],
                              DECODE_TOKENS * d->V, "decoding with your matmul");
    return times;
}

C_TEST(speedup, end_to_end) {
    struct decoders d;
    struct error error = {0};
    struct speedup speedup = speedup_of("end_to_end", "the memory's speed");
    struct rounds rounds = {0};
    remote_close();
    enum status status = decoders_create(&d, &error);
    if (status == STATUS_OK) {
        rounds.before_ms = d.before_ms;
        rounds.ran_ms = d.ran_ms;
        rounds.baseline_before_ms = d.baseline_before_ms;
        rounds_measure(&rounds, &speedup, decode_round, &d);
    } else {
        TEST_FAIL("Llama2: %s", error_text(&error, status));
    }
    if (!test_has_failed()) {
        rounds_check(&rounds, &speedup, __FILE__, __LINE__);
    }
    decoders_free(&d);
}
