/**
 * @file endless_arguments.c
 * @brief Checks calls of endless_attention() and endless_add_norms() against the contract.
 */
#include "labs/14_endless_text/endless_text.h"

static enum status in_range(const char *what, const char *name, size_t size, size_t smallest,
                            size_t largest, struct error *error) {
    return size >= smallest && size <= largest
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT, "%s: %s = %zu is not in %zu .. %zu",
                           what, name, size, smallest, largest);
}

static enum status check_heads(const struct endless_attention *a, const char *what,
                               struct error *error) {
    TRY(in_range(what, "HS", a->HS, 1, ENDLESS_MAX_HS, error));
    TRY(in_range(what, "NH", a->NH, 1, ENDLESS_MAX_C / a->HS, error));
    TRY(in_range(what, "KVH", a->KVH, 1, a->NH, error));
    TRY(in_range(what, "rotary", a->rotary, 0, a->HS, error));
    if (a->NH % a->KVH != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s: NH = %zu query heads; it must be a multiple of KVH = %zu key heads",
                         what, a->NH, a->KVH);
    }
    if (a->rotary % 2 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s: rotary = %zu channels are rotated in pairs; it must be even", what,
                         a->rotary);
    }
    return STATUS_OK;
}

enum status endless_attention_check(const struct endless_attention *a, struct error *error) {
    static const char what[] = "endless_attention";
    if (a->dtype != NN_F32 && a->dtype != NN_F16 && a->dtype != NN_BF16) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s: %d is no type of numbers", what,
                         (int)a->dtype);
    }
    TRY(check_heads(a, what, error));
    size_t most = ENDLESS_MAX_SCORES / a->NH;
    TRY(in_range(what, "sinks", a->sinks, 0, most - 1, error));
    return in_range(what, "window", a->window, 1, most - a->sinks, error);
}

enum status endless_add_norms_check(const struct endless_add_norms *add, struct error *error) {
    static const char what[] = "endless_add_norms";
    TRY(in_range(what, "C", add->C, 1, ENDLESS_MAX_C, error));
    return in_range(what, "count", add->count, 1, 2, error);
}
