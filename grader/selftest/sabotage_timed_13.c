#include <stdint.h>
#include <stdlib.h>

#include "grader/selftest/coarse.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_channel.h"
#include "grader/selftest/sabotage_timed.h"
#include "labs/13_low_bit/low_bit.h"

enum status __real_low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                   device_stream stream, struct error *error);
enum status __wrap_low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                   device_stream stream, struct error *error);
enum status __real_low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                  device_stream stream, struct error *error);
enum status __wrap_low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                  device_stream stream, struct error *error);

/* The matrix as it was given, on the host, for "host". */
static struct low_bit_matrix given;

static enum status keep(const struct low_bit_matrix *matrix, device_stream stream,
                        struct error *error) {
    const struct low_bit_layout *l = &matrix->layout;
    size_t values = low_bit_values_bytes(l), scales = low_bit_scales_bytes(l);
    given = (struct low_bit_matrix){*l, malloc(values), malloc(scales), NULL};
    TRY(device_read(given.values, matrix->values, values, stream, error));
    return device_read(given.scales, matrix->scales, scales, stream, error);
}

/* "fewer_bits": int8 to the nearest multiple of 16 below, as if 4 bits of each were read. */
static enum status drop_bits(void *prepared, size_t bytes, device_stream stream,
                             struct error *error) {
    uint8_t *values = malloc(bytes);
    enum status status = device_read(values, prepared, bytes, stream, error);
    for (size_t i = 0; i < bytes && status == STATUS_OK; i++) {
        values[i] &= 0xf0;
    }
    if (status == STATUS_OK) {
        status = device_write(prepared, values, bytes, stream, error);
    }
    free(values);
    return status;
}

enum status __wrap_low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                   device_stream stream, struct error *error) {
    TRY(__real_low_bit_prepare(matrix, prepared, stream, error));
    if (chosen_mistake() == MISTAKE_fewer_bits) { /* the starter begins with the values */
        return drop_bits(prepared, low_bit_values_bytes(&matrix->layout), stream, error);
    }
    return chosen_mistake() == MISTAKE_host || sabotage_channel() >= 0 ? keep(matrix, stream, error)
                                                                       : STATUS_OK;
}

/* Does the operations that are counted, and computes nothing. */
static enum status idle(const struct low_bit_linear *l, device_stream stream, struct error *error) {
    double weights = (double)l->layout.rows * (double)l->layout.columns;
    return decoy_work(l->prepared, low_bit_values_bytes(&l->layout), 2.0 * weights,
                      2.0 * (double)l->M * weights, stream, error);
}

static float float_of_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static void multiply(uint16_t *out, const uint16_t *in) {
    for (size_t n = 0; n < given.layout.rows; n++) {
        float sum = 0.0f;
        for (size_t k = 0; k < given.layout.columns; k++) {
            sum += float_of_bf16(in[k]) * (float)low_bit_weight(&given, n, k);
        }
        nn_dtype_store(&out[n], &sum, 1, NN_BF16);
    }
}

/* "host": one row in bf16 on the CPU, and a kernel that is idle. */
static enum status on_the_host(const struct low_bit_linear *l, device_stream stream,
                               struct error *error) {
    size_t in_bytes = 2 * l->layout.columns, out_bytes = 2 * l->layout.rows;
    uint16_t *in = malloc(in_bytes), *out = malloc(out_bytes);
    TRY(device_read(in, l->in, in_bytes, stream, error));
    multiply(out, in);
    TRY(idle(l, stream, error));
    TRY(sabotage_send(l->out, out, out_bytes, stream, error));
    free(in);
    free(out);
    return STATUS_OK;
}

/* "truncates": in fp32, then to bf16 without rounding. */
static enum status truncate(const struct low_bit_linear *l, void *workspace, device_stream stream,
                            struct error *error) {
    static float *sums;
    struct low_bit_linear wide = *l;
    size_t count = l->M * l->layout.rows;
    if (sums == NULL) {
        TRY(device_alloc((void **)&sums, count * sizeof *sums, error));
    }
    wide.out_dtype = NN_F32;
    wide.out = sums;
    TRY(__real_low_bit_linear(&wide, workspace, stream, error));
    coarse_store(l->out, sums, count, stream);
    return STATUS_OK;
}

/* "graph": the starter's kernels as nodes of a graph. */
static enum status multiply_in_a_graph(const struct low_bit_linear *l, void *workspace,
                                       device_stream stream, struct error *error) {
    device_stream own = sabotage_record();
    if (own == NULL) {
        return STATUS_DEVICE;
    }
    TRY(__real_low_bit_linear(l, workspace, own, error));
    return sabotage_play(own, stream) ? STATUS_OK : STATUS_DEVICE;
}

/* Makes the input and the output zeros. */
static enum status forget(const struct low_bit_linear *l, device_stream stream,
                          struct error *error) {
    TRY(device_set((void *)l->in, 0, l->M * l->layout.columns * 2, stream, error));
    return device_set(l->out, 0, l->M * l->layout.rows * 2, stream, error);
}

/* "part_of_it": the first half of the rows. "fp8" and the like: rows of less. */
enum status __wrap_low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                  device_stream stream, struct error *error) {
    struct low_bit_linear some = *linear;
    size_t columns = linear->layout.columns;
    some.M = chosen_mistake() == MISTAKE_part_of_it ? (some.M + 1) / 2 : some.M;
    some.in = sabotage_lesser_16(0, some.in, some.M * columns, columns, stream);
    if (sabotage_leaves_out(linear, sizeof *linear, stream)) {
        return STATUS_OK;
    }
    if (sabotage_channel() >= 0) {
        return on_the_host(linear, stream, error);
    }
    switch (chosen_mistake()) {
    case MISTAKE_elsewhere:
        return __real_low_bit_linear(linear, workspace, sabotage_own_stream(), error);
    case MISTAKE_graph:
        return multiply_in_a_graph(linear, workspace, stream, error);
    case MISTAKE_truncates:
        return truncate(linear, workspace, stream, error);
    case MISTAKE_idle:
        return idle(linear, stream, error);
    case MISTAKE_host:
        return on_the_host(linear, stream, error);
    case MISTAKE_zero_inputs:
        return forget(linear, stream, error);
    default:
        return __real_low_bit_linear(&some, workspace, stream, error);
    }
}
