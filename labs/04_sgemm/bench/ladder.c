/* Part (a) of the bench: every step of the ladder on every shape, beside cuBLAS and the roofs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/ladder_rows.h"
#include "labs/04_sgemm/bench/case.h"

/* On a GPU: cubes, then BERT-base's layers for 8192 and for 2048 tokens. */
static const struct bench_shape gpu_shapes[] = {
    {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
    {8192, 768, 768},   {8192, 3072, 768},  {8192, 768, 3072},  {8192, 2304, 768},
    {2048, 768, 768},   {2048, 3072, 768},  {2048, 768, 3072},
};
static const struct bench_shape gpu_quick_shapes[] = {{1024, 1024, 1024}, {2048, 3072, 768}};
static const struct bench_shape simt_shapes[] = {
    {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}};
static const struct bench_shape simt_quick_shapes[] = {{256, 256, 256}};

/* What simt does in about a minute, and in memory that is the host's. */
#define SIMT_PRODUCTS ((size_t)1 << 33)
#define SIMT_BYTES ((size_t)1 << 30)

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum status bench_parse_shape(const char *text, struct bench_shape *s, struct error *error) {
    size_t *const sizes[] = {&s->M, &s->N, &s->K};
    if (!bench_parse_sizes(text, sizes, 3)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape wants three sizes M,N,K, each at least 1, not '%s'", text);
    }
    if (s->M > SGEMM_MAX_SIZE || s->N > SGEMM_MAX_SIZE || s->K > SGEMM_MAX_SIZE) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape %s: a size is at most %zu", text,
                         SGEMM_MAX_SIZE);
    }
    return STATUS_OK;
}

enum status bench_check_shape(const struct bench_setup *setup, const struct bench_shape *s,
                              struct error *error) {
    /* Below 2^62 bytes: sizes are at most 2^29. */
    size_t bytes =
        sizeof(float) * (s->M * s->K + s->N * s->K + s->M * s->N) + SGEMM_WORKSPACE_BYTES;
    size_t limit = setup->gpu.modelled ? SIMT_BYTES : setup->gpu.memory_bytes;
    if (setup->gpu.modelled && bench_flops(s) > 2.0 * (double)SIMT_PRODUCTS) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "--shape %zu,%zu,%zu: %.3g products take simt very long; at most %.3g here", s->M, s->N,
            s->K, 0.5 * bench_flops(s), (double)SIMT_PRODUCTS);
    }
    if (bytes > limit) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape %zu,%zu,%zu needs %zu bytes of device memory, %s has %zu", s->M,
                         s->N, s->K, bytes, setup->gpu.modelled ? "simt" : setup->gpu.name, limit);
    }
    return STATUS_OK;
}

static const char *step_name(size_t i) {
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    return i < count ? steps[i].name : NULL;
}

enum status bench_check_step(const char *name, struct error *error) {
    return bench_program_check_step(name, step_name, error);
}

static enum status run_rows(void *argument, size_t rows, struct error *error) {
    struct bench_case *c = argument;
    const struct sgemm_problem problem = bench_case_problem(c, rows);
    return c->run(&problem, c->workspace, NULL, error);
}

static enum status run_step(void *argument, device_stream stream, struct error *error) {
    struct bench_case *c = argument;
    const struct sgemm_problem problem = bench_case_problem(c, c->shape.M);
    return c->run(&problem, c->workspace, stream, error);
}

static enum status check_step(void *argument, char *wrong, size_t size, struct error *error) {
    return bench_case_check(argument, wrong, size, error);
}

static enum status run_cublas(void *argument, device_stream stream, struct error *error) {
    struct bench_case *c = argument;
    const struct cublas_problem problem = {.M = c->shape.M,
                                           .N = c->shape.N,
                                           .K = c->shape.K,
                                           .b_transposed = c->form == SGEMM_B_TRANSPOSED,
                                           .alpha = 1.0f,
                                           .A = c->A,
                                           .B = c->B,
                                           .C = c->C};
    return cublas_sgemm(c->cublas, &problem, c->workspace, SGEMM_WORKSPACE_BYTES, stream, error);
}

/* One table: all steps on one shape. */
struct table {
    const struct bench_setup *setup;
    struct bench_case c;
    struct ladder_row *rows;
    size_t count;
};

/* A step, and cuBLAS right after it. */
static enum status measure_step(void *argument, size_t i, struct ladder_row *row,
                                struct error *error) {
    size_t count;
    struct table *t = argument;
    const struct ladder_case c = {.argument = &t->c,
                                  .rows = t->c.shape.M,
                                  .run_rows = run_rows,
                                  .check = check_step,
                                  .run = run_step};
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = !t->setup->gpu.modelled; /* simt's report then shows your kernels alone */
    options.min_seconds = t->setup->quick ? 0.05 : 0.3;
    t->c.run = sgemm_ladder(&count)[i].run;
    TRY(ladder_measure_step(&c, t->setup->all, &options, row, error));
    if (ladder_row_is_measured(row) && t->c.cublas != NULL) {
        struct bench_timing peer;
        TRY(device_bench_run(&options, run_cublas, &t->c, NULL, &peer, error));
        row->peer_ms = peer.median_ms;
    }
    return STATUS_OK;
}

/* fp32 multiply-adds at the clock the GPU really had. */
static double peak_of(const struct bench_setup *setup, const struct bench_timing *timing) {
    double mhz = 1e-3 * setup->gpu.clock_khz;
    return setup->gpu.peak_flops * (timing->clock_mhz > 0.0 ? timing->clock_mhz / mhz : 1.0);
}

static enum status append_row(const struct bench_setup *setup, const struct bench_shape *s,
                              const struct ladder_row *row, struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    snprintf(shape, sizeof shape, "%zux%zux%zu", s->M, s->N, s->K);
    const struct bench_record record = {
        .lab = "04_sgemm",
        .subject = WARPBOOK_SUBJECT,
        .stage = row->name,
        .op = setup->form == SGEMM_B_PLAIN ? "sgemm" : "sgemm_transposed",
        .shape = shape,
        .dtype = "fp32",
        .threads = 1,
        .gpu = &gpu,
        .timing = row->timing,
        .bytes = bench_bytes(s),
        .flops = bench_flops(s),
        .peer = isnan(row->peer_ms) ? NULL : setup->peer,
        .peer_ratio = row->peer_ms / row->timing.median_ms,
    };
    return bench_append(&record, error);
}

static enum status show_row(void *argument, const struct ladder_row *row, double last_ms,
                            double first_ms, struct error *error) {
    const struct table *t = argument;
    const struct bench_shape *s = &t->c.shape;
    double ms = row->timing.median_ms, rate = bench_flops(s) / (1e-3 * ms);
    printf("  %-22s %9.4f %9.1f %8.1f", row->name, ms, 1e-9 * rate, 1e-6 * bench_bytes(s) / ms);
    ladder_print_percent(8, row->peer_ms / ms);
    ladder_print_percent(8, roofline_share(&t->setup->roofs, bench_flops(s), bench_bytes(s), ms));
    ladder_print_percent(8, rate / peak_of(t->setup, &row->timing));
    ladder_print_ratio(8, last_ms / ms);
    ladder_print_ratio(8, first_ms / ms);
    printf("\n");
    return append_row(t->setup, s, row, error);
}

static enum status report_rows(struct table *t, struct error *error) {
    const struct bench_shape *s = &t->c.shape;
    printf("\nM %zu, N %zu, K %zu, B %s, %s\n", s->M, s->N, s->K,
           t->setup->form == SGEMM_B_PLAIN ? "plain" : "transposed",
           device_bench_verb(&t->setup->gpu));
    printf("  %-22s %9s %9s %8s %8s %8s %8s %8s %8s\n", "step", "ms", "GFLOP/s", "GB/s", "cuBLAS",
           "roofline", "peak", "step up", "in all");
    return ladder_report(t->rows, t->count, 22, show_row, t, error);
}

static enum status plot_rows(const struct table *t, struct error *error) {
    char title[128];
    const struct bench_shape *s = &t->c.shape;
    snprintf(title, sizeof title, "SGEMM %zu x %zu x %zu", s->M, s->N, s->K);
    return ladder_plot(t->rows, t->count, title, &t->setup->gpu, &t->setup->roofs, bench_flops(s),
                       bench_bytes(s), t->setup->plot, error);
}

static enum status measure_table(struct table *t, bool plot, struct error *error) {
    TRY(ladder_measure(step_name, t->setup->step, measure_step, t, t->rows, &t->count, error));
    TRY(report_rows(t, error));
    return plot && t->setup->plot != NULL ? plot_rows(t, error) : STATUS_OK;
}

static enum status measure_shape(const struct bench_setup *setup, struct bench_shape shape,
                                 bool plot, struct error *error) {
    size_t count;
    (void)sgemm_ladder(&count);
    struct table t = {.setup = setup, .rows = calloc(count, sizeof *t.rows)};
    enum status status = t.rows != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        status = bench_case_create(&t.c, shape, setup->form, error);
        t.c.cublas = setup->cublas;
    }
    if (status == STATUS_OK) {
        status = measure_table(&t, plot, error);
    }
    bench_case_free(&t.c);
    free(t.rows);
    return status;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    const struct bench_shape *lists[] = {gpu_shapes, gpu_quick_shapes, simt_shapes,
                                         simt_quick_shapes};
    const size_t counts[] = {COUNT(gpu_shapes), COUNT(gpu_quick_shapes), COUNT(simt_shapes),
                             COUNT(simt_quick_shapes)};
    int list = 2 * setup->gpu.modelled + setup->quick;
    const struct bench_shape *shapes = setup->shape != NULL ? setup->shape : lists[list];
    size_t count = setup->shape != NULL ? 1 : counts[list];
    enum status status = STATUS_OK, wrong = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        if (bench_check_shape(setup, &shapes[i], NULL) != STATUS_OK) {
            continue; /* a small GPU */
        }
        status = measure_shape(setup, shapes[i], i + 1 == count, error);
        if (status == STATUS_MISMATCH) {
            wrong = status;
            status = STATUS_OK;
        }
    }
    return status != STATUS_OK ? status : wrong;
}
