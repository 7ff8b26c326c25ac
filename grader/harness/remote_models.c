#include "grader/harness/remote_models.h"

#include <math.h>
#include <string.h>

#include "common/models/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote.h"

/* The reference's model; zeros before it is created. */
struct reference {
    struct llama2_random model;
    struct engine engine;
    struct llama2 *llama2;
};

static enum status run_reference(struct reference *r, struct small_llama2 *l, uint64_t seed) {
    TRY(llama2_random_create(&r->model, &l->config, seed));
    TRY(engine_reference_create(&r->engine));
    TRY(llama2_create(&r->llama2, &r->model.config, &r->model.weights, &r->engine, l->prompt,
                      NULL));
    TRY(llama2_forward(r->llama2, l->tokens, l->prompt, 0, NULL));
    for (size_t i = l->prompt; i < l->count; i++) {
        TRY(llama2_forward(r->llama2, l->tokens + i, 1, i, l->want));
    }
    return STATUS_OK;
}

/* On the reference engine, in this process. */
static enum status decode_here(struct small_llama2 *l, uint64_t seed) {
    struct reference reference = {0};
    enum status status = run_reference(&reference, l, seed);
    llama2_free(reference.llama2);
    engine_destroy(&reference.engine);
    llama2_random_free(&reference.model);
    return status;
}

static enum status decode_there(struct small_llama2 *l, uint64_t seed, struct error *error) {
    struct llama2_logits_call call = {
        .config = l->config, .seed = seed, .prompt = l->prompt, .count = l->count};
    void *tokens, *logits;
    TRY(remote_copy(&tokens, l->tokens, l->count * sizeof *l->tokens, error));
    TRY(remote_alloc(&logits, sizeof l->got, error));
    call.tokens = tokens;
    call.logits = logits;
    TRY(remote_call("llama2_logits", &call, sizeof call, error));
    memcpy(l->got, logits, sizeof l->got);
    return STATUS_OK;
}

bool remote_small_llama2(struct small_llama2 *l, const char *what, unsigned seconds) {
    struct rng rng = grader_rng();
    uint64_t seed = grader_secret(&rng);
    struct error error = {0};
    EXPECT_OK(decode_here(l, seed));
    remote_close(); /* a worker of this test's own */
    grader_watch(what, seconds);
    enum status status = decode_there(l, seed, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", what, error_text(&error, status), status_name(status));
    }
    return !test_has_failed();
}

enum status remote_llama2_create(struct remote_llama2 *llama2, const struct llama2_config *config,
                                 uint64_t seed, size_t batch, const struct remote_llama2 *beside,
                                 struct error *error) {
    struct llama2_create_call call = {.config = *config,
                                      .seed = seed,
                                      .batch = batch,
                                      .beside = beside != NULL ? beside->model : NULL};
    void *tokens, *logits;
    *llama2 = (struct remote_llama2){.batch = batch, .V = config->V};
    TRY(remote_alloc(&tokens, batch * sizeof(int32_t), error));
    TRY(remote_alloc(&logits, config->V * sizeof(float), error));
    TRY(remote_call("llama2_create", &call, sizeof call, error));
    llama2->model = call.model;
    llama2->tokens = tokens;
    llama2->logits = logits;
    return STATUS_OK;
}

enum status remote_llama2_forward(struct remote_llama2 *llama2, const int32_t *tokens, size_t count,
                                  size_t position, float *logits, double *ms, struct error *error) {
    struct llama2_forward_call call = {llama2->model, llama2->tokens, count, position,
                                       llama2->logits};
    if (count > llama2->batch) {
        return error_set(error, STATUS_TOO_LONG, "%zu tokens for a batch of %zu", count,
                         llama2->batch);
    }
    for (size_t i = 0; i < llama2->V; i++) {
        llama2->logits[i] = NAN;
    }
    memcpy(llama2->tokens, tokens, count * sizeof *tokens);
    TRY(ms != NULL ? remote_call_timed("llama2_forward", &call, sizeof call, NULL, ms, error)
                   : remote_call("llama2_forward", &call, sizeof call, error));
    memcpy(logits, llama2->logits, llama2->V * sizeof *logits);
    return STATUS_OK;
}

void remote_llama2_free(struct remote_llama2 *llama2) {
    struct llama2_forward_call call = {.model = llama2->model};
    if (llama2->model != NULL && remote_alive()) {
        enum status ignored = remote_call("llama2_free", &call, sizeof call, NULL);
        (void)ignored;
    }
    *llama2 = (struct remote_llama2){0};
}
