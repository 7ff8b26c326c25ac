/* One shape of the bench: operands on the GPU, and rows of the right result. */
#include "labs/05_layernorm_softmax/bench/case.h"

#include <stdio.h>
#include <stdlib.h>

/* Different rows, at most; and rows that are checked. */
enum { MOST_DIFFERENT = 64, CHECKED = 16 };

double bench_bytes(const struct bench_shape *s, enum nn_dtype type) {
    return 2.0 * (double)s->rows * (double)s->C * (double)nn_dtype_bytes(type);
}

double bench_flops(const struct bench_shape *s, enum rows_op op) {
    static const double each[] = {7.0, 4.0, 5.0};
    return each[op] * (double)s->rows * (double)s->C;
}

struct rows_problem bench_case_problem(const struct bench_case *c, size_t rows) {
    return (struct rows_problem){.op = c->data.op,
                                 .type = c->data.type,
                                 .rows = rows,
                                 .C = c->shape.C,
                                 .in = c->in,
                                 .out = c->out,
                                 .weight = c->weight,
                                 .bias = c->bias,
                                 .eps = c->data.eps};
}

/* Copies the different rows again and again, each time twice as many. */
static enum status repeat_rows(struct bench_case *c, struct error *error) {
    size_t row_bytes = c->shape.C * nn_dtype_bytes(c->data.type), done = c->data.rows;
    enum status status = STATUS_OK;
    while (done < c->shape.rows && status == STATUS_OK) {
        size_t more = done < c->shape.rows - done ? done : c->shape.rows - done;
        status =
            device_copy((char *)c->in + done * row_bytes, c->in, more * row_bytes, NULL, error);
        done += more;
    }
    return status;
}

/* Encodes on the host and copies to the device. */
static enum status send(const struct bench_case *c, void *d, const float *values, size_t count,
                        struct error *error) {
    size_t size = nn_dtype_bytes(c->data.type);
    void *bytes = malloc(count * size);
    if (bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    nn_dtype_store(bytes, values, count, c->data.type);
    enum status status = device_write(d, bytes, count * size, NULL, error);
    free(bytes);
    return status;
}

static enum status upload(struct bench_case *c, struct error *error) {
    size_t size = nn_dtype_bytes(c->data.type), C = c->shape.C;
    size_t bytes[] = {c->shape.rows * C * size, c->shape.rows * C * size, C * size, C * size,
                      ROWS_WORKSPACE_BYTES};
    void **memory[] = {&c->in, &c->out, &c->weight, &c->bias, &c->workspace};
    enum status status = STATUS_OK;
    for (int i = 0; i < 5 && status == STATUS_OK; i++) {
        status = device_alloc(memory[i], bytes[i], error);
    }
    if (status == STATUS_OK) {
        status = send(c, c->in, c->data.in, c->data.rows * C, error);
    }
    if (status == STATUS_OK) {
        status = send(c, c->weight, c->data.weight, C, error);
    }
    if (status == STATUS_OK) {
        status = send(c, c->bias, c->data.bias, C, error);
    }
    return status == STATUS_OK ? repeat_rows(c, error) : status;
}

enum status bench_case_create(struct bench_case *c, struct bench_shape s, enum rows_op op,
                              enum nn_dtype type, struct error *error) {
    struct rng rng = rng_create(1);
    *c = (struct bench_case){.shape = s};
    size_t different = s.rows < MOST_DIFFERENT ? s.rows : MOST_DIFFERENT;
    enum status status = rows_data_create(&c->data, op, type, different, s.C,
                                          (struct rows_flavour){.mean = 0.0f}, &rng, error);
    c->bytes = malloc(s.C * sizeof(float));
    c->want = malloc(s.C * sizeof *c->want);
    c->got = malloc(s.C * sizeof *c->got);
    if (c->bytes == NULL || c->want == NULL || c->got == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    return status == STATUS_OK ? upload(c, error) : status;
}

void bench_case_free(struct bench_case *c) {
    device_free(c->in);
    device_free(c->out);
    device_free(c->weight);
    device_free(c->bias);
    device_free(c->workspace);
    rows_data_free(&c->data);
    free(c->bytes);
    free(c->want);
    free(c->got);
}

/* The first row, the last one, and some between. */
static size_t row_to_check(const struct bench_case *c, size_t i, size_t count) {
    return count < 2 ? 0 : (c->shape.rows - 1) * i / (count - 1);
}

enum status bench_case_check(struct bench_case *c, char *wrong, size_t size, struct error *error) {
    const struct rows_problem problem = bench_case_problem(c, c->shape.rows);
    size_t row_bytes = c->shape.C * nn_dtype_bytes(c->data.type);
    size_t count = c->shape.rows < CHECKED ? c->shape.rows : CHECKED;
    wrong[0] = '\0';
    /* Bytes of ones are NaN in every type: what nobody writes shows. */
    enum status status = device_set(c->out, 0xff, c->shape.rows * row_bytes, NULL, error);
    if (status == STATUS_OK) {
        status = c->run(&problem, c->workspace, NULL, error);
    }
    for (size_t i = 0; i < count && status == STATUS_OK && wrong[0] == '\0'; i++) {
        size_t row = row_to_check(c, i, count), same = row % c->data.rows;
        const char *from = (const char *)c->out + row * row_bytes;
        status = device_read(c->bytes, from, row_bytes, NULL, error);
        if (status != STATUS_OK) {
            break;
        }
        rows_expect(&c->data, same, c->want, c->got);
        nn_dtype_load(c->got, c->bytes, c->shape.C, c->data.type);
        struct comparison result =
            compare_f32(c->got, c->want, c->shape.C, rows_tolerance(&c->data, same));
        if (!result.pass) {
            char text[256];
            comparison_describe(&result, c->shape.C, text, sizeof text);
            snprintf(wrong, size, "row %zu: %s", row, text);
        }
    }
    return status;
}
