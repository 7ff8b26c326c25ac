#include "common/testing/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

#ifdef __FAST_MATH__
#error "the comparator must see NaN and infinity: build it without fast-math"
#endif

enum { GUARD_BYTES = 4096, GUARD_BYTE = 0xa5 };

enum { FEWEST_TERMS = 16 };

static double bound_of_terms(double terms) {
    return 4.0 * 0x1p-24 * pow(terms, 0.75);
}

struct tolerance tolerance_dot_f32(size_t K, double scale) {
    double bound = bound_of_terms(K > 0 ? (double)K : 1.0);
    double absolute = fmax(bound, bound_of_terms(FEWEST_TERMS)) * scale;
    return (struct tolerance){.absolute = absolute, .relative = bound, .norm = bound};
}

struct comparison compare_f32(const float *got, const double *want, size_t count,
                              struct tolerance tolerance) {
    struct comparison result = {.pass = true, .finite = true, .norm_allowed = tolerance.norm};
    double worst_excess = -1.0;
    double difference_squared = 0.0;
    double want_squared = 0.0;
    for (size_t i = 0; i < count; i++) {
        double allowed = tolerance.absolute + tolerance.relative * fabs(want[i]);
        double difference = fabs((double)got[i] - want[i]);
        bool finite = isfinite(got[i]) && isfinite(want[i]);
        double excess = !finite          ? INFINITY
                        : allowed > 0    ? difference / allowed
                        : difference > 0 ? INFINITY
                                         : 0.0;
        if (excess > worst_excess) {
            worst_excess = excess;
            result.worst = i;
            result.got = got[i];
            result.want = want[i];
            result.allowed = allowed;
        }
        if (!finite) {
            result.finite = false;
            break;
        }
        difference_squared += difference * difference;
        want_squared += want[i] * want[i];
    }
    result.norm_error = !result.finite             ? INFINITY
                        : want_squared > 0.0       ? sqrt(difference_squared / want_squared)
                        : difference_squared > 0.0 ? INFINITY
                                                   : 0.0;
    bool element_good = worst_excess <= 1.0;
    bool norm_good =
        result.norm_error <= tolerance.norm || sqrt(difference_squared) <= tolerance.absolute;
    result.pass = result.finite && element_good && norm_good;
    return result;
}

void comparison_describe(const struct comparison *comparison, size_t columns, char *text,
                         size_t size) {
    size_t row = columns > 0 ? comparison->worst / columns : 0;
    size_t column = columns > 0 ? comparison->worst % columns : comparison->worst;
    snprintf(text, size,
             "index [%zu, %zu]: got %.9g, want %.9g, difference %.3g, tolerance %.3g; "
             "norm-relative error %.3g, tolerance %.3g",
             row, column, comparison->got, comparison->want,
             fabs(comparison->got - comparison->want), comparison->allowed, comparison->norm_error,
             comparison->norm_allowed);
}

enum status guarded_create(struct guarded *guarded, size_t count) {
    *guarded = (struct guarded){0};
    size_t bytes;
    if (!checked_multiply(count, sizeof(float), &bytes) ||
        !checked_add(bytes, 2 * GUARD_BYTES + 64, &bytes)) {
        return STATUS_OVERFLOW;
    }
    bytes = ceil_div(bytes, 64) * 64;
    guarded->block = aligned_alloc(64, bytes);
    if (guarded->block == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memset(guarded->block, GUARD_BYTE, bytes);
    guarded->block_size = bytes;
    guarded->data = (float *)((unsigned char *)guarded->block + GUARD_BYTES);
    guarded->count = count;
    guarded_poison(guarded);
    return STATUS_OK;
}

void guarded_poison(struct guarded *guarded) {
    for (size_t i = 0; i < guarded->count; i++) {
        guarded->data[i] = NAN;
    }
}

bool guarded_intact(const struct guarded *guarded) {
    const unsigned char *block = guarded->block;
    const unsigned char *end = (const unsigned char *)(guarded->data + guarded->count);
    for (const unsigned char *byte = block; byte < block + guarded->block_size; byte++) {
        if (byte == (const unsigned char *)guarded->data) {
            byte = end;
        }
        if (*byte != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

void guarded_free(struct guarded *guarded) {
    free(guarded->block);
    *guarded = (struct guarded){0};
}
