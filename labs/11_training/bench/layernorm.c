/* LayerNorm's gradient in the bench. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/train/train_engine.h"
#include "labs/11_training/bench/parts.h"

enum { IN, DOUT, STATS, WEIGHT, DIN, DWEIGHT, DBIAS };

static size_t rows_of(const struct bench_shape *s) {
    return s->sizes[0];
}

static size_t width_of(const struct bench_shape *s) {
    return s->sizes[1];
}

/* mean and 1 / sqrt(variance + eps) of each row of in. */
static void fill_stats(struct bench_case *c) {
    size_t C = width_of(&c->shape);
    for (size_t row = 0; row < rows_of(&c->shape); row++) {
        const double *x = c->tensors[IN].values + row * C;
        double sum = 0.0, squares = 0.0;
        for (size_t i = 0; i < C; i++) {
            sum += x[i];
        }
        for (size_t i = 0; i < C; i++) {
            squares += (x[i] - sum / (double)C) * (x[i] - sum / (double)C);
        }
        c->tensors[STATS].values[2 * row] = sum / (double)C;
        c->tensors[STATS].values[2 * row + 1] = 1.0 / sqrt(squares / (double)C + 1e-12);
    }
}

static enum status create(struct bench_case *c, struct error *error) {
    size_t C = width_of(&c->shape), rows = rows_of(&c->shape);
    struct rng rng = rng_create(1);
    const size_t counts[] = {rows * C, rows * C, 2 * rows, C, rows * C, C, C};
    for (int i = 0; i <= DBIAS; i++) {
        bool wide = i == IN || i == DOUT || i == DIN;
        TRY(bench_tensor_create(&c->tensors[i], wide ? c->dtype : NN_F32, counts[i], 0, error));
    }
    TRY(bench_tensor_draw(&c->tensors[IN], &rng, 0.3, 1.0, error));
    TRY(bench_tensor_draw(&c->tensors[DOUT], &rng, 0.0, 1.0, error));
    TRY(bench_tensor_draw(&c->tensors[WEIGHT], &rng, 1.0, 0.2, error));
    fill_stats(c);
    TRY(bench_tensor_put(&c->tensors[STATS], error));
    return device_alloc(&c->scratch, TRAINING_WORKSPACE_BYTES, error);
}

static void destroy(struct bench_case *c) {
    for (int i = 0; i <= DBIAS; i++) {
        bench_tensor_free(&c->tensors[i]);
    }
    device_free(c->scratch);
}

static enum status run(struct bench_case *c, size_t rows, device_stream stream,
                       struct error *error) {
    const struct layernorm_backward_problem problem = {.dtype = c->dtype,
                                                       .rows = rows,
                                                       .C = width_of(&c->shape),
                                                       .dout = c->tensors[DOUT].device,
                                                       .in = c->tensors[IN].device,
                                                       .stats = c->tensors[STATS].device,
                                                       .weight = c->tensors[WEIGHT].device,
                                                       .din = c->tensors[DIN].device,
                                                       .dweight = c->tensors[DWEIGHT].device,
                                                       .dbias = c->tensors[DBIAS].device};
    return c->functions->layernorm_backward(&problem, c->scratch, stream, error);
}

/* The oracle's results, in the tensors' own values. */
static enum status expect(struct bench_case *c) {
    struct train_engine reference;
    struct bench_tensor *t = c->tensors;
    const struct train_norm norm = {.weight = t[WEIGHT].values};
    const struct train_norm_gradient gradient = {t[DWEIGHT].values, t[DBIAS].values};
    size_t C = width_of(&c->shape);
    for (size_t i = 0; i < C; i++) {
        t[DWEIGHT].values[i] = t[DBIAS].values[i] = 0.0;
    }
    TRY(train_reference_create(&reference));
    enum status status =
        reference.layernorm_backward(reference.context, t[DIN].values, &gradient, t[DOUT].values,
                                     t[IN].values, t[STATS].values, &norm, rows_of(&c->shape), C);
    train_engine_destroy(&reference);
    return status;
}

/* fp32 sums of rows (of columns) err by a few 2^-24 of their largest terms; din is rounded once. */
static enum status check(struct bench_case *c, char *wrong, size_t size, struct error *error) {
    struct bench_tensor *t = c->tensors;
    size_t C = width_of(&c->shape), rows = rows_of(&c->shape);
    double storage = c->dtype == NN_F32 ? 0.0 : nn_dtype_rounding(c->dtype);
    TRY(bench_tensor_poison(&t[DIN], error));
    TRY(device_set(t[DWEIGHT].device, 0, C * sizeof(float), NULL, error));
    TRY(device_set(t[DBIAS].device, 0, C * sizeof(float), NULL, error));
    TRY(run(c, rows, NULL, error));
    TRY(expect(c));
    wrong[0] = '\0';
    TRY(bench_tensor_check(&t[DIN], "din", t[DIN].values, 0, rows, C, C, 2e-5 + storage, wrong,
                           size, error));
    TRY(bench_tensor_check(&t[DWEIGHT], "dweight", t[DWEIGHT].values, 0, 1, C, C, 2e-5, wrong, size,
                           error));
    return bench_tensor_check(&t[DBIAS], "dbias", t[DBIAS].values, 0, 1, C, C, 2e-5, wrong, size,
                              error);
}

static void describe(const struct bench_shape *s, char *text, size_t size) {
    snprintf(text, size, "%zux%zu", rows_of(s), width_of(s));
}

static double elements(const struct bench_shape *s) {
    return (double)rows_of(s) * (double)width_of(s);
}

/* xhat 2, g 1, their sums 3, the columns' 3, din 4. */
static double flops(const struct bench_shape *s) {
    return 13.0 * elements(s);
}

/* in, dout, din; statistics; weight; and what is added to. */
static double bytes(const struct bench_shape *s, enum nn_dtype dtype) {
    return 3.0 * elements(s) * (double)nn_dtype_bytes(dtype) + 8.0 * (double)rows_of(s) +
           20.0 * (double)width_of(s);
}

static double memory(const struct bench_shape *s, enum nn_dtype dtype) {
    return bytes(s, dtype) + (double)TRAINING_WORKSPACE_BYTES;
}

static bool differ(const struct training_functions *a, const struct training_functions *b) {
    return a->layernorm_backward != b->layernorm_backward;
}

const struct bench_function bench_layernorm = {.name = "layernorm_backward",
                                               .flag = "layernorm",
                                               .example = "ROWS,C",
                                               .sizes = 2,
                                               .unit = "GB/s",
                                               .create = create,
                                               .destroy = destroy,
                                               .run = run,
                                               .check = check,
                                               .describe = describe,
                                               .flops = flops,
                                               .bytes = bytes,
                                               .memory = memory,
                                               .differ = differ};
