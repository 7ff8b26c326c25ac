/* The project's own small sample: one text a line, after its label and a tab. */
#include <string.h>

#include "common/base/file.h"
#include "common/texts/text_dataset_internal.h"

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
