#include "grader/harness/remote_bert.h"

#include <math.h>

#include "common/base/rng.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/models/engine.h"
#include "common/testing/testing.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/watch.h"
#include "grader/isolation/remote_device.h"

/* Most rows that the batch may have. */
static size_t most_rows(const struct remote_bert_job *job) {
    return job->input.B * job->config.T;
}

static size_t rows_of(const struct bert_input *input) {
    return input->starts != NULL ? (size_t)input->starts[input->B] : input->B * input->T;
}

/* The reference's model; zeros before it is created. */
struct reference {
    struct bert_random model;
    struct engine engine;
    struct bert *bert;
};

static enum status run_reference(struct reference *r, const struct remote_bert_job *job,
                                 float *logits) {
    const struct bert_output output = {.logits = logits};
    TRY(bert_random_create(&r->model, &job->config, job->seed));
    TRY(engine_reference_create(&r->engine));
    TRY(bert_create(&r->bert, &r->model.config, &r->model.weights, &r->engine, most_rows(job),
                    NULL));
    return bert_forward(r->bert, &job->input, &output);
}

enum status remote_bert_reference(const struct remote_bert_job *job, float *logits) {
    struct reference reference = {0};
    enum status status = run_reference(&reference, job, logits);
    bert_free(reference.bert);
    engine_destroy(&reference.engine);
    bert_random_free(&reference.model);
    return status;
}

/* Code that has seen a batch may remember its result: each call after the first has new tokens. */
static void renew_tokens(const struct remote_bert *bert, const struct remote_bert_job *job,
                         struct rng *rng) {
    int32_t *ids = (int32_t *)bert->input.ids; /* in the arena, where remote_bert_create() put it */
    for (size_t i = 0; i < rows_of(&job->input); i++) {
        ids[i] = (int32_t)rng_below(rng, job->config.V);
    }
}

static enum status run_calls(struct remote_bert *bert, const struct remote_bert_job *job, int calls,
                             float *logits, double *best, struct error *error) {
    struct rng rng = rng_create(job->fresh);
    for (int call = 0; call < calls; call++) {
        double ms = INFINITY;
        if (call > 0) {
            renew_tokens(bert, job, &rng);
        }
        TRY(remote_bert_run(bert, logits + (size_t)call * bert->count, &ms, error));
        *best = fmin(*best, ms);
    }
    return STATUS_OK;
}

static enum status time_calls(struct remote_bert *bert, const struct remote_bert_job *job,
                              enum remote_side which, int calls, float *logits, double *best,
                              struct error *error) {
    if (which != REMOTE_SUBJECT) {
        TRY(remote_open_device(error));
    }
    TRY(remote_bert_create(bert, &job->config, job->seed, &job->input, most_rows(job), error));
    return run_calls(bert, job, calls, logits, best, error);
}

double remote_bert_fastest(const struct remote_bert_job *job, enum remote_side which, int calls,
                           float *logits) {
    struct remote_bert bert = {0};
    struct error error = {0};
    double best = INFINITY;
    remote_use(which);
    grader_watch(job->what, job->seconds);
    enum status status = time_calls(&bert, job, which, calls, logits, &best, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", job->what, error_text(&error, status), status_name(status));
    }
    remote_bert_free(&bert);
    return best;
}

void remote_bert_check_possible(const struct remote_bert_job *job, const struct grader_gpu *gpu,
                                double ms) {
    const struct bert_config *c = &job->config;
    double weights =
        (double)c->L * (4.0 * (double)c->C * (double)c->C + 2.0 * (double)c->C * (double)c->hidden);
    double least = 2e3 * (double)rows_of(&job->input) * weights / gpu->properties.peak_flops;
    if (ms < 0.9 * least) {
        TEST_FAIL("%s: %.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done",
                  job->what, ms, least);
    }
}
