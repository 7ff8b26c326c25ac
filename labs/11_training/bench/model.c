/* The bench's second part: a training step of BERT with the functions of each step of the ladder.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/models/model_bench.h"
#include "common/train/models/train_model.h"
#include "labs/11_training/bench/training_bench.h"

enum { TEXTS = 16, SMALL_TEXTS = 2, SMALL_LENGTH = 24, BERT_WORDS = 30522 };

/* A batch of texts of one length, each with a class. Host. */
struct texts {
    int32_t *ids, *starts, *labels;
    struct train_batch batch;
    size_t T;
};

static void texts_free(struct texts *x) {
    free(x->ids);
    free(x->starts);
    free(x->labels);
}

static enum status texts_create(struct texts *x, size_t B, size_t T, size_t V,
                                struct error *error) {
    struct rng rng = rng_create(5);
    *x = (struct texts){.T = T};
    x->ids = calloc(B * T, sizeof *x->ids);
    x->starts = calloc(B + 1, sizeof *x->starts);
    x->labels = calloc(B, sizeof *x->labels);
    if (x->ids == NULL || x->starts == NULL || x->labels == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < B * T; i++) {
        x->ids[i] = (int32_t)rng_below(&rng, V);
    }
    for (size_t b = 0; b < B; b++) {
        x->starts[b + 1] = (int32_t)((b + 1) * T);
        x->labels[b] = (int32_t)(b % MODEL_BENCH_LABELS);
    }
    x->batch =
        (struct train_batch){.ids = x->ids, .starts = x->starts, .B = B, .labels = x->labels};
    return STATUS_OK;
}

/* BERT-base, classifying; tiny where time is modelled. */
static struct train_config config_of(const struct ladder_setup *setup, size_t B, size_t T) {
    bool small = setup->gpu.modelled;
    struct train_config config = {.task = TRAIN_CLASSIFY,
                                  .bert = model_bench_bert_config(small),
                                  .dropout = 0.1f,
                                  .most_rows = B * T,
                                  .most_sequences = B};
    config.bert.T = T;
    config.bert.V = small ? 200 : BERT_WORDS;
    if (small) {
        config.bert.C = 64;
        config.bert.hidden = 128;
        config.bert.NH = 2;
    }
    return config;
}

/* Weights of the matrices that every token is multiplied with. */
static double matrices_of(const struct bert_config *c) {
    return (double)c->L *
           (4.0 * (double)c->C * (double)c->C + 2.0 * (double)c->C * (double)c->hidden);
}

/*
 * The products of a step: each once forward and twice backward, two operations a weight and token;
 * and attention's products of two S x S matrices, likewise. Recomputed products are not counted,
 * nor is any other work.
 */
static double flops_of(const struct bert_config *c, double B, double T) {
    return 6.0 * matrices_of(c) * B * T + 12.0 * (double)c->L * B * T * T * (double)c->C;
}

/* ---- A table: one length, one type ---- */

struct table {
    const struct ladder_setup *setup;
    struct train_config config;
    enum nn_dtype dtype;
    struct texts texts;
    char shape[96];
    size_t rows;
    struct model_bench_run first, run; /* the first row, and the one at hand */
    size_t launches;                   /* of the row at hand; 0: not seen */
    char unseen[160];                  /* why not */
};

static const struct training_options *options_of(const struct ladder_setup *setup) {
    return setup->options;
}

static double flops_of_step(const struct table *t) {
    return flops_of(&t->config.bert, (double)t->texts.batch.B, (double)t->texts.T);
}

static double tokens_of_step(const struct table *t) {
    return (double)t->config.most_rows;
}

/* A function that waits cannot be seen launch by launch: the table says so, and goes on. */
static void count_launches(struct table *t, struct bench_trainer *trainer) {
    struct error cause = {0};
    enum status status = bench_trainer_launches(trainer, &t->launches, &cause);
    t->launches = status == STATUS_OK ? t->launches : 0;
    snprintf(t->unseen, sizeof t->unseen, "%.150s", error_text(&cause, status));
}

/* ---- Rows ---- */

static void print_head(const struct table *t) {
    printf("\ntraining step, %s, %s: forward, backward, update, %s\n", t->shape,
           nn_dtype_name(t->dtype), device_bench_verb(&t->setup->gpu));
    printf("  %-20s %9s %12s %9s %9s %9s\n", "functions of", "ms", "tokens/s", "TFLOP/s",
           "launches", "in all");
}

static void print_row(const struct table *t) {
    double ms = t->run.timing.median_ms;
    printf("  %-20s %9.4f %12.1f %9.3f ", t->run.name, ms, 1e3 * tokens_of_step(t) / ms,
           1e-9 * flops_of_step(t) / ms);
    if (t->launches > 0) {
        printf("%9zu", t->launches);
    } else {
        printf("%9s", "-");
    }
    printf(" %8.2fx\n", t->first.timing.median_ms / ms);
    if (t->launches == 0) {
        printf("  launches of %s are not seen: %s\n", t->run.name, t->unseen);
    }
    fflush(stdout);
}

static enum status record_launches(const struct table *t, struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&t->setup->gpu);
    const struct bench_record record = {.lab = "11_training",
                                        .subject = WARPBOOK_SUBJECT,
                                        .stage = t->run.name,
                                        .op = "training_launches",
                                        .shape = t->shape,
                                        .dtype = nn_dtype_name(t->dtype),
                                        .threads = 1,
                                        .gpu = &gpu,
                                        .timing = t->run.timing,
                                        .bytes = NAN,
                                        .flops = NAN,
                                        .peer_ratio = NAN,
                                        .figure = "launches_per_step",
                                        .figure_value = (double)t->launches};
    return t->launches > 0 ? bench_append(&record, error) : STATUS_OK;
}

static enum status record_step(const struct table *t, struct error *error) {
    const struct model_bench_table columns = {.lab = "11_training",
                                              .subject = WARPBOOK_SUBJECT,
                                              .op = "training_step",
                                              .shape = t->shape,
                                              .figure = "tokens_per_second",
                                              .units = tokens_of_step(t),
                                              .dtype = nn_dtype_name(t->dtype),
                                              .flops = flops_of_step(t),
                                              .logits = 2};
    TRY(model_bench_record(&columns, &t->setup->gpu, t->run.name, &t->run, &t->first, error));
    return record_launches(t, error);
}

/* The file of --launches. */
static enum status open_list(const char *path, FILE **list, struct error *error) {
    *list = fopen(path, "w");
    if (*list == NULL) {
        return error_set(error, STATUS_IO, "--launches %s: cannot be written", path);
    }
    fputs("launch,kernel,ms\n", *list);
    return STATUS_OK;
}

static enum status close_list(const char *path, FILE *list, enum status status,
                              struct error *error) {
    bool bad = ferror(list) != 0;
    bad = fclose(list) != 0 || bad;
    return status == STATUS_OK && bad
               ? error_set(error, STATUS_IO, "--launches %s: could not be written", path)
               : status;
}

static enum status run_kernels(const struct table *t, struct bench_trainer *trainer,
                               struct kernel_totals *totals, struct error *error) {
    const char *path = options_of(t->setup)->launches;
    if (path == NULL) {
        return bench_trainer_kernels(trainer, totals, error);
    }
    TRY(open_list(path, &totals->list, error));
    enum status status = bench_trainer_kernels(trainer, totals, error);
    return close_list(path, totals->list, status, error);
}

/* Each launch by itself: their sum is not the step's time. */
static enum status print_kernels(const struct table *t, struct bench_trainer *trainer,
                                 struct error *error) {
    struct kernel_totals totals = {0};
    enum status status = run_kernels(t, trainer, &totals, error);
    if (status == STATUS_OK) {
        printf("\nlaunches of a step, %s, each by itself, %.4f ms in all, %s\n", t->run.name,
               totals.ms, device_bench_verb(&t->setup->gpu));
        kernel_totals_print(&totals, (size_t)options_of(t->setup)->kernels, stdout);
    }
    kernel_totals_free(&totals);
    return status;
}

static enum status time_row(struct table *t, const struct training_step *step,
                            struct bench_trainer *trainer, struct error *error) {
    t->run.name = step->name;
    TRY(bench_trainer_create(trainer, &t->config, t->dtype, &step->functions, &t->texts.batch,
                             error));
    TRY(bench_trainer_time(trainer, t->setup, &t->run.timing, t->run.logits, error));
    count_launches(t, trainer);
    return STATUS_OK;
}

static enum status show_row(struct table *t, bool with_kernels, struct bench_trainer *trainer,
                            struct error *error) {
    if (t->rows++ == 0) {
        t->first = t->run;
    }
    print_row(t);
    TRY(record_step(t, error));
    return with_kernels ? print_kernels(t, trainer, error) : STATUS_OK;
}

static enum status add_row(struct table *t, const struct training_step *step, bool last,
                           struct error *error) {
    struct bench_trainer trainer = {0};
    enum status status = time_row(t, step, &trainer, error);
    if (status != STATUS_OK) {
        error_prefix(error, status, step->name);
    } else {
        status = show_row(t, last && options_of(t->setup)->kernels > 0, &trainer, error);
    }
    bench_trainer_free(&trainer);
    return status;
}

static enum status add_rows(struct table *t, struct error *error) {
    size_t count;
    const char *only = t->setup->step;
    const struct training_step *steps = training_ladder(&count);
    print_head(t);
    for (size_t i = 0; i < count; i++) {
        bool wanted = only == NULL || strcmp(only, steps[i].name) == 0;
        if (wanted) {
            TRY(add_row(t, &steps[i], only != NULL || i + 1 == count, error));
        }
    }
    return STATUS_OK;
}

static enum status measure_table(const struct ladder_setup *setup, size_t B, size_t T,
                                 enum nn_dtype dtype, struct error *error) {
    struct table t = {.setup = setup, .config = config_of(setup, B, T), .dtype = dtype};
    const struct bert_config *bert = &t.config.bert;
    snprintf(t.shape, sizeof t.shape, "BERT C%zu L%zu, %zux%zu tokens", bert->C, bert->L, B, T);
    enum status status = texts_create(&t.texts, B, T, bert->V, error);
    if (status == STATUS_OK) {
        status = add_rows(&t, error);
    }
    texts_free(&t.texts);
    return status;
}

/* ---- All of them ---- */

static void print_legend(const struct ladder_setup *setup) {
    const struct train_config config = config_of(setup, 1, 1);
    printf(
        "\nTFLOP/s: 6 operations a token for each of the %.3g M weights of the encoder's matrices, "
        "and\nattention's products; nothing twice. launches: kernels, copies and fills.\n",
        1e-6 * matrices_of(&config.bert));
}

/* A GPU without bf16 runs the rest of the bench, unless --dtype asks for bf16. */
static bool is_without_bf16(const struct ladder_setup *setup) {
    bool without = options_of(setup)->dtype < 0 && setup->gpu.code < 80;
    if (without) {
        printf("\nNot in bf16, which needs code for compute capability 8.0: this GPU runs code for "
               "%d.%d.\n",
               setup->gpu.code / 10, setup->gpu.code % 10);
    }
    return without;
}

enum status bench_model(const struct ladder_setup *setup, struct error *error) {
    static const size_t usual[] = {128, 512};
    static const enum nn_dtype dtypes[] = {NN_F32, NN_BF16};
    const struct training_options *o = options_of(setup);
    bool small = setup->gpu.modelled;
    size_t own = o->length > 0 ? (size_t)o->length : SMALL_LENGTH;
    size_t B = o->batch > 0 ? (size_t)o->batch : small ? SMALL_TEXTS : TEXTS;
    const size_t *lengths = o->length > 0 || small ? &own : usual;
    size_t count = lengths == usual ? 2 : 1;
    print_legend(setup);
    bool without_bf16 = is_without_bf16(setup);
    for (size_t i = 0; i < 2 * count; i++) {
        enum nn_dtype dtype = dtypes[i % 2];
        bool asked = o->dtype < 0 || o->dtype == (int)dtype;
        if (asked && !(without_bf16 && dtype == NN_BF16)) {
            TRY(measure_table(setup, B, lengths[i / 2], dtype, error));
        }
    }
    return STATUS_OK;
}
