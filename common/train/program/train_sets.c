/* Reads and divides the texts of a run. */

#include <stdio.h>
#include <string.h>

#include "common/base/folder.h"
#include "common/train/program/train_run_internal.h"

/* Path and split of the texts for training. */
static struct train_source training_source(const struct train_options *o,
                                           struct text_labels *labels) {
    return (struct train_source){.kind = o->kind,
                                 .path = o->data,
                                 .split = o->split,
                                 .columns = o->columns,
                                 .labels = labels};
}

/* Path and split of the texts for evaluation. */
static struct train_source evaluation_source(const struct train_options *o,
                                             struct text_labels *labels) {
    struct train_source source = training_source(o, labels);
    bool labelled = strcmp(o->split, "train") == 0 && o->task == TRAIN_CLASSIFY;
    bool has_test =
        o->kind == TEXT_DATASET_IMDB || (o->kind == TEXT_DATASET_AGNEWS && folder_exists(o->data));
    if (o->eval_data != NULL) {
        source.path = o->eval_data;
    }
    if (o->eval_split != NULL) {
        source.split = o->eval_split;
    } else if (o->kind != TEXT_DATASET_TEXT && (o->eval_data != NULL || (labelled && has_test))) {
        source.split = "test";
    }
    return source;
}

static bool same_source(const struct train_source *source, const struct train_options *o) {
    return strcmp(source->path, o->data) == 0 && strcmp(source->split, o->split) == 0;
}

/* The first sequence of text number `text`: the one that has bytes. */
static size_t sequence_of(const struct train_texts *texts, size_t text) {
    size_t at = 0;
    for (size_t seen = 0; at < texts->count; at++) {
        if (texts->bytes[at] > 0 && seen++ == text) {
            break;
        }
    }
    return at;
}

/* Texts [first, first + count) as a part. */
static struct train_part part_of(const struct train_texts *texts, size_t first, size_t count) {
    size_t begin = sequence_of(texts, first);
    return (struct train_part){texts, begin, sequence_of(texts, first + count) - begin};
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Describes a part: a whole file or split, or some of its texts. */
static void name_part(char name[160], const struct train_options *o,
                      const struct train_source *source, size_t first, size_t count, bool whole) {
    char rows[64] = "";
    if (!whole) {
        snprintf(rows, sizeof rows, ", texts %zu to %zu of them", first + 1, first + count);
    }
    snprintf(name, 160, "%s, %s of %.60s%s", o->dataset, source->split, file_name(source->path),
             rows);
}

static enum status too_few(const struct train_options *o, size_t texts, struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--train-rows %d, --eval-rows %d: too few texts: the data has %zu",
                     o->train_rows, o->eval_rows, texts);
}

/* Divides one file or split into training and evaluation texts. */
static enum status cut(struct train_sets *s, const struct train_options *o,
                       const struct train_source *source, struct error *error) {
    size_t texts = s->texts.texts;
    bool limited = source->limit > 0;
    size_t train = (size_t)o->train_rows, evaluate = (size_t)o->eval_rows;
    if (train == 0 && o->train) {
        train = o->evaluate ? texts - (texts + 9) / 10 : texts;
        train = evaluate > 0 && evaluate < texts ? texts - evaluate : train;
    }
    if (!o->evaluate) {
        evaluate = 0; /* held out, but not evaluated */
    } else if (evaluate == 0 && train <= texts) {
        evaluate = texts - train;
    }
    bool enough = train <= texts && evaluate <= texts - train && (!o->train || train > 0) &&
                  (!o->evaluate || evaluate > 0);
    if (!enough) {
        return too_few(o, texts, error);
    }
    if (o->train) {
        s->train = part_of(&s->texts, 0, train);
        name_part(s->train_name, o, source, 0, train, !limited && train == texts);
    }
    if (o->evaluate) {
        s->evaluate = part_of(&s->texts, train, evaluate);
        name_part(s->evaluate_name, o, source, train, evaluate, !limited && evaluate == texts);
    }
    return STATUS_OK;
}

/* Number of texts needed of one file or split; 0: not known before it is read. */
static size_t needed(const struct train_options *o) {
    bool known = (!o->train || o->train_rows > 0) && (!o->evaluate || o->eval_rows > 0);
    size_t evaluate = o->evaluate ? (size_t)o->eval_rows : 0;
    return known ? (size_t)o->train_rows + evaluate : 0;
}

/* All texts of a file or split, or the first `limit`. */
static enum status take_all(struct train_texts *texts, struct train_part *part, char name[160],
                            struct train_source *source, int limit, const struct train_options *o,
                            const struct train_vocabulary *vocabulary, struct error *error) {
    source->limit = (size_t)limit;
    TRY(train_texts_read(texts, source, o->task, vocabulary, (size_t)o->max_length, error));
    if (texts->texts < (size_t)limit) {
        return too_few(o, texts->texts, error);
    }
    *part = (struct train_part){texts, 0, texts->count};
    name_part(name, o, source, 0, texts->texts, limit == 0);
    return STATUS_OK;
}

static enum status read_sets(struct train_sets *s, const struct train_options *o,
                             const struct train_vocabulary *vocabulary, struct train_labels *labels,
                             struct error *error) {
    struct text_labels *names = train_labels_names(labels);
    struct train_source evaluation = evaluation_source(o, names);
    struct train_source training = training_source(o, names);
    if (same_source(&evaluation, o)) {
        training.limit = needed(o);
        TRY(train_texts_read(&s->texts, &training, o->task, vocabulary, (size_t)o->max_length,
                             error));
        TRY(train_labels_settle(labels, &s->texts, o->data, error));
        return cut(s, o, &training, error);
    }
    if (o->train) {
        TRY(take_all(&s->texts, &s->train, s->train_name, &training, o->train_rows, o, vocabulary,
                     error));
        TRY(train_labels_settle(labels, &s->texts, o->data, error));
    }
    if (o->evaluate) {
        TRY(take_all(&s->others, &s->evaluate, s->evaluate_name, &evaluation, o->eval_rows, o,
                     vocabulary, error));
    }
    return STATUS_OK;
}

enum status train_sets_read(struct train_sets *sets, const struct train_options *options,
                            const struct train_vocabulary *vocabulary, struct train_labels *labels,
                            struct error *error) {
    *sets = (struct train_sets){0};
    enum status status = read_sets(sets, options, vocabulary, labels, error);
    if (status != STATUS_OK) {
        train_sets_free(sets);
    }
    return status;
}

void train_sets_free(struct train_sets *sets) {
    train_texts_free(&sets->texts);
    train_texts_free(&sets->others);
    *sets = (struct train_sets){0};
}
