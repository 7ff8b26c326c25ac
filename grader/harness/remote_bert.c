#include "grader/harness/remote_bert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/models/engine.h"
#include "common/testing/testing.h"
#include "grader/harness/baseline_times.h"
#include "grader/harness/logits.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote_device.h"

struct bert_config remote_bert_config(struct bert_config sizes) {
    sizes.types = 2;
    sizes.norm_eps = 1e-12f;
    sizes.activation = NN_GELU;
    return sizes;
}

void remote_bert_draw(struct remote_bert_job *job, int32_t *ids, size_t count) {
    struct rng rng = grader_rng();
    job->fresh = grader_secret(&rng);
    job->seed = grader_secret(&rng);
    job->secret = true;
    rng = grader_text_rng(&rng);
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)rng_below(&rng, job->config.V);
    }
}

/* Most rows that the batch may have. */
static size_t most_rows(const struct remote_bert_job *job) {
    return job->input.B * job->config.T;
}

static size_t rows_of(const struct bert_input *input) {
    return input->starts != NULL ? (size_t)input->starts[input->B] : input->B * input->T;
}

/* Code that has seen a batch may remember its result: each call after the first has new tokens. */
static void renew_tokens(int32_t *ids, const struct remote_bert_job *job, struct rng *rng) {
    struct rng text = grader_text_rng(rng);
    for (size_t i = 0; i < rows_of(&job->input); i++) {
        ids[i] = (int32_t)rng_below(&text, job->config.V);
    }
}

/* The reference's model and its tokens; zeros before it is created. */
struct reference {
    struct bert_random model;
    struct engine engine;
    struct bert *bert;
    int32_t *ids;
};

static enum status create_reference(struct reference *r, const struct remote_bert_job *job) {
    size_t count = rows_of(&job->input);
    r->ids = malloc(count * sizeof *r->ids);
    if (r->ids == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memcpy(r->ids, job->input.ids, count * sizeof *r->ids);
    TRY(bert_random_create(&r->model, &job->config, job->seed));
    TRY(engine_reference_create(&r->engine));
    return bert_create(&r->bert, &r->model.config, &r->model.weights, &r->engine, most_rows(job),
                       NULL);
}

static enum status run_reference(struct reference *r, const struct remote_bert_job *job, int calls,
                                 float *logits) {
    struct rng rng = rng_create(job->fresh);
    struct bert_input input = job->input;
    TRY(create_reference(r, job));
    input.ids = r->ids;
    for (int call = 0; call < calls; call++) {
        const struct bert_output output = {.logits = logits +
                                                     (size_t)call * input.B * job->config.labels};
        if (call > 0) {
            renew_tokens(r->ids, job, &rng);
        }
        TRY(bert_forward(r->bert, &input, &output));
    }
    return STATUS_OK;
}

enum status remote_bert_reference(const struct remote_bert_job *job, int calls, float *logits) {
    struct reference reference = {0};
    enum status status = run_reference(&reference, job, calls, logits);
    bert_free(reference.bert);
    engine_destroy(&reference.engine);
    bert_random_free(&reference.model);
    free(reference.ids);
    return status;
}

/* Of the layers' matrices. */
static double weights_of(const struct remote_bert_job *job) {
    const struct bert_config *c = &job->config;
    return (double)c->L *
           (4.0 * (double)c->C * (double)c->C + 2.0 * (double)c->C * (double)c->hidden);
}

static bool in_16_bits(const struct remote_bert_job *job) {
    return job->products == REMOTE_16_BIT_PRODUCTS;
}

/* Of the layers' matmuls, which no engine leaves out. */
static double flops_of(const struct remote_bert_job *job) {
    return 2.0 * (double)rows_of(&job->input) * weights_of(job);
}

static enum status run_calls(struct remote_bert *bert, const struct remote_bert_job *job,
                             enum remote_side which, int calls, float *logits, double *best,
                             struct error *error) {
    struct rng rng = rng_create(job->fresh);
    for (int call = 0; call < calls; call++) {
        double ms = INFINITY;
        if (call > 0) {
            /* In the arena, where remote_bert_create() put them. */
            renew_tokens((int32_t *)bert->input.ids, job, &rng);
        }
        TRY(remote_bert_run(bert, logits + (size_t)call * bert->count, &ms, error));
        if (which == REMOTE_SUBJECT) {
            remote_check_counted(flops_of(job), job->products);
            remote_check_counted_bytes((in_16_bits(job) ? 2.0 : 4.0) * weights_of(job));
            if (job->secret) {
                remote_check_fetched(4.0 * weights_of(job));
            }
        }
        *best = fmin(*best, ms);
    }
    return STATUS_OK;
}

static enum status time_calls(struct remote_bert *bert, const struct remote_bert_job *job,
                              enum remote_side which, unsigned without, int calls, float *logits,
                              double *best, struct error *error) {
    if (which != REMOTE_SUBJECT) {
        TRY(remote_open_device(error));
    }
    TRY(remote_bert_create(bert, &job->config, job->seed, &job->input, most_rows(job), without,
                           job->secret && which == REMOTE_SUBJECT, error));
    return run_calls(bert, job, which, calls, logits, best, error);
}

static double fastest(const struct remote_bert_job *job, enum remote_side which, unsigned without,
                      int calls, float *logits) {
    struct remote_bert bert = {0};
    struct error error = {0};
    double best = INFINITY;
    remote_use(which);
    grader_watch(job->what, job->seconds);
    enum status status = time_calls(&bert, job, which, without, calls, logits, &best, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", job->what, error_text(&error, status), status_name(status));
    }
    remote_bert_free(&bert);
    return best;
}

double remote_bert_fastest(const struct remote_bert_job *job, enum remote_side which, int calls,
                           float *logits) {
    return fastest(job, which, WORKER_ALL_OPERATORS, calls, logits);
}

void remote_bert_expect(const struct remote_bert_job *job, const float *want,
                        remote_bert_check *check, const char *whose) {
    float got[REMOTE_BERT_SMALL] = {0};
    size_t count = job->input.B * job->config.labels;
    ASSERT_TRUE(count <= REMOTE_BERT_SMALL);
    (void)remote_bert_fastest(job, REMOTE_SUBJECT, 1, got);
    if (!test_has_failed()) {
        check(got, want, count, whose);
    }
}

void remote_bert_parity(struct remote_bert_job job, remote_bert_check *check, const char *whose) {
    struct grader_gpu gpu;
    float want[REMOTE_BERT_SMALL] = {0};
    struct rng rng = grader_rng();
    ASSERT_TRUE(job.input.B * job.config.labels <= REMOTE_BERT_SMALL);
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    job.seed = grader_secret(&rng);
    ASSERT_OK(remote_bert_reference(&job, 1, want));
    remote_bert_expect(&job, want, check, whose);
}

/*
 * What must come where the baseline's time is recorded. Its worker opens the device all the same:
 * what the subject's says of its GPU is compared with that.
 */
static enum status expect_reference(const struct remote_bert_job *job, int calls, float *want,
                                    struct error *error) {
    TRY(remote_open_side(REMOTE_BASELINE, error));
    return remote_bert_reference(job, calls, want);
}

/* The logits that must come, and the baseline's time unless it is recorded. */
static void run_baseline(const struct remote_bert_job *job, struct speedup *speedup, int calls,
                         float *want) {
    struct error error = {0};
    if (!speedup->recorded) {
        speedup->baseline_ms = remote_bert_fastest(job, REMOTE_BASELINE, calls, want);
        return;
    }
    enum status status = expect_reference(job, calls, want, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s, the reference: %s", job->what, error_text(&error, status));
    }
}

/* Without the lab's own operators; its logits mean nothing. */
static void time_rest(const struct remote_bert_job *job, struct speedup *speedup, int calls,
                      float *logits) {
    if (speedup->rest_ms == 0.0) {
        speedup->rest_ms = fastest(job, REMOTE_BASELINE, job->own, calls, logits);
    }
}

/*
 * The rest of a model takes no longer than all of it. Where it seems to, something held it up, and
 * it is timed again.
 */
static void time_rest_again(const struct remote_bert_job *job, struct speedup *speedup, int calls,
                            float *logits) {
    enum { TRIES = 3 };
    for (int i = 0; i < TRIES && !test_has_failed() && speedup->rest_ms >= speedup->subject_ms;
         i++) {
        speedup->rest_ms =
            fmin(speedup->rest_ms, fastest(job, REMOTE_BASELINE, job->own, calls, logits));
    }
}

static void run_both(const struct remote_bert_job *job, const struct grader_gpu *gpu,
                     struct speedup *speedup, int calls, float *logits, const char *what) {
    size_t count = (size_t)calls * job->input.B * job->config.labels;
    float *want = logits, *got = logits + count;
    time_rest(job, speedup, calls, want);
    run_baseline(job, speedup, calls, want);
    if (baseline_times_recording()) {
        return;
    }
    speedup->subject_ms = remote_bert_fastest(job, REMOTE_SUBJECT, calls, got);
    if (!test_has_failed()) {
        if (in_16_bits(job)) {
            grader_check_16_bit_logits(got, want, count, job->config.L, what);
        } else {
            grader_check_timed_logits(got, want, count, what);
        }
        remote_bert_check_possible(job, gpu, speedup->subject_ms);
        if (!gpu->modelled) {
            time_rest_again(job, speedup, calls, want);
        }
    }
}

void remote_bert_compare(const struct remote_bert_job *job, const struct grader_gpu *gpu,
                         struct speedup *speedup, int calls, const char *what) {
    calls = speedup_calls(calls) + (gpu->modelled ? 0 : 1); /* the first loads the kernels */
    float *logits = calloc(2 * (size_t)calls * job->input.B * job->config.labels, sizeof *logits);
    if (logits == NULL) {
        TEST_FAIL("the grader is out of memory");
        return;
    }
    run_both(job, gpu, speedup, calls, logits, what);
    free(logits);
    if (!test_has_failed()) {
        struct work work = job->work;
        work.rest_ms = speedup->rest_ms;
        speedup->least = grader_gpu_least_time(&work);
        speedup_check(speedup, __FILE__, __LINE__);
    }
}

void remote_bert_check_possible(const struct remote_bert_job *job, const struct grader_gpu *gpu,
                                double ms) {
    /* No GPU multiplies more than 16 times as fast in 16 bits. */
    double peak = gpu->properties.peak_flops * (in_16_bits(job) ? 16.0 : 1.0);
    double least = 1e3 * flops_of(job) / peak;
    if (ms < 0.9 * least) {
        TEST_FAIL("%s: %.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done",
                  job->what, ms, least);
    }
}
