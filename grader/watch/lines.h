/**
 * @file lines.h
 * @brief Lines of text with a style each: what a page shows, and what is found in a log.
 */
#ifndef WARPBOOK_GRADER_WATCH_LINES_H_
#define WARPBOOK_GRADER_WATCH_LINES_H_

#include <stddef.h>

enum line_style { LINE_PLAIN, LINE_GOOD, LINE_BAD, LINE_BUSY, LINE_STRONG, LINE_STYLES };

enum { MOST_LINES = 240, LINE_BYTES = 420 };

/** Zero-initialised, it is empty. Lines beyond the last are dropped. */
struct lines {
    size_t count;
    struct line {
        enum line_style style;
        char text[LINE_BYTES]; /**< UTF-8 without control characters */
    } list[MOST_LINES];
};

/** Adds a line; control characters in it become blanks or question marks. */
void lines_add(struct lines *lines, enum line_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Adds the lines of @p more. */
void lines_append(struct lines *lines, const struct lines *more);

#endif
