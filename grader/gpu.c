#include "grader/gpu.h"

#include <stdio.h>

#include "common/testing/testing.h"

bool grader_gpu_open(struct grader_gpu *gpu) {
    struct error error = {0};
    *gpu = (struct grader_gpu){0};
    enum status status = device_open(&error);
    if (status == STATUS_OK) {
        status = device_properties(&gpu->properties, &error);
    }
    if (status == STATUS_DEVICE) {
        TEST_FAIL("not run: the GPU stopped in an earlier case (%s)", error_text(&error, status));
        return false;
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return false;
    }
    gpu->modelled = gpu->properties.modelled;
    snprintf(gpu->clock, sizeof gpu->clock,
             gpu->modelled ? "modelled for %s by simt" : "measured on %s", gpu->properties.name);
    return true;
}
