#include "grader/harness/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/simt/why.h"
#include "common/testing/testing.h"
#include "grader/harness/baseline_times.h"
#include "grader/harness/condition.h"
#include "grader/harness/logits.h"
#include "grader/harness/program_folder.h"
#include "grader/harness/record.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"

static enum status open_device(struct device_properties *properties, struct error *error) {
    TRY(device_open(error));
    return device_properties(properties, error);
}

/* simt follows some warps of a launch, drawn by a seed that nobody foresees; a run that is repeated
 * by its own seed draws the same ones each time. */
static void draw_followed_warps(void) {
    char seed[32];
    const char *fixed = getenv("WARPBOOK_SEED");
    if (fixed == NULL || fixed[0] == '\0') {
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)rng_secret_seed());
        setenv("SIMT_SEED", seed, 0);
    }
}

bool grader_gpu_open(struct grader_gpu *gpu) {
    draw_followed_warps();
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

bool grader_gpu_probe(void) {
    struct error error = {0};
    enum status status = remote_probe_first(&error);
    if (status != STATUS_OK) {
        test_stop(__FILE__, __LINE__, "%s", error_text(&error, status));
    }
    return status == STATUS_OK;
}

bool grader_gpu_open_for_timing(struct grader_gpu *gpu) {
    if (!grader_gpu_probe()) {
        return false;
    }
    /* A block without a barrier or a wait for a copy is faster, and simt's results are right
       without. A baseline whose time is recorded is not the learner's. */
    setenv("SIMT_CHECK", baseline_times_recording() ? "bounds" : "sampled", 0);
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

/* One line: the profile, and what to try. What the worker says of its kernels is cleaned. */
static void say_why(char *text, size_t size) {
    struct simt_profile profile;
    char line[WHY_BYTES], advice[WHY_BYTES];
    text[0] = '\0';
    if (remote_device_longest(&profile)) {
        (void)why_line(&profile, line, sizeof line);
        (void)why_advice(&profile, advice, sizeof advice);
        snprintf(text, size, "%s%s%s", line, advice[0] != '\0' ? ": " : "", advice);
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
}

/*
 * What the probes find now, and what they say of the GPU, which is printed unless all is fine.
 * Limits before a submission and beside it that differ by more than probes do mean that somebody
 * else was at work, or the submission itself.
 */
static enum status look_at_gpu(struct device_limits *limits, struct condition *condition,
                               struct error *error) {
    struct device_properties gpu;
    struct remote_spread spread;
    TRY(remote_device_limits(limits, &spread, error));
    TRY(device_properties(&gpu, error));
    struct device_limits now = *limits;
    now.read_spread = fmax(now.read_spread, 1.0 + spread.read);
    now.flops_spread = fmax(now.flops_spread, 1.0 + spread.flops);
    now.call_ms = spread.call_ms;
    *condition = condition_of(&gpu, &now);
    if (condition->kind != CONDITION_FINE) {
        printf("note: %s\n", condition->text);
    }
    return STATUS_OK;
}

struct least_time grader_gpu_least_time(const struct work *work) {
    struct device_limits limits;
    struct condition condition = {0};
    struct error error = {0};
    enum status status = look_at_gpu(&limits, &condition, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("the GPU's limits: %s", error_text(&error, status));
        return (struct least_time){0};
    }
    struct least_time least = work_least_time(work, &limits);
    least.disturbed = condition_disturbs(&condition);
    least.throttled = condition.kind == CONDITION_THROTTLED;
    grade_record_limits(&limits);
    return least;
}

/* The probes ran before the calls or behind them; others may have come or gone meanwhile. */
static bool is_disturbed(const struct least_time *least) {
    struct device_limits limits;
    struct condition condition = {0};
    enum status status = look_at_gpu(&limits, &condition, NULL);
    return status == STATUS_OK && (condition_disturbs(&condition) ||
                                   (condition.kind == CONDITION_THROTTLED && !least->throttled));
}

struct speedup grader_gpu_speedup(const struct grader_gpu *gpu, const char *lab,
                                  const char *measure) {
    struct speedup speedup = {.lab = lab,
                              .subject = graded_subject.name,
                              .measure = measure,
                              .margin = graded_subject.margin,
                              .clock = gpu->clock,
                              .modelled = gpu->modelled,
                              .baseline_ms = INFINITY,
                              .subject_ms = INFINITY,
                              .disturbed = gpu->modelled ? NULL : is_disturbed,
                              .why = say_why};
    char rest[80];
    speedup.recorded = is_recorded(measure, gpu->clock, &speedup.baseline_ms);
    (void)is_recorded(baseline_times_of_rest(measure, rest, sizeof rest), gpu->clock,
                      &speedup.rest_ms);
    return speedup;
}

bool grader_gpu_can(const struct grader_gpu *gpu, const struct work *work) {
    if (work->tensor_flops > 0.0 && gpu->properties.code < 80) {
        test_skip(__FILE__, __LINE__,
                  "%s has no tensor cores for bf16: this is not graded here, and its points go to "
                  "the lab's other measures",
                  gpu->properties.name);
        return false;
    }
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
