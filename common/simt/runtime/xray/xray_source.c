/* Texts of the sources: those around recorded lines, or all of a short file. */
#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/report/report.h"
#include "common/simt/runtime/xray/xray_page.h"

enum { SHORT_FILE = 1500, AROUND = 3, MOST_LINES = 100000, MOST_BYTES = 2 << 20 };

/** Marks the lines of a file that have counts. */
static void mark_lines(const struct xray *xray, size_t file, unsigned char *marks) {
    for (const struct xray_launch *l = xray->launches; l != NULL; l = l->next) {
        for (size_t n = 0; n < l->line_count; n++) {
            uint32_t line = l->lines[n].line;
            if (l->lines[n].file == file && line < MOST_LINES) {
                marks[line] = 1;
            }
        }
    }
}

static bool is_near(const unsigned char *marks, uint32_t line) {
    uint32_t begin = line > AROUND ? line - AROUND : 0;
    return memchr(marks + begin, 1, line + AROUND + 1 - begin) != NULL;
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
static void print_lines(FILE *source, const unsigned char *marks, size_t *left, FILE *stream) {
    bool whole = count_lines(source) <= SHORT_FILE;
    bool first = true;
    char *text = NULL;
    size_t room = 0;
    for (uint32_t n = 1; n < MOST_LINES; n++) {
        ssize_t length = getline(&text, &room, source);
        if (length < 0 || (size_t)length > *left) {
            break;
        }
        if (whole || is_near(marks, n)) {
            text[strcspn(text, "\r\n")] = '\0';
            fprintf(stream, "%s[%u,", first ? "" : ",", n);
            report_print_quoted(text, stream);
            fputc(']', stream);
            *left -= (size_t)length;
            first = false;
        }
    }
    free(text);
}

static void print_file(const struct xray *xray, size_t file, unsigned char *marks, size_t *left,
                       FILE *stream) {
    memset(marks, 0, MOST_LINES + AROUND + 1);
    mark_lines(xray, file, marks);
    fputs("{\"name\":", stream);
    report_print_quoted(xray->files[file], stream);
    fputs(",\"lines\":[", stream);
    FILE *source = report_open_source(xray->files[file]);
    if (source != NULL) {
        print_lines(source, marks, left, stream);
        fclose(source);
    }
    fputs("]}", stream);
}

void xray_print_sources(const struct xray *xray, FILE *stream) {
    unsigned char *marks = malloc(MOST_LINES + AROUND + 1);
    size_t left = MOST_BYTES;
    fputc('[', stream);
    for (size_t n = 0; n < xray->file_count && marks != NULL; n++) {
        fputs(n > 0 ? ",\n" : "", stream);
        print_file(xray, n, marks, &left, stream);
    }
    fputc(']', stream);
    free(marks);
}
