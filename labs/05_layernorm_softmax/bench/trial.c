/* One shape of the bench on the GPU. */
#include "labs/05_layernorm_softmax/bench/trial.h"

#include <stdio.h>
#include <stdlib.h>

/* Different rows, at most; and rows that are checked. */
enum { MOST_DIFFERENT = 64, CHECKED = 16 };

static size_t row_bytes(const struct rows_trial *t) {
    return t->data.C * nn_dtype_bytes(t->data.type);
}

/* Copies the different rows again and again, each time twice as many. */
static enum status repeat_rows(const struct rows_trial *t, struct error *error) {
    const size_t bytes = row_bytes(t);
    for (size_t done = t->data.rows; done < t->rows;) {
        size_t more = done < t->rows - done ? done : t->rows - done;
        TRY(device_copy((char *)t->in + done * bytes, t->in, more * bytes, NULL, error));
        done += more;
    }
    return STATUS_OK;
}

/* Encodes on the host and copies to the device. */
static enum status write_values(const struct rows_trial *t, void *d, const float *values,
                                size_t count, struct error *error) {
    size_t size = nn_dtype_bytes(t->data.type);
    void *bytes = malloc(count * size);
    if (bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    nn_dtype_store(bytes, values, count, t->data.type);
    enum status status = device_write(d, bytes, count * size, NULL, error);
    free(bytes);
    return status;
}

static enum status upload(struct rows_trial *t, struct error *error) {
    const size_t C = t->data.C, row = row_bytes(t);
    const size_t bytes[] = {t->rows * row, t->rows * row, row, row, ROWS_WORKSPACE_BYTES};
    void **memory[] = {&t->in, &t->out, &t->weight, &t->bias, &t->workspace};
    for (int i = 0; i < 5; i++) {
        TRY(device_alloc(memory[i], bytes[i], error));
    }
    TRY(write_values(t, t->in, t->data.in, t->data.rows * C, error));
    TRY(write_values(t, t->weight, t->data.weight, C, error));
    TRY(write_values(t, t->bias, t->data.bias, C, error));
    return repeat_rows(t, error);
}

enum status rows_trial_create(void *trial, const struct ladder_setup *setup,
                              const struct ladder_shape *shape, struct error *error) {
    (void)setup;
    struct rows_trial *t = trial;
    struct rng rng = rng_create(1);
    const size_t rows = shape->sizes[0], C = shape->sizes[1];
    t->rows = rows;
    TRY(rows_data_create(&t->data, (enum rows_op)shape->op, (enum nn_dtype)shape->dtype,
                         rows < MOST_DIFFERENT ? rows : MOST_DIFFERENT, C,
                         (struct rows_flavour){.mean = 0.0f}, &rng, error));
    t->bytes = malloc(C * sizeof(float));
    t->want = malloc(C * sizeof *t->want);
    t->got = malloc(C * sizeof *t->got);
    if (t->bytes == NULL || t->want == NULL || t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    return upload(t, error);
}

void rows_trial_free(void *trial) {
    struct rows_trial *t = trial;
    device_free(t->in);
    device_free(t->out);
    device_free(t->weight);
    device_free(t->bias);
    device_free(t->workspace);
    rows_data_free(&t->data);
    free(t->bytes);
    free(t->want);
    free(t->got);
}

enum status rows_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                           struct error *error) {
    size_t count;
    const struct rows_trial *t = trial;
    const struct rows_problem problem = {.op = t->data.op,
                                         .type = t->data.type,
                                         .rows = rows,
                                         .C = t->data.C,
                                         .in = t->in,
                                         .out = t->out,
                                         .weight = t->weight,
                                         .bias = t->bias,
                                         .eps = t->data.eps};
    return layernorm_softmax_ladder(&count)[step].run(&problem, t->workspace, stream, error);
}

enum status rows_trial_copy(void *trial, device_stream stream, struct error *error) {
    const struct rows_trial *t = trial;
    return device_copy(t->out, t->in, t->rows * row_bytes(t), stream, error);
}

/* Reads and compares one row of the output. */
static enum status check_row(const struct rows_trial *t, size_t row, char *wrong, size_t size,
                             struct error *error) {
    const size_t same = row % t->data.rows, C = t->data.C;
    TRY(device_read(t->bytes, (const char *)t->out + row * row_bytes(t), row_bytes(t), NULL,
                    error));
    rows_expect(&t->data, same, t->want, t->got);
    nn_dtype_load(t->got, t->bytes, C, t->data.type);
    struct comparison result = compare_f32(t->got, t->want, C, rows_tolerance(&t->data, same));
    if (!result.pass) {
        char text[256];
        comparison_describe(&result, C, text, sizeof text);
        snprintf(wrong, size, "row %zu: %s", row, text);
    }
    return STATUS_OK;
}

enum status rows_trial_check(void *trial, size_t step, char *wrong, size_t size,
                             struct error *error) {
    const struct rows_trial *t = trial;
    const size_t count = t->rows < CHECKED ? t->rows : CHECKED;
    wrong[0] = '\0';
    /* Bytes of ones are NaN in every type: an element that nobody writes is found. */
    TRY(device_set(t->out, 0xff, t->rows * row_bytes(t), NULL, error));
    TRY(rows_trial_run(trial, step, t->rows, NULL, error));
    /* The first row, the last one, and some between. */
    for (size_t i = 0; i < count && wrong[0] == '\0'; i++) {
        TRY(check_row(t, count < 2 ? 0 : (t->rows - 1) * i / (count - 1), wrong, size, error));
    }
    return STATUS_OK;
}
