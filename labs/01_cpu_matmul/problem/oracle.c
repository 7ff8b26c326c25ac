/* Random problems of labs 01 and 02 and their results. */
#include "labs/01_cpu_matmul/problem/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng_bell.h"
#include "common/nn/nn.h"

double matmul_flops(struct matmul_shape s) {
    return 2.0 * (double)s.M * (double)s.N * (double)s.K;
}

double matmul_bytes(struct matmul_shape s) {
    return sizeof(float) *
           ((double)s.M * (double)s.K + (double)s.N * (double)s.K + (double)s.M * (double)s.N);
}

static enum status allocate(struct matmul_data *data) {
    const struct matmul_shape *s = &data->shape;
    TRY(guarded_create(&data->in_memory, s->M * s->K + data->skew));
    TRY(guarded_create(&data->weight_memory, s->N * s->K + data->skew));
    data->want = malloc(s->M * s->N * sizeof *data->want + 1);
    return data->want != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

enum status matmul_data_allocate(struct matmul_data *data, struct matmul_shape s, size_t skew,
                                 struct error *error) {
    *data = (struct matmul_data){.shape = s, .skew = skew};
    enum status status = allocate(data);
    if (status != STATUS_OK) {
        return error_set(error, status, "%s on the host: M=%zu N=%zu K=%zu", status_message(status),
                         s.M, s.N, s.K);
    }
    data->in = data->in_memory.data + skew;
    data->weight = data->weight_memory.data + skew;
    return STATUS_OK;
}

static void fill(struct rng *rng, enum matmul_values values, float *out, size_t rows,
                 size_t columns) {
    if (values == MATMUL_ROWS) {
        rng_fill_bell_rows(rng, out, rows, columns);
    } else {
        rng_fill_normal(rng, out, rows * columns, 1.0f);
    }
}

void matmul_data_draw(struct matmul_data *data, enum matmul_values values, struct rng *rng) {
    fill(rng, values, data->in, data->shape.M, data->shape.K);
    fill(rng, values, data->weight, data->shape.N, data->shape.K);
}

void matmul_data_calculate(struct matmul_data *data) {
    nn_matmul_f64(data->want, data->in, data->weight, data->shape.M, data->shape.N, data->shape.K);
}

enum status matmul_data_create(struct matmul_data *data, struct matmul_shape s, size_t skew,
                               enum matmul_values values, struct rng *rng, struct error *error) {
    TRY(matmul_data_allocate(data, s, skew, error));
    matmul_data_draw(data, values, rng);
    matmul_data_calculate(data);
    return STATUS_OK;
}

void matmul_data_free(struct matmul_data *data) {
    guarded_free(&data->in_memory);
    guarded_free(&data->weight_memory);
    free(data->want);
    *data = (struct matmul_data){0};
}

/* Elements have the size of K products that add up like a random walk: rows have a scale of about 1
   and at most an offset of about 0.25. */
bool matmul_check(const struct matmul_data *data, const float *got, char *text, size_t size) {
    const struct matmul_shape *s = &data->shape;
    const double scale = sqrt(s->K > 0 ? (double)s->K : 1.0);
    const struct comparison result =
        compare_f32(got, data->want, s->M * s->N, tolerance_dot_f32(s->K, scale));
    comparison_describe(&result, s->N, text, size);
    return result.pass;
}

bool matmul_check_guarded(const struct matmul_data *data, const struct guarded *out, char *text,
                          size_t size) {
    if (!matmul_check(data, out->data + data->skew, text, size)) {
        return false;
    }
    bool intact = guarded_intact(out) && guarded_intact(&data->in_memory) &&
                  guarded_intact(&data->weight_memory);
    for (size_t i = 0; i < data->skew; i++) {
        intact = intact && isnan(out->data[i]);
    }
    snprintf(text, size, "wrote outside of its output");
    return intact;
}
