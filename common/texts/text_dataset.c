#include "common/texts/text_dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/checked.h"
#include "common/base/grow.h"
#include "common/base/utf8.h"
#include "common/texts/text_dataset_internal.h"

static const char *const IMDB_LABELS[] = {"neg", "pos"};
static const char *const AGNEWS_LABELS[] = {"World", "Sports", "Business", "Sci/Tech"};

/* One kind of data set. */
struct kind {
    const char *name;
    const char *const *label_names;
    size_t labels;
    enum status (*read)(struct text_list *list, const char *path,
                        const struct text_dataset_options *options, struct error *error);
};

/* In the order of enum text_dataset_kind. */
static const struct kind kinds[] = {
    {"imdb", IMDB_LABELS, 2, imdb_read}, {"agnews", AGNEWS_LABELS, 4, agnews_read},
    {"text", NULL, 0, text_file_read},   {"sample", IMDB_LABELS, 2, sample_read},
    {"file", NULL, 0, own_read},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

enum status text_dataset_kind_parse(const char *name, enum text_dataset_kind *kind,
                                    struct error *error) {
    for (int i = 0; i < KINDS; i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            *kind = (enum text_dataset_kind)i;
            return STATUS_OK;
        }
    }
    return error_set(
        error, STATUS_INVALID_ARGUMENT,
        "a data set is 'imdb', 'agnews', 'text', 'sample' (the project's own) or 'file' (yours), "
        "not '%s'",
        name);
}

static bool is_text_file(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcasecmp(dot, ".txt") == 0;
}

enum status text_dataset_choose(enum text_dataset_kind *kind, const char *name, const char *path,
                                const struct text_columns *columns, struct error *error) {
    bool columns_given = columns->format != NULL || columns->text != NULL || columns->label != NULL;
    if (name != NULL) {
        TRY(text_dataset_kind_parse(name, kind, error));
    } else if (columns_given || own_has_ending(path)) {
        *kind = TEXT_DATASET_FILE;
    } else if (is_text_file(path)) {
        *kind = TEXT_DATASET_TEXT;
    } else {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--data %s: give --dataset imdb, agnews, text or sample, or for a file of "
                         "your own --format tsv, csv or jsonl",
                         path);
    }
    if (*kind != TEXT_DATASET_FILE && columns_given) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--format, --text-column and --label-column are for files of your own, "
                         "not for --dataset %s",
                         kinds[*kind].name);
    }
    return *kind == TEXT_DATASET_FILE ? own_check(path, columns->format, error) : STATUS_OK;
}

const char *text_dataset_name(enum text_dataset_kind kind) {
    return kinds[kind].name;
}

size_t text_dataset_labels(enum text_dataset_kind kind) {
    return kinds[kind].labels;
}

bool text_dataset_has_labels(enum text_dataset_kind kind) {
    return kinds[kind].labels > 0 || kind == TEXT_DATASET_FILE;
}

bool text_is_blank(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (strchr(" \t\r\n\v\f", text[i]) == NULL || text[i] == '\0') {
            return false;
        }
    }
    return true;
}

static enum status add(struct text_list *list, char *text, size_t length, int32_t label,
                       struct error *error) {
    TRY(utf8_check(text, length, error));
    if (text_is_blank(text, length)) {
        return error_set(error, STATUS_BAD_FORMAT, "there is no text");
    }
    if (!array_grow(&list->samples, &list->capacity, list->count + 1, sizeof *list->samples)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the texts");
    }
    list->samples[list->count++] = (struct text_sample){text, length, label};
    return STATUS_OK;
}

enum status text_list_add(struct text_list *list, char *text, size_t length, int32_t label,
                          struct error *error) {
    enum status status = add(list, text, length, label, error);
    if (status != STATUS_OK) {
        free(text);
    }
    return status;
}

enum status text_check_length(uint64_t length, struct error *error) {
    if (length > TEXT_MAX_BYTES) {
        return error_set(error, STATUS_TOO_LONG, "a text of %llu bytes, at most %d are allowed",
                         (unsigned long long)length, TEXT_MAX_BYTES);
    }
    return STATUS_OK;
}

enum status text_list_add_copy(struct text_list *list, const char *text, size_t length,
                               int32_t label, struct error *error) {
    TRY(text_check_length(length, error));
    char *copy = malloc(length + 1);
    if (copy == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the texts");
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return text_list_add(list, copy, length, label, error);
}

enum status text_error_at(struct error *error, enum status status, const char *what,
                          size_t number) {
    char where[64];
    snprintf(where, sizeof where, "%s %zu", what, number);
    return error_prefix(error, status, where);
}

void text_list_free(struct text_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->samples[i].text);
    }
    free(list->samples);
    *list = (struct text_list){0};
}

size_t text_dataset_wanted(const struct text_dataset_options *options) {
    size_t wanted;
    bool all = options->limit == 0 || !checked_add(options->skip, options->limit, &wanted);
    return all ? SIZE_MAX : wanted;
}

/* Frees the texts before skip and after skip + limit. */
static void cut(struct text_list *list, const struct text_dataset_options *options) {
    size_t first = options->skip < list->count ? options->skip : list->count;
    size_t wanted = text_dataset_wanted(options);
    size_t end = wanted < list->count ? wanted : list->count;
    for (size_t i = 0; i < list->count; i++) {
        if (i < first || i >= end) {
            free(list->samples[i].text);
        }
    }
    if (list->count > 0) {
        memmove(list->samples, list->samples + first, (end - first) * sizeof *list->samples);
    }
    list->count = end - first;
}

/* A whole split must have texts of every label. */
static enum status check_labels(const struct text_list *list, const struct kind *kind,
                                const char *path, const struct text_dataset_options *options,
                                struct error *error) {
    if (list->count == 0 && kind == &kinds[TEXT_DATASET_IMDB] && options->skip == 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: there are no texts of the split '%s'; --split names another", path,
                         options->split);
    }
    if (list->count == 0 && options->skip == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: there are no texts in it", path);
    }
    if (list->count == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: no texts after the first %zu", path,
                         options->skip);
    }
    bool whole = options->limit == 0 && options->skip == 0 && list->samples[0].label >= 0;
    for (size_t label = 0; label < kind->labels && whole; label++) {
        bool found = false;
        for (size_t i = 0; i < list->count && !found; i++) {
            found = (size_t)list->samples[i].label == label;
        }
        if (!found) {
            return error_set(error, STATUS_BAD_FORMAT, "%s: no text has the label '%s'", path,
                             kind->label_names[label]);
        }
    }
    return STATUS_OK;
}

static enum status check_split(enum text_dataset_kind kind, const char *split,
                               struct error *error) {
    bool unlabelled = strcmp(split, TEXT_DATASET_UNLABELLED) == 0;
    if (!unlabelled && strcmp(split, "test") != 0 && strcmp(split, "train") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "a split is 'test' or 'train' (of imdb also 'unsup'), not '%s'", split);
    }
    if (unlabelled && kind != TEXT_DATASET_IMDB) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s has no split 'unsup'",
                         kinds[kind].name);
    }
    return STATUS_OK;
}

static enum status read_list(struct text_list *list, const struct kind *kind, const char *path,
                             const struct text_dataset_options *options, struct error *error) {
    TRY(kind->read(list, path, options, error));
    cut(list, options);
    return check_labels(list, kind, path, options, error);
}

enum status text_dataset_open(struct text_dataset *dataset, enum text_dataset_kind kind,
                              const char *path, const struct text_dataset_options *options,
                              struct error *error) {
    const struct kind *k = &kinds[kind];
    struct text_list list = {0};
    *dataset = (struct text_dataset){.name = k->name};
    TRY(check_split(kind, options->split, error));
    enum status status = read_list(&list, k, path, options, error);
    if (status != STATUS_OK) {
        text_list_free(&list);
        return status;
    }
    dataset->samples = list.samples;
    dataset->count = list.count;
    if (kind == TEXT_DATASET_FILE && options->labels != NULL) {
        dataset->label_names = options->labels->names;
        dataset->labels = options->labels->count;
    } else if (strcmp(options->split, TEXT_DATASET_UNLABELLED) != 0) {
        dataset->label_names = k->label_names;
        dataset->labels = k->labels;
    }
    return STATUS_OK;
}

void text_dataset_close(struct text_dataset *dataset) {
    struct text_list list = {.samples = dataset->samples, .count = dataset->count};
    text_list_free(&list);
    *dataset = (struct text_dataset){0};
}
