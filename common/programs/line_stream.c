#include "common/programs/line_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/grow.h"

enum { PART = 1 << 16 /* bytes of one read */ };

bool line_stream_take(struct line_stream *s, const char **line, size_t *length) {
    size_t left = s->end - s->start;
    if (left == 0) {
        return false;
    }
    const char *begin = s->buffer + s->start;
    const char *feed = memchr(begin + s->seen, '\n', left - s->seen);
    if (feed == NULL && !s->ended) {
        s->seen = left;
        return false;
    }
    *line = begin;
    *length = feed != NULL ? (size_t)(feed - begin) : left;
    s->start += *length + (feed != NULL);
    s->seen = 0;
    *length -= *length > 0 && begin[*length - 1] == '\r';
    return true;
}

enum status line_stream_wait(struct line_stream *s, struct error *error) {
    size_t left = s->end - s->start;
    if (left > LINE_STREAM_MOST) {
        return error_set(error, STATUS_TOO_LONG, "a line of more than %d bytes", LINE_STREAM_MOST);
    }
    if (s->start > 0) {
        memmove(s->buffer, s->buffer + s->start, left);
        s->start = 0;
        s->end = left;
    }
    if (!array_grow(&s->buffer, &s->capacity, left + PART, 1)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a line");
    }
    ssize_t count = read(s->descriptor, s->buffer + left, PART);
    if (count < 0) {
        return errno == EINTR ? error_set(error, STATUS_INTERRUPTED, "interrupted")
                              : error_set(error, STATUS_IO, "cannot read: %s", strerror(errno));
    }
    s->end += (size_t)count;
    s->ended = count == 0;
    return STATUS_OK;
}

void line_stream_free(struct line_stream *stream) {
    free(stream->buffer);
    *stream = (struct line_stream){0};
}
