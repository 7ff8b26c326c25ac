#include "common/train/program/train_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/checkpoints/bert/bert_checkpoint.h"

enum { CONFIG_LIMIT = 16 << 20 };

/* ---- The checkpoint's ---- */

static enum status take_all(struct text_labels *known, const struct bert_label *names, size_t count,
                            struct error *error) {
    int32_t id;
    for (size_t i = 0; i < count; i++) {
        TRY(text_labels_take(known, names[i].name, strlen(names[i].name), &id, error));
        if ((size_t)id != i) {
            return error_set(error, STATUS_BAD_FORMAT, "two labels have the name '%s'",
                             names[i].name);
        }
    }
    known->closed = true;
    return STATUS_OK;
}

static enum status parse_known(struct text_labels *known, const char *json, size_t size,
                               struct error *error) {
    struct bert_config config;
    struct bert_label *names;
    TRY(bert_config_parse(&config, json, size, error));
    TRY(bert_labels_parse(json, size, config.labels, &names, error));
    enum status status = take_all(known, names, config.labels, error);
    free(names);
    return status;
}

static enum status read_known(struct text_labels *known, const char *folder, struct error *error) {
    char path[FOLDER_PATH_BYTES], *json;
    size_t size;
    TRY(folder_join(path, folder, "config.json", "checkpoint", error));
    TRY(file_read(path, CONFIG_LIMIT, &json, &size, error));
    enum status status = parse_known(known, json, size, error);
    free(json);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

/* Whether a label has a name; LABEL_3 is what transformers and bert_labels_parse() call one that
   has none. */
static bool has_names(const struct text_labels *labels) {
    bool named = false;
    for (size_t i = 0; i < labels->count; i++) {
        char none[32];
        snprintf(none, sizeof none, "LABEL_%zu", i);
        named = named || strcmp(labels->names[i], none) != 0;
    }
    return named;
}

enum status train_labels_open(struct train_labels *labels, const struct train_options *o,
                              struct error *error) {
    *labels =
        (struct train_labels){.own = o->kind == TEXT_DATASET_FILE && o->task == TRAIN_CLASSIFY};
    if (!labels->own || o->load == NULL) {
        return STATUS_OK;
    }
    if (!o->train) {
        return read_known(&labels->names, o->load, error);
    }
    TRY(read_known(&labels->known, o->load, error));
    if (!has_names(&labels->known)) {
        text_labels_free(&labels->known);
    }
    return STATUS_OK;
}

struct text_labels *train_labels_names(struct train_labels *labels) {
    return labels->own ? &labels->names : NULL;
}

/* ---- After reading ---- */

static bool knows_all(const struct text_labels *known, const struct text_labels *names) {
    bool all = known->count > 0;
    for (size_t i = 0; i < names->count && all; i++) {
        all = text_labels_find(known, names->names[i]) >= 0;
    }
    return all;
}

/* Gives the texts the checkpoint's ids. */
static void take_known(struct train_labels *l, struct train_texts *texts) {
    for (size_t i = 0; i < texts->count; i++) {
        texts->labels[i] = text_labels_find(&l->known, l->names.names[texts->labels[i]]);
    }
    text_labels_free(&l->names);
    l->names = l->known;
    l->known = (struct text_labels){0};
    texts->label_names = l->names.names;
    texts->label_count = l->names.count;
}

enum status train_labels_settle(struct train_labels *l, struct train_texts *texts, const char *path,
                                struct error *error) {
    if (!l->own || l->names.closed) {
        return STATUS_OK;
    }
    if (l->names.count < 2) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: all texts have the label '%s': a classifier needs two labels or more",
                         path, l->names.names[0]);
    }
    if (knows_all(&l->known, &l->names)) {
        take_known(l, texts);
    }
    l->names.closed = true;
    return STATUS_OK;
}

/* ---- Description ---- */

static bool occurs(const struct train_part *part, int32_t label) {
    for (size_t i = 0; i < part->count; i++) {
        if (part->texts->labels[part->first + i] == label) {
            return true;
        }
    }
    return false;
}

void train_labels_print(const struct train_labels *l, const struct train_part *part) {
    char list[400];
    const struct train_texts *texts = part->texts;
    if (!l->own) {
        return;
    }
    printf("%zu labels: %s\n", l->names.count, text_labels_list(&l->names, list, sizeof list));
    for (size_t i = 0; i < l->names.count && texts != NULL; i++) {
        const struct train_part all = {texts, 0, texts->count};
        if (occurs(&all, (int32_t)i) && !occurs(part, (int32_t)i)) {
            printf("no training text has the label '%s': the first texts of the file train, the "
                   "last ones evaluate; shuffle its lines if they are sorted\n",
                   l->names.names[i]);
            break;
        }
    }
}

void train_labels_free(struct train_labels *labels) {
    text_labels_free(&labels->names);
    text_labels_free(&labels->known);
}
