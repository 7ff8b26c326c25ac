/* JSON by hand: the data is printed once, and is large. */
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/simt/page/page.h"

void page_print_fields(const struct page_field *fields, size_t count, FILE *stream) {
    fputc('{', stream);
    for (size_t n = 0; n < count; n++) {
        bool whole = fields[n].value == floor(fields[n].value) && fabs(fields[n].value) < 0x1p53;
        fprintf(stream, "%s\"%s\":", n > 0 ? "," : "", fields[n].key);
        fprintf(stream, whole ? "%.0f" : "%.6g", fields[n].value);
    }
    fputc('}', stream);
}

void page_print_numbers(const double *numbers, size_t count, FILE *stream) {
    fputc('[', stream);
    for (size_t n = 0; n < count; n++) {
        fprintf(stream, "%s%.5g", n > 0 ? "," : "", numbers[n]);
    }
    fputc(']', stream);
}

void page_print_quoted(const char *text, FILE *stream) {
    fputc('"', stream);
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == '<') {
            fprintf(stream, "\\u%04x", (unsigned)*c);
            continue;
        }
        if (*c == '"' || *c == '\\') {
            fputc('\\', stream);
        }
        fputc(*c, stream);
    }
    fputc('"', stream);
}

void page_print_names(const char *const (*names)[2], size_t count, FILE *stream) {
    fputc('[', stream);
    for (size_t n = 0; n < count; n++) {
        fputs(n > 0 ? ",[" : "[", stream);
        page_print_quoted(names[n][0], stream);
        fputc(',', stream);
        page_print_quoted(names[n][1], stream);
        fputc(']', stream);
    }
    fputc(']', stream);
}

FILE *page_open_source(const char *file) {
    FILE *source = fopen(file, "r");
    const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    char path[PATH_MAX];
    if (source == NULL && workspace != NULL && file[0] != '/' &&
        snprintf(path, sizeof path, "%s/%s", workspace, file) < (int)sizeof path) {
        source = fopen(path, "r");
    }
    return source;
}
