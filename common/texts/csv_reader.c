#include "common/texts/csv_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum status csv_reader_create(struct csv_reader *reader, const char *data, size_t size, bool tabs) {
    *reader = (struct csv_reader){.data = data, .size = size, .line = 1, .tabs = tabs};
    size_t bytes;
    /* A field needs at most its bytes in the file, and a NUL in place of its separator. */
    if (!checked_add(size, 2, &bytes)) {
        return STATUS_OVERFLOW;
    }
    reader->buffer = malloc(bytes);
    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        reader->offset = 3;
    }
    return reader->buffer != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static bool at_end(const struct csv_reader *r) {
    return r->offset == r->size;
}

static bool at_separator(const struct csv_reader *r) {
    return !at_end(r) && r->data[r->offset] == (r->tabs ? '\t' : ',');
}

static bool at_quote(const struct csv_reader *r) {
    return !at_end(r) && !r->tabs && r->data[r->offset] == '"';
}

/* Length of the LF or CRLF at the current byte; 0 if there is none. */
static size_t line_break(const struct csv_reader *r) {
    if (at_end(r)) {
        return 0;
    }
    if (r->data[r->offset] == '\n') {
        return 1;
    }
    bool crlf =
        r->data[r->offset] == '\r' && r->size - r->offset > 1 && r->data[r->offset + 1] == '\n';
    return crlf ? 2 : 0;
}

static void append(struct csv_reader *r, char c) {
    r->buffer[r->used++] = c;
    r->line += c == '\n';
    r->offset++;
}

/* Reads a quoted field, from its opening quote to the byte after its closing quote. */
static enum status read_quoted(struct csv_reader *r, struct error *error) {
    size_t start = r->line;
    r->offset++;
    for (;;) {
        if (at_end(r)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "line %zu: the quote that opens here is never closed", start);
        }
        char c = r->data[r->offset];
        if (c == '"') {
            r->offset++;
            if (at_end(r) || r->data[r->offset] != '"') {
                break;
            }
        }
        append(r, c);
    }
    if (at_end(r) || at_separator(r) || line_break(r) > 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_FORMAT,
                     "line %zu: broken quotes: text after the closing quote of a field that "
                     "began in line %zu",
                     r->line, start);
}

static enum status read_bare(struct csv_reader *r, struct error *error) {
    while (!at_end(r) && !at_separator(r) && line_break(r) == 0) {
        if (at_quote(r)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "line %zu: broken quotes: a quote inside a field that does not begin "
                             "with one",
                             r->line);
        }
        append(r, r->data[r->offset]);
    }
    return STATUS_OK;
}

static enum status read_field(struct csv_reader *r, struct csv_field *field, struct error *error) {
    size_t start = r->used;
    TRY(at_quote(r) ? read_quoted(r, error) : read_bare(r, error));
    *field = (struct csv_field){r->buffer + start, r->used - start};
    r->buffer[r->used++] = '\0';
    return STATUS_OK;
}

/* Skips empty lines, to the next row or the end. */
static void skip_empty_lines(struct csv_reader *r) {
    for (size_t length = line_break(r); length > 0; length = line_break(r)) {
        r->offset += length;
        r->line++;
    }
}

enum status csv_reader_next(struct csv_reader *r, struct csv_field *fields, size_t most,
                            size_t *count, bool *found, struct error *error) {
    *count = 0;
    r->used = 0;
    skip_empty_lines(r);
    r->row_line = r->line;
    *found = !at_end(r);
    while (*found) {
        if (*count == most) {
            return error_set(error, STATUS_BAD_FORMAT, "line %zu: more than %zu fields",
                             r->row_line, most);
        }
        TRY(read_field(r, &fields[*count], error));
        ++*count;
        if (!at_separator(r)) {
            break;
        }
        r->offset++;
    }
    size_t length = line_break(r);
    r->offset += length;
    r->line += length > 0;
    return STATUS_OK;
}

void csv_reader_free(struct csv_reader *reader) {
    free(reader->buffer);
    *reader = (struct csv_reader){0};
}
