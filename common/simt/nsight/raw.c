/* The raw page: names of metrics, their units, and a row for each launch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/simt/nsight/reader.h"

/** What a metric counts decides which units it may have. */
enum kind { KIND_COUNT, KIND_BYTES, KIND_SECONDS, KIND_HERTZ, KIND_RATE };

static const struct {
    const char *metric;
    enum kind kind;
} METRICS[NSIGHT_METRIC_COUNT] = {
#define NSIGHT_ROW(name, metric, kind) [NSIGHT_##name] = {metric, KIND_##kind},
    NSIGHT_METRICS(NSIGHT_ROW)
#undef NSIGHT_ROW
};

/** The factor to bytes, seconds or hertz; 0: not a unit of this kind. `ncu` scales by thousands
 *  unless it is told not to. */
static double scale_of(const char *unit, enum kind kind) {
    static const struct {
        const char *unit;
        enum kind kind;
        double scale;
    } units[] = {
        {"byte", KIND_BYTES, 1},      {"Kbyte", KIND_BYTES, 1e3},   {"Mbyte", KIND_BYTES, 1e6},
        {"Gbyte", KIND_BYTES, 1e9},   {"Tbyte", KIND_BYTES, 1e12},  {"ns", KIND_SECONDS, 1e-9},
        {"us", KIND_SECONDS, 1e-6},   {"ms", KIND_SECONDS, 1e-3},   {"s", KIND_SECONDS, 1},
        {"hz", KIND_HERTZ, 1},        {"Khz", KIND_HERTZ, 1e3},     {"Mhz", KIND_HERTZ, 1e6},
        {"Ghz", KIND_HERTZ, 1e9},     {"inst", KIND_COUNT, 1},      {"sector", KIND_COUNT, 1},
        {"block", KIND_COUNT, 1},     {"warp", KIND_COUNT, 1},      {"register", KIND_COUNT, 1},
        {"SM", KIND_COUNT, 1},        {"", KIND_COUNT, 1},          {"inst", KIND_RATE, 1},
        {"Kinst", KIND_RATE, 1e3},    {"Kinst", KIND_COUNT, 1e3},   {"Minst", KIND_COUNT, 1e6},
        {"Ginst", KIND_COUNT, 1e9},   {"", KIND_RATE, 1},           {"thread", KIND_COUNT, 1},
        {"Ksector", KIND_COUNT, 1e3}, {"Msector", KIND_COUNT, 1e6}, {"Gsector", KIND_COUNT, 1e9},
    };
    size_t length = strcspn(unit, "/"); /* "byte/block", "register/thread", "inst/cycle" */
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].kind == kind && strlen(units[i].unit) == length &&
            memcmp(units[i].unit, unit, length) == 0) {
            return units[i].scale;
        }
    }
    return 0;
}

static int metric_of(const char *name) {
    for (int m = 0; m < NSIGHT_METRIC_COUNT; m++) {
        if (strcmp(METRICS[m].metric, name) == 0) {
            return m;
        }
    }
    return -1;
}

static size_t find(const struct reader *r, const char *name) {
    size_t at = 0;
    while (at < r->raw_columns && strcmp(r->fields[at], name) != 0) {
        at++;
    }
    return at;
}

static enum status read_header(struct reader *r, char *header, struct error *error) {
    r->raw_columns = reader_split(r, header);
    r->kernel = find(r, "Kernel Name");
    r->block = find(r, "Block Size");
    r->grid = find(r, "Grid Size");
    r->gpu = find(r, "device__attribute_display_name");
    if (r->raw_columns == 0) {
        return reader_wrong(r, error, "not the raw page's names of columns");
    }
    if (r->kernel == r->raw_columns || r->block == r->raw_columns || r->grid == r->raw_columns) {
        return reader_wrong(r, error, "no column \"Kernel Name\", \"Block Size\" or \"Grid Size\"");
    }
    bool timed = false;
    for (size_t i = 0; i < r->raw_columns; i++) {
        r->metric[i] = metric_of(r->fields[i]);
        timed = timed || r->metric[i] == NSIGHT_TIME;
    }
    return timed ? STATUS_OK
                 : reader_wrong(r, error,
                                "no column gpu__time_duration.sum: profile with the metrics that "
                                "common/simt/README.md names");
}

static enum status read_units(struct reader *r, struct error *error) {
    char *line = reader_line(r), text[300];
    if (line == NULL || reader_split(r, line) != r->raw_columns) {
        return reader_wrong(r, error, "the raw page's second line must have each column's unit");
    }
    for (size_t i = 0; i < r->raw_columns; i++) {
        int metric = r->metric[i];
        r->scale[i] = metric < 0 ? 1 : scale_of(r->fields[i], METRICS[metric].kind);
        if (r->scale[i] == 0) {
            snprintf(text, sizeof text, "%s has the unknown unit '%.40s'", METRICS[metric].metric,
                     r->fields[i]);
            return reader_wrong(r, error, text);
        }
    }
    return STATUS_OK;
}

/* "(16, 16, 1)" */
static bool read_shape(const char *text, uint32_t shape[3]) {
    int end = 0;
    bool good = sscanf(text, "(%9u, %9u, %9u)%n", &shape[0], &shape[1], &shape[2], &end) == 3 &&
                end > 0 && text[end] == '\0';
    return good && shape[0] > 0 && shape[1] > 0 && shape[2] > 0;
}

static enum status fill_launch(struct reader *r, struct nsight_launch *launch,
                               struct error *error) {
    launch->kernel = strdup(r->fields[r->kernel]);
    if (launch->kernel == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", r->name);
    }
    if (!read_shape(r->fields[r->block], launch->block) ||
        !read_shape(r->fields[r->grid], launch->grid)) {
        return reader_wrong(r, error, "block and grid must be three sizes, like (16, 16, 1)");
    }
    for (size_t m = 0; m < NSIGHT_METRIC_COUNT; m++) {
        launch->metrics[m] = NAN;
    }
    for (size_t i = 0; i < r->raw_columns; i++) {
        if (r->metric[i] >= 0) {
            launch->metrics[r->metric[i]] = r->scale[i] * reader_number(r->fields[i]);
        }
    }
    return launch->metrics[NSIGHT_TIME] > 0
               ? STATUS_OK
               : reader_wrong(r, error, "gpu__time_duration.sum is no time");
}

static enum status read_launch(struct reader *r, struct error *error) {
    struct nsight_report *report = r->report;
    if (report->launch_count == NSIGHT_LAUNCHES) {
        report->dropped++;
        return STATUS_OK;
    }
    if (report->gpu == NULL) {
        report->gpu = strdup(r->gpu < r->raw_columns ? r->fields[r->gpu] : "a GPU");
    }
    if (report->gpu == NULL || !array_grow(&report->launches, &report->launch_capacity,
                                           report->launch_count + 1, sizeof *report->launches)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", r->name);
    }
    struct nsight_launch *launch = &report->launches[report->launch_count++];
    *launch = (struct nsight_launch){0};
    return fill_launch(r, launch, error);
}

enum status reader_raw(struct reader *r, char *header, struct error *error) {
    TRY(read_header(r, header, error));
    TRY(read_units(r, error));
    r->first = r->report->launch_count;
    r->launch = r->first;
    r->begun = false;
    r->source_columns = 0;
    /* A row begins with the launch's number. */
    while (r->at + 1 < r->end && r->at[0] == '"' && r->at[1] >= '0' && r->at[1] <= '9') {
        if (reader_split(r, reader_line(r)) != r->raw_columns) {
            return reader_wrong(r, error, "the row has not as many columns as the raw page");
        }
        TRY(read_launch(r, error));
    }
    return STATUS_OK;
}
