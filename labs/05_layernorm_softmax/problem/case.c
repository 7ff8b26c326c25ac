/* A problem of lab 05 in device memory. */
#include "labs/05_layernorm_softmax/problem/case.h"

#include <stdio.h>
#include <stdlib.h>

enum status rows_buffers_create(struct rows_buffers *b, const struct rows_data *data,
                                struct rows_variant v, bool guarded, struct error *error) {
    const size_t size = nn_dtype_bytes(data->type), C = data->C;
    const size_t all = data->rows * C * size, in = v.skew_in * size, out = v.skew_out * size;
    *b = (struct rows_buffers){.variant = v, .bytes = malloc((data->rows + 1) * C * size + 1)};
    if (b->bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    TRY(device_buffer_create_bytes(&b->in, all, guarded, in, error));
    TRY(device_buffer_create_bytes(&b->out, all, guarded, out, error));
    TRY(device_buffer_create_bytes(&b->weight, C * size, guarded, in, error));
    TRY(device_buffer_create_bytes(&b->bias, C * size, guarded, in, error));
    return data->mask != NULL
               ? device_buffer_create_bytes(&b->mask, data->masks * C, guarded, v.skew_in, error)
               : STATUS_OK;
}

void rows_buffers_free(struct rows_buffers *b) {
    device_buffer_free(&b->in);
    device_buffer_free(&b->out);
    device_buffer_free(&b->weight);
    device_buffer_free(&b->bias);
    device_buffer_free(&b->mask);
    free(b->bytes);
    *b = (struct rows_buffers){0};
}

/* Values as the type stores them; NULL: NaN. */
static enum status put(struct rows_buffers *b, struct device_buffer *buffer, const float *values,
                       size_t count, enum nn_dtype type, struct error *error) {
    if (values != NULL) {
        nn_dtype_store(b->bytes, values, count, type);
    }
    return device_buffer_put(buffer, values != NULL ? b->bytes : NULL, error);
}

enum status rows_buffers_put(struct rows_buffers *b, const struct rows_data *data,
                             struct error *error) {
    const bool in_place = b->variant.in_place;
    const size_t all = data->rows * data->C;
    TRY(put(b, &b->in, in_place ? NULL : data->in, all, data->type, error));
    TRY(put(b, &b->out, in_place ? data->in : NULL, all, data->type, error));
    TRY(put(b, &b->weight, data->weight, data->C, data->type, error));
    TRY(put(b, &b->bias, data->bias, data->C, data->type, error));
    return data->mask != NULL ? device_buffer_put(&b->mask, data->mask, error) : STATUS_OK;
}

struct rows_problem rows_buffers_problem(const struct rows_buffers *b,
                                         const struct rows_data *data) {
    return (struct rows_problem){
        .op = data->op,
        .type = data->type,
        .rows = data->rows,
        .C = data->C,
        .in = b->variant.in_place ? b->out.data : b->in.data,
        .out = b->out.data,
        .weight = data->op != ROWS_SOFTMAX ? b->weight.data : NULL,
        .bias = data->op == ROWS_LAYERNORM ? b->bias.data : NULL,
        .eps = data->eps,
        .mask = (const uint8_t *)b->mask.data,
        .rows_a_mask = data->rows_a_mask,
    };
}

enum status rows_buffers_get(struct rows_buffers *b, bool *outside, const char **changed,
                             struct error *error) {
    static const char *const names[] = {"in", "weight", "bias", "mask"};
    const struct device_buffer *inputs[] = {&b->in, &b->weight, &b->bias, &b->mask};
    bool intact, differs;
    TRY(device_buffer_get(&b->out, b->bytes, &intact, &differs, error));
    *outside = !intact;
    *changed = NULL;
    for (int i = 0; i < 4; i++) {
        if (inputs[i]->block == NULL) {
            continue; /* no mask, or no rows */
        }
        TRY(device_buffer_get(inputs[i], NULL, &intact, &differs, error));
        *outside = *outside || !intact;
        *changed = *changed == NULL && differs ? names[i] : *changed;
    }
    return STATUS_OK;
}

/* Each row has a tolerance of its own. */
static bool check_row(const struct rows_buffers *b, const struct rows_data *data, size_t row,
                      double *want, float *got, char *text, size_t size) {
    const size_t first = row * data->C * nn_dtype_bytes(data->type);
    rows_expect(data, row, want, got);
    nn_dtype_load(got, (const char *)b->bytes + first, data->C, data->type);
    struct comparison result = compare_f32(got, want, data->C, rows_tolerance(data, row));
    size_t used = (size_t)snprintf(text, size, "row %zu: ", row);
    comparison_describe(&result, data->C, text + used, size - used);
    return result.pass;
}

bool rows_buffers_check(const struct rows_buffers *b, const struct rows_data *data, size_t step,
                        char *text, size_t size) {
    double *want = malloc(data->C * sizeof *want);
    float *got = malloc(data->C * sizeof *got);
    bool good = want != NULL && got != NULL;
    snprintf(text, size, "%s", good ? "" : "out of memory on the host");
    for (size_t row = 0; row < data->rows && good; row += step) {
        good = check_row(b, data, row, want, got, text, size);
    }
    free(want);
    free(got);
    return good;
}
