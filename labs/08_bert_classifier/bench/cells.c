/* Cells of the bench: a batch's texts, its layout, its time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/rng.h"
#include "common/bench/models/compare_logits.h"
#include "labs/08_bert_classifier/bench/bench_internal.h"

enum { CASES = 10, MOST_RUNS = 9, LEAST_RUNS = 3 };

/*
 * Seconds: a batch that takes longer than SLOW is run once; then, as shares of --seconds, how long
 * a batch may take, and all slow batches of a stage together.
 */
static const double SLOW = 0.5, ENOUGH = 0.15, BATCH_SHARE = 0.1, STAGE_SHARE = 0.2;

static const char *const LAYOUT_OPS[LAYOUTS] = {"bert_dense", "bert_padded", "bert_packed"};

/* ---- Texts ---- */

/*
 * Tokens of IMDB's 25,000 test reviews in bert-base-uncased's pieces, with [CLS] and [SEP],
 * and the <br /> of the files, which text_dataset.h does not count: the quantiles at (i + 0.5) /
 * 32, in an order that gives small batches short and long ones.
 */
static const size_t LENGTHS[BENCH_MOST_BATCH] = {
    235, 60, 388, 169, 292, 142, 573, 197, 262, 102, 462, 182, 334, 157, 803,  215,
    248, 80, 422, 175, 311, 151, 664, 206, 276, 126, 512, 189, 360, 163, 1095, 225};

void bench_print_lengths(void) {
    for (size_t i = 0; i < BENCH_MOST_BATCH; i++) {
        printf("%zu\n", LENGTHS[i]);
    }
}

/* A review's length at most T; below 128, where all of them would be cut, scaled by T / 512. */
static size_t length_of(size_t i, size_t T) {
    size_t length = T < 128 ? ceil_div(LENGTHS[i] * T, 512) : LENGTHS[i];
    return length < T ? length : T;
}

/* All texts share their tokens. */
static void fill_cell(const struct bench *b, struct cell *cell, size_t B, size_t T) {
    *cell = (struct cell){.B = B, .T = T};
    for (size_t i = 0; i < B; i++) {
        cell->dense[i] = (struct classifier_text){.ids = b->ids, .count = T};
        cell->texts[i] = (struct classifier_text){.ids = b->ids + i % 3, .count = length_of(i, T)};
    }
}

/* 16 texts of 512 tokens if there is such a cell, else the last one. */
static const struct cell *choose_shown(const struct bench *b) {
    for (size_t i = 0; i < b->count; i++) {
        if (b->cells[i].B == 16 && b->cells[i].T == 512) {
            return &b->cells[i];
        }
    }
    return &b->cells[b->count - 1];
}

enum status bench_make_cells(struct bench *b, struct error *error) {
    static const size_t batches[] = {1, 4, 8, 16, 32}, few_batches[] = {1, 4};
    static const size_t lengths[] = {128, 512}, few_lengths[] = {32};
    const struct options *o = &b->options;
    bool few = b->driver->gpu.modelled, quick = b->driver->quick;
    const size_t own_batch = (size_t)o->batch, own_length = (size_t)o->tokens;
    const size_t *Bs = o->batch > 0 ? &own_batch : few || quick ? few_batches : batches;
    const size_t *Ts = o->tokens > 0 ? &own_length : few ? few_lengths : lengths;
    size_t B_count = o->batch > 0 ? 1 : few || quick ? 2 : 5;
    size_t T_count = o->tokens > 0 || few ? 1 : 2;
    size_t longest = Ts[T_count - 1], positions = b->model.config.T;
    if (o->tokens > 0 && longest > positions) {
        return error_set(error, STATUS_TOO_LONG, "--max-length %zu: the model has %zu positions",
                         longest, positions);
    }
    struct rng rng = rng_create(2);
    b->cells = calloc(CASES, sizeof *b->cells);
    b->ids = calloc(longest + 3, sizeof *b->ids);
    if (b->cells == NULL || b->ids == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < longest + 3; i++) {
        b->ids[i] = (int32_t)rng_below(&rng, b->model.config.V);
    }
    for (size_t t = 0; t < T_count; t++) {
        for (size_t i = 0; i < B_count && Ts[t] <= positions; i++) {
            fill_cell(b, &b->cells[b->count++], Bs[i], Ts[t]);
        }
    }
    b->shown = choose_shown(b);
    return STATUS_OK;
}

/* FLOPs without padding: linear layers, and attention within each text. */
static double flops_of(const struct bert_config *c, const struct classifier_text *texts,
                       size_t count) {
    double flops = 0.0;
    double weights = 4.0 * (double)(c->C * c->C) + 2.0 * (double)(c->C * c->hidden);
    for (size_t i = 0; i < count; i++) {
        double T = (double)texts[i].count;
        flops += (double)c->L * (2.0 * T * weights + 4.0 * T * T * (double)c->C);
    }
    return flops;
}

static struct classifier_batch lay_out(struct lane *lane, const struct cell *cell,
                                       enum layout layout) {
    const struct classifier_text *list[BENCH_MOST_BATCH];
    for (size_t i = 0; i < cell->B; i++) {
        list[i] = layout == DENSE ? &cell->dense[i] : &cell->texts[i];
    }
    struct classifier_batch batch =
        classifier_batch(&lane->classifier, list, cell->B, layout != PACKED, cell->T);
    if (layout == DENSE) {
        batch.input.mask = NULL;
    }
    return batch;
}

/* ---- Logits ---- */

/*
 * The first lane to run a layout is who later ones, and the packed layout, must agree with; fp32
 * comes first. *difference: NAN where there is nobody to compare with.
 */
static enum status check_logits(const struct lane *lane, struct cell *cell, enum layout layout,
                                const float *logits, double *difference, struct error *error) {
    enum layout like = layout == PACKED ? PADDED : layout;
    size_t count = cell->B * BENCH_LABELS;
    *difference = NAN;
    if (cell->first[like] == NULL) {
        memcpy(cell->logits[like], logits, count * sizeof *logits);
        cell->first[like] = lane->stage->name;
        return STATUS_OK;
    }
    return compare_stage_logits(logits, lane->stage->name, lane->dtype, LAYOUT_OPS[layout],
                                cell->logits[like], cell->first[like], count, difference, error);
}

/* ---- Times ---- */

/* Whether a batch would take too long by the lane's pace; the first batch never does. */
static bool too_long(const struct bench *b, const struct lane *lane, double flops) {
    double all = (double)b->options.seconds, seconds = lane->pace * flops;
    return !lane->modelled && seconds > SLOW &&
           (seconds > BATCH_SHARE * all || lane->spent + seconds > STAGE_SHARE * all ||
            bench_now() - b->begun + seconds > all);
}

/* Longer texts take more time per FLOP: another length replaces the pace, of one length the slowest
   counts. */
static void keep_pace(struct lane *lane, const struct cell *cell, double seconds, double flops) {
    double pace = seconds / flops;
    if (lane->pace_tokens != cell->T || pace > lane->pace) {
        lane->pace = pace;
        lane->pace_tokens = cell->T;
    }
    lane->spent += seconds > SLOW ? seconds : 0.0;
}

static enum status run_once(struct lane *lane, const struct classifier_batch *batch, float *logits,
                            double *seconds, struct error *error) {
    double start = lane->now();
    TRY(classifier_run(&lane->classifier, batch, logits, error));
    *seconds = lane->now() - start;
    return STATUS_OK;
}

/* The first run warms up, and is the only one if it is slow or modelled. */
static enum status time_batch(const struct bench *b, struct lane *lane,
                              const struct classifier_batch *batch, float *logits,
                              struct bench_timing *timing, struct error *error) {
    double seconds[MOST_RUNS], total = 0.0;
    int runs = 0, most = b->driver->quick ? LEAST_RUNS : MOST_RUNS;
    TRY(run_once(lane, batch, logits, &seconds[0], error));
    if (lane->modelled || seconds[0] > SLOW) {
        *timing = bench_summarise(seconds, 1);
        return STATUS_OK;
    }
    for (; runs < most && (runs < LEAST_RUNS || total < ENOUGH); runs++) {
        TRY(run_once(lane, batch, logits, &seconds[runs], error));
        total += seconds[runs];
    }
    *timing = bench_summarise(seconds, runs);
    return STATUS_OK;
}

/* A record of the lane and the cell, without its timing and figure. */
static struct bench_record record_of(const struct bench *b, const struct lane *lane,
                                     const struct cell *cell, const struct bench_gpu *gpu,
                                     char *shape, size_t room) {
    const struct bert_config *c = &b->model.config;
    snprintf(shape, room, "BERT C%zu L%zu, %zux%zu tokens", c->C, c->L, cell->B, cell->T);
    return (struct bench_record){
        .lab = "08_bert_classifier",
        .subject = WARPBOOK_SUBJECT,
        .stage = lane->stage->name,
        .shape = shape,
        .dtype = nn_dtype_name(lane->dtype),
        .threads = lane->stage->on_device ? 1 : b->options.threads,
        .gpu = lane->stage->on_device ? gpu : NULL,
        .bytes = NAN,
        .flops = NAN,
        .peer_ratio = NAN,
    };
}

static enum status record(const struct bench *b, const struct lane *lane, const struct cell *cell,
                          enum layout layout, const struct bench_timing *timing,
                          struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&b->driver->gpu);
    struct bench_record row = record_of(b, lane, cell, &gpu, shape, sizeof shape);
    row.op = LAYOUT_OPS[layout];
    row.timing = *timing;
    row.flops = flops_of(&b->model.config, layout == DENSE ? cell->dense : cell->texts, cell->B);
    row.figure = "samples_per_second";
    row.figure_value = 1e3 * (double)cell->B / timing->median_ms;
    return bench_append(&row, error);
}

enum status bench_record_launches(const struct bench *b, const struct lane *lane,
                                  const struct cell_result *result, double launches,
                                  struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&b->driver->gpu);
    struct bench_record row = record_of(b, lane, b->shown, &gpu, shape, sizeof shape);
    row.op = "bert_launches";
    row.timing = result->dense;
    row.figure = "launches_per_layer";
    row.figure_value = launches;
    return bench_append(&row, error);
}

/* Times one layout. */
static enum status measure(const struct bench *b, struct lane *lane, struct cell *cell,
                           enum layout layout, struct cell_result *result, struct error *error) {
    float logits[BENCH_MOST_BATCH * BENCH_LABELS];
    struct bench_timing timing;
    double difference;
    /* The padded layout computes padding, too. */
    double flops =
        flops_of(&b->model.config, layout == PACKED ? cell->texts : cell->dense, cell->B);
    if (too_long(b, lane, flops)) {
        return STATUS_OK;
    }
    struct classifier_batch batch = lay_out(lane, cell, layout);
    TRY(time_batch(b, lane, &batch, logits, &timing, error));
    TRY(check_logits(lane, cell, layout, logits, &difference, error));
    keep_pace(lane, cell, 1e-3 * timing.median_ms, flops);
    result->ms[layout] = timing.median_ms;
    result->dense = layout == DENSE ? timing : result->dense;
    if (cell->first[DENSE] != lane->stage->name || lane->dtype != NN_F32) {
        result->difference = fmax(difference, result->difference); /* of a NAN: the other */
    }
    return record(b, lane, cell, layout, &timing, error);
}

enum status bench_measure_cell(const struct bench *b, struct lane *lane, struct cell *cell,
                               struct cell_result *result, struct error *error) {
    *result = (struct cell_result){.ms = {NAN, NAN, NAN}, .difference = NAN};
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TRY(measure(b, lane, cell, (enum layout)layout, result, error));
    }
    return STATUS_OK;
}
