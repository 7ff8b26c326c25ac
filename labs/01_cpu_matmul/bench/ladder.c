/* Part (a) of the bench: every step of the ladder on every shape, beside OpenBLAS. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/checked.h"
#include "common/base/rng.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/openblas.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "labs/01_cpu_matmul/bench/parts.h"
#include "labs/01_cpu_matmul/matmul.h"

/* What --shape may ask for: 1 GiB a matrix, and about a minute a step at 4 GFLOP/s. */
enum { MOST_LOG2_NUMBERS = 28, MOST_LOG2_PRODUCTS = 36 };

static const struct bench_shape default_shapes[] = {
    {512, 512, 512}, {1024, 1024, 1024}, {128, 3072, 768}, /* BERT's feed-forward network */
    {1, 768, 768},   {1, 32000, 288},                      /* decoding: a layer; a classifier */
};
static const struct bench_shape quick_shapes[] = {{512, 512, 512}, {1, 768, 768}};

/* One shape's data, and the row that is measured. */
struct ladder_case {
    struct bench_shape shape;
    int threads;
    struct guarded in, weight, out;
    double *want;
    cpu_matmul_function *run;
};

/* What a row shows; ms is NAN when it was not measured. */
struct row {
    const char *name;
    struct bench_timing timing;
    char wrong[256]; /* "" or what is wrong */
};

/* Reads one size and moves on; false unless it is a number from 1 on with no sign before it. */
static bool parse_size(const char **text, size_t *size) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(*text, &end, 10);
    bool good = (*text)[0] >= '0' && (*text)[0] <= '9' && value >= 1 && errno == 0;
    *size = (size_t)value;
    *text = end;
    return good;
}

static bool within(size_t a, size_t b, int most_log2) {
    size_t product;
    return checked_multiply(a, b, &product) && product <= (size_t)1 << most_log2;
}

enum status bench_parse_shape(const char *text, struct bench_shape *s, struct error *error) {
    const char *rest = text;
    bool good = parse_size(&rest, &s->M) && *rest++ == ',' && parse_size(&rest, &s->N) &&
                *rest++ == ',' && parse_size(&rest, &s->K) && *rest == '\0';
    if (!good) {
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

static enum status case_create(struct ladder_case *c, struct bench_shape shape, int threads) {
    *c = (struct ladder_case){.shape = shape, .threads = threads};
    struct rng rng = rng_create(1);
    enum status status = guarded_create(&c->in, shape.M * shape.K);
    if (status == STATUS_OK) {
        status = guarded_create(&c->weight, shape.N * shape.K);
    }
    if (status == STATUS_OK) {
        status = guarded_create(&c->out, shape.M * shape.N);
    }
    if (status != STATUS_OK) {
        return status;
    }
    c->want = malloc(shape.M * shape.N * sizeof *c->want);
    if (c->want == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    rng_fill_normal(&rng, c->in.data, c->in.count, 1.0f);
    rng_fill_normal(&rng, c->weight.data, c->weight.count, 1.0f);
    nn_matmul_f64(c->want, c->in.data, c->weight.data, shape.M, shape.N, shape.K);
    return STATUS_OK;
}

static void case_free(struct ladder_case *c) {
    guarded_free(&c->in);
    guarded_free(&c->weight);
    guarded_free(&c->out);
    free(c->want);
}

static enum status run_case(void *argument) {
    struct ladder_case *c = argument;
    return c->run(c->out.data, c->in.data, c->weight.data, c->shape.M, c->shape.N, c->shape.K,
                  c->threads);
}

/* Says in row->wrong what is wrong with the result of one call, if anything is. */
static void check_case(struct ladder_case *c, struct row *row) {
    const struct bench_shape *s = &c->shape;
    guarded_poison(&c->out);
    enum status status = run_case(c);
    if (status != STATUS_OK) {
        snprintf(row->wrong, sizeof row->wrong, "%s", status_message(status));
        return;
    }
    struct comparison comparison = compare_f32(c->out.data, c->want, c->out.count,
                                               tolerance_dot_f32(s->K, sqrt((double)s->K)));
    if (!comparison.pass) {
        comparison_describe(&comparison, s->N, row->wrong, sizeof row->wrong);
    } else if (!guarded_intact(&c->out) || !guarded_intact(&c->in) || !guarded_intact(&c->weight)) {
        snprintf(row->wrong, sizeof row->wrong, "wrote outside of its output");
    }
}

/* Checks, then times. A slow step gets few runs. */
static enum status measure_row(const struct bench_setup *setup, struct ladder_case *c,
                               struct row *row) {
    struct bench_options options = bench_defaults();
    options.min_runs = 3;
    options.min_seconds = setup->quick ? 0.05 : 0.25;
    row->timing.median_ms = NAN;
    /* Threads of the row before may still spin, waiting for work. */
    usleep(60000);
    double start = bench_now();
    check_case(c, row);
    if (bench_now() - start > 0.1) {
        options.warmup = 0;
    }
    return row->wrong[0] == '\0' ? bench_run(&options, run_case, c, &row->timing) : STATUS_OK;
}

static double flops_of(const struct bench_shape *s) {
    return 2.0 * (double)s->M * (double)s->N * (double)s->K;
}

/* Each operand once: no kernel can move less. */
static double bytes_of(const struct bench_shape *s) {
    return sizeof(float) * ((double)s->M * (double)s->K + (double)s->N * (double)s->K +
                            (double)s->M * (double)s->N);
}

static void print_row(const struct bench_setup *setup, const struct bench_shape *s,
                      const struct row *row, double first_ms, double peer_ms) {
    double ms = row->timing.median_ms;
    double rate = 1e-6 * flops_of(s) / ms;
    if (row->wrong[0] != '\0') {
        printf("  %-26s %sWRONG%s: %s\n", row->name, terminal_colour(stdout, COLOUR_RED),
               terminal_plain(stdout), row->wrong);
        return;
    }
    printf("  %-26s %9.*f %9.1f %8.1f%% %8.1f %8.2fx", row->name, ms < 0.1 ? 5 : 3, ms, rate,
           100.0 * rate / setup->machine.gflop_per_s, 1e-6 * bytes_of(s) / ms, first_ms / ms);
    if (isnan(peer_ms)) {
        printf(" %12s\n", "–");
    } else {
        printf(" %11.1f%%\n", 100.0 * peer_ms / ms);
    }
}

static enum status append_row(const struct bench_setup *setup, const struct bench_shape *s,
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
        .bytes = bytes_of(s),
        .flops = flops_of(s),
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

static enum status report_rows(const struct bench_setup *setup, const struct bench_shape *s,
                               const struct row *rows, size_t count, struct error *error) {
    bool peer = openblas_available() && rows[0].wrong[0] == '\0';
    double peer_ms = peer ? rows[0].timing.median_ms : NAN;
    enum status status = STATUS_OK;
    bool wrong = false;
    printf("\nM %zu, N %zu, K %zu, up to %d thread%s\n", s->M, s->N, s->K, setup->threads,
           setup->threads == 1 ? "" : "s");
    printf("  %-26s %9s %9s %9s %8s %9s %12s\n", "step", "ms", "GFLOP/s", "of peak", "GB/s",
           "speedup", "of OpenBLAS");
    for (size_t i = openblas_available() ? 0 : 1; i < count && status == STATUS_OK; i++) {
        print_row(setup, s, &rows[i], rows[1].timing.median_ms, peer_ms);
        wrong = wrong || rows[i].wrong[0] != '\0';
        if (rows[i].wrong[0] == '\0') {
            status =
                append_row(setup, s, &rows[i], peer && i > 0 ? rows[0].name : NULL, peer_ms, error);
        }
    }
    if (status == STATUS_OK && wrong) {
        status = error_set(error, STATUS_MISMATCH, "a step of the ladder gives wrong results");
    }
    return status;
}

static enum status measure_shape(const struct bench_setup *setup, struct bench_shape shape,
                                 struct error *error) {
    char peer[64];
    size_t steps_count;
    const struct cpu_matmul_step *steps = cpu_matmul_ladder(&steps_count);
    struct row *rows = calloc(steps_count + 1, sizeof *rows);
    struct ladder_case c = {0};
    enum status status = rows != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    openblas_name(peer, sizeof peer);
    if (status == STATUS_OK) {
        status = case_create(&c, shape, setup->threads);
    }
    if (status == STATUS_OK) {
        status = measure_rows(setup, &c, rows, steps_count + 1, steps, peer);
    }
    if (status == STATUS_OK) {
        status = report_rows(setup, &shape, rows, steps_count + 1, error);
    }
    case_free(&c);
    free(rows);
    return status;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    const struct bench_shape *shapes = setup->quick ? quick_shapes : default_shapes;
    size_t count = setup->quick ? sizeof quick_shapes / sizeof *quick_shapes
                                : sizeof default_shapes / sizeof *default_shapes;
    enum status status = STATUS_OK;
    if (setup->shape != NULL) {
        shapes = setup->shape;
        count = 1;
    }
    enum status wrong = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = measure_shape(setup, shapes[i], error);
        if (status == STATUS_MISMATCH) {
            wrong = status;
            status = STATUS_OK;
        }
    }
    return status != STATUS_OK ? status : wrong;
}
