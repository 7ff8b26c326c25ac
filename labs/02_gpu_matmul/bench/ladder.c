/* Part (a) of the bench: every step of the ladder, operands in device memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/base/terminal.h"
#include "common/bench/device/device_bench.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "labs/02_gpu_matmul/bench/parts.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

struct size {
    size_t M, N, K;
    const char *where;
};

static const struct size default_sizes[] = {
    {1, 768, 288, "a layer of the 15M shape"},   {1, 32000, 288, "its classifier"},
    {1, 768, 2048, "a layer of the 110M shape"}, {1, 5632, 2048, "a layer of the 1.1B shape"},
    {64, 2048, 768, "64 tokens of a prompt"},
};
static const struct size quick_sizes[] = {
    {1, 768, 288, "a layer of the 15M shape"},
    {4, 96, 288, "four tokens of a prompt"},
};

/* One size's data. */
struct ladder_case {
    struct size size;
    float *values; /* host: in, then weight */
    double *want;
    float *got;
    float *d_in, *d_weight, *d_out;
    gpu_matmul_kernel *run;
};

/* What a row shows. */
struct row {
    const char *name;
    struct bench_timing timing;
    char wrong[512]; /* "" or what is wrong */
};

static double flops_of(const struct size *s) {
    return 2.0 * (double)s->M * (double)s->N * (double)s->K;
}

/* Each operand once: no kernel can move less. */
static double bytes_of(const struct size *s) {
    return sizeof(float) * ((double)s->M * (double)s->K + (double)s->N * (double)s->K +
                            (double)s->M * (double)s->N);
}

static void case_free(struct ladder_case *c) {
    free(c->values);
    free(c->want);
    free(c->got);
    device_free(c->d_in);
    device_free(c->d_weight);
    device_free(c->d_out);
}

static enum status to_device(float **d, const float *values, size_t count, struct error *error) {
    void *memory;
    enum status status = device_alloc(&memory, count * sizeof(float), error);
    *d = memory;
    return status == STATUS_OK && values != NULL
               ? device_write(memory, values, count * sizeof(float), NULL, error)
               : status;
}

static enum status case_create(struct ladder_case *c, const struct size *s, struct error *error) {
    struct rng rng = rng_create(1);
    *c = (struct ladder_case){.size = *s};
    c->values = malloc((s->M + s->N) * s->K * sizeof(float));
    c->want = malloc(s->M * s->N * sizeof(double));
    c->got = malloc(s->M * s->N * sizeof(float));
    if (c->values == NULL || c->want == NULL || c->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    const float *weight = c->values + s->M * s->K;
    rng_fill_normal(&rng, c->values, (s->M + s->N) * s->K, 1.0f);
    nn_matmul_f64(c->want, c->values, weight, s->M, s->N, s->K);
    enum status status = to_device(&c->d_in, c->values, s->M * s->K, error);
    if (status == STATUS_OK) {
        status = to_device(&c->d_weight, weight, s->N * s->K, error);
    }
    return status == STATUS_OK ? to_device(&c->d_out, NULL, s->M * s->N, error) : status;
}

static enum status run_case(void *argument, device_stream stream, struct error *error) {
    struct ladder_case *c = argument;
    return c->run(c->d_out, c->d_in, c->d_weight, c->size.M, c->size.N, c->size.K, stream, error);
}

/* Says in row->wrong what is wrong with the result of one call, if anything is. */
static enum status check_case(struct ladder_case *c, struct row *row, struct error *error) {
    const struct size *s = &c->size;
    size_t bytes = s->M * s->N * sizeof(float);
    enum status status = device_set(c->d_out, 0xff, bytes, NULL, error);
    if (status == STATUS_OK) {
        status = run_case(c, NULL, error);
    }
    if (status == STATUS_OK) {
        status = device_read(c->got, c->d_out, bytes, NULL, error);
    }
    if (status == STATUS_OK) {
        struct comparison comparison =
            compare_f32(c->got, c->want, s->M * s->N, tolerance_dot_f32(s->K, sqrt((double)s->K)));
        if (!comparison.pass) {
            comparison_describe(&comparison, s->N, row->wrong, sizeof row->wrong);
        }
    }
    return status;
}

/* Checks, then times; weights come from memory, as they do in a decoder. */
static enum status measure_row(const struct bench_setup *setup, struct ladder_case *c,
                               struct row *row, struct error *error) {
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = true;
    if (setup->quick) {
        options.min_seconds = 0.02;
        options.max_runs = 20;
    }
    enum status status = check_case(c, row, error);
    return status == STATUS_OK && row->wrong[0] == '\0'
               ? device_bench_run(&options, run_case, c, NULL, &row->timing, error)
               : status;
}

static void print_row(const struct bench_setup *setup, const struct size *s, const struct row *row,
                      double first_ms) {
    double ms = row->timing.median_ms;
    if (row->wrong[0] != '\0') {
        printf("  %-26s %sWRONG%s: %s\n", row->name, terminal_colour(stdout, COLOUR_RED),
               terminal_plain(stdout), row->wrong);
        return;
    }
    printf("  %-26s %9.4f %9.1f %9.1f %12.1f%% %8.2fx\n", row->name, ms, 1e-6 * bytes_of(s) / ms,
           1e-6 * flops_of(s) / ms,
           100.0 * roofline_share(&setup->roofs, flops_of(s), bytes_of(s), ms), first_ms / ms);
}

static enum status append_row(const struct bench_setup *setup, const struct size *s,
                              const struct row *row, struct error *error) {
    char shape[64];
    const struct bench_gpu gpu = bench_gpu_of(&setup->properties);
    snprintf(shape, sizeof shape, "%zux%zux%zu", s->M, s->N, s->K);
    const struct bench_record record = {
        .lab = "02_gpu_matmul",
        .subject = WARPBOOK_SUBJECT,
        .stage = row->name,
        .op = "matmul",
        .shape = shape,
        .dtype = "fp32",
        .threads = 1,
        .gpu = &gpu,
        .timing = row->timing,
        .bytes = bytes_of(s),
        .flops = flops_of(s),
        .peer_ratio = NAN,
    };
    return bench_append(&record, error);
}

/* The rows of one size. *wrong: some step gave a wrong result. */
static enum status run_rows(const struct bench_setup *setup, struct ladder_case *c, bool *wrong,
                            struct error *error) {
    size_t count;
    const struct gpu_matmul_step *steps = gpu_matmul_ladder(&count);
    enum status status = STATUS_OK;
    double first_ms = NAN;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct row row = {.name = steps[i].name};
        c->run = steps[i].run;
        status = measure_row(setup, c, &row, error);
        if (status == STATUS_OK) {
            first_ms = i == 0 ? row.timing.median_ms : first_ms;
            print_row(setup, &c->size, &row, first_ms);
            *wrong = *wrong || row.wrong[0] != '\0';
        }
        if (status == STATUS_OK && row.wrong[0] == '\0') {
            status = append_row(setup, &c->size, &row, error);
        }
    }
    return status;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    const struct size *sizes = setup->quick ? quick_sizes : default_sizes;
    size_t count = setup->quick ? sizeof quick_sizes / sizeof *quick_sizes
                                : sizeof default_sizes / sizeof *default_sizes;
    enum status status = STATUS_OK;
    bool wrong = false;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct size *s = &sizes[i];
        struct ladder_case c;
        printf("\nM %zu, N %zu, K %zu: %s\n", s->M, s->N, s->K, s->where);
        printf("  %-26s %9s %9s %9s %13s %9s\n", "step", "ms", "GB/s", "GFLOP/s", "of roofline",
               "speedup");
        status = case_create(&c, s, error);
        if (status == STATUS_OK) {
            status = run_rows(setup, &c, &wrong, error);
        }
        case_free(&c);
    }
    if (status == STATUS_OK && wrong) {
        status = error_set(error, STATUS_MISMATCH, "a step of the ladder gives wrong results");
    }
    return status;
}
