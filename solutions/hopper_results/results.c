#include "solutions/hopper_results/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"

static enum nn_dtype dtype_named(const char *name, bool *known) {
    static const enum nn_dtype all[] = {NN_F32, NN_F16, NN_BF16};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
        if (strcmp(nn_dtype_name(all[n]), name) == 0) {
            return all[n];
        }
    }
    *known = false;
    return NN_F32;
}

/* "name<TAB>type<TAB>count<TAB>checksum<TAB>largest<TAB>sample sample ..." */
static bool read_line(char *line, struct result *r) {
    char *fields[6], *rest = line;
    bool known = true;
    for (size_t n = 0; n < 6; n++) {
        fields[n] = rest;
        rest += strcspn(rest, "\t\n");
        if (*rest == '\0') {
            return false;
        }
        *rest++ = '\0';
    }
    if (strlen(fields[0]) >= sizeof r->name) {
        return false;
    }
    memcpy(r->name, fields[0], strlen(fields[0]) + 1);
    r->dtype = dtype_named(fields[1], &known);
    r->count = strtoull(fields[2], NULL, 10);
    r->checksum = strtoull(fields[3], NULL, 16);
    r->largest = strtof(fields[4], NULL);
    for (size_t n = 0; n < RESULTS_SAMPLES; n++) {
        char *end;
        r->samples[n] = strtof(fields[5], &end);
        known = known && end != fields[5];
        fields[5] = end;
    }
    return known;
}

enum status results_read(struct results *results, const char *path, struct error *error) {
    char line[1024];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return error_set(error, STATUS_IO, "cannot read %s", path);
    }
    results->recorded = calloc(RESULTS_MOST, sizeof *results->recorded);
    enum status status = STATUS_OK;
    while (results->recorded != NULL && status == STATUS_OK &&
           fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#' && (results->recorded_count == RESULTS_MOST ||
                               !read_line(line, &results->recorded[results->recorded_count++]))) {
            status = error_set(error, STATUS_BAD_FORMAT, "%s: line %zu is no result", path,
                               results->recorded_count);
        }
    }
    fclose(file);
    return results->recorded != NULL ? status
                                     : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

bool results_want(const struct results *results, const char *name) {
    return strncmp(name, results->only, strlen(results->only)) == 0;
}

static struct result describe(const char *name, enum nn_dtype dtype, const void *values,
                              size_t count) {
    const unsigned char *bytes = values;
    size_t each = nn_dtype_bytes(dtype);
    struct result r = {.dtype = dtype, .count = count, .checksum = 0xcbf29ce484222325};
    snprintf(r.name, sizeof r.name, "%s", name);
    for (size_t n = 0; n < count * each; n++) {
        r.checksum = (r.checksum ^ bytes[n]) * 0x100000001b3;
    }
    for (size_t n = 0; n < count; n++) {
        float x;
        nn_dtype_load(&x, bytes + n * each, 1, dtype);
        r.largest = fabsf(x) > r.largest ? fabsf(x) : r.largest;
    }
    for (size_t n = 0; n < RESULTS_SAMPLES && count > 0; n++) {
        size_t at = n * (count - 1) / (RESULTS_SAMPLES - 1);
        nn_dtype_load(&r.samples[n], bytes + at * each, 1, dtype);
    }
    return r;
}

static void print(const struct result *r) {
    printf("%s\t%s\t%zu\t%016llx\t%a\t", r->name, nn_dtype_name(r->dtype), r->count, r->checksum,
           (double)r->largest);
    for (size_t n = 0; n < RESULTS_SAMPLES; n++) {
        printf("%s%a", n > 0 ? " " : "", (double)r->samples[n]);
    }
    putchar('\n');
}

static struct result *find(const struct results *results, const char *name) {
    for (size_t n = 0; n < results->recorded_count; n++) {
        if (strcmp(results->recorded[n].name, name) == 0) {
            return &results->recorded[n];
        }
    }
    return NULL;
}

/* The largest difference, in roundings of the largest magnitude; infinite for other shapes. */
static double distance(const struct result *a, const struct result *b) {
    double unit = nn_dtype_rounding(a->dtype) * (double)a->largest, most = 0.0;
    if (a->dtype != b->dtype || a->count != b->count) {
        return INFINITY;
    }
    for (size_t n = 0; n < RESULTS_SAMPLES; n++) {
        double away = fabs((double)a->samples[n] - (double)b->samples[n]);
        most = away <= most ? most : away; /* NaN stays */
    }
    double away = fabs((double)a->largest - (double)b->largest);
    return (away > most ? away : most) / unit;
}

void results_take(struct results *results, const char *name, enum nn_dtype dtype,
                  const void *values, size_t count, double bound) {
    const struct result got = describe(name, dtype, values, count);
    if (results->recorded == NULL) {
        print(&got);
        return;
    }
    struct result *want = find(results, name);
    if (want != NULL) {
        want->met = true;
    }
    if (want != NULL && want->checksum == got.checksum && want->count == count) {
        results->equal++;
        return;
    }
    double away = want == NULL ? INFINITY : distance(want, &got);
    bool is_near = bound > 0.0 && away <= bound;
    results->near += is_near;
    results->wrong += !is_near;
    results->furthest = is_near && away > results->furthest ? away : results->furthest;
    printf("%s\t%s\t%.3g roundings of at most %g\n", is_near ? "near" : "WRONG", name, away, bound);
}

size_t results_left(const struct results *results) {
    size_t left = 0;
    for (size_t n = 0; n < results->recorded_count; n++) {
        const struct result *r = &results->recorded[n];
        if (!r->met && results_want(results, r->name)) {
            printf("LEFT OUT\t%s\n", r->name);
            left++;
        }
    }
    return left;
}

enum status results_take_device(struct results *results, const char *name, enum nn_dtype dtype,
                                const void *d_values, size_t count, double bound,
                                struct error *error) {
    size_t bytes = count * nn_dtype_bytes(dtype);
    void *values = malloc(bytes + 1);
    enum status status = values == NULL
                             ? error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host")
                             : device_read(values, d_values, bytes, NULL, error);
    if (status == STATUS_OK) {
        results_take(results, name, dtype, values, count, bound);
    }
    free(values);
    return status;
}
