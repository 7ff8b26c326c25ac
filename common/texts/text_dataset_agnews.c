/* AG News: a CSV with rows of class, title and description. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/texts/csv_reader.h"
#include "common/texts/text_dataset_internal.h"

enum { FIELDS = 3, CLASSES = 4 };

/* Finds the CSV of a split: the path itself, or the first of two names in the folder. */
static enum status find_file(const char *path, const char *split, char *file, size_t size,
                             struct error *error) {
    if (!folder_exists(path)) {
        snprintf(file, size, "%s", path);
        return STATUS_OK; /* opening it reports what is wrong */
    }
    for (size_t i = 0; i < 2; i++) {
        int length = snprintf(file, size, i == 0 ? "%s/%s.csv" : "%s/ag_news_%s.csv", path, split);
        if (length > 0 && (size_t)length < size && path_exists(file)) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "%s: holds neither %s.csv nor ag_news_%s.csv", path,
                     split, split);
}

static enum status read_class(const struct csv_field *field, int32_t *label, struct error *error) {
    if (field->length != 1 || field->text[0] < '1' || field->text[0] > '0' + CLASSES) {
        return error_set(error, STATUS_BAD_FORMAT, "a class is 1 to %d, not '%.20s'", CLASSES,
                         field->text);
    }
    *label = field->text[0] - '1';
    return STATUS_OK;
}

/* Joins title and description with a blank; the file's backslashes become line breaks. */
static enum status join(const struct csv_field *title, const struct csv_field *description,
                        char **text, size_t *length, struct error *error) {
    *length = title->length + 1 + description->length;
    TRY(text_check_length(*length, error));
    *text = malloc(*length + 1);
    if (*text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the texts");
    }
    memcpy(*text, title->text, title->length);
    (*text)[title->length] = ' ';
    memcpy(*text + title->length + 1, description->text, description->length);
    (*text)[*length] = '\0';
    for (size_t i = 0; i < *length; i++) {
        if ((*text)[i] == '\\') {
            (*text)[i] = '\n';
        }
    }
    return STATUS_OK;
}

static enum status add_row(struct text_list *list, const struct csv_field *fields, size_t count,
                           struct error *error) {
    int32_t label = 0;
    char *text = NULL;
    size_t length = 0;
    if (count != FIELDS) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the row has %zu fields, must have class, title and description", count);
    }
    TRY(read_class(&fields[0], &label, error));
    TRY(join(&fields[1], &fields[2], &text, &length, error));
    return text_list_add(list, text, length, label, error);
}

static bool heading(const struct csv_reader *csv, const struct csv_field *fields) {
    return csv->row_line == 1 && strcmp(fields[0].text, "Class Index") == 0;
}

static enum status read_rows(struct text_list *list, struct csv_reader *csv, size_t wanted,
                             struct error *error) {
    struct csv_field fields[FIELDS];
    size_t count;
    bool found = true;
    while (list->count < wanted) {
        TRY(csv_reader_next(csv, fields, FIELDS, &count, &found, error));
        if (!found) {
            break;
        }
        if (heading(csv, fields)) {
            continue;
        }
        enum status status = add_row(list, fields, count, error);
        if (status != STATUS_OK) {
            return text_error_at(error, status, "line", csv->row_line);
        }
    }
    return STATUS_OK;
}

static enum status read_csv(struct text_list *list, const struct file_view *view, size_t wanted,
                            struct error *error) {
    struct csv_reader csv = {0};
    enum status status = csv_reader_create(&csv, (const char *)view->data, view->size, false);
    status = status == STATUS_OK ? read_rows(list, &csv, wanted, error)
                                 : error_set(error, status, "out of memory");
    csv_reader_free(&csv);
    return status;
}

enum status agnews_read(struct text_list *list, const char *path,
                        const struct text_dataset_options *options, struct error *error) {
    char file[4096];
    struct file_view view;
    TRY(find_file(path, options->split, file, sizeof file, error));
    TRY(file_view_open(&view, file, error));
    enum status status = read_csv(list, &view, text_dataset_wanted(options), error);
    file_view_close(&view);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, file);
}
