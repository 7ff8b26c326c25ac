/**
 * @file attention_arguments.c
 * @brief Is a call of attention() one that the contract allows?
 */
#include <math.h>

#include "labs/07_attention/attention.h"

static enum status check_size(const char *name, size_t size, size_t largest, struct error *error) {
    if (size > largest) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: %s = %zu is above the largest, %zu", name, size, largest);
    }
    return STATUS_OK;
}

static enum status check_sizes(const struct attention_problem *p, struct error *error) {
    const struct {
        const char *name;
        size_t size, largest;
    } sizes[] = {
        {"B", p->B, ATTENTION_MAX_SIZE},
        {"T", p->T, ATTENTION_MAX_SIZE},
        {"S", p->S, ATTENTION_MAX_SIZE},
        {"NH", p->NH, ATTENTION_MAX_SIZE},
        {"KVH", p->KVH, ATTENTION_MAX_SIZE},
        {"HS", p->HS, ATTENTION_MAX_HS},
        {"q_stride", p->q_stride, ATTENTION_MAX_SIZE},
        {"kv_stride", p->kv_stride, ATTENTION_MAX_SIZE},
        {"out_stride", p->out_stride, ATTENTION_MAX_SIZE},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TRY(check_size(sizes[i].name, sizes[i].size, sizes[i].largest, error));
    }
    return STATUS_OK;
}

static enum status check_stride(const char *name, size_t stride, size_t heads, size_t HS,
                                struct error *error) {
    if (stride < heads * HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: %s = %zu is below %zu heads of %zu", name, stride, heads, HS);
    }
    return STATUS_OK;
}

static enum status check_strides(const struct attention_problem *p, struct error *error) {
    TRY(check_stride("q_stride", p->q_stride, p->NH, p->HS, error));
    TRY(check_stride("kv_stride", p->kv_stride, p->KVH, p->HS, error));
    return check_stride("out_stride", p->out_stride, p->NH, p->HS, error);
}

static enum status check_packed(const struct attention_problem *p, struct error *error) {
    if ((p->starts == NULL) != (p->host_starts == NULL)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: starts and host_starts come together, only %s is given",
                         p->starts == NULL ? "host_starts" : "starts");
    }
    if (p->starts == NULL) {
        return STATUS_OK;
    }
    if (p->mask != NULL || p->T != p->S) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: packed sequences take no mask, and T = S: T = %zu, S = %zu%s",
                         p->T, p->S, p->mask != NULL ? ", a mask" : "");
    }
    for (size_t b = 0; b < p->B; b++) {
        int32_t first = p->host_starts[b], end = p->host_starts[b + 1];
        if ((b == 0 && first != 0) || end < first || (size_t)(end - first) > p->T) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "attention: sequence %zu has the tokens %d to %d; the longest has %zu",
                             b, (int)first, (int)end, p->T);
        }
    }
    return STATUS_OK;
}

enum status attention_check(const struct attention_problem *p, struct error *error) {
    TRY(check_sizes(p, error));
    TRY(check_strides(p, error));
    TRY(check_packed(p, error));
    if (p->NH > 0 && (p->KVH == 0 || p->NH % p->KVH != 0)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: %zu query heads are no multiple of %zu key heads", p->NH,
                         p->KVH);
    }
    if (p->causal && p->S < p->T) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: causal with %zu queries and only %zu keys", p->T, p->S);
    }
    if (!(p->scale > 0.0f) || isinf(p->scale)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: scale %g is not positive and finite", (double)p->scale);
    }
    return STATUS_OK;
}
