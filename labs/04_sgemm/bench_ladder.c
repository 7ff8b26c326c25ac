/* Part (a) of the bench: every step of the ladder on every shape, beside cuBLAS and the roofs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/terminal.h"
#include "common/bench/bench_program.h"
#include "common/bench/device_bench.h"
#include "labs/04_sgemm/bench_case.h"

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

/* A call that is expected to take longer than this is left out, unless --all is given. */
enum { LONGEST_SECONDS = 4 };
/* What simt does in about a minute, and in memory that is the host's. */
#define SIMT_PRODUCTS ((size_t)1 << 33)
#define SIMT_BYTES ((size_t)1 << 30)

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What a row shows. */
struct row {
    const char *name;
    struct bench_timing timing;
    double peer_ms;  /* cuBLAS, measured right after; NAN: none */
    double expected; /* seconds a call, when that was too long to measure; else 0 */
    char wrong[320]; /* "" or what is wrong */
};

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

static enum status run_step(void *argument, device_stream stream, struct error *error) {
    struct bench_case *c = argument;
    const struct sgemm_problem problem = bench_case_problem(c, c->shape.M);
    return c->run(&problem, c->workspace, stream, error);
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

/* Wall-clock seconds that a call will take, from one of 1/16 of the rows. */
static enum status expect_seconds(struct bench_case *c, double *seconds, struct error *error) {
    size_t M = ceil_div(c->shape.M, 16);
    const struct sgemm_problem problem = bench_case_problem(c, M);
    double start = bench_now();
    enum status status = c->run(&problem, c->workspace, NULL, error);
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    *seconds = (bench_now() - start) * (double)c->shape.M / (double)M;
    return status;
}

static struct device_bench_options options_of(const struct bench_setup *setup, double seconds) {
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = !setup->gpu.modelled; /* simt's report then shows your kernels alone */
    options.min_seconds = setup->quick ? 0.05 : 0.3;
    if (seconds > 0.1) {
        options.min_runs = 3;
        options.warmup = 1;
    }
    return options;
}

/* Checks, then times, then times cuBLAS. A very slow step is left out. */
static enum status measure_row(const struct bench_setup *setup, struct bench_case *c,
                               struct row *row, struct error *error) {
    double seconds;
    row->peer_ms = NAN;
    enum status status = expect_seconds(c, &seconds, error);
    if (status == STATUS_OK && seconds > LONGEST_SECONDS && !setup->all) {
        row->expected = seconds;
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = bench_case_check(c, row->wrong, sizeof row->wrong, error);
    }
    if (status != STATUS_OK || row->wrong[0] != '\0') {
        return status;
    }
    const struct device_bench_options options = options_of(setup, seconds);
    status = device_bench_run(&options, run_step, c, NULL, &row->timing, error);
    if (status == STATUS_OK && setup->cublas != NULL) {
        struct bench_timing peer;
        status = device_bench_run(&options, run_cublas, c, NULL, &peer, error);
        row->peer_ms = peer.median_ms;
    }
    return status;
}

static bool is_measured(const struct row *row) {
    return row->wrong[0] == '\0' && row->expected == 0.0;
}

/* fp32 multiply-adds at the clock the GPU really had. */
static double peak_of(const struct bench_setup *setup, const struct bench_timing *timing) {
    double mhz = 1e-3 * setup->gpu.clock_khz;
    return setup->gpu.peak_flops * (timing->clock_mhz > 0.0 ? timing->clock_mhz / mhz : 1.0);
}

static void print_ratio(double ratio) {
    if (isnan(ratio)) {
        printf(" %10s", "–"); /* three bytes, one column */
    } else {
        printf(" %7.2fx", ratio);
    }
}

static void print_percent(double share) {
    if (isnan(share)) {
        printf(" %10s", "–");
    } else {
        printf(" %7.1f%%", 100.0 * share);
    }
}

static void print_row(const struct bench_setup *setup, const struct bench_shape *s,
                      const struct row *row, double last_ms, double first_ms) {
    if (row->wrong[0] != '\0') {
        printf("  %-22s %sWRONG%s: %s\n", row->name, terminal_colour(stdout, COLOUR_RED),
               terminal_plain(stdout), row->wrong);
        return;
    }
    if (row->expected > 0.0) {
        printf("  %-22s left out: a call would take about %.0f s; --all measures it\n", row->name,
               row->expected);
        return;
    }
    double ms = row->timing.median_ms, rate = bench_flops(s) / (1e-3 * ms);
    printf("  %-22s %9.4f %9.1f %8.1f", row->name, ms, 1e-9 * rate, 1e-6 * bench_bytes(s) / ms);
    print_percent(row->peer_ms / ms);
    print_percent(roofline_share(&setup->roofs, bench_flops(s), bench_bytes(s), ms));
    print_percent(rate / peak_of(setup, &row->timing));
    print_ratio(last_ms / ms);
    print_ratio(first_ms / ms);
    printf("\n");
}

static enum status append_row(const struct bench_setup *setup, const struct bench_shape *s,
                              const struct row *row, struct error *error) {
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

/* One row a step, and records of those that are right. */
static enum status report_rows(const struct bench_setup *setup, const struct bench_shape *s,
                               const struct row *rows, size_t count, struct error *error) {
    enum status status = STATUS_OK;
    bool wrong = false;
    double first_ms = NAN, last_ms = NAN;
    printf("\nM %zu, N %zu, K %zu, B %s, %s\n", s->M, s->N, s->K,
           setup->form == SGEMM_B_PLAIN ? "plain" : "transposed", device_bench_verb(&setup->gpu));
    printf("  %-22s %9s %9s %8s %8s %8s %8s %8s %8s\n", "step", "ms", "GFLOP/s", "GB/s", "cuBLAS",
           "roofline", "peak", "step up", "in all");
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        print_row(setup, s, &rows[i], last_ms, first_ms);
        wrong = wrong || rows[i].wrong[0] != '\0';
        if (is_measured(&rows[i])) {
            last_ms = rows[i].timing.median_ms;
            first_ms = isnan(first_ms) ? last_ms : first_ms;
            status = append_row(setup, s, &rows[i], error);
        }
    }
    if (status == STATUS_OK && wrong) {
        status = error_set(error, STATUS_MISMATCH, "a step of the ladder gives wrong results");
    }
    return status;
}

/* Where the steps lie under the roofs, for one shape. */
static enum status plot_rows(const struct bench_setup *setup, const struct bench_shape *s,
                             const struct row *rows, size_t count, struct error *error) {
    char title[128], subtitle[400];
    struct roofline_point *points = calloc(count + 1, sizeof *points);
    if (points == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the picture");
    }
    snprintf(title, sizeof title, "SGEMM %zu x %zu x %zu", s->M, s->N, s->K);
    struct roofline_plot plot = {
        .title = title,
        .subtitle = device_bench_headline(&setup->gpu, subtitle, sizeof subtitle),
        .roofs = setup->roofs,
        .points = points,
    };
    for (size_t i = 0; i < count; i++) {
        if (is_measured(&rows[i])) {
            points[plot.count++] = (struct roofline_point){.name = rows[i].name,
                                                           .flops = bench_flops(s),
                                                           .bytes = bench_bytes(s),
                                                           .ms = rows[i].timing.median_ms};
        }
    }
    enum status status = roofline_plot(&plot, setup->plot, error);
    if (status == STATUS_OK) {
        printf("  picture: %s\n", setup->plot);
    }
    free(points);
    return status;
}

static enum status measure_rows(const struct bench_setup *setup, struct bench_case *c,
                                struct row *rows, size_t *count, struct error *error) {
    size_t steps_count;
    const struct sgemm_step *steps = sgemm_ladder(&steps_count);
    struct progress progress = progress_create("steps", steps_count);
    enum status status = STATUS_OK;
    *count = 0;
    for (size_t i = 0; i < steps_count && status == STATUS_OK; i++) {
        if (setup->step == NULL || strcmp(setup->step, steps[i].name) == 0) {
            rows[*count] = (struct row){.name = steps[i].name};
            c->run = steps[i].run;
            status = measure_row(setup, c, &rows[(*count)++], error);
            error_prefix(error, status, steps[i].name);
        }
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

static enum status measure_shape(const struct bench_setup *setup, struct bench_shape shape,
                                 bool plot, struct error *error) {
    size_t count;
    struct bench_case c = {0};
    (void)sgemm_ladder(&count);
    struct row *rows = calloc(count, sizeof *rows);
    enum status status = rows != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        status = bench_case_create(&c, shape, setup->form, error);
        c.cublas = setup->cublas;
    }
    if (status == STATUS_OK) {
        status = measure_rows(setup, &c, rows, &count, error);
    }
    if (status == STATUS_OK) {
        status = report_rows(setup, &shape, rows, count, error);
    }
    if (status == STATUS_OK && plot && setup->plot != NULL) {
        status = plot_rows(setup, &shape, rows, count, error);
    }
    bench_case_free(&c);
    free(rows);
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
