/* Texts of the sources that recorded lines are in. */
#include <stdlib.h>

#include "common/simt/page/page.h"
#include "common/simt/runtime/xray/xray_page.h"

/** Marks the lines of a file that have counts. */
static void mark_lines(const struct xray *xray, size_t file, struct page_marks *marks) {
    for (const struct xray_launch *l = xray->launches; l != NULL; l = l->next) {
        for (size_t n = 0; n < l->line_count; n++) {
            uint32_t line = l->lines[n].line;
            if (l->lines[n].file == file && line < PAGE_MOST_LINES) {
                marks->line[line] = 1;
            }
        }
    }
}

static void print_file(const struct xray *xray, size_t file, size_t *left, FILE *stream) {
    struct page_marks *marks = calloc(1, sizeof *marks);
    FILE *source = marks != NULL ? page_open_source(xray->files[file]) : NULL;
    if (marks != NULL) {
        mark_lines(xray, file, marks);
    }
    page_print_source(xray->files[file], source, marks, left, stream);
    if (source != NULL) {
        fclose(source);
    }
    free(marks);
}

void xray_print_sources(const struct xray *xray, FILE *stream) {
    size_t left = PAGE_MOST_BYTES;
    fputc('[', stream);
    for (size_t n = 0; n < xray->file_count; n++) {
        fputs(n > 0 ? ",\n" : "", stream);
        print_file(xray, n, &left, stream);
    }
    fputc(']', stream);
}
