/**
 * @file csv_reader.h
 * @brief Reads comma-separated values as in RFC 4180, with quoted fields and line breaks in them,
 *        and tab-separated values (IANA's text/tab-separated-values), which have no quotes.
 *
 * A row ends with LF, CRLF or the end of the file. In a quoted field a quote is
 * doubled; a field that is not quoted has no quotes. Any other quote is an error
 * with the number of the line. Between tabs a quote is a character like others.
 * Empty lines are skipped.
 */
#ifndef WARPBOOK_COMMON_TEXTS_CSV_READER_H_
#define WARPBOOK_COMMON_TEXTS_CSV_READER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct csv_field {
    char *text;    /**< unquoted, NUL-terminated; may hold NULs itself */
    size_t length; /**< bytes without the terminator */
};

struct csv_reader {
    const char *data; /**< the caller's, must outlive the reader */
    size_t size, offset;
    size_t line;     /**< of the next byte, from 1 */
    size_t row_line; /**< where the row last read began */
    bool tabs;       /**< tabs between fields and no quotes; else commas */
    char *buffer;    /**< the fields of one row */
    size_t used;
};

/**
 * @brief Starts at the first row of @p size bytes; skips a byte order mark.
 * @param tabs whether tabs separate the fields, else commas
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status csv_reader_create(struct csv_reader *reader, const char *data, size_t size,
                                         bool tabs);

/**
 * @brief Reads one row.
 * @param fields receives at most @p most fields; they live until the next call
 * @param count  receives their number
 * @param found  receives false after the last row
 * @return STATUS_OK; STATUS_BAD_FORMAT with the line for a broken quote or more than @p most fields
 */
MUST_CHECK enum status csv_reader_next(struct csv_reader *reader, struct csv_field *fields,
                                       size_t most, size_t *count, bool *found,
                                       struct error *error);

/** Frees; a zero-initialised one is allowed. */
void csv_reader_free(struct csv_reader *reader);

#endif
