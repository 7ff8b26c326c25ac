/*
 * Part (a) of the bench: what the token at each position costs. Without a cache the whole text up
 * to it is run again; with stage 09's decoder, the token alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/terminal.h"
#include "common/bench/device_bench.h"
#include "labs/09_kv_cache/bench_parts.h"

/* Everything that the two ways need. */
struct race {
    const struct bench_setup *setup;
    struct bench_lane anew, kept;
    int32_t *tokens; /* (T) */
    float *anew_logits, *kept_logits;
    struct bench_curve curves[2]; /* ANEW, KEPT */
    double kept_total;            /* ms of all tokens */
    double difference;            /* worst of the logits */
};
enum { ANEW, KEPT };

/* Whether a row of the table shows the text of so many tokens: 1, 2, 4, ... and the longest. */
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
    int runs = r->setup->gpu.modelled ? 1 : 3;
    for (int i = 0; i < runs; i++) {
        double seconds;
        TRY(bench_forward(&r->anew, r->tokens, tokens, 0, r->anew_logits, &seconds, error));
        best = fmin(best, seconds);
    }
    add_point(&r->curves[ANEW], tokens, 1e3 * best);
    return STATUS_OK;
}

/* The token that makes the text `tokens` long. */
static enum status time_kept(struct race *r, size_t tokens, bool counts, struct error *error) {
    double seconds;
    TRY(bench_forward(&r->kept, r->tokens + tokens - 1, 1, tokens - 1, r->kept_logits, &seconds,
                      error));
    if (counts) {
        r->kept_total += 1e3 * seconds;
        if (is_shown(tokens, r->setup->config.T)) {
            add_point(&r->curves[KEPT], tokens, 1e3 * seconds);
        }
    }
    return STATUS_OK;
}

static enum status compare(struct race *r, size_t tokens, struct error *error) {
    double difference;
    char what[64];
    snprintf(what, sizeof what, "stage 09 at position %zu", tokens - 1);
    TRY(bench_check_logits(r->setup, r->kept_logits, r->anew_logits, what, &difference, error));
    r->difference = fmax(r->difference, difference);
    return STATUS_OK;
}

/* A text of T tokens. Before it, on a GPU, some that wake its clock. */
static enum status run_text(struct race *r, struct error *error) {
    size_t T = r->setup->config.T;
    struct progress progress = progress_create("positions", T);
    enum status status = STATUS_OK;
    for (size_t n = 1; n <= 16 && n <= T && !r->setup->gpu.modelled; n++) {
        TRY(time_kept(r, n, false, error));
    }
    for (size_t n = 1; n <= T && status == STATUS_OK; n++) {
        status = time_kept(r, n, true, error);
        if (status == STATUS_OK && is_shown(n, T)) {
            status = time_anew(r, n, error);
        }
        if (status == STATUS_OK && is_shown(n, T)) {
            status = compare(r, n, error);
        }
        progress_update(&progress, n);
    }
    progress_finish(&progress);
    return status;
}

/* Growth: the slope between the last two doublings, both logarithmic. */
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
    const struct bench_setup *setup = r->setup;
    const struct bench_curve *c = &r->curves[way];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    char shape[96];
    snprintf(shape, sizeof shape, "%s, position %zu", setup->shape, c->tokens[i] - 1);
    const struct bench_record record = {
        .lab = "09_kv_cache",
        .subject = WARPBOOK_SUBJECT,
        .stage = way == ANEW ? "07_attention" : "09_kv_cache",
        .op = way == ANEW ? "token_prefix_anew" : "token_with_cache",
        .shape = shape,
        .dtype = nn_dtype_name(way == ANEW ? NN_F32 : setup->dtype),
        .threads = 1,
        .gpu = &gpu,
        .timing = {.median_ms = c->ms[i], .min_ms = c->ms[i], .max_ms = c->ms[i], .runs = 1},
        .bytes = bench_weight_bytes(&setup->config, way == ANEW ? NN_F32 : setup->dtype),
        .flops = NAN,
        .peer_ratio = NAN,
        .figure = "tokens_per_second",
        .figure_value = 1e3 / c->ms[i],
    };
    return bench_append(&record, error);
}

static enum status report(const struct race *r, struct error *error) {
    const struct bench_setup *setup = r->setup;
    const struct bench_curve *anew = &r->curves[ANEW], *kept = &r->curves[KEPT];
    printf("\nwhat a token costs, ms, %s; stage 07 in fp32 runs the whole text again, stage 09 in "
           "%s the token\n",
           device_bench_verb(&setup->gpu), nn_dtype_name(setup->dtype));
    printf("  %8s %14s %14s %9s\n", "position", "text anew", "stage 09", "ratio");
    for (size_t i = 0; i < kept->count; i++) {
        printf("  %8zu %14.4f %14.4f %8.2fx\n", kept->tokens[i] - 1, anew->ms[i], kept->ms[i],
               anew->ms[i] / kept->ms[i]);
        TRY(record(r, ANEW, i, error));
        TRY(record(r, KEPT, i, error));
    }
    printf("  %8s %14.2f %14.2f            of the last two doublings: time grows as position to "
           "the ...\n",
           "power", exponent(anew), exponent(kept));
    printf("  %8s %14.3f %14.3f %8.2fx  %zu tokens in all, the first column's summed up between "
           "its rows\n",
           "total", sum_up(anew), r->kept_total, sum_up(anew) / r->kept_total, setup->config.T);
    printf("  logits agree to %.1e of the largest\n", r->difference);
    return STATUS_OK;
}

static enum status race_create(struct race *r, const struct bench_model *model,
                               struct error *error) {
    const struct llama2_config *c = &r->setup->config;
    r->curves[ANEW] = (struct bench_curve){.name = "whole text anew (stage 07)", .class = "anew"};
    r->curves[KEPT] = (struct bench_curve){.name = "stage 09", .class = "kept"};
    r->tokens = malloc(c->T * sizeof *r->tokens);
    r->anew_logits = malloc(c->V * sizeof *r->anew_logits);
    r->kept_logits = malloc(c->V * sizeof *r->kept_logits);
    if (r->tokens == NULL || r->anew_logits == NULL || r->kept_logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < c->T; i++) {
        r->tokens[i] = bench_token(r->setup, i);
    }
    const struct bench_stage *stages = bench_stages();
    TRY(bench_lane_open(&r->anew, &stages[STAGE_07], model, r->setup, c->T, error));
    return bench_lane_open(&r->kept, &stages[STAGE_09], model, r->setup, 1, error);
}

enum status bench_positions(const struct bench_setup *setup, const struct bench_model *model,
                            struct error *error) {
    struct race r = {.setup = setup};
    enum status status = race_create(&r, model, error);
    if (status == STATUS_OK) {
        status = run_text(&r, error);
    }
    if (status == STATUS_OK) {
        status = report(&r, error);
    }
    if (status == STATUS_OK && setup->plot != NULL) {
        status = bench_plot(setup, r.curves, 2, setup->plot, error);
    }
    bench_lane_close(&r.anew);
    bench_lane_close(&r.kept);
    free(r.tokens);
    free(r.anew_logits);
    free(r.kept_logits);
    return status;
}
