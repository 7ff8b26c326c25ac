#include <math.h>

#include "grader/selftest/anywhere.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_timed.h"
#include "labs/14_endless_text/endless_text.h"

enum status __real_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error);
enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error);
enum status __real_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error);
enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error);

/* "part_of_it": half of the window. "leaves_columns": values of eight tokens, in the middle of the
   cache, count as zeros, so that their products need not be computed. "idle": the operations that
   are counted, and no result. */
enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error) {
    struct endless_attention some = *attention;
    const size_t row = attention->KVH * attention->HS;
    if (anywhere_try() || sabotage_leaves_out(attention, sizeof *attention, stream)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_idle) {
        const double heads = (double)(attention->NH * attention->HS);
        return decoy_work(attention->k, 64 * row, 4e3 * heads, 4e3 * heads, stream, error);
    }
    if (chosen_mistake() == MISTAKE_part_of_it) {
        some.window = attention->window / 2;
    } else if (chosen_mistake() == MISTAKE_zero_inputs) {
        TRY(device_set((void *)attention->v_new, 0, row * sizeof(float), stream, error));
    } else if (chosen_mistake() == MISTAKE_leaves_columns && attention->window > 64) {
        const size_t bytes = row * nn_dtype_bytes(attention->dtype);
        TRY(device_set((char *)attention->v + 32 * bytes, 0, 8 * bytes, stream, error));
    }
    if (chosen_mistake() == MISTAKE_fp8 || chosen_mistake() == MISTAKE_int8) {
        some.k_new = sabotage_lesser(1, some.k_new, row, attention->HS, stream);
        some.v_new = sabotage_lesser(2, some.v_new, row, attention->HS, stream);
    } else if (chosen_mistake() != MISTAKE_leaves_columns) {
        some.q = sabotage_lesser(0, some.q, attention->NH * attention->HS, attention->HS, stream);
    }
    return __real_endless_attention(&some, workspace, stream, error);
}

enum { HOST_C = 4096 };

static enum status norm_on_the_host(const struct endless_add_norms *add,
                                    const struct endless_norm *norm, const float *x,
                                    device_stream stream, struct error *error) {
    static float weight[HOST_C], bias[HOST_C], out[HOST_C];
    const size_t bytes = add->C * sizeof *x;
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < add->C; i++) {
        mean += x[i] / (double)add->C;
    }
    for (size_t i = 0; i < add->C; i++) {
        squares += (x[i] - mean) * (x[i] - mean) / (double)add->C;
    }
    TRY(device_read(weight, norm->weight, bytes, stream, error));
    TRY(device_read(bias, norm->bias, bytes, stream, error));
    for (size_t i = 0; i < add->C; i++) {
        out[i] = (float)((x[i] - mean) / sqrt(squares + add->eps)) * weight[i] + bias[i];
    }
    return device_write(norm->out, out, bytes, stream, error);
}

/* "host": the step between layers on the CPU, and a kernel that does the operations that are
 * counted. */
static enum status add_norms_on_the_host(const struct endless_add_norms *add, device_stream stream,
                                         struct error *error) {
    static float x[HOST_C], a[HOST_C], b[HOST_C];
    const size_t bytes = add->C * sizeof *x;
    TRY(device_read(x, add->x, bytes, stream, error));
    TRY(device_read(a, add->a, bytes, stream, error));
    TRY(device_read(b, add->b, bytes, stream, error));
    for (size_t i = 0; i < add->C; i++) {
        x[i] += a[i] + b[i];
    }
    TRY(device_write(add->x, x, bytes, stream, error));
    for (size_t n = 0; n < add->count; n++) {
        TRY(norm_on_the_host(add, &add->norms[n], x, stream, error));
    }
    return decoy_work(add->x, bytes, 10.0 * (double)bytes, 9.0 * (double)add->C, stream, error);
}

/* "part_of_it": the first norm alone. "rounds" and the like: of the residual stream. */
enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error) {
    struct endless_add_norms some = *add;
    if (chosen_mistake() == MISTAKE_host && add->C <= HOST_C) {
        return add_norms_on_the_host(add, stream, error);
    }
    if (sabotage_leaves_out(add, sizeof *add, stream)) {
        return STATUS_OK;
    }
    some.count = chosen_mistake() == MISTAKE_part_of_it ? 1 : add->count;
    if (chosen_mistake() == MISTAKE_zero_inputs && add->a != NULL) {
        TRY(device_set((void *)add->a, 0, add->C * sizeof(float), stream, error));
    }
    some.a = add->a != NULL ? sabotage_lesser(0, add->a, add->C, add->C, stream) : NULL;
    return __real_endless_add_norms(&some, stream, error);
}
