/*
 * Part (a) of the bench: the time of the token at each position, three ways: the whole text up to
 * it runs again; its keys and values are computed again, as by lab 09's starter; or stage 09 runs
 * with the operators that this bench is built with.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/terminal.h"
#include "labs/09_kv_cache/bench/bench_internal.h"
#include "labs/09_kv_cache/given/engine.h"
#include "labs/09_kv_cache/given/renamed_starter.h"

enum { ANEW, KEYS, KEPT, WAYS, NEIGHBOURS = 4 };

/* On a GPU the second way stops after this time: large models would take hours. */
static const double most_keys_ms = 45e3;

/* The state of the three ways. */
struct race {
    const struct bench_setup *setup;
    size_t longest; /* tokens of the text */
    struct bench_lane lanes[WAYS];
    struct bench_curve curves[WAYS];
    double totals[WAYS];           /* ms of all tokens; not of ANEW: sum_up() */
    double last[WAYS][NEIGHBOURS]; /* ms of the last tokens, by position modulo NEIGHBOURS */
    int32_t *tokens;               /* (longest) */
    float *want, *got;             /* logits of the whole text, and of another way */
    double difference;             /* worst of the logits */
};

static const char *const way_names[WAYS] = {"text anew", "keys anew", "stage 09"};

/* Whether the table has a row for this text length: 1, 2, 4, ... and the longest. */
static bool is_shown(size_t tokens, size_t longest) {
    return (tokens & (tokens - 1)) == 0 || tokens == longest;
}

static void add_point(struct bench_curve *curve, size_t tokens, double ms) {
    curve->tokens[curve->count] = tokens;
    curve->ms[curve->count++] = ms;
}

/* The whole text, `tokens` long, at once: the fastest of three. */
static enum status time_anew(struct race *r, size_t tokens, struct error *error) {
    double best = INFINITY;
    int runs = r->setup->driver->gpu.modelled ? 1 : 3;
    for (int i = 0; i < runs; i++) {
        double seconds;
        TRY(bench_forward(&r->lanes[ANEW], r->tokens, tokens, 0, r->want, &seconds, error));
        best = fmin(best, seconds);
    }
    add_point(&r->curves[ANEW], tokens, 1e3 * best);
    return STATUS_OK;
}

static enum status compare(struct race *r, int way, size_t tokens, struct error *error) {
    double difference;
    char what[64];
    snprintf(what, sizeof what, "%s at position %zu", way_names[way], tokens - 1);
    TRY(bench_check_logits(r->setup, r->got, r->want, what, &difference, error));
    r->difference = fmax(r->difference, difference);
    return STATUS_OK;
}

/* Measured times have outliers: the fastest of this token and up to three before it. */
static double without_outliers(const struct race *r, int way, size_t tokens) {
    double best = r->last[way][tokens % NEIGHBOURS];
    for (size_t n = tokens; n > 0 && n + NEIGHBOURS > tokens && !r->setup->driver->gpu.modelled;
         n--) {
        best = fmin(best, r->last[way][n % NEIGHBOURS]);
    }
    return best;
}

/* Runs the token that makes the text `tokens` long, after all tokens before it. */
static enum status time_token(struct race *r, int way, size_t tokens, struct error *error) {
    double seconds;
    if (way == KEYS && r->totals[KEYS] > most_keys_ms && !r->setup->driver->gpu.modelled) {
        return STATUS_OK;
    }
    TRY(bench_forward(&r->lanes[way], r->tokens + tokens - 1, 1, tokens - 1, r->got, &seconds,
                      error));
    r->totals[way] += 1e3 * seconds;
    r->last[way][tokens % NEIGHBOURS] = 1e3 * seconds;
    if (is_shown(tokens, r->longest)) {
        add_point(&r->curves[way], tokens, without_outliers(r, way, tokens));
        TRY(compare(r, way, tokens, error));
    }
    return STATUS_OK;
}

static enum status run_positions(struct race *r, struct progress *progress, struct error *error) {
    for (size_t n = 1; n <= r->longest; n++) {
        if (is_shown(n, r->longest)) {
            TRY(time_anew(r, n, error));
        }
        for (int way = KEYS; way < WAYS; way++) {
            TRY(time_token(r, way, n, error));
        }
        progress_update(progress, n);
    }
    return STATUS_OK;
}

/* A text token by token. On a GPU some untimed tokens come first, to raise its clock. */
static enum status run_text(struct race *r, struct error *error) {
    double unused;
    for (size_t n = 0; n < 16 && n < r->longest && !r->setup->driver->gpu.modelled; n++) {
        TRY(bench_forward(&r->lanes[KEPT], r->tokens + n, 1, n, r->got, &unused, error));
    }
    struct progress progress = progress_create("positions", r->longest);
    enum status status = run_positions(r, &progress, error);
    progress_finish(&progress);
    return status;
}

/* Growth: the slope over the last two doublings, both logarithmic. */
static double exponent(const struct bench_curve *c) {
    size_t last = c->count - 1, first = last >= 2 ? last - 2 : 0;
    return log(c->ms[last] / c->ms[first]) /
           log((double)c->tokens[last] / (double)c->tokens[first]);
}

/* All tokens of the text, between the measured ones along straight lines. */
static double sum_up(const struct bench_curve *c) {
    double sum = c->ms[0];
    for (size_t i = 1; i < c->count; i++) {
        size_t n = c->tokens[i] - c->tokens[i - 1];
        double step = (c->ms[i] - c->ms[i - 1]) / (double)n;
        sum += (double)n * c->ms[i - 1] + step * (double)n * (double)(n + 1) / 2.0;
    }
    return sum;
}

static enum status record(const struct race *r, int way, size_t i, struct error *error) {
    static const char *const stages[WAYS] = {"07_attention", "09_kv_cache starter", "09_kv_cache"};
    static const char *const ops[WAYS] = {"token_text_anew", "token_keys_anew", "token"};
    const struct bench_setup *setup = r->setup;
    const struct bench_curve *c = &r->curves[way];
    const struct bench_gpu gpu = bench_gpu_of(&setup->driver->gpu);
    enum nn_dtype dtype = way == ANEW ? NN_F32 : setup->dtype;
    char shape[96];
    snprintf(shape, sizeof shape, "%s, position %zu", setup->shape, c->tokens[i] - 1);
    struct bench_record record = bench_record_of(&gpu, stages[way], ops[way], shape, dtype);
    record.timing = (struct bench_timing){
        .median_ms = c->ms[i], .min_ms = c->ms[i], .max_ms = c->ms[i], .runs = 1};
    record.bytes = decode_token_bytes(&setup->config, dtype);
    record.figure = "tokens_per_second";
    record.figure_value = 1e3 / c->ms[i];
    return bench_append(&record, error);
}

static enum status report(const struct race *r, struct error *error) {
    const struct bench_setup *setup = r->setup;
    const struct bench_curve *c = r->curves;
    printf("\nwhat a token costs, ms, %s: the whole text anew on stage 07 in fp32; keys and values "
           "anew\nas the starter does, and stage 09, in %s\n",
           device_bench_verb(&setup->driver->gpu), nn_dtype_name(setup->dtype));
    printf("  %-12s %11s %11s %11s\n", "position", way_names[0], way_names[1], way_names[2]);
    for (size_t i = 0; i < c[KEPT].count; i++) {
        printf("  %-12zu", c[KEPT].tokens[i] - 1);
        for (int way = 0; way < WAYS; way++) {
            bench_print_number("%*.4f", 11, i < c[way].count ? c[way].ms[i] : NAN, "");
            TRY(i < c[way].count ? record(r, way, i, error) : STATUS_OK);
        }
        putchar('\n');
    }
    bool whole = c[KEYS].count == c[KEPT].count;
    printf("  %-12s", "growth");
    for (int way = 0; way < WAYS; way++) {
        bench_print_number("%*.2f", 11, exponent(&c[way]), "");
    }
    printf("  x, where time grows as position^x over the last two doublings\n  %-12s", "all");
    bench_print_number("%*.3f", 11, sum_up(&c[ANEW]), "");
    bench_print_number("%*.3f", 11, whole ? r->totals[KEYS] : NAN, "");
    bench_print_number("%*.3f", 11, r->totals[KEPT], "");
    printf("  %zu tokens; the first between its rows\n", r->longest);
    printf("  logits agree to %.1e of the largest\n", r->difference);
    return STATUS_OK;
}

static enum status keys_anew_create(struct engine *engine, struct error *error) {
    static const struct kv_functions functions = {starter_kv_linear, starter_kv_attention};
    return engine_kv_cache_create_with(engine, &functions, error);
}

static enum status open_lanes(struct race *r, struct stored_model *model, struct error *error) {
    static const struct bench_stage keys_anew = {"09_kv_cache", true, keys_anew_create};
    const struct bench_stage *stages[WAYS] = {&bench_stages()[STAGE_07], &keys_anew,
                                              &bench_stages()[STAGE_09]};
    static const char *const names[WAYS] = {"whole text anew", "keys anew", "stage 09"};
    static const char *const classes[WAYS] = {"anew", "keys", "kept"};
    for (int way = 0; way < WAYS; way++) {
        size_t batch = way == ANEW ? r->longest : 1;
        r->curves[way] = (struct bench_curve){.name = names[way], .class = classes[way]};
        TRY(bench_lane_open(&r->lanes[way], stages[way], model, r->setup, batch, error));
    }
    return STATUS_OK;
}

static enum status race_create(struct race *r, struct stored_model *model, struct error *error) {
    size_t V = r->setup->config.V;
    r->tokens = malloc(r->longest * sizeof *r->tokens);
    r->want = malloc(V * sizeof *r->want);
    r->got = malloc(V * sizeof *r->got);
    if (r->tokens == NULL || r->want == NULL || r->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < r->longest; i++) {
        r->tokens[i] = decode_text_token(i, V);
    }
    return open_lanes(r, model, error);
}

static enum status run_race(struct race *r, struct stored_model *model, struct error *error) {
    TRY(race_create(r, model, error));
    TRY(run_text(r, error));
    TRY(report(r, error));
    const char *plot = r->setup->driver->plot;
    return plot != NULL ? bench_plot(r->setup, r->curves, WAYS, plot, error) : STATUS_OK;
}

enum status bench_positions(const struct bench_setup *setup, struct stored_model *model,
                            struct error *error) {
    enum { QUICK_LONGEST = 128 };
    size_t T = setup->config.T;
    struct race r = {.setup = setup,
                     .longest = setup->driver->quick && T > QUICK_LONGEST ? QUICK_LONGEST : T};
    enum status status = run_race(&r, model, error);
    for (int way = 0; way < WAYS; way++) {
        bench_lane_close(&r.lanes[way]);
    }
    free(r.tokens);
    free(r.want);
    free(r.got);
    return status;
}
