#include "common/tokenizers/training/vocab.h"

#include <string.h>

#include "common/base/terminal.h"
#include "common/texts/text_dataset.h"

enum { MOST_ITEM = 4096 };

/* State while words are counted. */
struct counter {
    const struct vocab_sources *sources;
    enum vocab_kind kind;
    bool lowercase;
    struct vocab_words *words;
    size_t texts;
};

/* ---- A data set ---- */

static enum status count_each(struct counter *c, const struct text_dataset *dataset,
                              struct progress *progress, struct error *error) {
    for (size_t i = 0; i < dataset->count; i++) {
        const struct text_sample *sample = &dataset->samples[i];
        TRY(vocab_count_text(c->words, c->kind, c->lowercase, sample->text, sample->length, error));
        progress_update(progress, i + 1);
    }
    return STATUS_OK;
}

static enum status count_samples(struct counter *c, const struct text_dataset *dataset,
                                 struct error *error) {
    struct progress progress = progress_create("texts counted", dataset->count);
    enum status status = count_each(c, dataset, &progress, error);
    progress_finish(&progress);
    c->texts += dataset->count;
    return status;
}

static enum status choose(const struct vocab_sources *s, const char *path,
                          enum text_dataset_kind *kind, struct error *error) {
    return text_dataset_choose(kind, s->dataset, path, &s->columns, error);
}

static enum status count_dataset(struct counter *c, const char *path, const char *split,
                                 struct error *error) {
    enum text_dataset_kind kind;
    struct text_dataset dataset;
    const struct text_dataset_options options = {.split = split,
                                                 .skip = c->sources->skip,
                                                 .limit = c->sources->limit,
                                                 .columns = c->sources->columns};
    TRY(choose(c->sources, path, &kind, error));
    TRY(text_dataset_open(&dataset, kind, path, &options, error));
    enum status status = count_samples(c, &dataset, error);
    text_dataset_close(&dataset);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

/* ---- All data sets ---- */

/* Number of items in a list separated by commas. */
static size_t list_length(const char *list) {
    size_t count = 1;
    for (const char *c = list; *c != '\0'; c++) {
        count += *c == ',';
    }
    return count;
}

/* Copies item number @p index of a list separated by commas. */
static enum status list_item(const char *list, size_t index, const char *flag, char *out,
                             struct error *error) {
    for (; index > 0; index--) {
        list = strchr(list, ',') + 1;
    }
    size_t length = strcspn(list, ",");
    if (length == 0 || length >= MOST_ITEM) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         length == 0 ? "%s: a part between commas is empty"
                                     : "%s: a part between commas is too long",
                         flag);
    }
    memcpy(out, list, length);
    out[length] = '\0';
    return STATUS_OK;
}

/* Path and split number @p i. */
static enum status source_at(const struct vocab_sources *s, size_t i, char *path, char *split,
                             struct error *error) {
    TRY(list_item(s->data, list_length(s->data) > 1 ? i : 0, "--data", path, error));
    return list_item(s->split, list_length(s->split) > 1 ? i : 0, "--split", split, error);
}

static enum status count_sources(const struct vocab_sources *s, size_t *count,
                                 struct error *error) {
    size_t paths = list_length(s->data), splits = list_length(s->split);
    *count = paths > splits ? paths : splits;
    if ((paths != *count && paths != 1) || (splits != *count && splits != 1)) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "--data has %zu paths, --split %zu names; give the same number of both, or "
            "only one path or one name",
            paths, splits);
    }
    return STATUS_OK;
}

static enum status count_all(struct counter *c, struct error *error) {
    char path[MOST_ITEM], split[MOST_ITEM];
    size_t count;
    TRY(count_sources(c->sources, &count, error));
    for (size_t i = 0; i < count; i++) { /* report mistakes in the lists before a long read */
        enum text_dataset_kind kind;
        TRY(source_at(c->sources, i, path, split, error));
        TRY(choose(c->sources, path, &kind, error));
    }
    for (size_t i = 0; i < count; i++) {
        TRY(source_at(c->sources, i, path, split, error));
        TRY(count_dataset(c, path, split, error));
    }
    return STATUS_OK;
}

enum status vocab_sources_count(const struct vocab_sources *sources, enum vocab_kind kind,
                                bool lowercase, struct vocab_words *words, size_t *texts,
                                struct error *error) {
    struct counter counter = {
        .sources = sources, .kind = kind, .lowercase = lowercase, .words = words};
    enum status status = count_all(&counter, error);
    *texts = counter.texts;
    return status;
}
