/* Part (a) of the bench: every step of the ladder for every operation, beside the plain matmul. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/terminal.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_launches.h"
#include "common/bench/ladder_rows.h"
#include "labs/06_fused_epilogues/bench/case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What --op and records call an operation, and its N and K in BERT-base; in rows of a smaller model
   where time is modelled. */
struct bench_op {
    const char *name;
    size_t N, K;
};

static const struct bench_op ops[FUSED_OPS] = {
    [FUSED_LINEAR] = {"linear", 2304, 768},
    [FUSED_LINEAR_ACTIVATION] = {"linear_activation", 3072, 768},
    [FUSED_LINEAR_ADD] = {"linear_add", 768, 768},
    [FUSED_LINEAR_ADD_NORM] = {"linear_add_norm", 768, 768},
    [FUSED_GELU_LINEAR_ADD_NORM] = {"gelu_linear_add_norm", 768, 3072},
    [FUSED_ADD_NORM] = {"add_norm", 768, 0},
    [FUSED_ADD_KEEP_NORM] = {"add_keep_norm", 768, 0},
};

/* Rows: 16 sentences of 512, of 128, of 32 tokens. On simt N and K are a third, too. */
static const size_t gpu_rows[] = {8192, 2048, 512};
static const size_t simt_rows[] = {512};
enum { SIMT_SHRINKS = 3 };

/* A call that is expected to take longer than this is left out, unless --all is given. */
enum { LONGEST_SECONDS = 4 };
/* What simt does in about a minute, and in memory that is the host's. */
#define SIMT_PRODUCTS ((size_t)1 << 33)
#define SIMT_BYTES ((size_t)1 << 30)

/* What a row shows. */
struct row {
    const char *name;
    struct bench_timing timing;
    size_t launches;
    bool slow;       /* left out */
    char wrong[320]; /* "" or what is wrong */
};

enum status bench_parse_shape(const char *text, struct fused_shape *s, struct error *error) {
    size_t *const sizes[] = {&s->M, &s->N, &s->K};
    if (!bench_parse_sizes(text, sizes, 3)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape wants three sizes M,N,K, each at least 1, not '%s'", text);
    }
    if (s->M > FUSED_MAX_ROWS || s->N > FUSED_MAX_COLUMNS || s->K > FUSED_MAX_COLUMNS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s: M is at most %zu, N and K %zu", text, FUSED_MAX_ROWS,
                         FUSED_MAX_COLUMNS);
    }
    return STATUS_OK;
}

enum status bench_parse_op(const char *text, int *op, struct error *error) {
    char names[256] = "";
    for (int i = 0; i < FUSED_OPS; i++) {
        if (strcmp(text, ops[i].name) == 0) {
            *op = i;
            return STATUS_OK;
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "", ops[i].name);
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--op %s: there is %s", text, names);
}

enum status bench_check_step(const char *name, struct error *error) {
    size_t count;
    char names[256] = "";
    const struct fused_step *steps = fused_epilogues_ladder(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, steps[i].name) == 0) {
            return STATUS_OK;
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "", steps[i].name);
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--step %s: there is %s", name, names);
}

enum status bench_check_shape(const struct bench_setup *setup, const struct fused_shape *s,
                              struct error *error) {
    double bytes = 4.0 * ((double)s->M * (double)(s->K > s->N ? s->K : s->N) +
                          (double)s->N * (double)s->K + 3.0 * (double)s->M * (double)s->N) +
                   (double)FUSED_WORKSPACE_BYTES;
    size_t there = setup->gpu.modelled ? SIMT_BYTES : setup->gpu.memory_bytes;
    if (bytes > (double)there) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "M %zu, N %zu, K %zu needs %.0f bytes of device memory, %s has %zu", s->M,
                         s->N, s->K, bytes, setup->gpu.modelled ? "this bench on simt" : "the GPU",
                         there);
    }
    double products = (double)s->M * (double)s->N * (double)s->K;
    if (setup->gpu.modelled && products > (double)SIMT_PRODUCTS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "M %zu, N %zu, K %zu: %.0f products take simt very long", s->M, s->N, s->K,
                         products);
    }
    return STATUS_OK;
}

static struct device_bench_options options_of(const struct bench_setup *setup) {
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = !setup->gpu.modelled; /* simt's report then shows your kernels alone */
    options.min_seconds = setup->quick ? 0.05 : 0.3;
    return options;
}

/* Checks, counts launches, then times. A very slow step is left out. */
static enum status measure_row(const struct bench_setup *setup, struct bench_case *c,
                               struct row *row, struct error *error) {
    double start = bench_now();
    TRY(bench_case_check(c, row->wrong, sizeof row->wrong, error));
    if (row->wrong[0] != '\0') {
        return STATUS_OK;
    }
    row->slow = bench_now() - start > LONGEST_SECONDS && !setup->all;
    TRY(device_count_launches(bench_case_run, c, &row->launches, error));
    if (row->slow) {
        return STATUS_OK;
    }
    const struct device_bench_options options = options_of(setup);
    return device_bench_run(&options, bench_case_run, c, NULL, &row->timing, error);
}

static void print_row(const struct row *row, double last_ms, double first_ms, double matmul_ms) {
    if (row->wrong[0] != '\0') {
        printf("  %-22s %sWRONG%s: %s\n", row->name, terminal_colour(stdout, COLOUR_RED),
               terminal_plain(stdout), row->wrong);
        return;
    }
    if (row->slow) {
        printf("  %-22s %8zu  left out: a call takes seconds; --all measures it\n", row->name,
               row->launches);
        return;
    }
    double ms = row->timing.median_ms;
    printf("  %-22s %8zu %9.4f", row->name, row->launches, ms);
    ladder_print_ratio(9, ms / matmul_ms);
    ladder_print_ratio(9, last_ms / ms);
    ladder_print_ratio(9, first_ms / ms);
    printf("\n");
}

static enum status append_row(const struct bench_setup *setup, enum fused_op op,
                              const struct fused_shape *s, const struct row *row, double matmul_ms,
                              struct error *error) {
    char shape[96];
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    snprintf(shape, sizeof shape, "%zux%zux%zu", s->M, s->N, s->K);
    bool has_peer = isfinite(matmul_ms);
    const struct bench_record record = {
        .lab = "06_fused_epilogues",
        .subject = WARPBOOK_SUBJECT,
        .stage = row->name,
        .op = ops[op].name,
        .shape = shape,
        .dtype = "fp32",
        .threads = 1,
        .gpu = &gpu,
        .timing = row->timing,
        .bytes = NAN,
        .flops = 2.0 * (double)s->M * (double)s->N * (double)s->K,
        .peer = has_peer ? "plain matmul" : NULL,
        .peer_ratio = has_peer ? matmul_ms / row->timing.median_ms : NAN,
        .figure = "launches",
        .figure_value = (double)row->launches,
    };
    return bench_append(&record, error);
}

/* One row a step, and records of those that are right. */
static enum status report_rows(const struct bench_setup *setup, enum fused_op op,
                               const struct fused_shape *s, const struct row *rows, size_t count,
                               double matmul_ms, struct error *error) {
    bool wrong = false;
    double first_ms = NAN, last_ms = NAN;
    printf("\n%s, M %zu, N %zu, K %zu, %s", fused_op_name(op), s->M, s->N, s->K,
           device_bench_verb(&setup->gpu));
    if (isfinite(matmul_ms)) {
        printf("; the plain matmul: %.4f ms", matmul_ms);
    }
    printf("\n  %-22s %8s %9s %9s %9s %9s\n", "step", "launches", "ms", "of matmul", "step up",
           "in all");
    for (size_t i = 0; i < count; i++) {
        print_row(&rows[i], last_ms, first_ms, matmul_ms);
        wrong = wrong || rows[i].wrong[0] != '\0';
        if (rows[i].wrong[0] == '\0' && !rows[i].slow) {
            last_ms = rows[i].timing.median_ms;
            first_ms = isnan(first_ms) ? last_ms : first_ms;
            TRY(append_row(setup, op, s, &rows[i], matmul_ms, error));
        }
    }
    return wrong ? error_set(error, STATUS_MISMATCH, "a step of the ladder gives wrong results")
                 : STATUS_OK;
}

static enum status measure_rows(const struct bench_setup *setup, struct bench_case *c,
                                struct row *rows, size_t *count, struct error *error) {
    size_t steps_count;
    const struct fused_step *steps = fused_epilogues_ladder(&steps_count);
    *count = 0;
    for (size_t i = 0; i < steps_count; i++) {
        if (setup->step == NULL || strcmp(setup->step, steps[i].name) == 0) {
            rows[*count] = (struct row){.name = steps[i].name};
            c->run = steps[i].run;
            enum status status = measure_row(setup, c, &rows[(*count)++], error);
            error_prefix(error, status, steps[i].name);
            TRY(status);
        }
    }
    return STATUS_OK;
}

static enum status measure_case(const struct bench_setup *setup, struct bench_case *c,
                                struct fused_shape shape, struct row *rows, struct error *error) {
    size_t count;
    enum fused_op op = c->problem.op;
    struct bench_timing matmul = {.median_ms = NAN};
    const struct device_bench_options options = options_of(setup);
    TRY(measure_rows(setup, c, rows, &count, error));
    if (c->problem.weight != NULL) {
        TRY(device_bench_run(&options, bench_case_matmul, c, NULL, &matmul, error));
    }
    return report_rows(setup, op, &shape, rows, count, matmul.median_ms, error);
}

static enum status measure_op(const struct bench_setup *setup, enum fused_op op,
                              struct fused_shape shape, struct error *error) {
    size_t count;
    struct bench_case c;
    (void)fused_epilogues_ladder(&count);
    struct row *rows = calloc(count, sizeof *rows);
    if (rows == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the table");
    }
    enum status status = bench_case_create(&c, op, shape, error);
    if (status == STATUS_OK) {
        status = measure_case(setup, &c, shape, rows, error);
    }
    bench_case_free(&c);
    free(rows);
    return status;
}

/* All operations with so many rows, or those the command line names. */
static enum status measure_all(const struct bench_setup *setup, size_t M, struct error *error) {
    size_t shrink = setup->gpu.modelled ? SIMT_SHRINKS : 1;
    enum status wrong = STATUS_OK;
    for (int op = 0; op < FUSED_OPS; op++) {
        struct fused_shape shape = {M, ops[op].N / shrink, ops[op].K / shrink};
        if (setup->shape != NULL) {
            shape = *setup->shape;
            shape.K = ops[op].K == 0 ? 0 : shape.K;
        }
        if (setup->op >= 0 && setup->op != op) {
            continue;
        }
        enum status status = measure_op(setup, (enum fused_op)op, shape, error);
        if (status != STATUS_OK && status != STATUS_MISMATCH) {
            return status;
        }
        wrong = status != STATUS_OK ? status : wrong;
    }
    return wrong;
}

enum status bench_ladder(const struct bench_setup *setup, struct error *error) {
    const size_t *rows = setup->gpu.modelled ? simt_rows : gpu_rows;
    size_t count = setup->gpu.modelled ? COUNT(simt_rows) : COUNT(gpu_rows);
    enum status wrong = STATUS_OK;
    count = setup->quick || setup->shape != NULL ? 1 : count;
    for (size_t i = 0; i < count; i++) {
        enum status status = measure_all(setup, rows[i], error);
        if (status != STATUS_OK && status != STATUS_MISMATCH) {
            return status;
        }
        wrong = status != STATUS_OK ? status : wrong;
    }
    return wrong;
}
