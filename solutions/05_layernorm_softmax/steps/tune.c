/**
 * @file tune.c
 * @brief Times every possible plan of v6 on some shapes, beside a copy of the same bytes.
 *
 * usage: tune [ROWS,C ...]. The limits in rows_v6_widths.cu are read off these tables.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"
#include "solutions/05_layernorm_softmax/steps/ladder.h"

struct shape {
    size_t rows, C;
};

static const struct shape default_shapes[] = {
    {1, 2560},     {256, 2560},   {1024, 2560},  {2048, 2560},  {8192, 768},
    {32768, 1024}, {16384, 4096}, {8192, 16384}, {4096, 50257}, {1, 1000000},
};

/* One problem and the plan at hand. */
struct trial {
    struct rows_problem problem;
    struct rows_plan plan;
    bool flush_l2;     /* on a GPU; simt would take seconds for it */
    void *in, *weight; /* device, as problem has them, to be freed */
    void *workspace;
};

static enum status run_plan(void *argument, device_stream stream, struct error *error) {
    const struct trial *t = argument;
    return rows_v6_with_plan(&t->problem, t->plan, t->workspace, stream, error);
}

static enum status run_copy(void *argument, device_stream stream, struct error *error) {
    const struct rows_problem *p = &((const struct trial *)argument)->problem;
    size_t bytes = p->rows * p->C * nn_dtype_bytes(p->type);
    return device_copy(p->out, p->in, bytes, stream, error);
}

static enum status time_one(struct trial *t, device_bench_function *function, const char *name,
                            double copy_ms, double *ms, struct error *error) {
    struct bench_timing timing;
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = t->flush_l2;
    options.warmup_seconds = 0.02;
    options.min_seconds = 0.02;
    TRY(device_bench_run(&options, function, t, NULL, &timing, error));
    *ms = timing.median_ms;
    double bytes = 2.0 * (double)t->problem.rows * (double)t->problem.C *
                   (double)nn_dtype_bytes(t->problem.type);
    printf("  %-28s %9.4f ms %8.1f GB/s %6.3f of the copy\n", name, *ms, 1e-6 * bytes / *ms,
           (copy_ms > 0.0 ? copy_ms : *ms) / *ms);
    return STATUS_OK;
}

/* All ways, and all counts of threads worth a look. */
static enum status time_plans(struct trial *t, double copy_ms, struct error *error) {
    static const char *const ways[] = {"eighth", "warp", "block", "shared", "split"};
    const struct rows_plan chosen = rows_v6_choose(&t->problem);
    double ms;
    for (int i = 0; i < ROWS_WAYS * 10; i++) {
        static const int threads[] = {64, 96, 128, 160, 192, 256, 320, 512, 640, 1024};
        struct rows_plan plan = {(enum rows_way)(i / 10), threads[i % 10], 1};
        if (plan.way == ROWS_WAY_SPLIT) {
            plan.splits = (int)(264 / t->problem.rows + 1);
        }
        if (!rows_v6_possible(&t->problem, plan)) {
            continue;
        }
        char name[64];
        bool same = plan.way == chosen.way && plan.threads == chosen.threads;
        snprintf(name, sizeof name, "%s %s t%d s%d", same ? "*" : " ", ways[plan.way], plan.threads,
                 plan.splits);
        t->plan = plan;
        TRY(time_one(t, run_plan, name, copy_ms, &ms, error));
    }
    t->plan = chosen;
    return time_one(t, run_plan, "chosen", copy_ms, &ms, error);
}

/* Memory of a trial, every byte 0x11: small numbers in every type. */
static enum status trial_create(struct trial *t, struct shape s, enum rows_op op,
                                enum nn_dtype type, struct error *error) {
    size_t size = nn_dtype_bytes(type), bytes = s.rows * s.C * size;
    size_t sizes[] = {bytes, bytes, s.C * size, ROWS_WORKSPACE_BYTES};
    void *memory[4] = {NULL};
    enum status status = STATUS_OK;
    for (int i = 0; i < 4 && status == STATUS_OK; i++) {
        status = device_alloc(&memory[i], sizes[i], error);
        if (status == STATUS_OK) {
            status = device_set(memory[i], 0x11, sizes[i], NULL, error);
        }
    }
    *t = (struct trial){.problem = {.op = op,
                                    .type = type,
                                    .rows = s.rows,
                                    .C = s.C,
                                    .in = memory[0],
                                    .out = memory[1],
                                    .weight = memory[2],
                                    .bias = memory[2],
                                    .eps = 1e-5f},
                        .workspace = memory[3]};
    t->in = memory[0];
    t->weight = memory[2];
    return status;
}

static void trial_free(struct trial *t) {
    device_free(t->in);
    device_free(t->problem.out);
    device_free(t->weight);
    device_free(t->workspace);
}

static enum status time_trial(struct trial *t, bool flush_l2, struct error *error) {
    double copy_ms = 0.0;
    t->flush_l2 = flush_l2;
    TRY(time_one(t, run_copy, "copy", 0.0, &copy_ms, error));
    return time_plans(t, copy_ms, error);
}

static enum status time_problem(struct shape s, enum rows_op op, enum nn_dtype type, bool flush_l2,
                                struct error *error) {
    struct trial t;
    enum status status = trial_create(&t, s, op, type, error);
    printf("\n%s %s %zu x %zu\n", rows_op_name(op), nn_dtype_name(type), s.rows, s.C);
    if (status == STATUS_OK) {
        status = time_trial(&t, flush_l2, error);
    }
    trial_free(&t);
    return status;
}

static enum status time_shape(struct shape s, bool flush_l2, struct error *error) {
    static const enum nn_dtype types[] = {NN_F32, NN_BF16};
    for (int i = 0; i < 4; i++) {
        TRY(time_problem(s, i / 2 == 0 ? ROWS_LAYERNORM : ROWS_SOFTMAX, types[i % 2], flush_l2,
                         error));
    }
    return STATUS_OK;
}

/* "ROWS,C" within the operators' limits. */
static enum status parse_shape(const char *text, struct shape *s, struct error *error) {
    int end = 0;
    if (sscanf(text, "%zu,%zu%n", &s->rows, &s->C, &end) != 2 || text[end] != '\0' || s->C == 0 ||
        s->rows == 0 || s->C > ROWS_MAX_C || s->rows > ROWS_MAX_ELEMENTS / s->C) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "'%s' is not ROWS,C", text);
    }
    return STATUS_OK;
}

static enum status tune(const struct arguments *arguments, struct error *error) {
    struct device_properties gpu;
    size_t defaults = sizeof default_shapes / sizeof *default_shapes;
    size_t count = arguments->count > 0 ? arguments->count : defaults;
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    setenv("SIMT_CHECK", "bounds", 0);
    for (size_t i = 0; i < count; i++) {
        struct shape s = {0};
        if (arguments->count > 0) {
            TRY(parse_shape(arguments->values[i], &s, error));
        } else {
            s = default_shapes[i];
        }
        TRY(time_shape(s, !gpu.modelled, error));
    }
    return STATUS_OK;
}

static enum status run(int argc, char **argv, const char **values, struct error *error) {
    const struct flags flags = {
        .program = "tune",
        .positional = "[ROWS,C ...]",
        .summary =
            "Times every possible plan of v6 on some shapes, beside a copy of the same bytes.",
    };
    struct arguments arguments = {.values = values};
    TRY(flags_parse(&flags, argc, argv, &arguments, error));
    if (arguments.help) {
        flags_answer(&flags, &arguments);
        return STATUS_OK;
    }
    return tune(&arguments, error);
}

int main(int argc, char **argv) {
    struct error error = {0};
    const char **values = calloc((size_t)argc, sizeof *values);
    enum status status = values != NULL ? run(argc, argv, values, &error) : STATUS_OUT_OF_MEMORY;
    free(values);
    return status == STATUS_OK ? 0 : report_failure("tune", &error, status);
}
