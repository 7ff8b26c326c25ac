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

enum status remote_bert_reference(const struct remote_bert_job *job, float *logits) {
    struct bert_random model = {0};
    struct engine engine = {0};
    struct bert *bert = NULL;
    const struct bert_output output = {.logits = logits};
    enum status status = bert_random_create(&model, &job->config, job->seed);
    if (status == STATUS_OK) {
        status = engine_reference_create(&engine);
    }
    if (status == STATUS_OK) {
        status = bert_create(&bert, &model.config, &model.weights, &engine, most_rows(job), NULL);
    }
    if (status == STATUS_OK) {
        status = bert_forward(bert, &job->input, &output);
    }
    bert_free(bert);
    engine_destroy(&engine);
    bert_random_free(&model);
    return status;
}

/* Who has seen a batch may remember its result: each call after the first has other tokens. */
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

double remote_bert_fastest(const struct remote_bert_job *job, enum remote_side which, int calls,
                           float *logits) {
    struct remote_bert bert = {0};
    struct error error = {0};
    double best = INFINITY;
    remote_use(which);
    grader_watch(job->what, job->seconds);
    enum status status = which == REMOTE_SUBJECT ? STATUS_OK : remote_open_device(&error);
    if (status == STATUS_OK) {
        status =
            remote_bert_create(&bert, &job->config, job->seed, &job->input, most_rows(job), &error);
    }
    if (status == STATUS_OK) {
        status = run_calls(&bert, job, calls, logits, &best, &error);
    }
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
