/* Texts of the user's own, with labels of any names: TSV and CSV with a header, JSON lines. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/file.h"
#include "common/base/json_object.h"
#include "common/base/terminal.h"
#include "common/base/utf8.h"
#include "common/texts/csv_reader.h"
#include "common/texts/text_dataset_internal.h"

enum { MOST_COLUMNS = 1024, MOST_LINE = 2 * TEXT_MAX_BYTES, KB = 1000 };

/* ---- The format ---- */

enum format { FORMAT_TSV, FORMAT_CSV, FORMAT_JSONL, FORMATS };

static const char *const format_names[FORMATS] = {"tsv", "csv", "jsonl"};

/* FORMATS: unknown. */
static enum format find_format(const char *name) {
    int i = 0;
    while (i < FORMATS && strcasecmp(name, format_names[i]) != 0) {
        i++;
    }
    return (enum format)i;
}

static enum format format_of_path(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL ? find_format(dot + 1) : FORMATS;
}

bool own_has_ending(const char *path) {
    return format_of_path(path) != FORMATS;
}

static enum status choose_format(enum format *format, const char *path, const char *name,
                                 struct error *error) {
    *format = name != NULL ? find_format(name) : format_of_path(path);
    if (*format != FORMATS) {
        return STATUS_OK;
    }
    return name != NULL ? error_set(error, STATUS_INVALID_ARGUMENT,
                                    "--format is 'tsv', 'csv' or 'jsonl', not '%s'", name)
                        : error_set(error, STATUS_INVALID_ARGUMENT,
                                    "%s: its name does not end in .tsv, .csv or .jsonl: give "
                                    "--format tsv, csv or jsonl",
                                    path);
}

enum status own_check(const char *path, const char *format, struct error *error) {
    enum format found;
    return choose_format(&found, path, format, error);
}

/* ---- Both ---- */

/* What is read, and where it goes. */
struct reader {
    struct text_list *list;
    struct text_labels *labels; /* NULL: they are not read */
    const char *text, *label;   /* names of the columns */
    size_t wanted;
    struct progress *progress;
};

static enum status add(const struct reader *r, const char *text, size_t length, const char *label,
                       size_t label_length, struct error *error) {
    int32_t id = -1;
    if (r->labels != NULL) {
        TRY(text_labels_take(r->labels, label, label_length, &id, error));
    }
    return text_list_add_copy(r->list, text, length, id, error);
}

/* ---- TSV and CSV ---- */

/* The header: number of columns, and where the text and the label are. */
struct header {
    size_t count, text, label;
};

/* "'id', 'body'", as many as fit. */
static const char *list_columns(const struct csv_field *fields, size_t count, char *list,
                                size_t size) {
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        int shown = json_shown(fields[i].text);
        if (used + (size_t)shown + 8 > size) {
            snprintf(list + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(list + used, size - used, "%s'%.*s'", i > 0 ? ", " : "", shown,
                                 fields[i].text);
    }
    return list;
}

static enum status find_column(const struct csv_field *fields, size_t count, const char *name,
                               const char *flag, size_t *index, struct error *error) {
    char list[240];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].text, name) == 0) {
            *index = i;
            found++;
        }
    }
    if (found == 1) {
        return STATUS_OK;
    }
    if (found > 1) {
        return error_set(error, STATUS_BAD_FORMAT, "the header has the column '%.*s' %zu times",
                         json_shown(name), name, found);
    }
    return error_set(error, STATUS_BAD_FORMAT,
                     "the header has no column '%.*s', only %s: name the right one with %s",
                     json_shown(name), name, list_columns(fields, count, list, sizeof list), flag);
}

static enum status find_columns(const struct reader *r, const struct csv_field *fields,
                                struct header *header, struct error *error) {
    for (size_t i = 0; i < header->count; i++) {
        TRY(utf8_check(fields[i].text, fields[i].length, error));
    }
    TRY(find_column(fields, header->count, r->text, "--text-column", &header->text, error));
    return r->labels == NULL ? STATUS_OK
                             : find_column(fields, header->count, r->label, "--label-column",
                                           &header->label, error);
}

static enum status add_row(const struct reader *r, const struct header *header,
                           const struct csv_field *fields, size_t count, struct error *error) {
    if (count != header->count) {
        return error_set(error, STATUS_BAD_FORMAT, "the row has %zu fields, the header %zu", count,
                         header->count);
    }
    const struct csv_field *text = &fields[header->text], *label = &fields[header->label];
    return add(r, text->text, text->length, label->text, label->length, error);
}

static enum status read_rows(const struct reader *r, struct csv_reader *csv,
                             struct csv_field *fields, struct error *error) {
    struct header header = {.text = 0};
    size_t count;
    bool found = true;
    TRY(csv_reader_next(csv, fields, MOST_COLUMNS, &header.count, &found, error));
    enum status status = found ? find_columns(r, fields, &header, error) : STATUS_OK;
    while (status == STATUS_OK && r->list->count < r->wanted) {
        TRY(csv_reader_next(csv, fields, MOST_COLUMNS, &count, &found, error));
        if (!found) {
            return STATUS_OK;
        }
        status = add_row(r, &header, fields, count, error);
        progress_update(r->progress, csv->offset / KB);
    }
    return status == STATUS_OK ? STATUS_OK : text_error_at(error, status, "line", csv->row_line);
}

static enum status read_table(const struct reader *r, const struct file_view *view, bool tabs,
                              struct error *error) {
    struct csv_reader csv = {0};
    struct csv_field *fields = calloc(MOST_COLUMNS, sizeof *fields);
    enum status status = fields != NULL
                             ? csv_reader_create(&csv, (const char *)view->data, view->size, tabs)
                             : STATUS_OUT_OF_MEMORY;
    status = status == STATUS_OK ? read_rows(r, &csv, fields, error)
                                 : error_set(error, status, "out of memory");
    csv_reader_free(&csv);
    free(fields);
    return status;
}

/* ---- JSON lines ---- */

/* The label as text: a string as it is, a whole number or a boolean as JSON spells it. */
static enum status spell_label(const cJSON *item, char number[32], const char **label,
                               struct error *error) {
    *label = number;
    if (cJSON_IsString(item)) {
        *label = item->valuestring;
    } else if (cJSON_IsBool(item)) {
        *label = cJSON_IsTrue(item) ? "true" : "false";
    } else if (cJSON_IsNumber(item) && fabs(item->valuedouble) <= 0x1p53 &&
               item->valuedouble == trunc(item->valuedouble)) {
        snprintf(number, 32, "%lld", (long long)item->valuedouble);
    } else {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the label is no string, whole number, true or false");
    }
    return STATUS_OK;
}

static enum status find_member(const cJSON *object, const char *name, const char *flag,
                               const cJSON **item, struct error *error) {
    *item = json_member(object, name);
    return *item != NULL ? STATUS_OK
                         : error_set(error, STATUS_BAD_FORMAT,
                                     "\"%.*s\" is missing: name the right key with %s",
                                     json_shown(name), name, flag);
}

static enum status add_object(const struct reader *r, const cJSON *object, struct error *error) {
    char number[32];
    const char *label = "";
    const cJSON *text, *item;
    TRY(find_member(object, r->text, "--text-column", &text, error));
    if (!cJSON_IsString(text)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%.*s\" is no string", json_shown(r->text),
                         r->text);
    }
    if (r->labels != NULL) {
        TRY(find_member(object, r->label, "--label-column", &item, error));
        TRY(spell_label(item, number, &label, error));
    }
    return add(r, text->valuestring, strlen(text->valuestring), label, strlen(label), error);
}

static enum status add_line(const struct reader *r, const char *line, size_t length,
                            struct error *error) {
    cJSON *object;
    if (length > MOST_LINE) {
        return error_set(error, STATUS_TOO_LONG, "%zu bytes, at most %d are allowed", length,
                         MOST_LINE);
    }
    TRY(json_object_parse(&object, line, length, error));
    enum status status = add_object(r, object, error);
    cJSON_Delete(object);
    return status;
}

static enum status read_json_lines(const struct reader *r, const struct file_view *view,
                                   struct error *error) {
    static const char MARK[] = "\xef\xbb\xbf"; /* byte order mark */
    const char *data = (const char *)view->data;
    bool marked = view->size >= 3 && memcmp(data, MARK, 3) == 0;
    size_t number = 0;
    for (size_t at = marked ? 3 : 0; at < view->size && r->list->count < r->wanted;) {
        const char *line = data + at, *end = memchr(line, '\n', view->size - at);
        size_t length = end != NULL ? (size_t)(end - line) : view->size - at;
        at += length + 1;
        number++;
        progress_update(r->progress, at / KB);
        enum status status =
            text_is_blank(line, length) ? STATUS_OK : add_line(r, line, length, error);
        if (status != STATUS_OK) {
            return text_error_at(error, status, "line", number);
        }
    }
    return STATUS_OK;
}

/* ---- A file ---- */

/* Sorts collected labels, and gives the texts their new ids. */
static enum status sort_labels(const struct reader *r, struct error *error) {
    int32_t *ids = calloc(r->labels->count + 1, sizeof *ids);
    if (ids == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the labels");
    }
    text_labels_sort(r->labels, ids);
    for (size_t i = 0; i < r->list->count; i++) {
        r->list->samples[i].label = ids[r->list->samples[i].label];
    }
    free(ids);
    return STATUS_OK;
}

static enum status read_view(struct reader *r, const struct file_view *view, enum format format,
                             struct error *error) {
    struct progress progress = progress_create("kB of the file read", view->size / KB);
    r->progress = &progress;
    enum status status = format == FORMAT_JSONL ? read_json_lines(r, view, error)
                                                : read_table(r, view, format == FORMAT_TSV, error);
    progress_finish(&progress);
    TRY(status);
    return r->labels != NULL && !r->labels->closed ? sort_labels(r, error) : STATUS_OK;
}

enum status own_read(struct text_list *list, const char *path,
                     const struct text_dataset_options *options, struct error *error) {
    const struct text_columns *columns = &options->columns;
    struct reader reader = {
        .list = list,
        .labels = options->labels,
        .text = columns->text != NULL ? columns->text : "text",
        .label = columns->label != NULL ? columns->label : "label",
        .wanted = text_dataset_wanted(options),
    };
    struct file_view view;
    enum format format;
    TRY(choose_format(&format, path, columns->format, error));
    TRY(file_view_open(&view, path, error));
    enum status status = read_view(&reader, &view, format, error);
    file_view_close(&view);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}
