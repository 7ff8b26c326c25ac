/* Part (a) of the bench: every step of the ladder on every shape, beside OpenBLAS. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/checked.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/bench_program.h"
#include "common/bench/openblas.h"
#include "labs/01_cpu_matmul/bench/bench_internal.h"
#include "labs/01_cpu_matmul/matmul.h"

/* What --shape may ask for: 1 GiB a matrix, and about a minute a step at 4 GFLOP/s. */
enum { MOST_LOG2_NUMBERS = 28, MOST_LOG2_PRODUCTS = 36 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct matmul_shape default_shapes[] = {
    {512, 512, 512}, {1024, 1024, 1024}, {128, 3072, 768}, /* BERT's feed-forward network */
    {1, 768, 768},   {1, 32000, 288},                      /* decoding: a layer; a classifier */
};
static const struct matmul_shape quick_shapes[] = {{512, 512, 512}, {1, 768, 768}};

/* One shape's problem, and the function that a row measures. */
struct ladder_case {
    struct matmul_data data;
    struct guarded out;
    int threads;
    cpu_matmul_function *run;
};

struct row {
    const char *name;
    struct bench_timing timing; /* median_ms is NAN if the row was not measured */
    char wrong[256];            /* "" or a description of the mistake */
};

static bool within(size_t a, size_t b, int most_log2) {
    size_t product;
    return checked_multiply(a, b, &product) && product <= (size_t)1 << most_log2;
}

enum status bench_parse_shape(const char *text, struct matmul_shape *s, struct error *error) {
    size_t *const sizes[] = {&s->M, &s->N, &s->K};
    if (!bench_parse_sizes(text, sizes, 3)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape wants three sizes M,N,K, each at least 1, not '%s'", text);
    }
    if (!within(s->M, s->K, MOST_LOG2_NUMBERS) || !within(s->N, s->K, MOST_LOG2_NUMBERS) ||
        !within(s->M, s->N, MOST_LOG2_NUMBERS) || !within(s->M * s->N, s->K, MOST_LOG2_PRODUCTS)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s is too much: at most 2^%d numbers in a matrix, 2^%d products",
                         text, MOST_LOG2_NUMBERS, MOST_LOG2_PRODUCTS);
    }
    return STATUS_OK;
}

static enum status case_create(struct ladder_case *c, struct matmul_shape shape, int threads,
                               struct error *error) {
    struct rng rng = rng_create(1);
    c->threads = threads;
    TRY(matmul_data_create(&c->data, shape, 0, MATMUL_NORMAL, &rng, error));
    return guarded_create(&c->out, shape.M * shape.N);
}

static void case_free(struct ladder_case *c) {
    matmul_data_free(&c->data);
    guarded_free(&c->out);
}

static enum status run_case(void *argument) {
    struct ladder_case *c = argument;
    const struct matmul_shape s = c->data.shape;
    return c->run(c->out.data, c->data.in, c->data.weight, s.M, s.N, s.K, c->threads);
}

/* Runs once and checks the result; row->wrong receives "" or a description of the mistake. */
static void check_case(struct ladder_case *c, struct row *row) {
    guarded_poison(&c->out);
    enum status status = run_case(c);
    if (status != STATUS_OK) {
        snprintf(row->wrong, sizeof row->wrong, "%s", status_message(status));
    } else if (matmul_check_guarded(&c->data, &c->out, row->wrong, sizeof row->wrong)) {
        row->wrong[0] = '\0';
    }
}

/* Checks, then times. A slow step gets few runs. */
static enum status measure_row(const struct bench_setup *setup, struct ladder_case *c,
                               struct row *row) {
    struct bench_options options = bench_defaults();
    options.min_runs = 3;
    options.min_seconds = setup->quick ? 0.05 : 0.25;
    row->timing.median_ms = NAN;
    usleep(60000); /* threads of the row before may still spin, waiting for work */
    double start = bench_now();
    check_case(c, row);
    if (bench_now() - start > 0.1) {
        options.warmup = 0;
    }
    return row->wrong[0] == '\0' ? bench_run(&options, run_case, c, &row->timing) : STATUS_OK;
}

static void print_row(const struct bench_setup *setup, const struct matmul_shape *s,
                      const struct row *row, double first_ms, double peer_ms) {
    double ms = row->timing.median_ms;
    double rate = 1e-6 * matmul_flops(*s) / ms;
    if (row->wrong[0] != '\0') {
        printf("  %-26s %sWRONG%s: %s\n", row->name, terminal_colour(stdout, COLOUR_RED),
               terminal_plain(stdout), row->wrong);
        return;
    }
    printf("  %-26s %9.*f %9.1f %8.1f%% %8.1f %8.2fx", row->name, ms < 0.1 ? 5 : 3, ms, rate,
           100.0 * 1e9 * rate / setup->peaks.flops_per_s, 1e-6 * matmul_bytes(*s) / ms,
           first_ms / ms);
    if (isnan(peer_ms)) {
        printf(" %12s\n", "–");
    } else {
        printf(" %11.1f%%\n", 100.0 * peer_ms / ms);
    }
}

static enum status append_row(const struct bench_setup *setup, const struct matmul_shape *s,
                              const struct row *row, const char *peer, double peer_ms,
                              struct error *error) {
    char shape[64];
    snprintf(shape, sizeof shape, "%zux%zux%zu", s->M, s->N, s->K);
    const struct bench_record record = {
        .lab = "01_cpu_matmul",
        .subject = WARPBOOK_SUBJECT,
        .stage = row->name,
        .op = "matmul",
        .shape = shape,
        .dtype = "fp32",
        .threads = setup->threads,
        .timing = row->timing,
        .bytes = matmul_bytes(*s),
        .flops = matmul_flops(*s),
        .peer = peer,
        .peer_ratio = peer_ms / row->timing.median_ms,
    };
    return bench_append(&record, error);
}

/* The rows of one shape: OpenBLAS first, then the ladder. Progress counts rows. */
static enum status measure_rows(const struct bench_setup *setup, struct ladder_case *c,
                                struct row *rows, size_t count, const struct cpu_matmul_step *steps,
                                const char *peer) {
    struct progress progress = progress_create("measuring", count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        rows[i] = (struct row){.name = i == 0 ? peer : steps[i - 1].name};
        c->run = i == 0 ? openblas_matmul : steps[i - 1].run;
        if (i > 0 || openblas_available()) {
            status = measure_row(setup, c, &rows[i]);
        } else {
            rows[i].timing.median_ms = NAN;
        }
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

static void print_head(const struct bench_setup *setup, const struct matmul_shape *s) {
    printf("\nM %zu, N %zu, K %zu, up to %d thread%s\n", s->M, s->N, s->K, setup->threads,
           setup->threads == 1 ? "" : "s");
    printf("  %-26s %9s %9s %9s %8s %9s %12s\n", "step", "ms", "GFLOP/s", "of peak", "GB/s",
           "speedup", "of OpenBLAS");
}

static enum status report_rows(const struct bench_setup *setup, const struct matmul_shape *s,
                               const struct row *rows, size_t count, struct error *error) {
    bool peer = openblas_available() && rows[0].wrong[0] == '\0';
    double peer_ms = peer ? rows[0].timing.median_ms : NAN;
    bool wrong = false;
    print_head(setup, s);
    for (size_t i = openblas_available() ? 0 : 1; i < count; i++) {
        print_row(setup, s, &rows[i], rows[1].timing.median_ms, peer_ms);
        if (rows[i].wrong[0] != '\0') {
            wrong = true;
            continue;
        }
        TRY(append_row(setup, s, &rows[i], peer && i > 0 ? rows[0].name : NULL, peer_ms, error));
    }
    return wrong ? error_set(error, STATUS_MISMATCH, "a step of the ladder gives wrong results")
                 : STATUS_OK;
}

/* @param rows one for OpenBLAS, then one for each of `count` steps */
static enum status run_rows(const struct bench_setup *setup, struct matmul_shape shape,
                            struct ladder_case *c, struct row *rows,
                            const struct cpu_matmul_step *steps, size_t count,
                            struct error *error) {
    char peer[64];
    openblas_name(peer, sizeof peer);
    TRY(case_create(c, shape, setup->threads, error));
    TRY(measure_rows(setup, c, rows, count + 1, steps, peer));
    return report_rows(setup, &shape, rows, count + 1, error);
}

static enum status measure_shape(const struct bench_setup *setup, struct matmul_shape shape,
                                 struct error *error) {
    size_t count;
    const struct cpu_matmul_step *steps = cpu_matmul_ladder(&count);
    struct row *rows = calloc(count + 1, sizeof *rows);
    struct ladder_case c = {0};
    enum status status =
        rows != NULL ? run_rows(setup, shape, &c, rows, steps, count, error) : STATUS_OUT_OF_MEMORY;
    case_free(&c);
    free(rows);
    return status;
}

/* A wrong step does not keep later shapes from being measured. */
static enum status measure_shapes(const struct bench_setup *setup,
                                  const struct matmul_shape *shapes, size_t count,
                                  struct error *error) {
    enum status wrong = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        enum status status = measure_shape(setup, shapes[i], error);
        if (status != STATUS_MISMATCH) {
            TRY(status);
            continue;
        }
        wrong = status;
    }
    return wrong;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    if (setup->shape_text != NULL) {
        return measure_shapes(setup, &setup->shape, 1, error);
    }
    return setup->quick ? measure_shapes(setup, quick_shapes, COUNT(quick_shapes), error)
                        : measure_shapes(setup, default_shapes, COUNT(default_shapes), error);
}
