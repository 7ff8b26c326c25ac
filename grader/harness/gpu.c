#include "grader/harness/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/testing/testing.h"
#include "grader/harness/baseline_times.h"
#include "grader/harness/logits.h"
#include "grader/harness/program_folder.h"
#include "grader/harness/record.h"
#include "grader/isolation/remote.h"

static enum status open_device(struct device_properties *properties, struct error *error) {
    TRY(device_open(error));
    return device_properties(properties, error);
}

bool grader_gpu_open(struct grader_gpu *gpu) {
    struct error error = {0};
    *gpu = (struct grader_gpu){0};
    enum status status = open_device(&gpu->properties, &error);
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
    grade_record_device(gpu->properties.name, gpu->modelled);
    return true;
}

bool grader_gpu_open_for_timing(struct grader_gpu *gpu) {
    setenv("SIMT_CHECK", "bounds", 0);
    return grader_gpu_open(gpu);
}

/* Whether the build recorded the baseline's time, for this GPU. */
static bool is_recorded(const char *measure, const char *clock, double *ms) {
    char path[1024];
    const char *file = remote_program.baseline_times;
    struct error error = {0};
    return file != NULL && !baseline_times_recording() &&
           program_folder_path(path, sizeof path, file, &error) == STATUS_OK &&
           baseline_times_find(path, measure, clock, ms);
}

struct speedup grader_gpu_speedup(const struct grader_gpu *gpu, const char *lab,
                                  const char *measure, const char *subject, double margin) {
    struct speedup speedup = {.lab = lab,
                              .subject = subject,
                              .measure = measure,
                              .margin = margin,
                              .clock = gpu->clock,
                              .modelled = gpu->modelled,
                              .baseline_ms = INFINITY,
                              .subject_ms = INFINITY};
    speedup.recorded = is_recorded(measure, gpu->clock, &speedup.baseline_ms);
    return speedup;
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
