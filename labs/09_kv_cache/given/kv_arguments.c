/**
 * @file kv_arguments.c
 * @brief Checks calls of kv_linear() and kv_attention() against the contract.
 */
#include <math.h>

#include "labs/09_kv_cache/kv_cache.h"

struct size_limit {
    const char *name;
    size_t size, smallest, largest;
};

static enum status check_sizes(const char *what, const struct size_limit *sizes, size_t count,
                               struct error *error) {
    for (size_t i = 0; i < count; i++) {
        if (sizes[i].size < sizes[i].smallest || sizes[i].size > sizes[i].largest) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "%s: %s = %zu is not in %zu .. %zu",
                             what, sizes[i].name, sizes[i].size, sizes[i].smallest,
                             sizes[i].largest);
        }
    }
    return STATUS_OK;
}

static enum status check_dtype(const char *what, enum nn_dtype dtype, struct error *error) {
    if (dtype != NN_F32 && dtype != NN_F16 && dtype != NN_BF16) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s: %d is no type of numbers", what,
                         (int)dtype);
    }
    return STATUS_OK;
}

enum status kv_linear_check(const struct kv_linear *l, struct error *error) {
    const struct size_limit sizes[] = {
        {"N", l->N, 0, KV_MAX_SIZE},
        {"K", l->K, 0, KV_MAX_SIZE},
    };
    TRY(check_dtype("kv_linear", l->dtype, error));
    return check_sizes("kv_linear", sizes, sizeof sizes / sizeof *sizes, error);
}

enum status kv_attention_check(const struct kv_attention *a, struct error *error) {
    const struct size_limit sizes[] = {
        {"C", a->C, 1, KV_MAX_C},    {"NH", a->NH, 1, KV_MAX_C},  {"KVH", a->KVH, 1, KV_MAX_C},
        {"HS", a->HS, 2, KV_MAX_HS}, {"T", a->T, 1, KV_MAX_SIZE}, {"longest", a->longest, 1, a->T},
    };
    TRY(check_dtype("kv_attention", a->dtype, error));
    TRY(check_sizes("kv_attention", sizes, sizeof sizes / sizeof *sizes, error));
    if (a->NH % a->KVH != 0) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "kv_attention: NH = %zu query heads; it must be a multiple of KVH = %zu key heads",
            a->NH, a->KVH);
    }
    if (a->HS % 2 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "kv_attention: HS = %zu is odd; it must be even", a->HS);
    }
    if ((a->NH + 2 * a->KVH) * a->HS > KV_MAX_C) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "kv_attention: q, k and v have %zu channels; it must be at most %zu",
                         (a->NH + 2 * a->KVH) * a->HS, KV_MAX_C);
    }
    if (!(a->theta > 0.0f) || isinf(a->theta)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "kv_attention: theta %g is not positive and finite", (double)a->theta);
    }
    return STATUS_OK;
}
