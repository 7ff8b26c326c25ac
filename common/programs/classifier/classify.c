#include "common/programs/classifier/classify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/programs/classifier/classifier_session.h"
#include "common/programs/program.h"

enum { MOST_INPUT = 1 << 30, RANDOM_LABELS = 2 };

static const char program[] = "classify";

struct options {
    struct classifier_options shared;
    const char *file, *logits;
};

/* The texts and their ids. */
struct texts {
    char *input;                     /* contents of the file or of standard input, or NULL */
    const char *unit;                /* for messages: "argument" or "line" */
    const char **starts;             /* (count) */
    size_t *lengths;                 /* (count), in bytes */
    struct classifier_text *encoded; /* (count) */
    size_t count;
};

/* ---- Reading ---- */

static enum status texts_alloc(struct texts *t, size_t count, struct error *error) {
    t->starts = calloc(count + 1, sizeof *t->starts);
    t->lengths = calloc(count + 1, sizeof *t->lengths);
    t->encoded = calloc(count + 1, sizeof *t->encoded);
    if (t->starts == NULL || t->lengths == NULL || t->encoded == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu texts", count);
    }
    t->count = count;
    return STATUS_OK;
}

static void texts_free(struct texts *t) {
    for (size_t i = 0; i < t->count; i++) {
        free(t->encoded[i].ids);
    }
    free(t->starts);
    free(t->lengths);
    free(t->encoded);
    free(t->input);
}

static enum status take_arguments(struct texts *t, const struct arguments *arguments,
                                  struct error *error) {
    t->unit = "argument";
    TRY(texts_alloc(t, arguments->count, error));
    for (size_t i = 0; i < arguments->count; i++) {
        t->starts[i] = arguments->values[i];
        t->lengths[i] = strlen(arguments->values[i]);
    }
    return STATUS_OK;
}

/* One text a line; the last line feed may be missing. */
static enum status split_lines(struct texts *t, size_t size, struct error *error) {
    size_t lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += t->input[i] == '\n' || i + 1 == size;
    }
    t->unit = "line";
    TRY(texts_alloc(t, lines, error));
    const char *at = t->input, *end = t->input + size;
    for (size_t i = 0; i < lines; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        t->starts[i] = at;
        t->lengths[i] = (size_t)(stop - at);
        at = stop + 1;
    }
    return STATUS_OK;
}

static enum status read_texts(struct texts *t, const struct options *o,
                              const struct arguments *arguments, struct error *error) {
    if (arguments->count > 0 && o->file != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "give texts as arguments or with --file, not both");
    }
    if (arguments->count > 0) {
        return take_arguments(t, arguments, error);
    }
    size_t size;
    const char *path = o->file != NULL ? o->file : "-";
    if (o->file == NULL && isatty(STDIN_FILENO)) {
        fprintf(stderr, "%s: type one text a line; Ctrl-D ends the input\n", program);
    }
    TRY(file_read(path, MOST_INPUT, &t->input, &size, error));
    if (size == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s: there is no text",
                         o->file != NULL ? o->file : "standard input");
    }
    return split_lines(t, size, error);
}

/* ---- Answering ---- */

static enum status encode(struct texts *t, const struct classifier_session *s,
                          struct error *error) {
    for (size_t i = 0; i < t->count; i++) {
        enum status status = classifier_encode(&s->model, t->starts[i], t->lengths[i],
                                               s->max_length, &t->encoded[i], error);
        if (status != STATUS_OK) {
            char where[48];
            snprintf(where, sizeof where, "%s %zu", t->unit, i + 1);
            return error_prefix(error, status, where);
        }
    }
    return STATUS_OK;
}

/* Warns once about all texts that were cut. */
static void report_cut(const struct texts *t, size_t max_length) {
    size_t cut = 0, first = 0;
    for (size_t i = 0; i < t->count; i++) {
        first = t->encoded[i].cut && cut == 0 ? i + 1 : first;
        cut += t->encoded[i].cut;
    }
    if (cut > 0) {
        fprintf(stderr,
                "%s: %zu of %zu texts cut to %zu tokens (--max-length), the first: %s %zu\n",
                program, cut, t->count, max_length, t->unit, first);
    }
}

static void print_answer(const struct classifier_model *model, const float *logits,
                         double *probabilities) {
    size_t labels = model->config.labels;
    classifier_probabilities(logits, labels, probabilities);
    fputs(model->labels[classifier_answer(logits, labels)].name, stdout);
    for (size_t i = 0; i < labels; i++) {
        printf("\t%s %.4f", model->labels[i].name, probabilities[i]);
    }
    putchar('\n');
}

/* ---- Logits as a file ---- */

/* The file of --logits: ids and logits of each text, the logits with all digits. */
struct logits_file {
    FILE *stream; /* into memory; NULL: no file is wanted */
    char *text;
    size_t size;
};

static enum status logits_open(struct logits_file *file, const struct classifier_session *s,
                               struct error *error) {
    file->stream = open_memstream(&file->text, &file->size);
    if (file->stream == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the logits");
    }
    fprintf(file->stream, "{\"stage\":\"%s\",\"dtype\":\"%s\",\"texts\":[", s->stage->name,
            nn_dtype_name(s->dtype));
    return STATUS_OK;
}

static void logits_add(struct logits_file *file, bool first, const struct classifier_text *text,
                       const float *logits, size_t labels) {
    if (file->stream == NULL) {
        return;
    }
    fprintf(file->stream, "%s\n{\"ids\":[", first ? "" : ",");
    for (size_t i = 0; i < text->count; i++) {
        fprintf(file->stream, "%s%d", i > 0 ? "," : "", (int)text->ids[i]);
    }
    fputs("],\"logits\":[", file->stream);
    for (size_t i = 0; i < labels; i++) {
        fprintf(file->stream, "%s%.9g", i > 0 ? "," : "", (double)logits[i]);
    }
    fputs("]}", file->stream);
}

/* Ends the text, and writes the file if `status`, the status so far, is STATUS_OK. (After Ctrl-C an
   older file with all texts is worth more.) */
static enum status logits_close(struct logits_file *file, const char *path, enum status status,
                                struct error *error) {
    if (file->stream == NULL) {
        return status;
    }
    fputs("\n]}\n", file->stream);
    bool whole = fclose(file->stream) == 0;
    if (status == STATUS_OK) {
        status = whole ? file_write(path, file->text, file->size, error)
                       : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the logits");
    }
    free(file->text);
    return status;
}

/* ---- Batches ---- */

static enum status answer_batches(struct classifier *c, const struct texts *t, float *logits,
                                  double *probabilities, const struct classifier_text **batch,
                                  struct logits_file *file, struct error *error) {
    size_t labels = c->model->config.labels;
    for (size_t first = 0; first < t->count; first += c->batch) {
        if (interrupt_seen() != 0) {
            return error_set(error, STATUS_INTERRUPTED, "interrupted after %zu of %zu texts%s",
                             first, t->count,
                             file->stream != NULL ? "; the file of --logits is not written" : "");
        }
        size_t count = t->count - first < c->batch ? t->count - first : c->batch;
        for (size_t i = 0; i < count; i++) {
            batch[i] = &t->encoded[first + i];
        }
        struct classifier_batch laid_out = classifier_batch(c, batch, count, false, 0);
        TRY(classifier_run(c, &laid_out, logits, error));
        for (size_t i = 0; i < count; i++) {
            print_answer(c->model, logits + i * labels, probabilities);
            logits_add(file, first + i == 0, batch[i], logits + i * labels, labels);
        }
        TRY(program_output_end(error));
    }
    return STATUS_OK;
}

static enum status answer(const struct classifier_session *s, const struct texts *t,
                          struct logits_file *file, struct error *error) {
    struct classifier classifier;
    size_t batch = t->count < s->batch ? t->count : s->batch;
    TRY(classifier_create(&classifier, &s->model, &s->engine, batch, s->max_length, error));
    size_t labels = s->model.config.labels;
    float *logits = calloc(batch * labels, sizeof *logits);
    double *probabilities = calloc(labels, sizeof *probabilities);
    const struct classifier_text **list = calloc(batch, sizeof *list);
    enum status status = STATUS_OUT_OF_MEMORY;
    if (logits == NULL || probabilities == NULL || list == NULL) {
        error_set(error, status, "out of memory");
    } else {
        status = answer_batches(&classifier, t, logits, probabilities, list, file, error);
    }
    free(list);
    free(probabilities);
    free(logits);
    classifier_free(&classifier);
    return status;
}

static enum status answer_all(const struct options *o, const struct classifier_session *s,
                              const struct texts *t, struct error *error) {
    struct logits_file file = {.stream = NULL};
    if (o->logits != NULL) {
        TRY(logits_open(&file, s, error));
    }
    interrupt_watch();
    enum status status = answer(s, t, &file, error);
    return logits_close(&file, o->logits, status, error);
}

static enum status classify(struct classifier_session *session, struct texts *texts,
                            const struct options *o, const struct arguments *arguments,
                            const struct classifier_stages *stages, struct error *error) {
    if (o->logits != NULL) {
        TRY(file_check_writable(o->logits, error));
    }
    TRY(read_texts(texts, o, arguments, error));
    TRY(classifier_session_open(session, &o->shared, stages, RANDOM_LABELS, NULL, error));
    TRY(encode(texts, session, error));
    report_cut(texts, session->max_length);
    if (o->shared.random) {
        fprintf(stderr, "%s: random weights: the answers mean nothing\n", program);
    }
    return answer_all(o, session, texts, error);
}

static enum status run(void *options, const struct arguments *arguments,
                       const struct classifier_stages *stages, struct error *error) {
    struct texts texts = {0};
    struct classifier_session session = {0};
    enum status status = classify(&session, &texts, options, arguments, stages, error);
    classifier_session_close(&session);
    texts_free(&texts);
    return status;
}

int classify_main(int argc, char **argv, const struct classifier_stages *stages) {
    struct options options = {.shared = classifier_options_defaults()};
    const struct flag own[] = {
        {"file", 'f', FLAG_STRING, &options.file, "FILE",
         "read texts, one a line; -: standard input"},
        {"logits", 0, FLAG_STRING, &options.logits, "FILE",
         "write ids and logits of every text as JSON"},
    };
    const struct classifier_command command = {
        .program = program,
        .positional = "[--] [TEXT...]",
        .summary = "classifies texts with a BERT classifier",
        .epilogue = "Without TEXT and --file it reads standard input, one text a line.\n"
                    "example:\n  classify --checkpoint DIR -- \"a dull, lifeless film\"",
        .options = &options.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
        .texts = true,
    };
    return classifier_command_main(&command, argc, argv, stages, run, &options);
}
