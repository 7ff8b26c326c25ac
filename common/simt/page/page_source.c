/* Texts of the sources: those around recorded lines, or all of a short file. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/page/page.h"

enum { SHORT_FILE = 1500, AROUND = 3 };

_Static_assert(sizeof(struct page_marks) > PAGE_MOST_LINES + AROUND, "is_near() looks ahead");

static bool is_near(const struct page_marks *marks, uint32_t line) {
    uint32_t begin = line > AROUND ? line - AROUND : 0;
    return memchr(marks->line + begin, 1, line + AROUND + 1 - begin) != NULL;
}

static uint32_t count_lines(FILE *source) {
    uint32_t lines = 0;
    for (int c = fgetc(source); c != EOF; c = fgetc(source)) {
        lines += c == '\n';
    }
    rewind(source);
    return lines;
}

/* [number, text] of each line that is shown. */
static void print_lines(FILE *source, const struct page_marks *marks, size_t *left, FILE *stream) {
    bool whole = count_lines(source) <= SHORT_FILE;
    bool first = true;
    char *text = NULL;
    size_t room = 0;
    for (uint32_t n = 1; n < PAGE_MOST_LINES; n++) {
        ssize_t length = getline(&text, &room, source);
        if (length < 0 || (size_t)length > *left) {
            break;
        }
        if (whole || is_near(marks, n)) {
            text[strcspn(text, "\r\n")] = '\0';
            fprintf(stream, "%s[%u,", first ? "" : ",", n);
            page_print_quoted(text, stream);
            fputc(']', stream);
            *left -= (size_t)length;
            first = false;
        }
    }
    free(text);
}

void page_print_source(const char *name, FILE *source, const struct page_marks *marks, size_t *left,
                       FILE *stream) {
    fputs("{\"name\":", stream);
    page_print_quoted(name, stream);
    fputs(",\"lines\":[", stream);
    if (source != NULL) {
        print_lines(source, marks, left, stream);
    }
    fputs("]}", stream);
}
