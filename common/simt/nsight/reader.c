#include "common/simt/nsight/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums and products of such numbers are finite. */
static const double MOST = 1e18;

char *reader_line(struct reader *r) {
    if (r->at >= r->end) {
        return NULL;
    }
    char *line = r->at, *stop = memchr(line, '\n', (size_t)(r->end - line));
    r->at = stop != NULL ? stop + 1 : r->end;
    stop = stop != NULL ? stop : r->end;
    if (stop > line && stop[-1] == '\r') {
        stop--;
    }
    *stop = '\0'; /* the caller's text has room behind its end */
    r->line++;
    return line;
}

enum status reader_wrong(const struct reader *r, struct error *error, const char *what) {
    return error_set(error, STATUS_BAD_FORMAT, "%s:%zu: %s", r->name, r->line, what);
}

size_t reader_split(struct reader *r, char *line) {
    size_t length = strlen(line), count = 0;
    if (length > 0 && line[length - 1] == ',') {
        line[--length] = '\0';
    }
    if (length < 2 || line[0] != '"' || line[length - 1] != '"') {
        return 0;
    }
    line[length - 1] = '\0';
    for (char *at = line + 1; at != NULL;) {
        char *comma = strstr(at, "\",\"");
        if (count == READER_COLUMNS) {
            return 0;
        }
        r->fields[count++] = at;
        at = NULL;
        if (comma != NULL) {
            *comma = '\0';
            at = comma + strlen("\",\"");
        }
    }
    return count;
}

double reader_number(char *text) {
    char *to = text, *end;
    if (text[0] < '0' || text[0] > '9') {
        return NAN;
    }
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != ',') {
            *to++ = *from;
        }
    }
    *to = '\0';
    double value = strtod(text, &end);
    return *end == '\0' && value <= MOST ? value : NAN;
}

static bool begins(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

static enum status read_lines(struct reader *r, struct error *error) {
    char *line;
    while ((line = reader_line(r)) != NULL) {
        if (line[0] == '\0' || begins(line, "==")) {
            continue; /* between pages, and what ncu says of its own work */
        }
        if (begins(line, "\"ID\",\"")) {
            TRY(reader_raw(r, line, error));
        } else if (r->raw_columns == 0) {
            return reader_wrong(r, error,
                                "Nsight Compute's raw page must come first: ncu --import "
                                "report.ncu-rep --page raw --csv --print-units base");
        } else {
            TRY(reader_source(r, line, error));
        }
    }
    return STATUS_OK;
}

enum status nsight_read(struct nsight_report *report, char *text, size_t size, const char *name,
                        struct error *error) {
    struct reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", name);
    }
    *r = (struct reader){.report = report, .name = name, .at = text, .end = text + size};
    enum status status = memchr(text, '\0', size) == NULL
                             ? read_lines(r, error)
                             : error_set(error, STATUS_BAD_FORMAT, "%s: not a text", name);
    if (status == STATUS_OK && report->launch_count == 0) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "%s: no launch: it should be what ncu prints with --csv, of its raw "
                           "page and of its source page",
                           name);
    }
    free(r);
    return status;
}

void nsight_free(struct nsight_report *report) {
    for (size_t i = 0; i < report->launch_count; i++) {
        struct nsight_launch *launch = &report->launches[i];
        for (size_t n = 0; n < launch->line_count; n++) {
            free(launch->lines[n].text);
        }
        free(launch->lines);
        free(launch->kernel);
    }
    for (size_t i = 0; i < report->file_count; i++) {
        free(report->files[i]);
    }
    free(report->files);
    free(report->launches);
    free(report->gpu);
    *report = (struct nsight_report){0};
}
