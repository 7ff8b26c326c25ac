#include "common/programs/classifier/classify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/programs/classifier/answering.h"
#include "common/programs/classifier/classifier_session.h"
#include "common/programs/line_stream.h"
#include "common/programs/program.h"

enum { MOST_INPUT = 1 << 30, RANDOM_LABELS = 2 };

static const char program[] = "classify";

struct options {
    struct classifier_options shared;
    const char *file, *logits;
    bool json;
};

/* Texts and their ids: all there are, or the lines that have arrived. */
struct texts {
    char *input;                     /* contents of the file or of standard input, or NULL */
    const char *unit;                /* for messages: "argument" or "line" */
    const char **starts;             /* (count) */
    size_t *lengths;                 /* (count), in bytes */
    struct classifier_text *encoded; /* (count) */
    size_t count;
    size_t before;         /* texts answered before these */
    size_t cut, first_cut; /* texts that were too long, and the number of the first */
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
    TRY(texts_alloc(t, lines, error));
    const char *at = t->input, *end = t->input + size;
    for (size_t i = 0; i < lines; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        t->starts[i] = at;
        t->lengths[i] = (size_t)(stop - at);
        t->lengths[i] -= stop > at && stop[-1] == '\r';
        at = stop + 1;
    }
    return STATUS_OK;
}

/* Whether the arguments are texts: not if there is none, or "-" alone. */
static bool has_texts(const struct arguments *arguments) {
    return arguments->count > 1 ||
           (arguments->count == 1 && strcmp(arguments->values[0], "-") != 0);
}

/* Whether texts are lines of standard input, and not those of a regular file. */
static bool is_stream(const struct options *o, const struct arguments *arguments) {
    struct stat input;
    bool standard = !has_texts(arguments) && (o->file == NULL || strcmp(o->file, "-") == 0);
    return standard && (fstat(STDIN_FILENO, &input) != 0 || !S_ISREG(input.st_mode));
}

static enum status no_text(const char *path, struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT, "%s: there is no text",
                     path != NULL ? path : "standard input");
}

/* Reads all texts; not from a stream. */
static enum status read_texts(struct texts *t, const struct options *o,
                              const struct arguments *arguments, struct error *error) {
    size_t size;
    if (has_texts(arguments)) {
        return take_arguments(t, arguments, error);
    }
    TRY(file_read(o->file != NULL ? o->file : "-", MOST_INPUT, &t->input, &size, error));
    return size > 0 ? split_lines(t, size, error) : no_text(o->file, error);
}

/* ---- Ids ---- */

static enum status encode_one(struct texts *t, size_t i, const struct classifier_session *s,
                              struct error *error) {
    enum status status = classifier_encode(&s->model, t->starts[i], t->lengths[i], s->max_length,
                                           &t->encoded[i], error);
    if (status != STATUS_OK) {
        char where[48];
        snprintf(where, sizeof where, "%s %zu", t->unit, t->before + i + 1);
        return error_prefix(error, status, where);
    }
    if (t->encoded[i].cut && t->cut++ == 0) {
        t->first_cut = t->before + i + 1;
    }
    return STATUS_OK;
}

/* On a terminal; nothing is shown if the answers appear there, too. */
static struct progress start_progress(const char *what, size_t total) {
    struct progress progress = progress_create(what, total);
    progress.visible = progress.visible && !isatty(STDOUT_FILENO);
    return progress;
}

static enum status encode(struct texts *t, const struct classifier_session *s,
                          struct error *error) {
    struct progress progress = start_progress("tokenising", t->count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < t->count && status == STATUS_OK; i++) {
        status = encode_one(t, i, s, error);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

/* Warns once about all texts that were cut. */
static void report_cut(const struct texts *t, size_t max_length) {
    if (t->cut > 0) {
        fprintf(stderr,
                "%s: %zu of %zu texts cut to %zu tokens (--max-length), the first: %s %zu\n",
                program, t->cut, t->before + t->count, max_length, t->unit, t->first_cut);
    }
}

/* ---- Answers ---- */

/* Answers texts first .. first + count - 1. */
static enum status answer_batch(struct answering *a, const struct texts *t, size_t first,
                                size_t count, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        size_t at = first + i;
        a->texts[i] = (struct answering_text){t->starts[at], t->lengths[at], &t->encoded[at]};
    }
    return answering_run(a, count, error);
}

static enum status interrupted(const struct answering *a, size_t answered, struct error *error) {
    return error_set(error, STATUS_INTERRUPTED, "interrupted after %zu texts%s", answered,
                     a->logits_path != NULL ? "; the file of --logits is not written" : "");
}

static enum status answer_texts(struct answering *a, const struct texts *t, struct error *error) {
    interrupt_watch();
    struct progress progress = start_progress("classifying", t->count);
    enum status status = STATUS_OK;
    size_t batch = a->classifier.batch;
    for (size_t first = 0; first < t->count && status == STATUS_OK; first += batch) {
        size_t count = t->count - first < batch ? t->count - first : batch;
        status = interrupt_seen() != 0 ? interrupted(a, first, error)
                                       : answer_batch(a, t, first, count, error);
        progress_update(&progress, first + count);
    }
    progress_finish(&progress);
    return status;
}

static void warn_random(const struct options *o) {
    if (o->shared.random) {
        fprintf(stderr, "%s: random weights: the answers mean nothing\n", program);
    }
}

/* ---- All texts at once ---- */

/* Encodes all texts before it answers the first. */
static enum status classify_all(struct answering *a, struct texts *t, const struct options *o,
                                const struct classifier_session *s, struct error *error) {
    TRY(encode(t, s, error));
    report_cut(t, s->max_length);
    warn_random(o);
    TRY(answering_create(a, s, t->count < s->batch ? t->count : s->batch, error));
    return answer_texts(a, t, error);
}

/* ---- Texts as they arrive ---- */

/* Takes lines that have arrived, at most a batch. */
static void take_lines(struct texts *t, struct line_stream *stream, size_t batch) {
    t->before += t->count;
    t->count = 0;
    while (t->count < batch &&
           line_stream_take(stream, &t->starts[t->count], &t->lengths[t->count])) {
        t->count++;
    }
}

/* Answers lines, and those before the first that is no text. */
static enum status answer_lines(struct answering *a, struct texts *t, struct error *error) {
    enum status status = STATUS_OK;
    struct texts good = *t;
    for (good.count = 0; good.count < t->count && status == STATUS_OK;
         good.count += status == STATUS_OK) {
        status = encode_one(t, good.count, a->session, error);
    }
    if (good.count > 0) {
        TRY(answer_batch(a, &good, 0, good.count, error));
    }
    for (size_t i = 0; i < t->count; i++) {
        free(t->encoded[i].ids);
        t->encoded[i].ids = NULL;
    }
    return status;
}

static enum status answer_stream(struct answering *a, struct texts *t, struct line_stream *stream,
                                 struct error *error) {
    interrupt_watch();
    for (;;) {
        take_lines(t, stream, a->classifier.batch);
        if (interrupt_seen() != 0) {
            return interrupted(a, t->before, error);
        }
        if (t->count > 0) {
            TRY(answer_lines(a, t, error));
        } else if (stream->ended) {
            return t->before > 0 ? STATUS_OK : no_text(NULL, error);
        } else {
            enum status status = line_stream_wait(stream, error);
            if (status != STATUS_OK && status != STATUS_INTERRUPTED) {
                return error_prefix(error, status, "standard input");
            }
        }
    }
}

/* Answers each line before it waits for the next. */
static enum status classify_stream(struct answering *a, struct texts *t, const struct options *o,
                                   const struct classifier_session *s, struct error *error) {
    struct line_stream stream = {.descriptor = STDIN_FILENO};
    TRY(texts_alloc(t, s->batch, error));
    t->count = 0;
    TRY(answering_create(a, s, s->batch, error));
    warn_random(o);
    if (isatty(STDIN_FILENO)) {
        fprintf(stderr, "%s: type one text a line; Ctrl-D ends the input\n", program);
    }
    enum status status = answer_stream(a, t, &stream, error);
    line_stream_free(&stream);
    report_cut(t, s->max_length);
    return status;
}

/* ---- The program ---- */

static enum status classify(struct answering *a, struct classifier_session *session,
                            struct texts *t, const struct options *o,
                            const struct arguments *arguments,
                            const struct classifier_stages *stages, struct error *error) {
    if (arguments->count > 0 && o->file != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "give texts as arguments or with --file, not both");
    }
    if (o->logits != NULL) {
        TRY(file_check_writable(o->logits, error));
    }
    bool stream = is_stream(o, arguments);
    t->unit = has_texts(arguments) ? "argument" : "line";
    if (!stream) {
        TRY(read_texts(t, o, arguments, error));
    }
    TRY(classifier_session_open(session, &o->shared, stages, RANDOM_LABELS, NULL, error));
    return stream ? classify_stream(a, t, o, session, error)
                  : classify_all(a, t, o, session, error);
}

static enum status run(void *options, const struct arguments *arguments,
                       const struct classifier_stages *stages, struct error *error) {
    const struct options *o = options;
    struct answering answering = {.json = o->json, .logits_path = o->logits};
    struct texts texts = {0};
    struct classifier_session session = {0};
    enum status status = classify(&answering, &session, &texts, o, arguments, stages, error);
    status = answering_end(&answering, status, error);
    classifier_session_close(&session);
    texts_free(&texts);
    return status;
}

int classify_main(int argc, char **argv, const struct classifier_stages *stages) {
    struct options options = {.shared = classifier_options_defaults()};
    const struct flag own[] = {
        {"file", 'f', FLAG_STRING, &options.file, "FILE",
         "read texts, one a line; -: standard input"},
        {"json", 0, FLAG_SWITCH, &options.json, NULL,
         "print a JSON object a text, with the probability of each label"},
        {"logits", 0, FLAG_STRING, &options.logits, "FILE",
         "write ids and logits of every text as JSON"},
    };
    const struct classifier_command command = {
        .program = program,
        .positional = "[--] [TEXT... | -]",
        .summary = "classifies texts with a BERT classifier",
        .epilogue = "Without TEXT and --file, or with -, it reads standard input, one text a line, "
                    "and answers\neach line as it arrives.\n"
                    "example:\n  classify --checkpoint DIR -- \"a dull, lifeless film\"",
        .options = &options.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
        .texts = true,
    };
    return classifier_command_main(&command, argc, argv, stages, run, &options);
}
