#include "common/programs/classifier/evaluate.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/json_object.h"
#include "common/base/terminal.h"
#include "common/programs/classifier/classifier_session.h"
#include "common/programs/classifier/metrics.h"
#include "common/programs/classifier/metrics_report.h"
#include "common/programs/program.h"
#include "common/programs/shipped.h"
#include "common/texts/text_flags.h"

/* Texts are sorted by length within windows of this many batches. */
enum { WINDOW_BATCHES = 64 };

struct options {
    struct classifier_options shared;
    const char *dataset, *data, *split, *predictions;
    char sample[FOLDER_PATH_BYTES]; /* path of the project's own texts */
    int limit, skip;
    bool padded, json;
    struct text_columns columns;
    enum text_dataset_kind kind;
};

/* One evaluation. */
struct evaluation {
    struct classifier_session session;
    struct classifier classifier;
    struct text_labels labels; /* of own texts: the model's */
    struct text_dataset dataset;
    struct classifier_text *texts; /* (count) */
    size_t *order;                 /* (count) */
    int32_t *answers;              /* (count) */
    float *sureness;               /* (count): probability of the answer */
    float *logits;                 /* (batch, labels) */
    double *probabilities;         /* (labels) */
    const struct classifier_text **batch;
    struct metrics metrics;
    size_t cut;          /* texts that were too long */
    size_t tokens, rows; /* without padding, and with it */
    double seconds;      /* of the model, without tokenizing */
};

/* --dataset sample needs no --data: it comes with the project. */
static enum status find_sample(struct options *o, struct error *error) {
    if (o->dataset == NULL || o->data != NULL || strcmp(o->dataset, "sample") != 0) {
        return STATUS_OK;
    }
    TRY(shipped_find(SHIPPED_SAMPLE, "--data", "give a file of lines 'LABEL<tab>TEXT'", o->sample,
                     error));
    o->data = o->sample;
    return STATUS_OK;
}

static enum status check_options(struct options *o, struct error *error) {
    TRY(find_sample(o, error));
    if (o->data == NULL && o->dataset != NULL) {
        TRY(text_dataset_kind_parse(o->dataset, &o->kind, error));
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--dataset %s: give its folder or file with --data; 'bazel run "
                         "//datasets:fetch -- --list' names those that it downloads",
                         o->dataset);
    }
    if (o->data == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "give --data FILE with labelled texts of your own (.csv, .tsv, .jsonl), "
                         "--dataset sample, or --dataset imdb|agnews and --data PATH; see --help");
    }
    TRY(text_dataset_choose(&o->kind, o->dataset, o->data, &o->columns, error));
    o->dataset = text_dataset_name(o->kind);
    if (!text_dataset_has_labels(o->kind) || strcmp(o->split, TEXT_DATASET_UNLABELLED) == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--dataset %s --split %s: these texts have no labels to compare with",
                         o->dataset, o->split);
    }
    if (o->limit < 0 || o->skip < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--limit %d, --skip %d: must be at least 0", o->limit, o->skip);
    }
    return o->predictions != NULL ? file_check_writable(o->predictions, error) : STATUS_OK;
}

/* ---- Preparing ---- */

static enum status open_dataset(struct evaluation *e, const struct options *o,
                                struct error *error) {
    const struct text_dataset_options wanted = {.split = o->split,
                                                .skip = (size_t)o->skip,
                                                .limit = (size_t)o->limit,
                                                .columns = o->columns,
                                                .labels = &e->labels};
    return text_dataset_open(&e->dataset, o->kind, o->data, &wanted, error);
}

static enum status alloc(struct evaluation *e, struct error *error) {
    size_t count = e->dataset.count, batch = e->session.batch;
    e->texts = calloc(count, sizeof *e->texts);
    e->order = calloc(count, sizeof *e->order);
    e->answers = calloc(count, sizeof *e->answers);
    e->sureness = calloc(count, sizeof *e->sureness);
    e->logits = calloc(batch * e->dataset.labels, sizeof *e->logits);
    e->probabilities = calloc(e->dataset.labels, sizeof *e->probabilities);
    e->batch = calloc(batch, sizeof *e->batch);
    bool all = e->texts != NULL && e->order != NULL && e->answers != NULL && e->sureness != NULL &&
               e->logits != NULL && e->probabilities != NULL && e->batch != NULL &&
               metrics_create(&e->metrics, e->dataset.labels) == STATUS_OK;
    return all ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the texts");
}

static enum status encode(struct evaluation *e, struct error *error) {
    struct progress progress = progress_create("tokenising", e->dataset.count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < e->dataset.count && status == STATUS_OK; i++) {
        const struct text_sample *sample = &e->dataset.samples[i];
        status = classifier_encode(&e->session.model, sample->text, sample->length,
                                   e->session.max_length, &e->texts[i], error);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

/* Own texts must have labels that the model knows. */
static enum status take_labels(struct evaluation *e, const char *checkpoint, struct error *error) {
    const struct classifier_model *model = &e->session.model;
    for (size_t i = 0; i < model->config.labels; i++) {
        const char *name = model->labels[i].name;
        int32_t id = -1;
        enum status status = text_labels_take(&e->labels, name, strlen(name), &id, error);
        if (status == STATUS_OK && (size_t)id != i) {
            status = error_set(error, STATUS_BAD_FORMAT, "two labels have the name '%s'", name);
        }
        if (status != STATUS_OK) {
            return error_prefix(error, status, checkpoint);
        }
    }
    e->labels.closed = true;
    return STATUS_OK;
}

/* Opens model and data. Random weights have as many labels as the texts. */
static enum status open_both(struct evaluation *e, const struct options *o,
                             const struct classifier_stages *stages, struct error *error) {
    bool own = o->kind == TEXT_DATASET_FILE;
    if (own && o->shared.random) {
        TRY(open_dataset(e, o, error));
        return classifier_session_open(&e->session, &o->shared, stages, e->dataset.labels, NULL,
                                       error);
    }
    TRY(classifier_session_open(&e->session, &o->shared, stages, text_dataset_labels(o->kind),
                                own ? NULL : o->dataset, error));
    if (own) {
        TRY(take_labels(e, o->shared.checkpoint, error));
    }
    return open_dataset(e, o, error);
}

static enum status prepare(struct evaluation *e, const struct options *o,
                           const struct classifier_stages *stages, struct error *error) {
    TRY(open_both(e, o, stages, error));
    TRY(alloc(e, error));
    TRY(encode(e, error));
    size_t window = WINDOW_BATCHES * e->session.batch;
    if (classifier_order(e->texts, e->dataset.count, window, e->order) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory to sort the texts");
    }
    return classifier_create(&e->classifier, &e->session.model, &e->session.engine,
                             e->session.batch, e->session.max_length, error);
}

/* ---- Running ---- */

/* Texts order[first] .. order[first + count - 1]. */
static enum status run_batch(struct evaluation *e, size_t first, size_t count, bool padded,
                             struct error *error) {
    for (size_t i = 0; i < count; i++) {
        e->batch[i] = &e->texts[e->order[first + i]];
    }
    struct classifier_batch batch = classifier_batch(&e->classifier, e->batch, count, padded, 0);
    double start = e->session.now();
    TRY(classifier_run(&e->classifier, &batch, e->logits, error));
    e->seconds += e->session.now() - start;
    e->tokens += batch.tokens;
    e->rows += padded ? count * batch.input.T : batch.tokens;
    size_t labels = e->dataset.labels;
    for (size_t i = 0; i < count; i++) {
        size_t text = e->order[first + i];
        size_t answer = classifier_answer(e->logits + i * labels, labels);
        classifier_probabilities(e->logits + i * labels, labels, e->probabilities);
        e->answers[text] = (int32_t)answer;
        e->sureness[text] = (float)e->probabilities[answer];
        e->cut += e->texts[text].cut;
        metrics_add(&e->metrics, (size_t)e->dataset.samples[text].label, answer);
    }
    return STATUS_OK;
}

static enum status run_batches(struct evaluation *e, bool padded, struct error *error) {
    struct progress progress = progress_create("evaluating", e->dataset.count);
    enum status status = STATUS_OK;
    size_t count = e->dataset.count;
    for (size_t first = 0; first < count && status == STATUS_OK; first += e->session.batch) {
        if (interrupt_seen() != 0) {
            status = error_set(error, STATUS_INTERRUPTED,
                               "interrupted after %zu of %zu texts, long ones first: no figures of "
                               "the others",
                               first, count);
            break;
        }
        size_t some = count - first < e->session.batch ? count - first : e->session.batch;
        status = run_batch(e, first, some, padded, error);
        progress_update(&progress, first + some);
    }
    progress_finish(&progress);
    return status;
}

/* ---- Reporting ---- */

/* Number of texts that the figures are of: all, unless a signal came. */
static size_t tested(const struct evaluation *e) {
    return (size_t)metrics_count(&e->metrics);
}

static void report_head(const struct evaluation *e, const struct options *o) {
    char where[400];
    if (o->kind == TEXT_DATASET_FILE) {
        printf("%s", o->data);
    } else {
        printf("%s, %s", o->dataset, o->split);
    }
    printf(": %zu texts, %zu of them cut to %zu tokens\n", tested(e), e->cut,
           e->session.max_length);
    printf("%s, batches of %zu, %s: %.1f%% of the rows are padding\n",
           classifier_session_where(&e->session, where, sizeof where), e->session.batch,
           o->padded ? "padded" : "packed",
           e->rows > 0 ? 100.0 * (double)(e->rows - e->tokens) / (double)e->rows : 0.0);
    if (o->shared.random) {
        printf("random weights: of the figures below only the speed is meaningful\n");
    }
}

static bool is_modelled(const struct evaluation *e) {
    return e->session.stage->on_device && e->session.device.modelled;
}

static void report(const struct evaluation *e, const struct options *o) {
    report_head(e, o);
    metrics_print(&e->metrics, e->dataset.label_names, stdout);
    if (e->seconds > 0.0) {
        printf("\n%.1f texts/s, %.0f tokens/s (%s, model only)\n", (double)tested(e) / e->seconds,
               (double)e->tokens / e->seconds, is_modelled(e) ? "modelled" : "measured");
    }
}

/* The report as an object; what it leaves out for lack of memory, metrics_add_json() tells. */
static cJSON *describe(const struct evaluation *e, const struct options *o) {
    const struct classifier_session *s = &e->session;
    bool own = o->kind == TEXT_DATASET_FILE;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "dataset", own ? o->data : o->dataset);
    if (!own) {
        cJSON_AddStringToObject(object, "split", o->split);
    }
    cJSON_AddNumberToObject(object, "texts", (double)tested(e));
    cJSON_AddNumberToObject(object, "cut", (double)e->cut);
    cJSON_AddNumberToObject(object, "max_length", (double)s->max_length);
    cJSON_AddStringToObject(object, "stage", s->stage->name);
    cJSON_AddStringToObject(object, "device", s->stage->on_device ? s->device.name : "the CPU");
    cJSON_AddStringToObject(object, "dtype", nn_dtype_name(s->dtype));
    cJSON_AddBoolToObject(object, "random_weights", o->shared.random);
    if (e->seconds > 0.0) {
        cJSON_AddStringToObject(object, "time", is_modelled(e) ? "modelled" : "measured");
        json_add_rounded(object, "texts_per_s", (double)tested(e) / e->seconds);
        json_add_rounded(object, "tokens_per_s", (double)e->tokens / e->seconds);
    }
    return object;
}

static enum status report_json(const struct evaluation *e, const struct options *o,
                               struct error *error) {
    cJSON *object = describe(e, o);
    enum status status = metrics_add_json(&e->metrics, e->dataset.label_names, object);
    char *json = status == STATUS_OK ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (json == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the report");
    }
    puts(json);
    free(json);
    return STATUS_OK;
}

/* ---- Answers ---- */

/* "LABEL<tab>ANSWER". */
static bool put_line(const struct evaluation *e, size_t i, FILE *stream) {
    const char *const *names = e->dataset.label_names;
    return fprintf(stream, "%s\t%s\n", names[e->dataset.samples[i].label], names[e->answers[i]]) >
           0;
}

static bool put_object(const struct evaluation *e, size_t i, FILE *stream) {
    const char *const *names = e->dataset.label_names;
    cJSON *object = cJSON_CreateObject();
    bool added =
        cJSON_AddStringToObject(object, "text", e->dataset.samples[i].text) != NULL &&
        cJSON_AddStringToObject(object, "label", names[e->dataset.samples[i].label]) != NULL &&
        cJSON_AddStringToObject(object, "answer", names[e->answers[i]]) != NULL &&
        json_add_rounded(object, "probability", (double)e->sureness[i]);
    char *json = added ? cJSON_PrintUnformatted(object) : NULL;
    bool put = json != NULL && fprintf(stream, "%s\n", json) > 0;
    cJSON_Delete(object);
    free(json);
    return put;
}

/* Writes label and answer of each text, in the data set's order. */
static enum status write_predictions(const struct evaluation *e, const struct options *o,
                                     struct error *error) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool good = stream != NULL;
    for (size_t i = 0; i < e->dataset.count && good; i++) {
        good = o->json ? put_object(e, i, stream) : put_line(e, i, stream);
    }
    good = stream != NULL && fclose(stream) == 0 && good;
    enum status status =
        good ? file_write(o->predictions, text, size, error)
             : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the answers");
    free(text);
    return status;
}

static void evaluation_free(struct evaluation *e) {
    for (size_t i = 0; i < e->dataset.count && e->texts != NULL; i++) {
        free(e->texts[i].ids);
    }
    free(e->texts);
    free(e->order);
    free(e->answers);
    free(e->sureness);
    free(e->probabilities);
    free(e->logits);
    free(e->batch);
    metrics_free(&e->metrics);
    classifier_free(&e->classifier);
    text_dataset_close(&e->dataset);
    text_labels_free(&e->labels);
    classifier_session_close(&e->session);
}

static enum status evaluate(struct evaluation *e, const struct options *o,
                            const struct classifier_stages *stages, struct error *error) {
    TRY(prepare(e, o, stages, error));
    interrupt_watch();
    enum status status = run_batches(e, o->padded, error);
    if (status != STATUS_OK && (status != STATUS_INTERRUPTED || tested(e) == 0)) {
        return status;
    }
    if (o->json) {
        TRY(report_json(e, o, error));
    } else {
        report(e, o);
    }
    TRY(program_output_end(error));
    return status == STATUS_OK && o->predictions != NULL ? write_predictions(e, o, error) : status;
}

static enum status run(void *options, const struct arguments *arguments,
                       const struct classifier_stages *stages, struct error *error) {
    struct options *o = options;
    struct evaluation evaluation = {.seconds = 0.0};
    (void)arguments;
    TRY(check_options(o, error));
    enum status status = evaluate(&evaluation, o, stages, error);
    evaluation_free(&evaluation);
    return status;
}

int evaluate_main(int argc, char **argv, const struct classifier_stages *stages) {
    struct options o = {.shared = classifier_options_defaults(), .split = "test"};
    const struct flag own[] = {
        {"data", 0, FLAG_STRING, &o.data, "PATH",
         "a file of your own, .csv, .tsv or .jsonl; or, with --dataset imdb: a folder, .tar or "
         ".tar.xz; agnews: a CSV or its folder; sample: a TSV, default the project's sentences"},
        TEXT_FLAGS_TEXT(&o.columns),
        TEXT_FLAGS_LABEL(&o.columns),
        {"dataset", 0, FLAG_STRING, &o.dataset, "NAME",
         "imdb, agnews, sample or file; default: by the ending of --data"},
        {"split", 0, FLAG_STRING, &o.split, "NAME", "test or train"},
        {"limit", 'n', FLAG_INT, &o.limit, "N", "most texts; 0: all"},
        {"skip", 0, FLAG_INT, &o.skip, "N", "number of texts to skip at the start"},
        {"padded", 0, FLAG_SWITCH, &o.padded, NULL,
         "pad texts to the longest of their batch instead of packing them"},
        {"predictions", 0, FLAG_STRING, &o.predictions, "FILE",
         "write label, tab and answer of every text, one text a line; with --json objects with "
         "text, label, answer and its probability"},
        {"json", 0, FLAG_SWITCH, &o.json, NULL, "print the figures as one JSON object"},
    };
    const struct classifier_command command = {
        .program = "evaluate",
        .positional = "",
        .summary = "measures the accuracy of a BERT classifier on a data set",
        .epilogue =
            "The labels of your own file are names that the checkpoint's config.json has in "
            "id2label.\n"
            "examples:\n"
            "  evaluate --checkpoint tickets/best --data more_tickets.csv --text-column body "
            "--label-column team\n"
            "  evaluate --checkpoint DIR --dataset imdb --data aclImdb_labelled.tar.xz "
            "--limit 200",
        .options = &o.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
    };
    return classifier_command_main(&command, argc, argv, stages, run, &o);
}
