#include "common/simt/page/page.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

/* page.html, page.css and page.js as lists of lines: PAGE_HTML, PAGE_CSS, PAGE_JS. */
#include "common/simt/page/page_text.h"

static void print_lines(const char *const *lines, size_t count, FILE *stream) {
    for (size_t n = 0; n < count; n++) {
        fputs(lines[n], stream);
    }
}

#define PRINT_LINES(lines, stream) print_lines(lines, sizeof(lines) / sizeof *(lines), stream)

void page_print(page_data *data, const void *argument, FILE *stream) {
    for (size_t n = 0; n < sizeof PAGE_HTML / sizeof *PAGE_HTML; n++) {
        if (strcmp(PAGE_HTML[n], "@CSS@\n") == 0) {
            PRINT_LINES(PAGE_CSS, stream);
        } else if (strcmp(PAGE_HTML[n], "@JS@\n") == 0) {
            PRINT_LINES(PAGE_JS, stream);
        } else if (strcmp(PAGE_HTML[n], "@DATA@\n") == 0) {
            data(argument, stream);
        } else {
            fputs(PAGE_HTML[n], stream);
        }
    }
}

enum status page_write(page_data *data, const void *argument, const char *path,
                       struct error *error) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for the page", path);
    }
    page_print(data, argument, stream);
    enum status status = fclose(stream) == 0 ? file_write(path, text, size, error)
                                             : error_set(error, STATUS_OUT_OF_MEMORY,
                                                         "%s: no memory for the page", path);
    free(text);
    return status;
}
