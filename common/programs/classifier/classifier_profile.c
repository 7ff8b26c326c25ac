#include "common/programs/classifier/classifier_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/terminal.h"
#include "common/programs/classifier/classifier_profile_internal.h"
#include "common/texts/text_dataset.h"

enum { RANDOM_LABELS = 2, MOST_BATCHES = 100000 };

static const char program[] = "profile";

struct options {
    struct classifier_options shared;
    const char *folder, *dataset, *data, *split;
    int batches, traced;
    bool padded;
    enum text_dataset_kind kind;
};

static enum status check_options(struct options *o, struct error *error) {
    if ((o->dataset == NULL) != (o->data == NULL)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--dataset and --data: both, or neither for random tokens");
    }
    if (o->batches < 1 || o->batches > MOST_BATCHES || o->traced < 1 || o->traced > MOST_BATCHES) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--batches %d, --trace-batches %d: from 1 to %d", o->batches, o->traced,
                         MOST_BATCHES);
    }
    return o->dataset != NULL ? text_dataset_kind_parse(o->dataset, &o->kind, error) : STATUS_OK;
}

/* ---- Texts ---- */

static enum status texts_alloc(struct profile_run *run, size_t count, struct error *error) {
    run->texts = calloc(count, sizeof *run->texts);
    run->texts_count = run->texts != NULL ? count : 0;
    return run->texts != NULL ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

/* A batch of random tokens, each text as long as can be. */
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

/* As many texts of the data set as the batches take. */
static enum status read_texts(struct profile_run *run, const struct options *o,
                              struct error *error) {
    struct text_dataset dataset;
    const struct text_dataset_options wanted = {.split = o->split,
                                                .limit = (size_t)o->batches * run->session.batch};
    TRY(text_dataset_open(&dataset, o->kind, o->data, &wanted, error));
    enum status status = encode_dataset(run, &dataset, error);
    text_dataset_close(&dataset);
    return status;
}

/* ---- Running ---- */

/* Texts of batch `index`, beginning anew where they end; lays them out. */
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

/* What a pass over batches needs. */
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

static enum status pass_create(struct pass *pass, struct profile_run *run,
                               const struct engine *engine, struct error *error) {
    const struct classifier_session *s = &run->session;
    *pass = (struct pass){.list = calloc(s->batch, sizeof *pass->list),
                          .logits = calloc(s->batch * s->model.config.labels, sizeof(float))};
    enum status status = pass->list != NULL && pass->logits != NULL
                             ? classifier_create(&pass->classifier, &s->model, engine, s->batch,
                                                 s->max_length, error)
                             : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    if (status == STATUS_OK) {
        /* The first batch wakes caches and clocks; nobody counts it. */
        struct classifier_batch first = lay_out(run, &pass->classifier, pass->list, 0);
        status = classifier_run(&pass->classifier, &first, pass->logits, error);
    }
    if (status != STATUS_OK) {
        pass_free(pass);
    }
    return status;
}

/* Times batches as they run in earnest. */
static enum status time_batches(struct profile_run *run, size_t batches, struct error *error) {
    struct pass pass;
    run->seconds = calloc(batches, sizeof *run->seconds);
    if (run->seconds == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    TRY(pass_create(&pass, run, &run->session.engine, error));
    struct progress progress = progress_create("timing", batches);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batches && status == STATUS_OK; i++) {
        struct classifier_batch batch = lay_out(run, &pass.classifier, pass.list, i);
        double start = run->session.now();
        status = classifier_run(&pass.classifier, &batch, pass.logits, error);
        run->seconds[i] = run->session.now() - start;
        run->samples += batch.input.B;
        run->tokens += batch.tokens;
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    run->batches = batches;
    pass_free(&pass);
    return status;
}

static enum status trace_pass(struct profile_run *run, struct pass *pass, struct error *error) {
    profile_reset(&run->profile);
    run->profile.observe = trace_observe;
    run->profile.observer = &run->trace;
    for (size_t i = 0; i < run->traced; i++) {
        struct classifier_batch batch = lay_out(run, &pass->classifier, pass->list, i);
        double start = run->session.now();
        TRY(classifier_run(&pass->classifier, &batch, pass->logits, error));
        trace_add(&run->trace, "batch", TRACE_BATCHES, start, run->session.now());
    }
    return STATUS_OK;
}

/* Runs batches with every operator timed for itself. */
static enum status trace_batches(struct profile_run *run, struct error *error) {
    struct engine timed;
    struct pass pass;
    if (engine_profile_create(&timed, &run->session.engine, &run->profile) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    run->profile.now = run->session.now;
    enum status status = pass_create(&pass, run, &timed, error);
    if (status == STATUS_OK) {
        status = trace_pass(run, &pass, error);
        pass_free(&pass);
    }
    engine_destroy(&timed);
    return status;
}

/* One batch in the log: run once as it is, then recorded. */
static enum status log_batch(struct profile_run *run, struct pass *pass, struct profile *profile,
                             size_t index, struct error *error) {
    struct kernel_place place = kernel_log_place(&run->kernels);
    for (int i = -1; i < run->kernels.passes; i++) {
        struct classifier_batch batch = lay_out(run, &pass->classifier, pass->list, index);
        profile->recorder =
            i < 0 ? (struct profile_recorder){NULL} : kernel_log_recorder(&run->kernels);
        if (i >= 0) {
            kernel_log_rewind(&run->kernels, place, i);
        }
        TRY(classifier_run(&pass->classifier, &batch, pass->logits, error));
    }
    return STATUS_OK;
}

static enum status log_batches(struct profile_run *run, struct error *error) {
    struct engine taken_apart;
    struct profile profile;
    struct pass pass;
    if (engine_profile_create(&taken_apart, &run->session.engine, &profile) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = pass_create(&pass, run, &taken_apart, error);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < run->traced && status == STATUS_OK; i++) {
            status = log_batch(run, &pass, &profile, i, error);
        }
        pass_free(&pass);
    }
    engine_destroy(&taken_apart);
    if (run->kernels.status != STATUS_OK) {
        return error_set(error, run->kernels.status, "kernel by kernel: %s",
                         run->kernels.error.message);
    }
    return status;
}

/* Runs the traced batches once more, kernel by kernel, where that can be done. */
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
    size_t labels = o->dataset != NULL ? text_dataset_labels(o->kind) : RANDOM_LABELS;
    TRY(classifier_session_open(&run->session, &o->shared, stages, labels, NULL, error));
    TRY(o->dataset != NULL ? read_texts(run, o, error) : make_texts(run, error));
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
    printf("\nthe same batches with each kernel by itself");
    if (run->kernels.passes > 1) {
        printf(", medians of %d runs", run->kernels.passes);
    }
    printf(":\n");
    kernel_log_print(&run->kernels, stdout);
    if (run->kernels.whole > 0) {
        printf("%llu operators wait for the device and are not taken apart\n",
               (unsigned long long)run->kernels.whole);
    }
}

static void report(const struct profile_run *run, const struct options *o) {
    char where[400];
    double total = 0.0;
    for (size_t i = 0; i < run->batches; i++) {
        total += run->seconds[i];
    }
    printf("%s, batches of %zu, at most %zu tokens a text, %s\n",
           classifier_session_where(&run->session, where, sizeof where), run->session.batch,
           run->session.max_length, run->padded ? "padded" : "packed");
    if (o->shared.random) {
        printf("random weights: times are of these sizes, answers mean nothing\n");
    }
    printf("%zu batches: %.3f ms each on average, %.1f texts/s, %.0f tokens/s\n\n", run->batches,
           1e3 * total / (double)run->batches, (double)run->samples / total,
           (double)run->tokens / total);
    printf("%zu batches with each operator by itself:\n", run->traced);
    profile_print(&run->profile, stdout);
    report_kernels(run);
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

static enum status run(const struct options *o, const struct classifier_stages *stages,
                       struct error *error) {
    struct profile_run profile = {.padded = o->padded, .traced = (size_t)o->traced};
    TRY(profile_folder(o->folder, error));
    enum status status = measure(&profile, o, stages, error);
    if (status == STATUS_OK) {
        status = profile_write(&profile, o->folder, error);
    }
    if (status == STATUS_OK) {
        report(&profile, o);
    }
    run_free(&profile);
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status = error_set(error, STATUS_IO, "cannot write to standard output");
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
        {"output-dir", 'o', FLAG_STRING, &o.folder, "DIR", "where to write; made when missing"},
        {"dataset", 0, FLAG_STRING, &o.dataset, "NAME",
         "imdb or agnews; without: random tokens, each text --max-length long"},
        {"data", 0, FLAG_STRING, &o.data, "PATH", "the data set's folder or file"},
        {"split", 0, FLAG_STRING, &o.split, "NAME", "test or train"},
        {"batches", 'n', FLAG_INT, &o.batches, "N", "batches to time"},
        {"trace-batches", 0, FLAG_INT, &o.traced, "N", "batches to trace"},
        {"padded", 0, FLAG_SWITCH, &o.padded, NULL,
         "pad texts to the longest of their batch instead of packing them"},
    };
    const struct classifier_command command = {
        .program = program,
        .positional = "",
        .summary = "tells where a BERT classifier's time goes",
        .epilogue = "example:\n  profile --random --shape base --max-length 128 --output-dir out",
        .options = &o.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
    };
    struct arguments arguments = {0};
    struct error error = {0};
    file_enter_working_directory();
    enum status status = classifier_command_parse(&command, argc, argv, &arguments, &error);
    if (status == STATUS_OK && !arguments.help) {
        status = check_options(&o, &error);
        status = status == STATUS_OK ? run(&o, stages, &error) : status;
    }
    free(arguments.values);
    return status == STATUS_OK ? 0 : report_failure(program, &error, status);
}
