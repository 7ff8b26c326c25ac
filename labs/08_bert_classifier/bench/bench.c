/**
 * @file bench.c
 * @brief Lab 08's bench: a BERT classifier on every stage of the course, batches of 1 to 32 texts
 *        of 128 and 512 tokens: dense, padded and packed.
 *
 * Weights are random, lengths are those of IMDB's reviews. Layouts and stages
 * must agree on the logits. Each measured cell is appended to
 * results/bench.jsonl. The fast stages come first; a batch that would take too
 * long (--seconds) is a dash.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/bert/bert_example.h"
#include "common/programs/classifier/classifier_session.h"
#include "common/programs/dtype_flag.h"
#include "common/programs/program.h"
#include "labs/08_bert_classifier/bench/bench_internal.h"
#include "labs/08_bert_classifier/given/stages.h"

/* ---- The command line ---- */

/* Completes the name of --stage, which may be a number. */
static enum status find_stage(struct options *o, const struct classifier_stages *stages,
                              struct error *error) {
    if (o->stage != NULL) {
        size_t found;
        TRY(stage_flag_find(stages->table, stages->count, sizeof *stages->table, o->stage, &found,
                            error));
        o->stage = stages->table[found].name;
    }
    return STATUS_OK;
}

static enum status check_options(struct ladder_setup *driver, struct error *error) {
    struct bench *b = driver->options;
    struct options *o = &b->options;
    struct bert_config config;
    enum nn_dtype dtype;
    b->driver = driver;
    if (o->batch < 0 || o->batch > BENCH_MOST_BATCH) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--batch-size %d: from 1 to %d, or 0",
                         o->batch, BENCH_MOST_BATCH);
    }
    TRY(bench_program_check_threads(o->threads, error));
    if (o->tokens != 0 && o->tokens < 3) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--max-length %d: at least 3, or 0",
                         o->tokens);
    }
    if (o->seconds < 1 || o->seconds > 100000) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--seconds %d: from 1 to 100000",
                         o->seconds);
    }
    if (o->dtype != NULL) {
        TRY(dtype_flag_parse(o->dtype, &dtype, error));
    }
    if (o->shape != NULL) {
        TRY(bert_shape_parse(o->shape, &config, error));
    }
    return find_stage(o, b->stages, error);
}

/* --lengths */
static bool print_lengths(const struct ladder_setup *driver) {
    const struct bench *b = driver->options;
    if (b->options.lengths) {
        bench_print_lengths();
    }
    return b->options.lengths;
}

/* ---- Stages ---- */

static void print_cell(const struct cell *cell, const struct cell_result *result) {
    const double *ms = result->ms;
    printf("  %5zu %6zu", cell->B, cell->T);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        bench_print_number("%*.3f", 11, ms[layout], "");
    }
    bench_print_number("%*.1f", 10, 1e3 * (double)cell->B / ms[DENSE], "");
    bench_print_number("%*.1f", 10, 1e3 * (double)cell->B / ms[PACKED], "");
    bench_print_number("%*.2f", 7, ms[PADDED] / ms[PACKED], "x");
    putchar('\n');
}

static void print_head(const struct bench *b, const struct lane *lane,
                       const struct summary_row *row) {
    const struct bert_config *c = &b->model.config;
    printf("\nstage %s in %s, BERT C %zu, %zu layers, random weights, ", lane->stage->name,
           nn_dtype_name(lane->dtype), c->C, c->L);
    if (!isnan(row->launches)) {
        printf("%.0f launches a layer, ", row->launches);
    }
    printf("%s\n", lane->modelled ? "modelled" : "measured");
    printf("  %5s %6s %11s %11s %11s %10s %10s %8s\n", "texts", "tokens", "dense ms", "padded ms",
           "packed ms", "texts/s", "packed/s", "packed");
}

static enum status run_cells(struct bench *b, struct lane *lane, struct summary_row *row,
                             struct error *error) {
    for (size_t i = 0; i < b->count; i++) {
        struct cell_result result;
        TRY(bench_measure_cell(b, lane, &b->cells[i], &result, error));
        print_cell(&b->cells[i], &result);
        fflush(stdout);
        if (&b->cells[i] == b->shown) {
            row->ms = result.ms[DENSE];
            row->packed_ms = result.ms[PACKED];
            row->difference = result.difference;
            if (!isnan(row->ms) && !isnan(row->launches)) {
                TRY(bench_record_launches(b, lane, &result, row->launches, error));
            }
        }
    }
    return STATUS_OK;
}

static enum status run_lane(struct bench *b, struct lane *lane, struct error *error) {
    size_t batch = 0, longest = 0;
    struct summary_row *row = &b->rows[b->rows_count++];
    *row = (struct summary_row){lane->stage, lane->dtype, NAN, NAN, NAN, NAN, ""};
    for (size_t i = 0; i < b->count; i++) {
        batch = b->cells[i].B > batch ? b->cells[i].B : batch;
        longest = b->cells[i].T > longest ? b->cells[i].T : longest;
    }
    TRY(bench_count_launches(b, lane, row, error));
    TRY(classifier_create(&lane->classifier, &b->model, lane->engine, batch, longest, error));
    print_head(b, lane, row);
    enum status status = run_cells(b, lane, row, error);
    classifier_free(&lane->classifier);
    return status;
}

static enum status create_and_run(struct bench *b, struct lane *lane, struct engine *engine,
                                  struct error *error) {
    TRY(classifier_engine_create(engine, lane->stage, lane->dtype, b->options.threads, b->stages,
                                 error));
    return run_lane(b, lane, error);
}

static enum status run_stage(struct bench *b, const struct classifier_stage *stage,
                             enum nn_dtype dtype, struct error *error) {
    struct engine engine = {0};
    struct lane lane = {
        .stage = stage,
        .dtype = dtype,
        .now = stage->on_device ? device_now : bench_now,
        .modelled = stage->on_device && b->driver->gpu.modelled,
        .engine = &engine,
    };
    enum status status = create_and_run(b, &lane, &engine, error);
    engine_destroy(&engine);
    return status;
}

/* Whether the command line asks for a stage in a dtype, and the stage has it. */
static bool is_wanted(const struct options *o, const struct classifier_stage *stage,
                      enum nn_dtype dtype) {
    bool there = dtype == NN_F32 || stage->create16 != NULL || o->stage != NULL;
    bool asked = o->dtype != NULL ? strcmp(o->dtype, nn_dtype_name(dtype)) == 0
                                  : dtype == NN_F32 || stage->create16 != NULL;
    return there && asked && (o->stage == NULL || strcmp(o->stage, stage->name) == 0);
}

/* Stages that run on the device throughout; the others take long and come last. */
static bool is_fast(const struct classifier_stage *stage) {
    return stage->on_device && strcmp(stage->name, "02_gpu_matmul") != 0;
}

static enum status run_kind(struct bench *b, bool fast, enum nn_dtype dtype, struct error *error) {
    for (size_t i = 0; i < b->stages->count; i++) {
        const struct classifier_stage *stage = &b->stages->table[i];
        if (is_fast(stage) == fast && is_wanted(&b->options, stage, dtype)) {
            TRY(run_stage(b, stage, dtype, error));
        }
    }
    return STATUS_OK;
}

static enum status run_stages(struct bench *b, struct error *error) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_F16, NN_BF16};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        TRY(run_kind(b, true, dtypes[d], error));
    }
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        TRY(run_kind(b, false, dtypes[d], error));
    }
    if (b->rows_count == 0) {
        return error_set(error, STATUS_UNSUPPORTED, "--dtype %s: no stage of this build has it",
                         b->options.dtype);
    }
    return STATUS_OK;
}

static enum status prepare(struct ladder_setup *driver, struct error *error) {
    struct bench *b = driver->options;
    const char *chosen = driver->gpu.modelled ? "tiny" : "base";
    const struct classifier_source source = {.shape = b->options.shape != NULL ? b->options.shape
                                                                               : chosen,
                                             .labels = BENCH_LABELS,
                                             .seed = 1};
    b->rows = calloc(3 * b->stages->count, sizeof *b->rows);
    if (b->rows == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    TRY(classifier_model_open(&b->model, &source, error));
    return bench_make_cells(b, error);
}

static const char *conditions(const struct ladder_setup *driver, char *text, size_t size) {
    (void)driver;
    snprintf(text, size,
             "\ndense: every text has all tokens; padded, packed: lengths of IMDB's "
             "reviews (below 128 tokens scaled)");
    return text;
}

static enum status run(const struct ladder_setup *driver, struct error *error) {
    TRY(run_stages(driver->options, error));
    bench_print_summary(driver->options);
    return STATUS_OK;
}

static const struct ladder_bench description = {
    .lab = "08_bert_classifier",
    .summary = "times a BERT classifier on every stage of the course",
    .epilogue = "On simt: batches of 1 and 4 texts, 32 tokens, unless --batch-size and "
                "--max-length say\notherwise.",
    .check_options = check_options,
    .instead = print_lengths,
    .prepare = prepare,
    .conditions = conditions,
    LADDER_PARTS(run),
};

int main(int argc, char **argv) {
    struct bench bench = {.options = {.threads = bench_cpu_count(), .seconds = 50},
                          .stages = stages_of_the_course(),
                          .begun = bench_now()};
    struct options *o = &bench.options;
    struct ladder_setup driver = {.options = &bench};
    const struct flag flags[] = {
        {"stage", 's', FLAG_STRING, &o->stage, "NAME",
         "only this stage, as 03_resident_weights, or 3"},
        {"shape", 0, FLAG_STRING, &o->shape, "NAME", "tiny or base; without: base, on simt tiny"},
        {"batch-size", 'b', FLAG_INT, &o->batch, "N", "only batches of N texts; 0: 1 to 32"},
        {"max-length", 'l', FLAG_INT, &o->tokens, "N", "only N tokens; 0: 128 and 512"},
        {"threads", 't', FLAG_INT, &o->threads, "N", "most CPU threads"},
        {"dtype", 0, FLAG_STRING, &o->dtype, "TYPE",
         "only fp32, fp16 or bf16; without: all that a stage has"},
        {"seconds", 0, FLAG_INT, &o->seconds, "N",
         "about how long it may take: batches that do not fit in are passed over"},
        {"lengths", 0, FLAG_SWITCH, &o->lengths, NULL,
         "print the reviews' lengths in tokens, a line each, and end"},
        {"quick", 'q', FLAG_SWITCH, &driver.quick, NULL, "fewer batches, shorter runs"},
    };
    int code =
        ladder_bench_main(&description, flags, sizeof flags / sizeof *flags, &driver, argc, argv);
    classifier_model_close(&bench.model);
    free(bench.rows);
    free(bench.cells);
    free(bench.ids);
    return code;
}
