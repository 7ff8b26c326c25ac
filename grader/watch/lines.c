#include "grader/watch/lines.h"

#include <stdarg.h>
#include <stdio.h>

#include "grader/report/run.h"

void lines_add(struct lines *lines, enum line_style style, const char *format, ...) {
    char text[4 * LINE_BYTES];
    va_list args;
    if (lines->count == MOST_LINES) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct line *line = &lines->list[lines->count++];
    line->style = style;
    text_clean(line->text, sizeof line->text, text, false);
}

void lines_append(struct lines *lines, const struct lines *more) {
    for (size_t i = 0; i < more->count && lines->count < MOST_LINES; i++) {
        lines->list[lines->count++] = more->list[i];
    }
}
