/* Texts without labels in one file: paragraphs, or lines if no blank line separates texts. */
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/texts/text_dataset_internal.h"

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
