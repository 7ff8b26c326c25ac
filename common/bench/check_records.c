/*
 * Says whether every line of FILE is a whole bench record: one JSON object with
 * each field of DESIGN's "Numbers" in its type. Prints how many there are.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/terminal.h"

enum { NUMBER = 1, STRING = 2, ABSENT = 4, BOOL = 8 }; /* ABSENT: may be null */

struct field {
    const char *parent; /* object that holds it; NULL: the record itself */
    const char *name;
    int types;
};

static const struct field fields[] = {
    {NULL, "schema", NUMBER},
    {NULL, "time", STRING},
    {NULL, "commit", STRING | ABSENT},
    {NULL, "lab", STRING},
    {NULL, "subject", STRING},
    {NULL, "stage", STRING},
    {NULL, "op", STRING},
    {NULL, "shape", STRING},
    {NULL, "dtype", STRING},
    {"device", "kind", STRING},
    {"device", "name", STRING},
    {"device", "modelled", BOOL},
    {"device", "mhz", NUMBER | ABSENT},
    {"device", "threads", NUMBER},
    {"ms", "min", NUMBER},
    {"ms", "median", NUMBER},
    {"ms", "max", NUMBER},
    {"ms", "runs", NUMBER},
    {NULL, "bytes", NUMBER | ABSENT},
    {NULL, "flops", NUMBER | ABSENT},
    {NULL, "gb_per_s", NUMBER | ABSENT},
    {NULL, "peer", STRING | ABSENT},
    {NULL, "gflop_per_s", NUMBER | ABSENT},
    {NULL, "figure", STRING | ABSENT},
    {NULL, "peer_ratio", NUMBER | ABSENT},
    {NULL, "figure_value", NUMBER | ABSENT},
};

static bool has_type(const cJSON *value, int types) {
    return ((types & NUMBER) != 0 && cJSON_IsNumber(value)) ||
           ((types & STRING) != 0 && cJSON_IsString(value) && value->valuestring[0] != '\0') ||
           ((types & BOOL) != 0 && cJSON_IsBool(value)) ||
           ((types & ABSENT) != 0 && cJSON_IsNull(value));
}

static double number(const cJSON *object, const char *name) {
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* What a GPU's record has beside the fields of all. */
static bool gpu_is_whole(const cJSON *record) {
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(record, "device");
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, "kind"));
    if (kind == NULL || strcmp(kind, "gpu") != 0) {
        return true;
    }
    bool modelled = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(device, "modelled"));
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, "name"));
    static const struct {
        const char *name;
        int types;
    } more[] = {{"measured_mhz", NUMBER | ABSENT},
                {"memory_mhz", NUMBER | ABSENT},
                {"driver", STRING | ABSENT},
                {"runtime", STRING}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (!has_type(cJSON_GetObjectItemCaseSensitive(device, more[i].name), more[i].types)) {
            return false;
        }
    }
    return name != NULL && modelled == (strncmp(name, "simt:", 5) == 0);
}

/* Checks one line, which it cuts off at its end. */
static enum status check_line(const char *path, int line, char *text, struct error *error) {
    const char *end = NULL;
    cJSON *record = cJSON_ParseWithOpts(text, &end, true);
    enum status status = STATUS_OK;
    if (!cJSON_IsObject(record)) {
        status =
            error_set(error, STATUS_BAD_FORMAT, "%s:%d: not one JSON object: %s", path, line, text);
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields && status == STATUS_OK; i++) {
        const cJSON *parent = record;
        if (fields[i].parent != NULL) {
            parent = cJSON_GetObjectItemCaseSensitive(record, fields[i].parent);
        }
        if (!has_type(cJSON_GetObjectItemCaseSensitive(parent, fields[i].name), fields[i].types)) {
            status = error_set(error, STATUS_BAD_FORMAT,
                               "%s:%d: field '%s' is missing or of the wrong type", path, line,
                               fields[i].name);
        }
    }
    if (status == STATUS_OK && !gpu_is_whole(record)) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s:%d: the GPU is not whole", path, line);
    }
    const cJSON *ms = cJSON_GetObjectItemCaseSensitive(record, "ms");
    if (status == STATUS_OK &&
        !(0.0 < number(ms, "min") && number(ms, "runs") >= 1.0 &&
          number(ms, "min") <= number(ms, "median") && number(ms, "median") <= number(ms, "max"))) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s:%d: times out of order", path, line);
    }
    cJSON_Delete(record);
    return status;
}

int main(int argc, char **argv) {
    struct error error = {0};
    char *text = NULL;
    size_t size = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: check_records FILE\n");
        return 1;
    }
    enum status status = file_read(argv[1], 1 << 24, &text, &size, &error);
    int lines = 0;
    char *line = text;
    while (status == STATUS_OK && line < text + size) {
        char *end = strchr(line, '\n');
        if (end == NULL) {
            status = error_set(&error, STATUS_TRUNCATED, "%s: the last line has no end", argv[1]);
            break;
        }
        *end = '\0';
        lines++;
        status = check_line(argv[1], lines, line, &error);
        line = end + 1;
    }
    free(text);
    if (status == STATUS_OK) {
        printf("%d\n", lines);
    }
    return status == STATUS_OK ? 0 : report_failure("check_records", &error, status);
}
