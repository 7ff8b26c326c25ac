#include "common/programs/classifier/classifier_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/folder.h"
#include "common/base/rng.h"
#include "common/base/terminal.h"
#include "common/programs/classifier/classifier_profile_internal.h"
#include "common/programs/program.h"
#include "common/texts/text_flags.h"

enum { RANDOM_LABELS = 2, MOST_BATCHES = 100000 };

struct options {
    struct classifier_options shared;
    const char *folder, *dataset, *data, *split;
    int batches, traced;
    bool padded;
    struct text_columns columns;
    enum text_dataset_kind kind;
};

static enum status check_options(struct options *o, struct error *error) {
    if (o->dataset != NULL && o->data == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--dataset %s: give its --data, too, or neither for random tokens",
                         o->dataset);
    }
    if (o->batches < 1 || o->batches > MOST_BATCHES || o->traced < 1 || o->traced > MOST_BATCHES) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--batches %d, --trace-batches %d: must be from 1 to %d", o->batches,
                         o->traced, MOST_BATCHES);
    }
    return o->data == NULL ? STATUS_OK
                           : text_dataset_choose(&o->kind, o->dataset, o->data, &o->columns, error);
}

/* ---- Texts ---- */

static enum status texts_alloc(struct profile_run *run, size_t count, struct error *error) {
    run->texts = calloc(count, sizeof *run->texts);
    run->texts_count = run->texts != NULL ? count : 0;
    return run->texts != NULL ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

/* Makes a batch of texts of random tokens, each of the greatest length. */
static enum status make_texts(struct profile_run *run, struct error *error) {
    struct rng rng = rng_create(1);
    size_t length = run->session.max_length;
    TRY(texts_alloc(run, run->session.batch, error));
    for (size_t i = 0; i < run->texts_count; i++) {
        struct classifier_text *text = &run->texts[i];
        text->ids = calloc(length, sizeof *text->ids);
        if (text->ids == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
        }
        for (text->count = 0; text->count < length; text->count++) {
            text->ids[text->count] = (int32_t)rng_below(&rng, run->session.model.config.V);
        }
    }
    return STATUS_OK;
}

static enum status encode_dataset(struct profile_run *run, const struct text_dataset *dataset,
                                  struct error *error) {
    TRY(texts_alloc(run, dataset->count, error));
    for (size_t i = 0; i < dataset->count; i++) {
        TRY(classifier_encode(&run->session.model, dataset->samples[i].text,
                              dataset->samples[i].length, run->session.max_length, &run->texts[i],
                              error));
    }
    return STATUS_OK;
}

/* Reads at most as many texts of the data set as all batches hold. */
static enum status read_texts(struct profile_run *run, const struct options *o,
                              struct error *error) {
    struct text_dataset dataset;
    const struct text_dataset_options wanted = {
        .split = o->split, .limit = (size_t)o->batches * run->session.batch, .columns = o->columns};
    TRY(text_dataset_open(&dataset, o->kind, o->data, &wanted, error));
    enum status status = encode_dataset(run, &dataset, error);
    text_dataset_close(&dataset);
    return status;
}

/* ---- Running ---- */

/* Lays out batch `index`; after the last text the batches begin again with the first. */
static struct classifier_batch lay_out(struct profile_run *run, struct classifier *classifier,
                                       const struct classifier_text **list, size_t index) {
    size_t batches = (run->texts_count + run->session.batch - 1) / run->session.batch;
    size_t first = index % batches * run->session.batch;
    size_t left = run->texts_count - first;
    size_t count = left < run->session.batch ? left : run->session.batch;
    for (size_t i = 0; i < count; i++) {
        list[i] = &run->texts[first + i];
    }
    return classifier_batch(classifier, list, count, run->padded, 0);
}

/* A classifier and buffers for one pass over the batches. */
struct pass {
    struct classifier classifier;
    const struct classifier_text **list;
    float *logits;
};

static void pass_free(struct pass *pass) {
    classifier_free(&pass->classifier);
    free(pass->list);
    free(pass->logits);
}

static enum status pass_open(struct pass *pass, struct profile_run *run,
                             const struct engine *engine, struct error *error) {
    const struct classifier_session *s = &run->session;
    pass->list = calloc(s->batch, sizeof *pass->list);
    pass->logits = calloc(s->batch * s->model.config.labels, sizeof *pass->logits);
    if (pass->list == NULL || pass->logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    TRY(classifier_create(&pass->classifier, &s->model, engine, s->batch, s->max_length, error));
    /* The first batch warms up caches and clocks and is not counted. */
    struct classifier_batch first = lay_out(run, &pass->classifier, pass->list, 0);
    return classifier_run(&pass->classifier, &first, pass->logits, error);
}

typedef enum status pass_function(struct profile_run *run, struct pass *pass, struct error *error);

/* Makes a classifier on the engine, runs the first batch once, then `work`. */
static enum status with_pass(struct profile_run *run, const struct engine *engine,
                             pass_function *work, struct error *error) {
    struct pass pass = {.list = NULL};
    enum status status = pass_open(&pass, run, engine, error);
    status = status == STATUS_OK ? work(run, &pass, error) : status;
    pass_free(&pass);
    return status;
}

static enum status time_batch(struct profile_run *run, struct pass *pass, size_t index,
                              struct error *error) {
    struct classifier_batch batch = lay_out(run, &pass->classifier, pass->list, index);
    double start = run->session.now();
    TRY(classifier_run(&pass->classifier, &batch, pass->logits, error));
    run->seconds[index] = run->session.now() - start;
    run->samples += batch.input.B;
    run->tokens += batch.tokens;
    return STATUS_OK;
}

static enum status interrupted(struct error *error) {
    return error_set(error, STATUS_INTERRUPTED,
                     "interrupted; the files of --output-dir are not written");
}

static enum status time_pass(struct profile_run *run, struct pass *pass, struct error *error) {
    struct progress progress = progress_create("timing", run->batches);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < run->batches && status == STATUS_OK; i++) {
        if (interrupt_seen() != 0) {
            run->batches = i;
            run->traced = 0;
            status = interrupted(error);
            break;
        }
        status = time_batch(run, pass, i, error);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

/* Times batches without tracing. */
static enum status time_batches(struct profile_run *run, size_t batches, struct error *error) {
    run->seconds = calloc(batches, sizeof *run->seconds);
    if (run->seconds == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    run->batches = batches;
    return with_pass(run, &run->session.engine, time_pass, error);
}

static enum status trace_pass(struct profile_run *run, struct pass *pass, struct error *error) {
    profile_reset(&run->profile);
    run->profile.observe = trace_observe;
    run->profile.observer = &run->trace;
    for (size_t i = 0; i < run->traced; i++) {
        if (interrupt_seen() != 0) {
            run->traced = i;
            return interrupted(error);
        }
        struct classifier_batch batch = lay_out(run, &pass->classifier, pass->list, i);
        double start = run->session.now();
        TRY(classifier_run(&pass->classifier, &batch, pass->logits, error));
        trace_add(&run->trace, "batch", TRACE_BATCHES, start, run->session.now());
    }
    return STATUS_OK;
}

/* Runs batches with each operator timed separately. */
static enum status trace_batches(struct profile_run *run, struct error *error) {
    struct engine timed;
    if (engine_profile_create(&timed, &run->session.engine, &run->profile) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    run->profile.now = run->session.now;
    enum status status = with_pass(run, &timed, trace_pass, error);
    engine_destroy(&timed);
    return status;
}

/* Writes one batch to the log: runs it once without recording, then recorded. */
static enum status log_batch(struct profile_run *run, struct pass *pass, size_t index,
                             struct error *error) {
    struct kernel_log_position begin = kernel_log_position(&run->kernels);
    for (int i = -1; i < run->kernels.passes; i++) {
        struct classifier_batch batch = lay_out(run, &pass->classifier, pass->list, index);
        run->recorded.recorder =
            i < 0 ? (struct profile_recorder){NULL} : kernel_log_recorder(&run->kernels);
        if (i >= 0) {
            kernel_log_rewind(&run->kernels, begin, i);
        }
        TRY(classifier_run(&pass->classifier, &batch, pass->logits, error));
    }
    return STATUS_OK;
}

static enum status log_pass(struct profile_run *run, struct pass *pass, struct error *error) {
    for (size_t i = 0; i < run->traced; i++) {
        TRY(interrupt_seen() != 0 ? interrupted(error) : STATUS_OK);
        TRY(log_batch(run, pass, i, error));
    }
    return STATUS_OK;
}

static enum status log_batches(struct profile_run *run, struct error *error) {
    struct engine recorded;
    if (engine_profile_create(&recorded, &run->session.engine, &run->recorded) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = with_pass(run, &recorded, log_pass, error);
    engine_destroy(&recorded);
    if (run->kernels.status != STATUS_OK) {
        return error_set(error, run->kernels.status, "kernel by kernel: %s",
                         run->kernels.error.message);
    }
    return status;
}

/* Runs the traced batches once more, kernel by kernel, if the engine allows it. */
static enum status log_kernels(struct profile_run *run, const struct classifier_stages *stages,
                               struct error *error) {
    TRY(kernel_log_open(&run->kernels, &run->session, stages, error));
    if (run->kernels.reason[0] != '\0') {
        return STATUS_OK;
    }
    TRY(log_batches(run, error));
    kernel_log_trace(&run->kernels, &run->trace);
    return STATUS_OK;
}

static enum status measure(struct profile_run *run, const struct options *o,
                           const struct classifier_stages *stages, struct error *error) {
    size_t known = o->data != NULL ? text_dataset_labels(o->kind) : 0;
    size_t labels = known > 0 ? known : RANDOM_LABELS;
    TRY(classifier_session_open(&run->session, &o->shared, stages, labels, NULL, error));
    TRY(o->data != NULL ? read_texts(run, o, error) : make_texts(run, error));
    interrupt_watch();
    TRY(time_batches(run, (size_t)o->batches, error));
    TRY(trace_batches(run, error));
    return log_kernels(run, stages, error);
}

/* ---- Reporting ---- */

static void report_kernels(const struct profile_run *run) {
    if (run->kernels.reason[0] != '\0') {
        printf("\nno kernels: %s\n", run->kernels.reason);
        return;
    }
    printf("\nthe same batches with each kernel timed separately");
    if (run->kernels.passes > 1) {
        printf(", medians of %d runs", run->kernels.passes);
    }
    printf(":\n");
    kernel_log_print(&run->kernels, stdout);
    if (run->kernels.whole > 0) {
        printf("%llu operator calls wait for the device; each is timed as a whole\n",
               (unsigned long long)run->kernels.whole);
    }
}

static void report_times(const struct profile_run *run, const struct options *o) {
    char where[400];
    double total = 0.0;
    for (size_t i = 0; i < run->batches; i++) {
        total += run->seconds[i];
    }
    printf("%s, batches of %zu, at most %zu tokens a text, %s\n",
           classifier_session_where(&run->session, where, sizeof where), run->session.batch,
           run->session.max_length, run->padded ? "padded" : "packed");
    if (o->shared.random) {
        printf("random weights: the times are valid for these sizes, the answers mean nothing\n");
    }
    printf("%zu batches: %.3f ms each on average, %.1f texts/s, %.0f tokens/s\n", run->batches,
           1e3 * total / (double)run->batches, (double)run->samples / total,
           (double)run->tokens / total);
}

/* What was measured; after a signal some of it is missing. */
static void report(const struct profile_run *run, const struct options *o, bool complete) {
    report_times(run, o);
    if (run->traced > 0) {
        printf("\n%zu batches with each operator timed separately:\n", run->traced);
        profile_print(&run->profile, stdout);
    }
    if (complete) {
        report_kernels(run);
    }
}

static void report_files(const struct profile_run *run, const struct options *o) {
    printf("\nwritten to %s: trace.json (for ui.perfetto.dev), kernel_statistics.json, "
           "benchmark_stats.json\n",
           o->folder);
    if (run->trace.lost > 0) {
        printf("the trace lacks %llu spans beyond the first %d\n",
               (unsigned long long)run->trace.lost, TRACE_MOST_SPANS);
    }
}

static void run_free(struct profile_run *run) {
    for (size_t i = 0; i < run->texts_count; i++) {
        free(run->texts[i].ids);
    }
    free(run->texts);
    free(run->seconds);
    trace_free(&run->trace);
    kernel_log_close(&run->kernels);
    classifier_session_close(&run->session);
}

static enum status measure_and_report(struct profile_run *run, const struct options *o,
                                      const struct classifier_stages *stages, struct error *error) {
    enum status status = measure(run, o, stages, error);
    if (status != STATUS_OK && (status != STATUS_INTERRUPTED || run->samples == 0)) {
        return status;
    }
    report(run, o, status == STATUS_OK);
    TRY(program_output_end(error));
    TRY(status);
    TRY(profile_write(run, o->folder, error));
    report_files(run, o);
    return STATUS_OK;
}

static enum status run(void *options, const struct arguments *arguments,
                       const struct classifier_stages *stages, struct error *error) {
    struct options *o = options;
    (void)arguments;
    TRY(check_options(o, error));
    bool made = !path_exists(o->folder);
    TRY(profile_folder(o->folder, error));
    struct profile_run profile = {.padded = o->padded, .traced = (size_t)o->traced};
    enum status status = measure_and_report(&profile, o, stages, error);
    run_free(&profile);
    if (status != STATUS_OK && made) {
        rmdir(o->folder); /* stays if it is not empty */
    }
    return status;
}

int classifier_profile_main(int argc, char **argv, const struct classifier_stages *stages) {
    struct options o = {.shared = classifier_options_defaults(),
                        .folder = "profile",
                        .split = "test",
                        .batches = 10,
                        .traced = 3};
    const struct flag own[] = {
        {"output-dir", 'o', FLAG_STRING, &o.folder, "DIR", "where to write; made if missing"},
        {"data", 0, FLAG_STRING, &o.data, "PATH",
         "texts: a file or the data set's folder; default: texts of --max-length random tokens"},
        TEXT_FLAGS_TEXT(&o.columns),
        {"dataset", 0, FLAG_STRING, &o.dataset, "NAME",
         "imdb, agnews, text, sample or file; default: by the ending of --data"},
        {"split", 0, FLAG_STRING, &o.split, "NAME", "test or train"},
        {"batches", 'n', FLAG_INT, &o.batches, "N", "batches to time"},
        {"trace-batches", 0, FLAG_INT, &o.traced, "N", "batches to trace"},
        {"padded", 0, FLAG_SWITCH, &o.padded, NULL,
         "pad texts to the longest of their batch instead of packing them"},
    };
    const struct classifier_command command = {
        .program = "profile",
        .positional = "",
        .summary = "profiles a BERT classifier: time by operator and by kernel",
        .epilogue = "example:\n  profile --random --shape base --max-length 128 --output-dir out",
        .options = &o.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
    };
    return classifier_command_main(&command, argc, argv, stages, run, &o);
}
