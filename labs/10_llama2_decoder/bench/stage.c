/* One stage: times a prompt and tokens one by one, and compares its logits with the first stage's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/models/compare_logits.h"
#include "labs/10_llama2_decoder/bench/bench_internal.h"

enum { PREFILL_RUNS = 5 };

/* Seconds; a prompt that takes longer runs only once. */
static const double SLOW = 1.0;

/* A stage that is being measured. */
struct lane {
    struct bench *bench;
    struct bench_result *result;
    struct llama2 *llama2;
    double (*now)(void);
    float *logits;   /* (V) */
    int32_t *drawn;  /* (steps + 1) */
    double *seconds; /* (steps) */
};

/* ---- Logits ---- */

static double largest_of(const float *logits, size_t V) {
    double largest = 0.0;
    for (size_t i = 0; i < V; i++) {
        largest = isfinite(logits[i]) ? fmax(largest, fabs((double)logits[i])) : INFINITY;
    }
    return largest;
}

/* Keeps the first stage's logits, and compares later ones with them. */
static enum status check_logits(struct lane *lane, int which, const char *what,
                                struct error *error) {
    struct bench *b = lane->bench;
    struct bench_result *r = lane->result;
    size_t V = b->model.config->V;
    if (b->first == NULL || b->first == r->stage->name) {
        b->first = r->stage->name;
        memcpy(b->reference[which], lane->logits, V * sizeof(float));
        return isfinite(largest_of(lane->logits, V))
                   ? STATUS_OK
                   : error_set(error, STATUS_MISMATCH, "%s, %s: a logit is not a number",
                               r->stage->name, what);
    }
    double difference;
    enum status status = compare_stage_logits(lane->logits, r->stage->name, b->dtype, what,
                                              b->reference[which], b->first, V, &difference, error);
    r->difference = isnan(r->difference) ? difference : fmax(difference, r->difference);
    return status;
}

static int32_t most_likely(const float *logits, size_t V) {
    size_t best = 0;
    for (size_t i = 1; i < V; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

/* ---- Feeding and drawing ---- */

/* Feeds tokens at `from` to `to` - 1, in calls of at most the prompt's length. */
static enum status feed(struct lane *lane, const int32_t *tokens, size_t from, size_t to) {
    size_t most = lane->bench->plan.prompt;
    while (from < to) {
        size_t some = to - from < most ? to - from : most;
        float *logits = from + some == to ? lane->logits : NULL;
        TRY(llama2_forward(lane->llama2, tokens, some, from, logits));
        tokens += some;
        from += some;
    }
    return STATUS_OK;
}

/* One token: the most likely one, drawn by the engine if it can. */
static enum status decode_one(struct lane *lane, size_t position, int32_t *token) {
    if (llama2_draws(lane->llama2)) {
        return llama2_next(lane->llama2, position, token);
    }
    *token = most_likely(lane->logits, lane->bench->model.config->V);
    return llama2_forward(lane->llama2, token, 1, position, lane->logits);
}

/*
 * Decodes after `context` tokens. The first token is not timed; each later one is, from the return
 of the call before to the return of its own, because an engine may run a step ahead.

 */
static enum status decode(struct lane *lane, size_t context) {
    static const struct llama2_sampling greedy = {.seed = 1};
    size_t steps = lane->bench->plan.steps;
    if (llama2_draws(lane->llama2)) {
        TRY(llama2_begin(lane->llama2, &greedy));
    }
    TRY(decode_one(lane, context, &lane->drawn[0]));
    double last = lane->now();
    for (size_t i = 1; i <= steps; i++) {
        TRY(decode_one(lane, context + i, &lane->drawn[i]));
        double now = lane->now();
        lane->seconds[i - 1] = now - last;
        last = now;
    }
    return STATUS_OK;
}

/* A token drawn by the engine must be the most likely one by the engine's own logits, up to the
 * allowed difference. */
static enum status check_drawn(struct lane *lane, size_t context, struct error *error) {
    const struct bench_plan *plan = &lane->bench->plan;
    size_t V = lane->bench->model.config->V;
    TRY(feed(lane, lane->drawn, context, context + plan->steps));
    int32_t drawn = lane->drawn[plan->steps];
    if (drawn < 0 || (size_t)drawn >= V) {
        return error_set(error, STATUS_MISMATCH, "%s drew token %d of %zu",
                         lane->result->stage->name, drawn, V);
    }
    double best = lane->logits[most_likely(lane->logits, V)];
    double short_of = (best - lane->logits[drawn]) / largest_of(lane->logits, V);
    return short_of <= logits_tolerance(lane->bench->dtype)
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "%s in %s drew token %d, whose logit is %.3g of the largest below the "
                           "best",
                           lane->result->stage->name, nn_dtype_name(lane->bench->dtype), drawn,
                           short_of);
}

/* ---- Timing ---- */

static enum status time_prefill(struct lane *lane, struct error *error) {
    const struct bench *b = lane->bench;
    double seconds[PREFILL_RUNS];
    double start = lane->now();
    TRY(feed(lane, b->tokens, 0, b->plan.prompt));
    seconds[0] = lane->now() - start;
    TRY(check_logits(lane, 0, "after the prompt", error));
    int runs = 0; /* the first run warms up, and is the only one if it is slow or modelled */
    int most = lane->result->modelled || seconds[0] > SLOW ? 0 : PREFILL_RUNS;
    for (; runs < most; runs++) {
        start = lane->now();
        TRY(feed(lane, b->tokens, 0, b->plan.prompt));
        seconds[runs] = lane->now() - start;
    }
    lane->result->prefill = bench_summarise(seconds, runs > 0 ? runs : 1);
    return STATUS_OK;
}

static enum status time_decode(struct lane *lane, size_t which, size_t fed) {
    const struct bench *b = lane->bench;
    size_t context = b->plan.context[which];
    size_t from = fed < context ? fed : context - 1; /* the last token again, for its logits */
    TRY(feed(lane, b->tokens + from, from, context));
    TRY(decode(lane, context));
    lane->result->decode[which] = bench_summarise(lane->seconds, (int)b->plan.steps);
    return STATUS_OK;
}

/* The long context first: the prompt is a part of it. */
static enum status run_lane(struct lane *lane, struct error *error) {
    const struct bench_plan *plan = &lane->bench->plan;
    size_t context = plan->context[SHORT];
    TRY(time_prefill(lane, error));
    if (plan->contexts > 1) {
        TRY(time_decode(lane, LONG, plan->prompt));
    }
    TRY(time_decode(lane, SHORT, 0));
    if (llama2_draws(lane->llama2)) {
        TRY(check_drawn(lane, context, error));
    }
    TRY(llama2_forward(lane->llama2, &lane->bench->tokens[context], 1, context, lane->logits));
    return check_logits(lane, 1, "after one token", error);
}

/* ---- A stage ---- */

static enum status measure(struct lane *lane, const struct engine *engine, struct error *error) {
    const struct bench *b = lane->bench;
    lane->logits = malloc(b->model.config->V * sizeof *lane->logits);
    lane->drawn = malloc((b->plan.steps + 1) * sizeof *lane->drawn);
    lane->seconds = malloc(b->plan.steps * sizeof *lane->seconds);
    if (lane->logits == NULL || lane->drawn == NULL || lane->seconds == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    TRY(stored_model_create_llama2(&lane->bench->model, engine, b->dtype, b->plan.prompt,
                                   &lane->llama2, error));
    enum status status = run_lane(lane, error);
    if (status != STATUS_OK && error->message[0] == '\0') {
        return error_set(error, status, "stage %s: %s", engine->name, status_message(status));
    }
    return status;
}

enum status bench_measure(struct bench *b, const struct decoder_stage *stage,
                          struct bench_result *result, struct error *error) {
    struct engine engine = {0};
    *result = (struct bench_result){.stage = stage,
                                    .modelled = stage->on_device && b->driver->gpu.modelled,
                                    .launches = NAN,
                                    .difference = NAN};
    /* On a GPU calls return when the host has its results, so the host's clock times them. */
    struct lane lane = {
        .bench = b, .result = result, .now = result->modelled ? device_now : bench_now};
    TRY(stage->create(&engine, b->options.threads, error));
    enum status status = measure(&lane, &engine, error);
    llama2_free(lane.llama2);
    engine_destroy(&engine);
    free(lane.logits);
    free(lane.drawn);
    free(lane.seconds);
    return status;
}
