/* Q, k and v by one product with a (3C, C) weight, against three. */
#include <math.h>
#include <stdio.h>

#include "labs/04_sgemm/sgemm.h"
#include "labs/07_attention/bench/trial.h"

struct projection {
    size_t M, C;
    bool joined;
    void *in, *weight, *out, *workspace;
};

static enum status multiply(const struct projection *p, size_t first, size_t N, float *out,
                            device_stream stream, struct error *error) {
    const struct sgemm_problem problem = {
        .M = p->M,
        .N = N,
        .K = p->C,
        .form = SGEMM_B_TRANSPOSED,
        .alpha = 1.0f,
        .A = p->in,
        .B = (const float *)p->weight + first * p->C,
        .C = out,
    };
    return sgemm(&problem, p->workspace, stream, error);
}

static enum status project(void *argument, device_stream stream, struct error *error) {
    const struct projection *p = argument;
    float *out = p->out;
    if (p->joined) {
        return multiply(p, 0, 3 * p->C, out, stream, error);
    }
    for (size_t i = 0; i < 3; i++) {
        TRY(multiply(p, i * p->C, p->C, out + i * p->M * p->C, stream, error));
    }
    return STATUS_OK;
}

static enum status projection_create(struct projection *p, struct error *error) {
    const size_t bytes[] = {p->M * p->C * sizeof(float), 3 * p->C * p->C * sizeof(float),
                            3 * p->M * p->C * sizeof(float), SGEMM_WORKSPACE_BYTES};
    void **memory[] = {&p->in, &p->weight, &p->out, &p->workspace};
    for (int i = 0; i < 4; i++) {
        TRY(device_alloc(memory[i], bytes[i], error));
        TRY(device_set(*memory[i], 0, bytes[i], NULL, error)); /* the time depends on no value */
    }
    return STATUS_OK;
}

static enum status report(const struct ladder_setup *setup, const struct projection *p,
                          const struct bench_timing *timing, double first_ms, struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    const char *name = p->joined ? "one of N = 3C" : "three of N = C";
    double flops = 6.0 * (double)p->M * (double)p->C * (double)p->C;
    printf("  %-22s %10.4f %10.2f %8.2fx\n", name, timing->median_ms,
           1e-9 * flops / timing->median_ms, first_ms / timing->median_ms);
    snprintf(shape, sizeof shape, "M%zu C%zu, %s", p->M, p->C, name);
    const struct bench_record record = {
        .lab = "07_attention",
        .subject = WARPBOOK_SUBJECT,
        .stage = p->joined ? "joined" : "separate",
        .op = "qkv_projection",
        .shape = shape,
        .dtype = "fp32",
        .threads = 1,
        .gpu = &gpu,
        .timing = *timing,
        .bytes = 4.0 * (4.0 * (double)p->M * (double)p->C + 3.0 * (double)p->C * (double)p->C),
        .flops = flops,
        .peer_ratio = NAN,
    };
    return bench_append(&record, error);
}

/* Three products, then one. */
static enum status measure(const struct ladder_setup *setup, struct projection *p,
                           struct error *error) {
    const struct device_bench_options options = device_bench_defaults();
    double first_ms = 0.0;
    TRY(projection_create(p, error));
    for (int i = 0; i < 2; i++) {
        struct bench_timing timing;
        p->joined = i == 1;
        TRY(device_bench_run(&options, project, p, NULL, &timing, error));
        first_ms = i == 0 ? timing.median_ms : first_ms;
        TRY(report(setup, p, &timing, first_ms, error));
    }
    return STATUS_OK;
}

static enum status compare(const struct ladder_setup *setup, size_t M, size_t C,
                           struct error *error) {
    struct projection p = {.M = M, .C = C};
    printf("\nq, k and v of %zu tokens, C %zu, fp32, %s\n", M, C, device_bench_verb(&setup->gpu));
    printf("  %-22s %10s %10s %9s\n", "products", "ms", "TFLOP/s", "in all");
    enum status status = measure(setup, &p, error);
    device_free(p.in);
    device_free(p.weight);
    device_free(p.out);
    device_free(p.workspace);
    return status;
}

enum status bench_projection(const struct ladder_setup *setup, struct error *error) {
    if (setup->gpu.modelled) {
        return compare(setup, 128, 256, error);
    }
    TRY(compare(setup, 128, 768, error));
    return compare(setup, 8192, 768, error);
}
