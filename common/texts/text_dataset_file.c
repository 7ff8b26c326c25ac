/*
 * Texts in one file. Without labels: paragraphs, or lines if no blank line separates texts. The
 * project's own small sample: one text a line, after its label and a tab.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/texts/text_dataset_internal.h"

/* ---- Without labels ---- */

static const size_t MOST_BYTES = (size_t)1 << 32;

/* The part of the file not read yet. */
struct lines {
    const char *at, *end;
    size_t number; /* of the line at `at`, from 1 on */
    bool paragraphs;
};

/* Length of the line at text, without its line feed. */
static size_t line_length(const char *text, const char *end) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    return (size_t)((stop != NULL ? stop : end) - text);
}

static const char *next_line(const char *text, const char *end) {
    size_t length = line_length(text, end);
    return text + length < end ? text + length + 1 : end;
}

/* Whether a blank line separates two texts; blank lines at the beginning and the end do not. */
static bool has_blank_line(const char *text, const char *end) {
    bool text_before = false, blank_before = false;
    for (; text < end; text = next_line(text, end)) {
        bool blank = text_is_blank(text, line_length(text, end));
        if (!blank && blank_before) {
            return true;
        }
        blank_before = blank && text_before;
        text_before = text_before || !blank;
    }
    return false;
}

/* Skips blank lines and finds the next text; false if there is none. A carriage return at the end
   of the text is not part of it. */
static bool next_text(struct lines *l, const char **text, size_t *length, size_t *number) {
    while (l->at < l->end && text_is_blank(l->at, line_length(l->at, l->end))) {
        l->at = next_line(l->at, l->end);
        l->number++;
    }
    *text = l->at;
    *number = l->number;
    const char *stop = l->at;
    while (l->at < l->end && !text_is_blank(l->at, line_length(l->at, l->end))) {
        stop = l->at + line_length(l->at, l->end);
        l->at = next_line(l->at, l->end);
        l->number++;
        if (!l->paragraphs) {
            break;
        }
    }
    while (stop > *text && stop[-1] == '\r') {
        stop--;
    }
    *length = (size_t)(stop - *text);
    return *length > 0;
}

static enum status split(struct text_list *list, const char *data, size_t size, size_t wanted,
                         struct error *error) {
    struct lines lines = {.at = data, .end = data + size, .number = 1};
    lines.paragraphs = has_blank_line(data, data + size);
    const char *text;
    size_t length, number;
    while (list->count < wanted && next_text(&lines, &text, &length, &number)) {
        enum status status = text_list_add_copy(list, text, length, -1, error);
        if (status != STATUS_OK) {
            return text_error_at(error, status, "the text in line", number);
        }
    }
    return STATUS_OK;
}

enum status text_file_read(struct text_list *list, const char *path,
                           const struct text_dataset_options *options, struct error *error) {
    char *data;
    size_t size;
    TRY(file_read(path, MOST_BYTES, &data, &size, error));
    enum status status = split(list, data, size, text_dataset_wanted(options), error);
    free(data);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

/* ---- The sample ---- */

static enum status read_label(const char *line, size_t length, int32_t *label,
                              struct error *error) {
    static const char *const names[] = {"neg", "pos"};
    for (int32_t i = 0; i < 2; i++) {
        if (length == strlen(names[i]) && memcmp(line, names[i], length) == 0) {
            *label = i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_FORMAT, "'%.*s' is not 'neg' or 'pos'",
                     (int)(length < 20 ? length : 20), line);
}

static enum status add_line(struct text_list *list, const char *line, size_t length,
                            struct error *error) {
    const char *tab = memchr(line, '\t', length);
    int32_t label = 0;
    if (tab == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "no tab between a label and a text");
    }
    TRY(read_label(line, (size_t)(tab - line), &label, error));
    length -= (size_t)(tab + 1 - line);
    return text_list_add_copy(list, tab + 1, length, label, error);
}

static enum status read_lines(struct text_list *list, const char *data, size_t size, size_t wanted,
                              struct error *error) {
    size_t number = 0;
    for (size_t at = 0; at < size && list->count < wanted;) {
        const char *line = data + at, *end = memchr(line, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - line) : size - at;
        at += length + 1;
        number++;
        length -= length > 0 && line[length - 1] == '\r';
        enum status status = add_line(list, line, length, error);
        if (status != STATUS_OK) {
            return text_error_at(error, status, "line", number);
        }
    }
    return STATUS_OK;
}

enum status sample_read(struct text_list *list, const char *path,
                        const struct text_dataset_options *options, struct error *error) {
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status =
        read_lines(list, (const char *)view.data, view.size, text_dataset_wanted(options), error);
    file_view_close(&view);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}
