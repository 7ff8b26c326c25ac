/**
 * @file bench.c
 * @brief Lab 08's bench: a BERT classifier on every stage of the course, batches of 1 to 32 texts
 *        of 128 and 512 tokens: dense, padded and packed.
 *
 * Weights are random, lengths are those of IMDB's reviews. Layouts and stages
 * must agree on the logits. Each measured cell is appended to
 * results/bench.jsonl.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/rng.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/device_bench.h"
#include "common/device/device.h"
#include "common/formats/bert_example.h"
#include "common/model/classifier.h"
#include "labs/08_bert_classifier/stages.h"

enum {
    LABELS = 2,
    MOST_BATCH = 32,
    MOST_RUNS = 9,
    WARM_UPS = 2,
    CASES = 10 /* batches times lengths */
};

/* More on the CPU takes minutes; the table shows a dash there. */
static const double CPU_MOST_FLOPS = 4e11;

/* What is largest in the difference of logits, relative to the largest logit. */
static const double TOLERANCE = 1e-3;

/* How a batch is laid out. */
enum layout { DENSE, PADDED, PACKED, LAYOUTS };

static const char *const LAYOUT_OPS[LAYOUTS] = {"bert_dense", "bert_padded", "bert_packed"};

struct options {
    const char *stage, *shape;
    int batch, tokens, threads;
    bool quick;
    struct device_properties gpu;
};

/* One row of the table. */
struct cell {
    size_t B, T;
    struct classifier_text dense[MOST_BATCH], texts[MOST_BATCH]; /* ids are the bench's */
    float logits[LAYOUTS][MOST_BATCH * LABELS];                  /* of the first stage */
    bool known[LAYOUTS];                                         /* whether that has run */
};

struct bench {
    const struct options *options;
    struct classifier_model model;
    int32_t *ids; /* (most T), every text's tokens begin here */
    struct cell *cells;
    size_t count;
};

/* ---- The command line ---- */

static enum status check_options(struct options *o, const struct arguments *arguments,
                                 struct error *error) {
    struct bert_config config;
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    if (o->batch < 0 || o->batch > MOST_BATCH) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--batch-size %d: from 1 to %d, or 0",
                         o->batch, MOST_BATCH);
    }
    if (o->threads < 1 || o->threads > 1024) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: from 1 to 1024",
                         o->threads);
    }
    if (o->tokens != 0 && o->tokens < 3) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--max-length %d: at least 3, or 0",
                         o->tokens);
    }
    return o->shape != NULL ? bert_shape_parse(o->shape, &config, error) : STATUS_OK;
}

/* Reads the command line; *help: it was printed, nothing else is wanted. */
static enum status read_options(int argc, char **argv, struct options *o, bool *help,
                                struct error *error) {
    const struct flag table[] = {
        {"stage", 's', FLAG_STRING, &o->stage, "NAME", "only this stage, as 03_resident_weights"},
        {"shape", 0, FLAG_STRING, &o->shape, "NAME", "tiny or base; without: base, on simt tiny"},
        {"batch-size", 'b', FLAG_INT, &o->batch, "N", "only batches of N texts; 0: 1 to 32"},
        {"max-length", 'l', FLAG_INT, &o->tokens, "N", "only N tokens; 0: 128 and 512"},
        {"threads", 't', FLAG_INT, &o->threads, "N", "most CPU threads"},
        {"quick", 'q', FLAG_SWITCH, &o->quick, NULL, "fewer batches, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "times a BERT classifier on every stage of the course",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "On simt: batches of 1 and 4 texts, 32 tokens, unless --batch-size and "
                    "--max-length say\notherwise.",
    };
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *help = status == STATUS_OK && arguments.help;
    if (*help) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK) {
        status = check_options(o, &arguments, error);
    }
    free(arguments.values);
    return status;
}

/* ---- Texts ---- */

/*
 * Tokens of IMDB's 25,000 test reviews in bert-base-uncased's pieces, [CLS] and [SEP] among them:
 * the quantiles at (i + 0.5) / 32, in an order that gives small batches short and long ones.
 */
static const size_t LENGTHS[MOST_BATCH] = {235, 60,  388, 169, 292, 142, 573, 197, 262,  102, 462,
                                           182, 334, 157, 803, 215, 248, 80,  422, 175,  311, 151,
                                           664, 206, 276, 126, 512, 189, 360, 163, 1095, 225};

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

static enum status make_cells(struct bench *b, struct error *error) {
    static const size_t batches[] = {1, 4, 8, 16, 32}, few_batches[] = {1, 4};
    static const size_t lengths[] = {128, 512}, few_lengths[] = {32};
    const struct options *o = b->options;
    bool few = o->gpu.modelled;
    const size_t own_batch = (size_t)o->batch, own_length = (size_t)o->tokens;
    const size_t *Bs = o->batch > 0 ? &own_batch : few || o->quick ? few_batches : batches;
    const size_t *Ts = o->tokens > 0 ? &own_length : few ? few_lengths : lengths;
    size_t B_count = o->batch > 0 ? 1 : few || o->quick ? 2 : 5;
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
    return STATUS_OK;
}

/* Of the tokens that are there: linear layers, and attention within each text. */
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

/* ---- Measuring ---- */

/* One stage, and what it is timed with. */
struct lane {
    const struct classifier_stage *stage;
    double (*now)(void);
    int runs, warm_ups;
    struct classifier classifier;
};

static struct classifier_batch lay_out(struct lane *lane, const struct cell *cell,
                                       enum layout layout) {
    const struct classifier_text *list[MOST_BATCH];
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

/* Largest difference, relative to the largest value. */
static double difference_of(const float *got, const float *want, size_t count) {
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    return worst / largest;
}

/* The first stage to run a layout is who later ones, and the packed layout, must agree with. */
static enum status check_logits(const struct lane *lane, struct cell *cell, enum layout layout,
                                const float *logits, struct error *error) {
    enum layout like = layout == PACKED ? PADDED : layout;
    size_t count = cell->B * LABELS;
    if (!cell->known[like]) {
        memcpy(cell->logits[like], logits, count * sizeof *logits);
        cell->known[like] = true;
        return STATUS_OK;
    }
    double difference = difference_of(logits, cell->logits[like], count);
    return difference <= TOLERANCE
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "%s, %s: logits differ by %.3g of the largest from those before",
                           lane->stage->name, LAYOUT_OPS[layout], difference);
}

static enum status time_batch(struct lane *lane, const struct classifier_batch *batch,
                              float *logits, struct bench_timing *timing, struct error *error) {
    double seconds[MOST_RUNS];
    for (int i = -lane->warm_ups; i < lane->runs; i++) {
        double start = lane->now();
        TRY(classifier_run(&lane->classifier, batch, logits, error));
        if (i >= 0) {
            seconds[i] = lane->now() - start;
        }
    }
    *timing = bench_summarise(seconds, lane->runs);
    return STATUS_OK;
}

static enum status record(const struct bench *b, const struct lane *lane, const struct cell *cell,
                          enum layout layout, const struct bench_timing *timing,
                          struct error *error) {
    char shape[96];
    const struct bert_config *c = &b->model.config;
    const struct bench_gpu gpu = bench_gpu_of(&b->options->gpu);
    const struct classifier_text *texts = layout == DENSE ? cell->dense : cell->texts;
    snprintf(shape, sizeof shape, "BERT C%zu L%zu, %zux%zu tokens", c->C, c->L, cell->B, cell->T);
    const struct bench_record row = {
        .lab = "08_bert_classifier",
        .subject = "solutions",
        .stage = lane->stage->name,
        .op = LAYOUT_OPS[layout],
        .shape = shape,
        .dtype = "fp32",
        .threads = lane->stage->on_device ? 1 : b->options->threads,
        .gpu = lane->stage->on_device ? &gpu : NULL,
        .timing = *timing,
        .bytes = NAN,
        .flops = flops_of(c, texts, cell->B),
        .peer_ratio = NAN,
        .figure = "samples_per_second",
        .figure_value = 1e3 * (double)cell->B / timing->median_ms,
    };
    return bench_append(&row, error);
}

/* Times one layout. *ms: NAN where the CPU would take too long. */
static enum status measure(const struct bench *b, struct lane *lane, struct cell *cell,
                           enum layout layout, double *ms, struct error *error) {
    float logits[MOST_BATCH * LABELS];
    struct bench_timing timing;
    *ms = NAN;
    if (!lane->stage->on_device &&
        flops_of(&b->model.config, cell->dense, cell->B) > CPU_MOST_FLOPS) {
        return STATUS_OK;
    }
    struct classifier_batch batch = lay_out(lane, cell, layout);
    TRY(time_batch(lane, &batch, logits, &timing, error));
    TRY(check_logits(lane, cell, layout, logits, error));
    *ms = timing.median_ms;
    return record(b, lane, cell, layout, &timing, error);
}

static void print_number(const char *format, int width, double value, const char *unit) {
    if (isnan(value)) {
        printf(" %*s%*s", width, "-", (int)strlen(unit), "");
    } else {
        printf(format, width, value);
        fputs(unit, stdout);
    }
}

static enum status measure_cell(const struct bench *b, struct lane *lane, struct cell *cell,
                                struct error *error) {
    double ms[LAYOUTS];
    for (int layout = 0; layout < LAYOUTS; layout++) {
        TRY(measure(b, lane, cell, (enum layout)layout, &ms[layout], error));
    }
    printf("  %5zu %6zu", cell->B, cell->T);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        print_number(" %*.3f", 11, ms[layout], "");
    }
    print_number(" %*.1f", 10, 1e3 * (double)cell->B / ms[PACKED], "");
    print_number(" %*.2f", 7, ms[PADDED] / ms[PACKED], "x");
    putchar('\n');
    return fflush(stdout) == 0 ? STATUS_OK : STATUS_IO;
}

static void print_head(const struct bench *b, const struct lane *lane) {
    const struct bert_config *c = &b->model.config;
    bool modelled = lane->stage->on_device && b->options->gpu.modelled;
    printf("\nstage %s, BERT C %zu, %zu layers, random weights, %s\n", lane->stage->name, c->C,
           c->L, modelled ? "modelled" : "measured");
    printf("  %5s %6s %11s %11s %11s %10s %8s\n", "texts", "tokens", "dense ms", "padded ms",
           "packed ms", "texts/s", "packed");
}

static enum status run_cells(struct bench *b, struct lane *lane, const struct engine *engine,
                             struct error *error) {
    size_t batch = 0, longest = 0;
    for (size_t i = 0; i < b->count; i++) {
        batch = b->cells[i].B > batch ? b->cells[i].B : batch;
        longest = b->cells[i].T > longest ? b->cells[i].T : longest;
    }
    TRY(classifier_create(&lane->classifier, &b->model, engine, batch, longest, error));
    enum status status = STATUS_OK;
    print_head(b, lane);
    for (size_t i = 0; i < b->count && status == STATUS_OK; i++) {
        status = measure_cell(b, lane, &b->cells[i], error);
    }
    classifier_free(&lane->classifier);
    return status;
}

static enum status run_stage(struct bench *b, const struct classifier_stage *stage,
                             struct error *error) {
    const struct options *o = b->options;
    bool modelled = stage->on_device && o->gpu.modelled;
    struct engine engine = {0};
    struct lane lane = {
        .stage = stage,
        .now = stage->on_device ? device_now : bench_now,
        .runs = modelled                        ? 1
                : o->quick || !stage->on_device ? 3
                                                : MOST_RUNS,
        .warm_ups = modelled           ? 0
                    : stage->on_device ? WARM_UPS
                                       : 1,
    };
    enum status status = stage->create(&engine, o->threads, error);
    if (status == STATUS_OK) {
        status = run_cells(b, &lane, &engine, error);
    }
    engine_destroy(&engine);
    return status;
}

static enum status check_stage(const char *wanted, const struct classifier_stages *stages,
                               struct error *error) {
    for (size_t i = 0; i < stages->count; i++) {
        if (wanted == NULL || strcmp(wanted, stages->table[i].name) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--stage '%s': there is %s to %s", wanted,
                     stages->table[0].name, stages->table[stages->count - 1].name);
}

static enum status run_stages(struct bench *b, struct error *error) {
    const struct classifier_stages *stages = stages_of_the_course();
    const char *wanted = b->options->stage;
    for (size_t i = 0; i < stages->count; i++) {
        if (wanted == NULL || strcmp(wanted, stages->table[i].name) == 0) {
            TRY(run_stage(b, &stages->table[i], error));
        }
    }
    return STATUS_OK;
}

static enum status run_bench(struct bench *b, struct error *error) {
    const struct options *o = b->options;
    const char *shape = o->shape != NULL ? o->shape : o->gpu.modelled ? "tiny" : "base";
    const struct classifier_source source = {.shape = shape, .labels = LABELS, .seed = 1};
    char text[1024];
    TRY(classifier_model_open(&b->model, &source, error));
    TRY(make_cells(b, error));
    printf("%s\n", device_bench_headline(&o->gpu, text, sizeof text));
    printf("dense: every text has all tokens; padded, packed: lengths of IMDB's reviews"
           " (below 128 tokens scaled)\n");
    TRY(run_stages(b, error));
    printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", text, sizeof text));
    return STATUS_OK;
}

static enum status run(struct options *o, struct error *error) {
    struct bench bench = {.options = o};
    TRY(check_stage(o->stage, stages_of_the_course(), error));
    TRY(device_open(error));
    TRY(device_properties(&o->gpu, error));
    enum status status = run_bench(&bench, error);
    classifier_model_close(&bench.model);
    free(bench.cells);
    free(bench.ids);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {.threads = bench_cpu_count()};
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    enum status status = read_options(argc, argv, &options, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&options, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}
