/* One model through the stages: launches of a layer, and the table at the end. */
#include <math.h>
#include <stdio.h>

#include "common/bench/models/launch_counter.h"
#include "labs/08_bert_classifier/bench/bench_internal.h"

/* ---- Launches ---- */

static enum status count_with(struct launch_counter *c, const struct bench *b,
                              struct classifier *classifier, struct profile *profile,
                              struct error *error) {
    const struct classifier_text *list[BENCH_MOST_BATCH];
    float logits[BENCH_MOST_BATCH * BENCH_LABELS];
    for (size_t i = 0; i < b->shown->B; i++) {
        list[i] = &b->shown->dense[i];
    }
    struct classifier_batch batch =
        classifier_batch(classifier, list, b->shown->B, true, b->shown->T);
    batch.input.mask = NULL;
    /* The first run may prepare buffers or graphs. */
    TRY(classifier_run(classifier, &batch, logits, error));
    profile->recorder = launch_counter_recorder(c);
    return classifier_run(classifier, &batch, logits, error);
}

static enum status count_on(struct launch_counter *c, const struct bench *b,
                            const struct classifier_model *model, struct engine *engine,
                            struct profile *profile, struct error *error) {
    struct classifier classifier;
    TRY(classifier_create(&classifier, model, engine, b->shown->B, b->shown->T, error));
    enum status status = count_with(c, b, &classifier, profile, error);
    classifier_free(&classifier);
    return status;
}

/* Launches of the model's first `layers` layers, its embeddings and its classifier. */
static enum status count_layers(struct launch_counter *c, const struct bench *b,
                                const struct lane *lane, size_t layers, struct error *error) {
    struct classifier_model model = b->model;
    struct engine profiled;
    struct profile profile;
    model.config.L = layers;
    c->launches = 0;
    c->unseen = 0;
    if (engine_profile_create(&profiled, lane->engine, &profile) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = count_on(c, b, &model, &profiled, &profile, error);
    engine_destroy(&profiled);
    return status;
}

/* A layer's launches are those of two layers less those of one, if no operator of a layer fails to
 * be recorded. A whole encoder that cannot be recorded would leave no difference. */
static enum status count_layer(struct launch_counter *c, const struct bench *b,
                               const struct lane *lane, struct summary_row *row,
                               struct error *error) {
    TRY(count_layers(c, b, lane, 1, error));
    size_t one = c->launches, unseen = c->unseen;
    TRY(count_layers(c, b, lane, 2, error));
    if (c->unseen != unseen || c->launches == one) {
        snprintf(row->no_launches, sizeof row->no_launches, "an operator cannot be recorded: %.80s",
                 c->why);
    } else {
        row->launches = (double)(c->launches - one);
    }
    return STATUS_OK;
}

enum status bench_count_launches(const struct bench *b, const struct lane *lane,
                                 struct summary_row *row, struct error *error) {
    const struct classifier_kernels *kernels = b->stages->kernels;
    struct launch_counter counter = {0};
    struct error cause = {0};
    void *times;
    row->launches = NAN;
    if (!lane->stage->on_device) {
        snprintf(row->no_launches, sizeof row->no_launches, "it launches nothing");
        return STATUS_OK;
    }
    enum status status = kernels->create(&times, lane->engine, &cause);
    if (status == STATUS_UNSUPPORTED) {
        snprintf(row->no_launches, sizeof row->no_launches, "%.120s", cause.message);
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        return error_set(error, status, "%s", error_text(&cause, status));
    }
    counter.times = times;
    status = count_layer(&counter, b, lane, row, error);
    kernels->free(times);
    return status;
}

/* ---- The table ---- */

/* Stages in the order of the course, fp32 before the others. */
static const struct summary_row *row_of(const struct bench *b, size_t stage, enum nn_dtype dtype) {
    for (size_t i = 0; i < b->rows_count; i++) {
        if (b->rows[i].stage == &b->stages->table[stage] && b->rows[i].dtype == dtype) {
            return &b->rows[i];
        }
    }
    return NULL;
}

static void print_row(const struct bench *b, const struct summary_row *row,
                      const struct summary_row *first) {
    bool modelled = b->driver->gpu.modelled;
    double B = (double)b->shown->B;
    /* A measured and a modelled time have no ratio. */
    bool alike = first != NULL && first->stage->on_device == row->stage->on_device;
    double speedup = first != NULL && (alike || !modelled) ? first->ms / row->ms : NAN;
    printf("  %-22s %-5s", row->stage->name, nn_dtype_name(row->dtype));
    bench_print_number("%*.3f", 11, row->ms, "");
    bench_print_number("%*.1f", 9, 1e3 * B / row->ms, "");
    bench_print_number("%*.1f", 9, 1e3 * B / row->packed_ms, "");
    bench_print_number("%*.0f", 9, row->launches, "");
    bench_print_number("%*.2f", 8, speedup, "x");
    bench_print_number("%*.1e", 10, row->difference, "");
    putchar('\n');
}

static void print_notes(const struct bench *b) {
    for (size_t i = 0; i < b->rows_count; i++) {
        const struct summary_row *row = &b->rows[i];
        if (row->no_launches[0] != '\0' && row->stage->on_device) {
            printf("  %s: launches are not counted: %s\n", row->stage->name, row->no_launches);
        }
        if (isnan(row->ms)) {
            printf("  %s: would take too long; --seconds N allows for more\n", row->stage->name);
        }
    }
}

void bench_print_summary(const struct bench *b) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_F16, NN_BF16};
    const struct summary_row *first = NULL;
    const char *reference = b->shown->first[DENSE];
    printf("\none model through the stages: %zu texts of %zu tokens, dense; packed: of IMDB's "
           "lengths%s\n",
           b->shown->B, b->shown->T,
           b->driver->gpu.modelled ? "; the CPU's times are measured, the others modelled" : "");
    printf("  %-22s %-5s %11s %9s %9s %9s %9s %10s\n", "stage", "dtype", "ms", "texts/s",
           "packed/s", "launches", "speed-up", "logits");
    for (size_t s = 0; s < b->stages->count; s++) {
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            const struct summary_row *row = row_of(b, s, dtypes[d]);
            if (row == NULL) {
                continue;
            }
            bool counts = !isnan(row->ms) && (row->stage->on_device || !b->driver->gpu.modelled);
            first = first == NULL && counts ? row : first;
            print_row(b, row, first);
        }
    }
    printf("launches: of one layer");
    if (first != NULL) {
        printf("; speed-up: over %s", first->stage->name);
    }
    if (reference != NULL) {
        printf("; logits: largest difference from those of %s, relative to the largest", reference);
    }
    putchar('\n');
    print_notes(b);
}
