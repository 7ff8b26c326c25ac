/**
 * @file training_arguments.c
 * @brief Is a call of one of lab 11's functions one that the contract allows? And how much scratch
 *        memory attention's gradient is given.
 */
#include <math.h>

#include "common/base/checked.h"
#include "labs/11_training/training.h"

/** Largest stride, in elements. */
#define MAX_STRIDE ((size_t)1 << 28)

static enum status check_dtype(const char *function, enum nn_dtype dtype, struct error *error) {
    if (dtype == NN_F32 || dtype == NN_BF16) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "%s: type %d is neither fp32 nor bf16",
                     function, (int)dtype);
}

static enum status check_size(const char *function, const char *name, size_t size, size_t largest,
                              struct error *error) {
    if (size <= largest) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "%s: %s = %zu is above the largest, %zu",
                     function, name, size, largest);
}

enum status layernorm_backward_check(const struct layernorm_backward_problem *p,
                                     struct error *error) {
    TRY(check_dtype("layernorm_backward", p->dtype, error));
    TRY(check_size("layernorm_backward", "rows", p->rows, TRAINING_MAX_ROWS, error));
    TRY(check_size("layernorm_backward", "C", p->C, TRAINING_MAX_C, error));
    if (p->C == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "layernorm_backward: C is 0");
    }
    return STATUS_OK;
}

static enum status check_heads(const struct attention_backward_problem *p, struct error *error) {
    if (p->NH == 0 || p->KVH == 0 || p->NH % p->KVH != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: %zu query heads are no multiple of %zu key heads",
                         p->NH, p->KVH);
    }
    if (p->HS == 0 || p->HS % 8 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: HS = %zu is no multiple of 8", p->HS);
    }
    return check_size("attention_backward", "HS", p->HS, TRAINING_MAX_HS, error);
}

/* HS is at least 8 by now, so a head count that would overflow is too large for any stride. */
static enum status check_stride(const char *name, size_t stride, size_t heads, size_t HS,
                                struct error *error) {
    TRY(check_size("attention_backward", name, stride, MAX_STRIDE, error));
    if (stride % 8 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: %s = %zu is no multiple of 8", name, stride);
    }
    if (heads > stride / HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: %s = %zu is below %zu heads of %zu", name, stride,
                         heads, HS);
    }
    return STATUS_OK;
}

static enum status check_sequences(const struct attention_backward_problem *p,
                                   struct error *error) {
    TRY(check_size("attention_backward", "rows", p->rows, TRAINING_MAX_ROWS, error));
    TRY(check_size("attention_backward", "longest", p->longest, p->rows, error));
    TRY(check_size("attention_backward", "B", p->B, p->rows, error));
    if (p->host_starts == NULL || p->starts == NULL || p->host_starts[0] != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: starts are missing or do not begin with 0");
    }
    for (size_t b = 0; b < p->B; b++) {
        int32_t first = p->host_starts[b], end = p->host_starts[b + 1];
        if (end <= first || (size_t)(end - first) > p->longest) {
            return error_set(
                error, STATUS_INVALID_ARGUMENT,
                "attention_backward: sequence %zu has the rows %d to %d; the longest has %zu", b,
                (int)first, (int)end, p->longest);
        }
    }
    if ((size_t)p->host_starts[p->B] != p->rows) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: the sequences end at %d, the rows at %zu",
                         (int)p->host_starts[p->B], p->rows);
    }
    return STATUS_OK;
}

enum status attention_backward_check(const struct attention_backward_problem *p,
                                     struct error *error) {
    TRY(check_dtype("attention_backward", p->dtype, error));
    TRY(check_heads(p, error));
    TRY(check_stride("q_stride", p->q_stride, p->NH, p->HS, error));
    TRY(check_stride("kv_stride", p->kv_stride, p->KVH, p->HS, error));
    TRY(check_sequences(p, error));
    if (!(p->scale > 0.0f) || isinf(p->scale)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_backward: scale %g is not positive and finite",
                         (double)p->scale);
    }
    return STATUS_OK;
}

/*
 * Two matrices of fp32, each with a line of `longest` numbers for every query
 * of every head; two tensors of fp32 like q, for gradients that are summed up
 * before they are rounded; and two numbers for each query of each head, twice.
 * What does not fit a size_t is SIZE_MAX, which no memory has.
 */
size_t attention_backward_scratch(const struct attention_backward_problem *p) {
    size_t lines = 0, line = 0, count = 0, bytes = 0;
    bool fits = checked_multiply(p->NH, p->rows, &lines) && checked_add(p->longest, p->HS, &line) &&
                checked_add(line, 2, &line) && checked_multiply(lines, line, &count) &&
                checked_multiply(count, 2 * sizeof(float), &bytes) &&
                checked_add(bytes, 255, &bytes);
    return fits ? bytes / 256 * 256 : SIZE_MAX;
}

static enum status check_rates(const struct adamw_problem *p, struct error *error) {
    const struct {
        const char *name;
        float value, least, below;
    } rates[] = {
        {"rate", p->rate, 0.0f, INFINITY},
        {"decay", p->decay, 0.0f, INFINITY},
        {"beta1", p->beta1, 0.0f, 1.0f},
        {"beta2", p->beta2, 0.0f, 1.0f},
    };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (!(rates[i].value >= rates[i].least && rates[i].value < rates[i].below)) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "adamw: %s = %g is not at least %g and below %g", rates[i].name,
                             (double)rates[i].value, (double)rates[i].least,
                             (double)rates[i].below);
        }
    }
    if (!(p->eps > 0.0f) || isinf(p->eps)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "adamw: eps %g is not positive and finite",
                         (double)p->eps);
    }
    return STATUS_OK;
}

enum status adamw_check(const struct adamw_problem *p, struct error *error) {
    TRY(check_size("adamw", "decayed", p->decayed, p->count, error));
    TRY(check_size("adamw", "count", p->count, SIZE_MAX / sizeof(float), error));
    TRY(check_rates(p, error));
    if (p->step == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "adamw: steps count from 1");
    }
    return STATUS_OK;
}
