/**
 * @file ladder.cu
 * @brief What the hosts of all steps share: checking sizes.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"

enum status rows_check(const struct rows_problem *p, bool *empty, struct error *error) {
    *empty = p->rows == 0;
    if (p->C == 0 || p->C > ROWS_MAX_C) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "layernorm_softmax: C = %zu: a row has 1 to %zu elements", p->C,
                         ROWS_MAX_C);
    }
    if (p->rows > ROWS_MAX_ELEMENTS / p->C) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "layernorm_softmax: %zu rows of %zu are more than %zu elements", p->rows,
                         p->C, ROWS_MAX_ELEMENTS);
    }
    if (p->op == ROWS_SOFTMAX && p->mask != NULL && p->rows_a_mask == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "layernorm_softmax: rows_a_mask = 0: a mask is for at least one row");
    }
    return STATUS_OK;
}
