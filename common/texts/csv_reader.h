/**
 * @file csv_reader.h
 * @brief Comma-separated values as RFC 4180 has them: quotes, doubled quotes, line breaks inside.
 *
 * A row ends with LF, CRLF or the file. A field is either quoted, then a quote
 * inside is doubled, or bare, then it has no quote. Whatever else a quote does
 * is an error with the number of the line. Rows of one empty field are passed
 * over (an empty line).
 */
#ifndef WARPBOOK_COMMON_TEXTS_CSV_READER_H_
#define WARPBOOK_COMMON_TEXTS_CSV_READER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct csv_field {
    char *text;    /**< unquoted, NUL-terminated; may hold NULs itself */
    size_t length; /**< bytes without the terminator */
};

struct csv_reader {
    const char *data; /**< the caller's, must outlive the reader */
    size_t size, offset;
    size_t line;     /**< of the next byte, from 1 */
    size_t row_line; /**< where the row last read began */
    char *buffer;    /**< the fields of one row */
    size_t used;
};

/**
 * @brief Starts at the first row of @p size bytes; a byte order mark is passed over.
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status csv_reader_create(struct csv_reader *reader, const char *data, size_t size);

/**
 * @brief Reads one row.
 * @param fields receives at most @p most fields; they live until the next call
 * @param count  receives their number
 * @param found  receives false behind the last row
 * @return STATUS_OK; STATUS_BAD_FORMAT with the line for a broken quote or more than @p most fields
 */
MUST_CHECK enum status csv_reader_next(struct csv_reader *reader, struct csv_field *fields,
                                       size_t most, size_t *count, bool *found,
                                       struct error *error);

/** Frees; a zero-initialised one is allowed. */
void csv_reader_free(struct csv_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
