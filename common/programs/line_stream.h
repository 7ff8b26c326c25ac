/**
 * @file line_stream.h
 * @brief Lines of a pipe or a terminal as they arrive, for programs that answer each at once.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_LINE_STREAM_H_
#define WARPBOOK_COMMON_PROGRAMS_LINE_STREAM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

enum { LINE_STREAM_MOST = 16 << 20 /* bytes of a line */ };

/** Zero-initialise, and set the descriptor. */
struct line_stream {
    int descriptor;
    char *buffer; /**< bytes start .. end - 1 have been read and not returned as lines */
    size_t start, end, capacity;
    size_t seen; /**< bytes behind start that hold no line feed */
    bool ended;  /**< the input has ended */
};

/**
 * @brief Takes a line that has arrived, without its LF or CRLF; the last one may lack it.
 * @param line receives @p length bytes, valid until line_stream_wait()
 * @return false: there is none, so wait for more, unless the stream has ended
 */
bool line_stream_take(struct line_stream *stream, const char **line, size_t *length);

/**
 * @brief Waits for more bytes, or the end.
 * @return STATUS_OK; STATUS_INTERRUPTED when a signal came; STATUS_IO; STATUS_TOO_LONG (a line of
 *         more than LINE_STREAM_MOST bytes); STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status line_stream_wait(struct line_stream *stream, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void line_stream_free(struct line_stream *stream);

#endif
