/**
 * @file bench.c
 * @brief Lab 06's bench: each fusion beside single operators and the plain matmul, BERT, and fp16.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/device/device_launches.h"
#include "common/bench/ladder/ladder_bench.h"
#include "common/bench/models/model_bench.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/06_fused_epilogues/bench/bench_internal.h"
#include "labs/06_fused_epilogues/given/engine.h"
#include "labs/06_fused_epilogues/problem/case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The name of an operation for --op and records, and its N and K in BERT-base. */
static const struct {
    const char *name;
    size_t N, K;
} ops[FUSED_OPS] = {
    [FUSED_LINEAR] = {"linear", 2304, 768},
    [FUSED_LINEAR_ACTIVATION] = {"linear_activation", 3072, 768},
    [FUSED_LINEAR_ADD] = {"linear_add", 768, 768},
    [FUSED_LINEAR_ADD_NORM] = {"linear_add_norm", 768, 768},
    [FUSED_GELU_LINEAR_ADD_NORM] = {"gelu_linear_add_norm", 768, 3072},
    [FUSED_ADD_NORM] = {"add_norm", 768, 0},
    [FUSED_ADD_KEEP_NORM] = {"add_keep_norm", 768, 0},
};

/* M: 16 sentences of 512, of 128, of 32 tokens. N and K are each operation's own. */
static const struct ladder_shape gpu_shapes[] = {LADDER_SHAPE(8192), LADDER_SHAPE(2048),
                                                 LADDER_SHAPE(512)};
static const struct ladder_shape gpu_quick_shapes[] = {LADDER_SHAPE(8192)};
static const struct ladder_shape simt_shapes[] = {LADDER_SHAPE(512)};

/* On simt N and K are a third of BERT-base's. */
enum { SIMT_DIVISOR = 3 };
/* What simt does in about a minute. */
#define SIMT_PRODUCTS 0x1p33

/* The lab's own flags. */
struct options {
    const char *op_text;
    int op; /* of enum fused_op; -1: all */
};

/* ---- The problem: few different rows, as often as M asks for ---- */

struct trial {
    struct fused_case c;
    void *workspace; /* device */
    float *got;      /* host: as many rows of a result as there are different ones */
    size_t step;     /* whose launches are counted */
};

enum { DIFFERENT_ROWS = 8 };

static enum status create(void *trial, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    (void)setup;
    struct trial *t = trial;
    struct rng rng = rng_create(7);
    const size_t M = shape->sizes[0], N = shape->sizes[1];
    const size_t rows = M < DIFFERENT_ROWS ? M : DIFFERENT_ROWS;
    t->c = (struct fused_case){.op = (enum fused_op)shape->op,
                               .shape = {rows, N, shape->sizes[2]},
                               .flavour = {.f = NN_GELU, .eps = 1e-12f},
                               .rows = M};
    t->got = malloc(rows * N * sizeof(float));
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the results");
    }
    TRY(device_alloc(&t->workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(t->workspace, 0, FUSED_ZERO_BYTES, NULL, error));
    TRY(fused_case_create(&t->c, &rng, false, error));
    return device_synchronize(NULL, error);
}

static void free_trial(void *trial) {
    struct trial *t = trial;
    fused_case_free(&t->c);
    device_free(t->workspace);
    free(t->got);
}

static enum status run(void *trial, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    const struct trial *t = trial;
    struct fused_problem problem = t->c.problem;
    problem.M = rows;
    fused_name_tensors(&problem);
    return fused_epilogues_ladder(&count)[step].run(&problem, t->workspace, stream, error);
}

static enum status run_matmul(void *trial, device_stream stream, struct error *error) {
    const struct trial *t = trial;
    const struct fused_problem *p = &t->c.problem;
    const struct sgemm_problem product = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .A = p->in,
                                          .B = p->weight,
                                          .C = p->out};
    return sgemm(&product, (char *)t->workspace + FUSED_ZERO_BYTES, stream, error);
}

static enum status run_counted(void *trial, device_stream stream, struct error *error) {
    const struct trial *t = trial;
    return run(trial, t->step, t->c.problem.M, stream, error);
}

static enum status count_launches(void *trial, size_t step, double *launches, struct error *error) {
    struct trial *t = trial;
    size_t count;
    t->step = step;
    TRY(device_count_launches(run_counted, t, &count, error));
    *launches = (double)count;
    return STATUS_OK;
}

/* Compares rows of one result from `first` on, a multiple of the number of different rows. */
static enum status check_rows(const struct trial *t, enum fused_buffer which, size_t first,
                              char *wrong, size_t size, struct error *error) {
    const struct fused_shape *s = &t->c.shape;
    if (wrong[0] != '\0') {
        return STATUS_OK;
    }
    TRY(device_read(t->got, t->c.buffers[which].data + first * s->N, s->M * s->N * sizeof(float),
                    NULL, error));
    fused_compare(&t->c.data, t->got, which == FUSED_SUM, wrong, size);
    return STATUS_OK;
}

static enum status check(void *trial, size_t step, char *wrong, size_t size, struct error *error) {
    const struct trial *t = trial;
    const struct device_buffer *out = &t->c.buffers[FUSED_OUT], *sum = &t->c.buffers[FUSED_SUM];
    const size_t rows = t->c.shape.M, last = (t->c.problem.M / rows - 1) * rows;
    wrong[0] = '\0';
    /* Bytes of ones are NaN: an element that nobody writes is found. */
    TRY(device_set(out->data, 0xff, out->bytes, NULL, error));
    if (t->c.op == FUSED_ADD_KEEP_NORM) {
        TRY(device_set(sum->data, 0xff, sum->bytes, NULL, error));
    }
    TRY(run(trial, step, t->c.problem.M, NULL, error));
    TRY(check_rows(t, FUSED_OUT, 0, wrong, size, error));
    TRY(check_rows(t, FUSED_OUT, last, wrong, size, error));
    return t->c.op == FUSED_ADD_KEEP_NORM ? check_rows(t, FUSED_SUM, last, wrong, size, error)
                                          : STATUS_OK;
}

/* ---- The ladder ---- */

static const char *op_name(size_t i) {
    return i < FUSED_OPS ? ops[i].name : NULL;
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct options *o = setup->options;
    return o->op_text != NULL
               ? ladder_parse_name(o->op_text, op_name,
                                   "--op is 'linear', 'linear_activation', 'linear_add', "
                                   "'linear_add_norm', 'gelu_linear_add_norm', 'add_norm' or "
                                   "'add_keep_norm'",
                                   &o->op, error)
               : STATUS_OK;
}

/* With --shape, --op or --step only the ladder is run. */
static enum ladder_scope scope_of(const struct ladder_setup *setup) {
    const struct options *o = setup->options;
    bool whole = setup->shape_text == NULL && setup->step == NULL && o->op < 0;
    return whole ? LADDER_AND_PARTS : LADDER_ALONE;
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    const size_t *s = shape->sizes;
    TRY(ladder_parse_sizes(setup->shape_text, "M,N,K", shape, error));
    if (s[0] > FUSED_MAX_ROWS || s[1] > FUSED_MAX_COLUMNS || s[2] > FUSED_MAX_COLUMNS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s: M is at most %zu, N and K %zu", setup->shape_text,
                         FUSED_MAX_ROWS, FUSED_MAX_COLUMNS);
    }
    return STATUS_OK;
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    const size_t M = shape->sizes[0], N = shape->sizes[1], K = shape->sizes[2];
    /* Below 2^56 bytes: M is at most 2^29, N and K 2^22. */
    size_t bytes =
        sizeof(float) * (M * (K > N ? K : N) + N * K + 3 * M * N) + FUSED_WORKSPACE_BYTES;
    TRY(ladder_check_memory(setup, shape, 3, bytes, error));
    return ladder_check_products(setup, shape, SIMT_PRODUCTS, error);
}

/* Operation i, with its own N and K unless there is --shape. */
static bool choose_table(const struct ladder_setup *setup, struct ladder_shape *shape, size_t i) {
    const struct options *o = setup->options;
    const size_t divisor = setup->gpu.modelled ? SIMT_DIVISOR : 1;
    shape->op = (int)i;
    if (setup->shape_text == NULL) {
        shape->sizes[1] = ops[i].N / divisor;
        shape->sizes[2] = ops[i].K / divisor;
    }
    if (!fused_op_multiplies((enum fused_op)i)) {
        shape->sizes[2] = 0;
    }
    return o->op < 0 || o->op == shape->op;
}

LADDER_STEP_NAME(fused_epilogues_ladder)

static bool has_matmul(const struct ladder_shape *s) {
    return fused_op_multiplies((enum fused_op)s->op);
}

static double flops_of(const struct ladder_shape *s) {
    return 2.0 * (double)s->sizes[0] * (double)s->sizes[1] * (double)s->sizes[2];
}

/* Not recorded: what must move differs with each operation. */
static double bytes_of(const struct ladder_shape *s) {
    (void)s;
    return NAN;
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *s,
                     struct ladder_text *text) {
    const size_t M = s->sizes[0], N = s->sizes[1], K = s->sizes[2];
    snprintf(text->title, sizeof text->title, "%s, M %zu, N %zu, K %zu, %s",
             fused_op_name((enum fused_op)s->op), M, N, K, device_bench_verb(&setup->gpu));
    snprintf(text->shape, sizeof text->shape, "%zux%zux%zu", M, N, K);
    text->op = op_name((size_t)s->op);
    text->dtype = "fp32";
}

static const struct ladder_column columns[] = {
    {LADDER_OWN, 8, "launches"},           {LADDER_MS, 9, "ms"},
    {LADDER_TIME_OF_PEER, 9, "of matmul"}, {LADDER_STEP_UP, 9, "step up"},
    {LADDER_IN_ALL, 9, "in all"},
};

/* Engines that are compared in BERT: the stage below, one lone add fused, all. */
static const struct {
    const char *name;
    enum status (*create)(struct engine *engine, struct error *error);
} engines[] = {
    {"nothing fused", engine_unfused_create},
    {"the lone add fused", engine_lone_add_create},
    {"all fused", engine_fused_create},
};

static const char *engine_name(size_t i) {
    return engines[i].name;
}

static enum status engine_create(struct engine *engine, size_t i, struct error *error) {
    return engines[i].create(engine, error);
}

static enum status bench_bert(const struct ladder_setup *setup, struct error *error) {
    const struct model_bench_engines compared = {.lab = "06_fused_epilogues",
                                                 .subject = WARPBOOK_SUBJECT,
                                                 .what = "engine",
                                                 .width = 22,
                                                 .digits = 3,
                                                 .count = COUNT(engines),
                                                 .name = engine_name,
                                                 .create = engine_create};
    const size_t lengths[] = {setup->gpu.modelled ? 32 : 128, 512};
    const size_t count = setup->gpu.modelled || setup->quick ? 1 : 2;
    for (size_t i = 0; i < count; i++) {
        TRY(model_bench_compare_bert(&compared, &setup->gpu, setup->quick, lengths[i], error));
    }
    return STATUS_OK;
}

static const struct ladder_bench bench = {
    .lab = "06_fused_epilogues",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 06 with each other, with the plain matmul, in BERT",
    .epilogue = "Without --shape, --op and --step: every operation on BERT's shapes, then BERT, "
                "then errors in fp16.",
    .check_options = check_options,
    .scope = scope_of,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_quick_shapes),
               LADDER_SHAPES(simt_shapes), LADDER_SHAPES(simt_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .tables = FUSED_OPS,
    .table = choose_table,
    .step = step_name,
    .problem = {.bytes = sizeof(struct trial),
                .create = create,
                .free = free_trial,
                .run = run,
                .check = check,
                .own = count_launches},
    .peer = {.run = run_matmul,
             .has = has_matmul,
             .order = LADDER_PEER_AFTER_STEPS,
             .name = "plain matmul",
             .in_title = true},
    .seconds = 0.3,
    .quick_seconds = 0.05,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 22,
    LADDER_COLUMNS(columns),
    .own_name = "launches",
    LADDER_PARTS(bench_bert, bench_error),
};

int main(int argc, char **argv) {
    struct options o = {.op = -1};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        LADDER_FLAG_SHAPE(&setup, "M,N,K"),
        {"op", 'o', FLAG_STRING, &o.op_text, "NAME", "only this operation: linear, add_norm, ..."},
        LADDER_FLAG_STEP(&setup),
        LADDER_FLAG_ALL(&setup),
        LADDER_FLAG_QUICK(&setup),
    };
    return ladder_bench_main(&bench, flags, COUNT(flags), &setup, argc, argv);
}
