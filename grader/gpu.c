#include "grader/gpu.h"

#include <stdio.h>

#include "common/testing/testing.h"
#include "grader/logits.h"

bool grader_gpu_open(struct grader_gpu *gpu) {
    struct error error = {0};
    *gpu = (struct grader_gpu){0};
    enum status status = device_open(&error);
    if (status == STATUS_OK) {
        status = device_properties(&gpu->properties, &error);
    }
    if (status == STATUS_DEVICE) {
        TEST_FAIL(
            "not run: the GPU is out of order since an earlier case; its message comes first");
        return false;
    }
    if (status != STATUS_OK) {
        test_stop(__FILE__, __LINE__, "%s", error_text(&error, status));
        return false;
    }
    gpu->modelled = gpu->properties.modelled;
    snprintf(gpu->clock, sizeof gpu->clock,
             gpu->modelled ? "modelled for %s by simt" : "measured on %s", gpu->properties.name);
    return true;
}

/* Sums of some hundred fp32 numbers in another order, through a few layers. */
static const double LOGITS_TOLERANCE = 1e-4;

void grader_check_logits(const float *got, const float *want, size_t V, const char *whose) {
    struct logits_difference d = logits_difference(got, want, V);
    if (!(d.worst <= LOGITS_TOLERANCE * d.largest)) {
        TEST_FAIL("the model with %s: logits differ by %.3g of the largest, tolerance %.0e", whose,
                  d.worst / d.largest, LOGITS_TOLERANCE);
    }
}
