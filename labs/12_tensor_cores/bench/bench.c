/**
 * @file bench.c
 * @brief Lab 12's bench: the steps of the ladder beside cuBLAS, and BERT's speed in bf16.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <stdio.h>
#include <string.h>

#include "common/bench/ladder/ladder_bench.h"
#include "common/bench/models/model_bench.h"
#include "labs/12_tensor_cores/given/engine.h"
#include "labs/12_tensor_cores/problem/problem.h"

enum form { PLAIN, BIAS, GELU, RESIDUAL, FORMS };

static const char *const form_names[FORMS] = {"plain", "bias", "gelu", "residual"};

#define SHAPE(M, N, K, F) \
    { .sizes = {M, N, K}, .form = (int)(F), }

/* A cube, then BERT-base's layers for 8192 and 2048 tokens, and few rows, as a decoder has. */
static const struct ladder_shape gpu_shapes[] = {
    SHAPE(4096, 4096, 4096, PLAIN), SHAPE(8192, 8192, 8192, PLAIN),
    SHAPE(8192, 3072, 768, PLAIN),  SHAPE(8192, 3072, 768, GELU),
    SHAPE(8192, 768, 3072, PLAIN),  SHAPE(8192, 768, 3072, RESIDUAL),
    SHAPE(2048, 768, 768, PLAIN),   SHAPE(128, 768, 3072, PLAIN),
    SHAPE(16, 4096, 11008, PLAIN)};
static const struct ladder_shape gpu_quick_shapes[] = {SHAPE(4096, 4096, 4096, PLAIN),
                                                       SHAPE(2048, 3072, 768, GELU)};
/* The first has a tile of 128 x 128 for each multiprocessor of an H200. */
static const struct ladder_shape simt_shapes[] = {
    SHAPE(1536, 1408, 256, PLAIN), SHAPE(256, 768, 768, GELU), SHAPE(16, 768, 1024, RESIDUAL)};
static const struct ladder_shape simt_quick_shapes[] = {SHAPE(256, 256, 256, PLAIN)};

/* Products that simt does in about a minute. */
#define SIMT_PRODUCTS 0x1p33

/* Products of the rows that are checked, about: a second of one core. */
#define CHECKED_PRODUCTS ((size_t)1 << 27)

/* --form */
struct options {
    const char *form_text;
    enum form form;
};

struct trial {
    struct gemm16_data data;
    struct cublas *cublas;
};

static struct gemm16_case case_of(const struct ladder_shape *shape) {
    const size_t *s = shape->sizes;
    enum form form = (enum form)shape->form;
    size_t rows = CHECKED_PRODUCTS / (s[1] * s[2] + 1);
    return (struct gemm16_case){.M = s[0],
                                .N = s[1],
                                .K = s[2],
                                .dtype = NN_BF16,
                                .out_dtype = NN_BF16,
                                .bias = form != PLAIN,
                                .activate = form == GELU,
                                .f = NN_GELU_TANH,
                                .residual = form == RESIDUAL,
                                .rows = rows < 3 ? 3 : rows};
}

static enum status create(void *trial, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    struct trial *t = trial;
    const struct gemm16_case c = case_of(shape);
    t->cublas = setup->cublas;
    return gemm16_data_create(&t->data, &c, 0, error);
}

static void free_trial(void *trial) {
    gemm16_data_free(&((struct trial *)trial)->data);
}

static enum status run(void *trial, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    const struct trial *t = trial;
    struct gemm16_problem problem = t->data.problem;
    problem.M = rows;
    gemm16_name_tensors(&problem);
    return gemm16_ladder(&count)[step].run(&problem, t->data.workspace, stream, error);
}

static enum status run_cublas(void *trial, device_stream stream, struct error *error) {
    const struct trial *t = trial;
    const struct gemm16_problem *p = &t->data.problem;
    const struct cublas_gemm16 problem = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .dtype = p->dtype,
                                          .out_dtype = p->out_dtype,
                                          .A = p->in,
                                          .B = p->weight,
                                          .C = p->out};
    return cublas_gemm16(t->cublas, &problem, t->data.workspace, GEMM16_WORKSPACE_BYTES, stream,
                         error);
}

static enum status check(void *trial, size_t step, char *wrong, size_t size, struct error *error) {
    struct trial *t = trial;
    TRY(gemm16_data_reset(&t->data, error));
    TRY(run(trial, step, t->data.c.M, NULL, error));
    return gemm16_data_check(&t->data, wrong, size, error);
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct options *o = setup->options;
    for (int i = 0; i < FORMS; i++) {
        if (strcmp(o->form_text, form_names[i]) == 0) {
            o->form = (enum form)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--form is 'plain', 'bias', 'gelu' or 'residual', not '%s'", o->form_text);
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    TRY(ladder_parse_sizes(setup->shape_text, "M,N,K", shape, error));
    shape->form = (int)((const struct options *)setup->options)->form;
    for (int i = 0; i < 3; i++) {
        if (shape->sizes[i] > GEMM16_MAX_SIZE) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "--shape %s: a size is at most %zu",
                             setup->shape_text, GEMM16_MAX_SIZE);
        }
    }
    return STATUS_OK;
}

static double flops_of(const struct ladder_shape *shape) {
    const struct gemm16_case c = case_of(shape);
    return gemm16_flops(&c);
}

static double bytes_of(const struct ladder_shape *shape) {
    const struct gemm16_case c = case_of(shape);
    return gemm16_bytes(&c);
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    TRY(ladder_check_products(setup, shape, SIMT_PRODUCTS, error));
    /* Below 2^60 bytes: sizes are at most 2^28. */
    return ladder_check_memory(setup, shape, 3, (size_t)bytes_of(shape) + GEMM16_WORKSPACE_BYTES,
                               error);
}

LADDER_STEP_NAME(gemm16_ladder)

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    static const char *const forms[FORMS] = {"", ", bias", ", bias and GELU",
                                             ", bias and residual"};
    static const char *const ops[FORMS] = {"gemm16_plain", "gemm16_bias", "gemm16_gelu",
                                           "gemm16_residual"};
    const size_t *s = shape->sizes;
    snprintf(text->title, sizeof text->title, "M %zu, N %zu, K %zu, bf16%s, %s", s[0], s[1], s[2],
             forms[shape->form], device_bench_verb(&setup->gpu));
    snprintf(text->plot_title, sizeof text->plot_title, "bf16 %zu x %zu x %zu", s[0], s[1], s[2]);
    snprintf(text->shape, sizeof text->shape, "%zux%zux%zu", s[0], s[1], s[2]);
    text->op = ops[shape->form];
    text->dtype = "bf16";
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size, "\nyardstick: %s",
             setup->cublas != NULL ? setup->cublas_name : "none (no cuBLAS here)");
    if (setup->cublas != NULL) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, ", the product alone");
    }
    return text;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 9, "ms"},           {LADDER_TFLOP_PER_S, 9, "TFLOP/s"},
    {LADDER_GB_PER_S, 8, "GB/s"},   {LADDER_PERCENT_OF_PEER, 8, "cuBLAS"},
    {LADDER_STEP_UP, 8, "step up"}, {LADDER_IN_ALL, 8, "in all"},
};

/* Of the engines that are compared in BERT: the first step, and the last. */
static const struct gemm16_step *end_of_ladder(size_t i) {
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    return &steps[i == 0 ? 0 : count - 1];
}

static const char *engine_name(size_t i) {
    return end_of_ladder(i)->name;
}

static enum status engine_create(struct engine *engine, size_t i, struct error *error) {
    return engine_tensor_cores_create_with(engine, end_of_ladder(i), error);
}

static enum status bench_bert(const struct ladder_setup *setup, struct error *error) {
    const struct model_bench_engines engines = {.lab = "12_tensor_cores",
                                                .subject = WARPBOOK_SUBJECT,
                                                .what = "product",
                                                .dtype = NN_BF16,
                                                .width = 22,
                                                .digits = 2,
                                                .count = step_name(1) != NULL ? 2 : 1,
                                                .name = engine_name,
                                                .create = engine_create};
    return model_bench_compare_bert(&engines, &setup->gpu, setup->quick, 0, error);
}

static const struct ladder_bench bench = {
    .lab = "12_tensor_cores",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 12 with each other, with cuBLAS and in BERT",
    .epilogue = "Without --shape and --step: the ladder on a cube and BERT's shapes (on simt: "
                "smaller ones), then BERT.",
    .check_options = check_options,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_quick_shapes),
               LADDER_SHAPES(simt_shapes), LADDER_SHAPES(simt_quick_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .step = step_name,
    .problem = LADDER_PROBLEM(struct trial, create, free_trial, run, check),
    .peer = {.run = run_cublas, .order = LADDER_PEER_AFTER_EACH_STEP, .cublas = true},
    .seconds = 0.3,
    .quick_seconds = 0.05,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 22,
    LADDER_COLUMNS(columns),
    .needs_roofs = true,
    .conditions = conditions,
    LADDER_PARTS(bench_bert),
};

int main(int argc, char **argv) {
    struct options o = {.form_text = "plain"};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        LADDER_FLAG_SHAPE(&setup, "M,N,K"),
        {"form", 'f', FLAG_STRING, &o.form_text, "FORM",
         "with --shape: plain, bias, gelu (and bias) or residual (and bias)"},
        LADDER_FLAG_STEP(&setup),
        LADDER_FLAG_PLOT(&setup),
        LADDER_FLAG_ALL(&setup),
        LADDER_FLAG_QUICK(&setup),
    };
    return ladder_bench_main(&bench, flags, sizeof flags / sizeof *flags, &setup, argc, argv);
}
