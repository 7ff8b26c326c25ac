#include "common/simt/runtime/xray/xray_page.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

/* page.html, page.css and page.js as lists of lines: PAGE_HTML, PAGE_CSS, PAGE_JS. */
#include "common/simt/runtime/xray/page_text.h"

static void print_lines(const char *const *lines, size_t count, FILE *stream) {
    for (size_t n = 0; n < count; n++) {
        fputs(lines[n], stream);
    }
}

#define PRINT_LINES(lines, stream) print_lines(lines, sizeof(lines) / sizeof *(lines), stream)

void xray_print_page(const struct xray *xray, const struct simt_gpu *gpu, FILE *stream) {
    for (size_t n = 0; n < sizeof PAGE_HTML / sizeof *PAGE_HTML; n++) {
        if (strcmp(PAGE_HTML[n], "@CSS@\n") == 0) {
            PRINT_LINES(PAGE_CSS, stream);
        } else if (strcmp(PAGE_HTML[n], "@JS@\n") == 0) {
            PRINT_LINES(PAGE_JS, stream);
        } else if (strcmp(PAGE_HTML[n], "@DATA@\n") == 0) {
            xray_print_json(xray, gpu, stream);
        } else {
            fputs(PAGE_HTML[n], stream);
        }
    }
}

enum status xray_write(const struct xray *xray, const struct simt_gpu *gpu, const char *path,
                       struct error *error) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for the page", path);
    }
    xray_print_page(xray, gpu, stream);
    enum status status = fclose(stream) == 0 ? file_write(path, text, size, error)
                                             : error_set(error, STATUS_OUT_OF_MEMORY,
                                                         "%s: no memory for the page", path);
    free(text);
    return status;
}
