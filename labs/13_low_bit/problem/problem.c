#include "labs/13_low_bit/problem/problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/rng_bell.h"
#include "common/simt/simt.h"
#include "common/testing/compare.h"

static struct low_bit_layout layout_of(const struct low_bit_case *c) {
    bool by_row = c->group == 0;
    return (struct low_bit_layout){
        c->type,     c->N, c->K, by_row ? c->K : c->group, by_row ? NN_F32 : c->scale_dtype,
        c->has_zeros};
}

static void name_case(struct low_bit_data *data) {
    const struct low_bit_case *c = &data->c;
    char groups[64] = " by row";
    if (c->group > 0) {
        snprintf(groups, sizeof groups, " in groups of %zu%s, scales in %s", c->group,
                 c->has_zeros ? " with zero points" : "", nn_dtype_name(c->scale_dtype));
    }
    snprintf(data->name, sizeof data->name, "%s%s%s, M=%zu N=%zu K=%zu, %s out%s",
             low_bit_type_name(c->type), groups, c->extremes ? ", extremes" : "", c->M, c->N, c->K,
             nn_dtype_name(c->out_dtype), c->skew > 0 ? ", in and out not aligned" : "");
}

/* Root mean square of uniform stored numbers less their zero points, about. */
static double spread_of(enum low_bit_type type) {
    return type == LOW_BIT_INT8 ? 74.0 : type == LOW_BIT_INT4 ? 6.0 : 100.0;
}

/* Extremes: rows of the largest alone, of the least alone, and of both. */
static uint8_t draw_stored(const struct low_bit_case *c, size_t row, struct rng *rng) {
    static const uint8_t least[] = {0x80, 0, 0xfe}, most[] = {0x7f, 15, 0x7e};
    if (c->extremes) {
        bool is_most = row % 3 == 0 || (row % 3 == 2 && rng_below(rng, 2) == 0);
        return is_most ? most[c->type] : least[c->type];
    }
    if (c->type != LOW_BIT_FP8) {
        return (uint8_t)rng_below(rng, c->type == LOW_BIT_INT4 ? 16 : 256);
    }
    uint8_t bits = (uint8_t)rng_below(rng, 256); /* not NaN, and mostly of some size */
    return (bits & 0x7f) == 0x7f ? (uint8_t)(bits ^ 1) : bits;
}

static void draw_values(struct low_bit_matrix *m, const struct low_bit_case *c, struct rng *rng) {
    uint8_t *values = m->values;
    size_t bytes = low_bit_values_bytes(&m->layout);
    bool any_bits = c->type != LOW_BIT_FP8 && !c->extremes;
    for (size_t i = 0; any_bits && i < bytes; i += 8) {
        uint64_t eight = rng_u64(rng);
        memcpy(values + i, &eight, bytes - i < 8 ? bytes - i : 8);
    }
    for (size_t i = 0; !any_bits && i < bytes; i++) {
        size_t row = i / low_bit_row_bytes(&m->layout);
        values[i] = draw_stored(c, row, rng);
        if (c->type == LOW_BIT_INT4) {
            values[i] = (uint8_t)(values[i] | draw_stored(c, row, rng) << 4);
        }
    }
}

static void draw_matrix(struct low_bit_matrix *m, const struct low_bit_case *c, struct rng *rng) {
    double unit = 1.0 / (sqrt((double)c->K) * spread_of(c->type));
    for (size_t n = 0; n < c->N; n++) {
        for (size_t group = 0; group < low_bit_groups(&m->layout); group++) {
            double scale = unit * exp2(2.0 * (double)rng_uniform(rng) - 1.0);
            low_bit_set_group(m, n, group, (float)scale, (uint8_t)rng_below(rng, 16));
        }
    }
    draw_values(m, c, rng);
}

static size_t checked_of(const struct low_bit_case *c) {
    return c->checked == 0 || c->checked > c->N ? c->N : c->checked;
}

static size_t column_at(const struct low_bit_case *c, size_t i) {
    size_t checked = checked_of(c);
    return checked == c->N ? i : (size_t)((double)i * (double)c->N / (double)checked);
}

static void calculate(struct low_bit_data *data) {
    const struct low_bit_case *c = &data->c;
    double *row = data->row;
    size_t checked = checked_of(c);
    double squares = 0.0;
    for (size_t i = 0; i < checked; i++) {
        for (size_t k = 0; k < c->K; k++) {
            row[k] = low_bit_weight(&data->host, column_at(c, i), k);
        }
        for (size_t m = 0; m < c->M; m++) {
            double sum = 0.0;
            for (size_t k = 0; k < c->K; k++) {
                sum += row[k] * (double)data->host_in[m * c->K + k];
            }
            data->want[m * checked + i] = sum;
            squares += sum * sum;
        }
    }
    double count = (double)(c->M * checked);
    data->scale = count > 0.0 ? sqrt(squares / count) + 1e-30 : 1.0;
}

static enum status make_buffers(struct low_bit_data *data, struct error *error) {
    const struct low_bit_case *c = &data->c;
    const struct low_bit_layout *l = &data->matrix.layout;
    size_t element = nn_dtype_bytes(c->out_dtype);
    TRY(device_buffer_create_bytes(&data->values, low_bit_values_bytes(l), c->guarded, 0, error));
    TRY(device_buffer_create_bytes(&data->scales, low_bit_scales_bytes(l), c->guarded, 0, error));
    TRY(device_buffer_create_bytes(&data->zeros, low_bit_zeros_bytes(l), c->guarded, 0, error));
    TRY(device_buffer_create_bytes(&data->prepared, low_bit_prepared_bytes(l), c->guarded, 0,
                                   error));
    TRY(device_buffer_create_bytes(&data->in, c->M * c->K * 2, c->guarded, c->skew * 2, error));
    TRY(device_buffer_create_bytes(&data->out, c->M * c->N * element, c->guarded, c->skew * element,
                                   error));
    data->matrix.values = data->values.data;
    data->matrix.scales = data->scales.data;
    data->matrix.zeros = c->has_zeros ? (uint8_t *)data->zeros.data : NULL;
    data->linear = (struct low_bit_linear){*l,           data->prepared.data, c->M, data->in.data,
                                           c->out_dtype, data->out.data};
    return device_alloc(&data->workspace, LOW_BIT_WORKSPACE_BYTES, error);
}

enum status low_bit_data_redraw(struct low_bit_data *data, uint64_t seed, struct error *error) {
    const struct low_bit_case *c = &data->c;
    struct rng rng = rng_create(seed);
    rng_fill_bell_rows(&rng, data->host_in, c->M, c->K);
    nn_dtype_store(data->stored_in, data->host_in, c->M * c->K, NN_BF16);
    nn_dtype_load(data->host_in, data->stored_in, c->M * c->K, NN_BF16);
    calculate(data);
    TRY(device_buffer_put(&data->in, data->stored_in, error));
    return low_bit_data_reset(data, error);
}

static enum status make_host(struct low_bit_data *data, struct error *error) {
    const struct low_bit_case *c = &data->c;
    const struct low_bit_layout *l = &data->matrix.layout;
    data->host = (struct low_bit_matrix){*l, malloc(low_bit_values_bytes(l)),
                                         malloc(low_bit_scales_bytes(l)),
                                         malloc(low_bit_zeros_bytes(l) + 1)};
    data->host_in = malloc(c->M * c->K * sizeof *data->host_in + 1);
    data->stored_in = malloc(c->M * c->K * sizeof *data->stored_in + 1);
    data->row = malloc(c->K * sizeof *data->row);
    data->want = malloc(c->M * checked_of(c) * sizeof *data->want + 1);
    data->got = malloc(c->M * c->N * sizeof *data->got + 1);
    bool made = data->host.values != NULL && data->host.scales != NULL &&
                data->host.zeros != NULL && data->host_in != NULL && data->stored_in != NULL &&
                data->row != NULL && data->want != NULL && data->got != NULL;
    return made ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
}

enum status low_bit_data_create(struct low_bit_data *data, const struct low_bit_case *c,
                                struct error *error) {
    *data = (struct low_bit_data){.c = *c, .matrix = {.layout = layout_of(c)}};
    struct rng rng = rng_create(c->seed != 0 ? c->seed : c->M * 31 + c->N * 7 + c->K);
    TRY(low_bit_check_layout(&data->matrix.layout, error));
    name_case(data);
    TRY(make_host(data, error));
    draw_matrix(&data->host, c, &rng);
    TRY(make_buffers(data, error));
    TRY(device_buffer_put(&data->values, data->host.values, error));
    TRY(device_buffer_put(&data->scales, data->host.scales, error));
    TRY(device_buffer_put(&data->zeros, data->host.zeros, error));
    TRY(device_buffer_put(&data->prepared, NULL, error));
    return low_bit_data_redraw(data, rng_u64(&rng), error);
}

void low_bit_data_free(struct low_bit_data *data) {
    struct device_buffer *buffers[] = {&data->values,   &data->scales, &data->zeros,
                                       &data->prepared, &data->in,     &data->out};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        device_buffer_free(buffers[i]);
    }
    device_free(data->workspace);
    free(data->host.values);
    free(data->host.scales);
    free(data->host.zeros);
    free(data->host_in);
    free(data->stored_in);
    free(data->row);
    free(data->want);
    free(data->got);
}

enum status low_bit_data_reset(struct low_bit_data *data, struct error *error) {
    return device_buffer_put(&data->out, NULL, error);
}

/* Which buffer has something beside it, or NULL; of inputs also what has changed. */
static enum status find_stray(struct low_bit_data *data, void *out, const char **stray,
                              struct error *error) {
    struct {
        const char *name;
        struct device_buffer *buffer;
        bool may_change;
    } buffers[] = {{"values", &data->values, false},    {"scales", &data->scales, false},
                   {"zeros", &data->zeros, false},      {"in", &data->in, false},
                   {"prepared", &data->prepared, true}, {"out", &data->out, true}};
    *stray = NULL;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        bool intact, changed, is_out = buffers[i].buffer == &data->out;
        if (data->c.only_out && !is_out) {
            continue;
        }
        TRY(device_buffer_get(buffers[i].buffer, is_out ? out : NULL, &intact, &changed, error));
        if (!intact || (changed && !buffers[i].may_change)) {
            *stray = buffers[i].name;
        }
    }
    return STATUS_OK;
}

static void compare(struct low_bit_data *data, char *wrong, size_t size) {
    const struct low_bit_case *c = &data->c;
    size_t checked = checked_of(c);
    for (size_t m = 0; m < c->M; m++) { /* moves down: i <= column_at(i) */
        for (size_t i = 0; i < checked; i++) {
            data->got[m * checked + i] = data->got[m * c->N + column_at(c, i)];
        }
    }
    struct tolerance t = tolerance_dot_f32(c->K, data->scale);
    double rounding = 1.25 * nn_dtype_rounding(c->out_dtype);
    t.relative += rounding;
    t.norm += rounding;
    struct comparison result = compare_f32(data->got, data->want, c->M * checked, t);
    if (!result.pass) {
        comparison_describe(&result, checked, wrong, size);
    }
}

enum status low_bit_data_check(struct low_bit_data *data, char *wrong, size_t size,
                               struct error *error) {
    const struct low_bit_case *c = &data->c;
    const char *stray;
    wrong[0] = '\0';
    TRY(device_synchronize(NULL, error));
    void *stored = malloc(c->M * c->N * nn_dtype_bytes(c->out_dtype) + 1);
    if (stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    enum status status = find_stray(data, stored, &stray, error);
    if (status == STATUS_OK && stray != NULL) {
        snprintf(wrong, size, "something was written into or beside %s", stray);
    } else if (status == STATUS_OK && c->M > 0) {
        nn_dtype_load(data->got, stored, c->M * c->N, c->out_dtype);
        compare(data, wrong, size);
    }
    free(stored);
    return status;
}

void low_bit_name_tensors(const struct low_bit_data *data) {
    simt_name_tensor(data->values.data, "values");
    simt_name_tensor(data->scales.data, "scales");
    simt_name_tensor(data->zeros.data, "zeros");
    simt_name_tensor(data->prepared.data, "prepared");
    simt_name_tensor(data->in.data, "in");
    simt_name_tensor(data->out.data, "out");
}

double low_bit_case_bytes(const struct low_bit_case *c) {
    const struct low_bit_layout l = layout_of(c);
    return (double)(low_bit_values_bytes(&l) + low_bit_scales_bytes(&l) + low_bit_zeros_bytes(&l)) +
           (double)c->M *
               (2.0 * (double)c->K + (double)nn_dtype_bytes(c->out_dtype) * (double)c->N);
}

double low_bit_case_flops(const struct low_bit_case *c) {
    return 2.0 * (double)c->M * (double)c->N * (double)c->K;
}
