#include "common/bench/models/compare_logits.h"

#include <math.h>

double largest_difference(const float *got, const float *want, size_t count) {
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(got[i]) || !isfinite(want[i])) {
            return INFINITY;
        }
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        largest = fmax(largest, fabs((double)want[i]));
    }
    return worst / largest;
}

enum status compare_logits(const float *got, const char *got_name, const float *want,
                           const char *want_name, size_t count, struct error *error) {
    double difference = largest_difference(got, want, count);
    if (!(difference < 1e-3)) {
        return error_set(error, STATUS_MISMATCH,
                         "%s gives other logits than %s: they differ by %.3g of the largest",
                         got_name, want_name, difference);
    }
    return STATUS_OK;
}

/*
 * In 16 bits in units of the dtype's rounding: about a hundred roundings lie between ids and logits
 * and add up like a random walk, to ten; three times that.
 */
double logits_tolerance(enum nn_dtype dtype) {
    return dtype == NN_F32 ? 1e-4 : 30.0 * nn_dtype_rounding(dtype);
}

enum status compare_stage_logits(const float *got, const char *got_name, enum nn_dtype dtype,
                                 const char *what, const float *want, const char *want_name,
                                 size_t count, double *difference, struct error *error) {
    *difference = largest_difference(got, want, count);
    return *difference <= logits_tolerance(dtype)
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "%s in %s, %s: logits differ by %.3g of the largest from %s's, more "
                           "than %.3g",
                           got_name, nn_dtype_name(dtype), what, *difference, want_name,
                           logits_tolerance(dtype));
}
