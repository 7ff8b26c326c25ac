/* Tensors of the bench: the same values on the host, in double, and on the device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/compare.h"
#include "labs/11_training/bench/parts.h"

static enum status no_memory(struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
}

enum status bench_tensor_create(struct bench_tensor *t, enum nn_dtype dtype, size_t count,
                                size_t most, struct error *error) {
    *t = (struct bench_tensor){.dtype = dtype, .count = count};
    t->period = most > 0 && most < count ? most : count;
    t->values = calloc(t->period + 1, sizeof *t->values);
    if (t->values == NULL) {
        return no_memory(error);
    }
    return device_alloc(&t->device, count * nn_dtype_bytes(dtype), error);
}

void bench_tensor_free(struct bench_tensor *t) {
    free(t->values);
    device_free(t->device);
}

enum status bench_tensor_draw(struct bench_tensor *t, struct rng *rng, double mean,
                              double deviation, struct error *error) {
    for (size_t i = 0; i < t->period; i++) {
        t->values[i] = mean + deviation * (double)rng_normal(rng);
    }
    return bench_tensor_put(t, error);
}

enum status bench_tensor_put(struct bench_tensor *t, struct error *error) {
    size_t size = nn_dtype_bytes(t->dtype);
    float *values = malloc(t->period * sizeof *values + 1);
    char *stored = malloc(t->period * size + 1);
    enum status status = values != NULL && stored != NULL ? STATUS_OK : no_memory(error);
    for (size_t i = 0; i < t->period && status == STATUS_OK; i++) {
        values[i] = (float)t->values[i];
    }
    if (status == STATUS_OK) {
        nn_dtype_store(stored, values, t->period, t->dtype);
        nn_dtype_load(values, stored, t->period, t->dtype);
    }
    for (size_t i = 0; i < t->period && status == STATUS_OK; i++) {
        t->values[i] = (double)values[i];
    }
    for (size_t i = 0; i < t->count && status == STATUS_OK; i += t->period) {
        size_t count = t->count - i < t->period ? t->count - i : t->period;
        status = device_write((char *)t->device + i * size, stored, count * size, NULL, error);
    }
    free(values);
    free(stored);
    return status;
}

enum status bench_tensor_poison(struct bench_tensor *t, struct error *error) {
    return device_set(t->device, 0xff, t->count * nn_dtype_bytes(t->dtype), NULL, error);
}

/* Rows of elements, close together. @param stored room for as many */
static enum status read_rows(const struct bench_tensor *t, float *got, char *stored, size_t first,
                             size_t rows, size_t columns, size_t stride, struct error *error) {
    size_t size = nn_dtype_bytes(t->dtype);
    size_t calls = stride == columns ? 1 : rows, elements = rows * columns / calls;
    for (size_t i = 0; i < calls; i++) {
        const char *from = (const char *)t->device + (first + i * stride) * size;
        TRY(device_read(stored + i * elements * size, from, elements * size, NULL, error));
    }
    nn_dtype_load(got, stored, rows * columns, t->dtype);
    return STATUS_OK;
}

enum status bench_tensor_check(const struct bench_tensor *t, const char *what, const double *want,
                               size_t first, size_t rows, size_t columns, size_t stride,
                               double error_of_largest, char *wrong, size_t size,
                               struct error *error) {
    size_t count = rows * columns;
    double largest = 0.0;
    float *got = malloc(count * sizeof *got + 1);
    char *stored = malloc(count * sizeof *got + 1);
    enum status status = got != NULL && stored != NULL ? STATUS_OK : no_memory(error);
    if (status == STATUS_OK && count > 0) {
        status = read_rows(t, got, stored, first, rows, columns, stride, error);
    }
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
    }
    if (status == STATUS_OK) {
        struct tolerance tolerance = {error_of_largest * largest, nn_dtype_rounding(t->dtype),
                                      2.0 * error_of_largest};
        struct comparison result = compare_f32(got, want, count, tolerance);
        int length = result.pass ? 0 : snprintf(wrong, size, "%s: ", what);
        if (!result.pass) {
            comparison_describe(&result, columns, wrong + length, size - (size_t)length);
        }
    }
    free(got);
    free(stored);
    return status;
}
