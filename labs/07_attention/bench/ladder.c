/* Part (a) of the bench: every step on every shape. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "labs/07_attention/bench/parts.h"

/* More FLOPs than this take v1 and v2 seconds a call. */
static const double slow_flops = 4e11;

static const struct bench_shape gpu_shapes[] = {
    {NN_F32, 16, 12, 512, 64, false},  {NN_F16, 16, 12, 512, 64, false},
    {NN_BF16, 16, 12, 512, 64, false}, {NN_F32, 1, 12, 128, 64, false},
    {NN_BF16, 1, 12, 128, 64, false},  {NN_BF16, 4, 16, 8192, 128, true},
};

/* What simt does in seconds. */
static const struct bench_shape simt_shapes[] = {
    {NN_F32, 1, 12, 128, 64, false},
    {NN_BF16, 1, 12, 128, 64, false},
    {NN_F32, 2, 66, 128, 64, false},
    {NN_BF16, 2, 66, 128, 64, false},
};

enum status bench_check_step(const char *name, struct error *error) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(steps[i].name, name) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "no step '%s' in the ladder; there is '%s' to '%s'", name, steps[0].name,
                     steps[count - 1].name);
}

static enum status report_step(const struct bench_setup *setup, const struct bench_case *c,
                               const struct attention_step *step, const struct bench_timing *timing,
                               double first_ms, struct error *error) {
    char shape[96];
    const struct bench_shape *s = &c->shape;
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    double flops = bench_case_flops(c);
    printf("  %-22s %10.4f %10.2f %8.2fx\n", step->name, timing->median_ms,
           1e-9 * flops / timing->median_ms, first_ms / timing->median_ms);
    fflush(stdout);
    snprintf(shape, sizeof shape, "b%zu h%zu s%zu d%zu%s", s->B, s->NH, s->T, s->HS,
             s->causal ? " causal" : "");
    const struct bench_record record = {
        .lab = "07_attention",
        .subject = WARPBOOK_SUBJECT,
        .stage = step->name,
        .op = "attention",
        .shape = shape,
        .dtype = nn_dtype_name(s->dtype),
        .threads = 1,
        .gpu = &gpu,
        .timing = *timing,
        .bytes = bench_case_bytes(c),
        .flops = flops,
        .peer_ratio = NAN,
    };
    return bench_append(&record, error);
}

/* A wrong step does not keep the others from being measured; the first failure is reported. */
static enum status measure_shape(const struct bench_setup *setup, struct bench_case *c,
                                 struct error *error) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    double first_ms = 0.0;
    enum status wrong = STATUS_OK, status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct bench_timing timing;
        if (setup->step != NULL && strcmp(setup->step, steps[i].name) != 0) {
            continue;
        }
        if (bench_case_flops(c) > slow_flops && i + 2 < count && !setup->all) {
            printf("  %-22s %10s\n", steps[i].name, "(--all)");
            continue;
        }
        status = bench_case_time(setup, c, &steps[i], &timing, error);
        if (status == STATUS_MISMATCH || status == STATUS_UNSUPPORTED) {
            printf("  %-22s %10s %s\n", steps[i].name, "FAILED", error_text(error, status));
            wrong = status;
            status = STATUS_OK;
            continue;
        }
        if (status == STATUS_OK) {
            first_ms = first_ms > 0.0 ? first_ms : timing.median_ms;
            status = report_step(setup, c, &steps[i], &timing, first_ms, error);
        }
    }
    return status == STATUS_OK ? wrong : status;
}

static enum status run_shape(const struct bench_setup *setup, const struct bench_shape *s,
                             struct error *error) {
    struct bench_case c;
    printf("\nb%zu h%zu s%zu d%zu %s%s\n", s->B, s->NH, s->T, s->HS, nn_dtype_name(s->dtype),
           s->causal ? ", causal" : "");
    printf("  %-22s %10s %10s %9s\n", "step", "ms", "TFLOP/s", "in all");
    enum status status = bench_case_create(&c, s, FORM_FULL, NULL, error);
    if (status == STATUS_OK) {
        status = measure_shape(setup, &c, error);
    }
    bench_case_free(&c);
    return status;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    bool simt = setup->gpu.modelled;
    const struct bench_shape *list = simt ? simt_shapes : gpu_shapes;
    size_t count =
        simt ? sizeof simt_shapes / sizeof *simt_shapes : sizeof gpu_shapes / sizeof *gpu_shapes;
    if (setup->shape != NULL) {
        return run_shape(setup, setup->shape, error);
    }
    count = setup->quick ? 2 : count;
    enum status wrong = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        enum status status = run_shape(setup, &list[i], error);
        wrong = status != STATUS_OK ? status : wrong;
        if (status != STATUS_OK && status != STATUS_MISMATCH && status != STATUS_UNSUPPORTED) {
            break;
        }
    }
    return wrong;
}
