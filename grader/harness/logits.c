#include "grader/harness/logits.h"

#include <math.h>

#include "common/testing/testing.h"

struct logits_difference logits_difference(const float *got, const float *want, size_t count) {
    struct logits_difference d = {0.0, 0.0};
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(got[i]) || !isfinite(want[i])) {
            return (struct logits_difference){INFINITY, 0.0};
        }
        d.worst = fmax(d.worst, fabs((double)got[i] - (double)want[i]));
        d.largest = fmax(d.largest, fabs((double)want[i]));
    }
    return d;
}

void grader_check_close_logits(const float *got, const float *want, size_t count,
                               const char *what) {
    struct logits_difference d = logits_difference(got, want, count);
    double relative = d.worst / d.largest;
    if (!(relative <= 2e-5)) {
        TEST_FAIL("%s: logits differ by %.3g of the largest, tolerance 2e-5", what, relative);
    }
}

void grader_check_timed_logits(const float *got, const float *want, size_t count,
                               const char *what) {
    struct logits_difference d = logits_difference(got, want, count);
    if (!(d.worst <= 1e-4 * d.largest)) {
        TEST_FAIL("%s gives other logits: worst difference %.3g of %.3g", what, d.worst, d.largest);
    }
}

void grader_check_16_bit_logits(const float *got, const float *want, size_t count, size_t layers,
                                const char *what) {
    double squares = 0.0, difference = 0.0, tolerance = 0.007 * sqrt((double)layers);
    for (size_t i = 0; i < count; i++) {
        double off = (double)got[i] - (double)want[i];
        squares += (double)want[i] * (double)want[i];
        difference += off * off;
    }
    double norm = sqrt(difference / squares);
    if (!(norm <= tolerance)) {
        TEST_FAIL("%s gives other logits: norm-relative error %.3g, tolerance %.3g", what, norm,
                  tolerance);
    }
}
