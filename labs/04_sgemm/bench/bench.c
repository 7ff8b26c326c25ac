/**
 * @file bench.c
 * @brief Lab 04's bench: the steps of the ladder beside cuBLAS and the roofline, and BERT's speed.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/ladder/ladder_bench.h"
#include "common/bench/models/model_bench.h"
#include "labs/04_sgemm/given/engine.h"
#include "labs/04_sgemm/problem/oracle.h"

/* On a GPU: cubes, then BERT-base's layers for 8192 and for 2048 tokens. */
static const struct ladder_shape gpu_shapes[] = {
    LADDER_SHAPE(1024, 1024, 1024), LADDER_SHAPE(2048, 2048, 2048), LADDER_SHAPE(4096, 4096, 4096),
    LADDER_SHAPE(8192, 8192, 8192), LADDER_SHAPE(8192, 768, 768),   LADDER_SHAPE(8192, 3072, 768),
    LADDER_SHAPE(8192, 768, 3072),  LADDER_SHAPE(8192, 2304, 768),  LADDER_SHAPE(2048, 768, 768),
    LADDER_SHAPE(2048, 3072, 768),  LADDER_SHAPE(2048, 768, 3072),
};
static const struct ladder_shape gpu_quick_shapes[] = {LADDER_SHAPE(1024, 1024, 1024),
                                                       LADDER_SHAPE(2048, 3072, 768)};
/* The last one has two tiles of 128 x 128 for each multiprocessor of an H200: cubes that simt can
   afford have fewer tiles than multiprocessors, and small tiles win there. */
static const struct ladder_shape simt_shapes[] = {
    LADDER_SHAPE(256, 256, 256), LADDER_SHAPE(512, 512, 512), LADDER_SHAPE(2048, 2048, 64)};
static const struct ladder_shape simt_quick_shapes[] = {LADDER_SHAPE(256, 256, 256)};

/* What simt does in about a minute. */
#define SIMT_PRODUCTS 0x1p33

/* ---- The problem ---- */

/* --form */
struct sgemm_options {
    const char *form_text;
    enum sgemm_form form;
};

struct trial {
    struct sgemm_data data;      /* rows of the right result; the operands are freed */
    void *A, *B, *C, *workspace; /* device, no canaries: as large as the GPU's memory allows */
    float *got;                  /* host, (N) */
    struct cublas *cublas;
};

static struct sgemm_shape sgemm_shape_of(const struct ladder_shape *shape) {
    return (struct sgemm_shape){shape->sizes[0], shape->sizes[1], shape->sizes[2]};
}

static enum sgemm_form sgemm_form_of(const struct ladder_setup *setup) {
    return ((const struct sgemm_options *)setup->options)->form;
}

/* Products of the rows that are checked, about: a second of one core. */
#define CHECKED_PRODUCTS ((size_t)1 << 27)

static enum status upload(struct trial *t, struct error *error) {
    const struct sgemm_shape *s = &t->data.shape;
    const size_t bytes[] = {s->M * s->K * sizeof(float), s->N * s->K * sizeof(float),
                            s->M * s->N * sizeof(float), SGEMM_WORKSPACE_BYTES};
    void **memory[] = {&t->A, &t->B, &t->C, &t->workspace};
    for (int i = 0; i < 4; i++) {
        TRY(device_alloc(memory[i], bytes[i], error));
    }
    TRY(device_write(t->A, t->data.A, bytes[0], NULL, error));
    return device_write(t->B, t->data.B, bytes[1], NULL, error);
}

static enum status create(void *trial, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    struct trial *t = trial;
    struct rng rng = rng_create(1);
    const struct sgemm_shape s = sgemm_shape_of(shape);
    const struct sgemm_variant variant = {sgemm_form_of(setup), 1.0f, 0.0f, 0};
    const size_t rows = CHECKED_PRODUCTS / (s.N * s.K);
    t->cublas = setup->cublas;
    TRY(sgemm_data_create(&t->data, s, variant, SGEMM_UNIFORM, rows < 3 ? 3 : rows, &rng, error));
    t->got = malloc(s.N * sizeof *t->got);
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    TRY(upload(t, error));
    sgemm_data_free_operands(&t->data);
    return STATUS_OK;
}

static void free_trial(void *trial) {
    struct trial *t = trial;
    device_free(t->A);
    device_free(t->B);
    device_free(t->C);
    device_free(t->workspace);
    sgemm_data_free(&t->data);
    free(t->got);
}

static enum status run(void *trial, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    const struct trial *t = trial;
    const struct sgemm_problem problem = {.M = rows,
                                          .N = t->data.shape.N,
                                          .K = t->data.shape.K,
                                          .form = t->data.variant.form,
                                          .alpha = 1.0f,
                                          .A = t->A,
                                          .B = t->B,
                                          .C = t->C};
    sgemm_name_tensors(&problem);
    return sgemm_ladder(&count)[step].run(&problem, t->workspace, stream, error);
}

static enum status run_cublas(void *trial, device_stream stream, struct error *error) {
    const struct trial *t = trial;
    const struct cublas_problem problem = {.M = t->data.shape.M,
                                           .N = t->data.shape.N,
                                           .K = t->data.shape.K,
                                           .b_transposed =
                                               t->data.variant.form == SGEMM_B_TRANSPOSED,
                                           .alpha = 1.0f,
                                           .A = t->A,
                                           .B = t->B,
                                           .C = t->C};
    return cublas_sgemm(t->cublas, &problem, t->workspace, SGEMM_WORKSPACE_BYTES, stream, error);
}

static enum status check(void *trial, size_t step, char *wrong, size_t size, struct error *error) {
    const struct trial *t = trial;
    const struct sgemm_data *data = &t->data;
    const size_t M = data->shape.M, N = data->shape.N;
    wrong[0] = '\0';
    /* Bytes of ones are NaN: an element that nobody writes is found. */
    TRY(device_set(t->C, 0xff, M * N * sizeof(float), NULL, error));
    TRY(run(trial, step, M, NULL, error));
    for (size_t i = 0; i < data->rows && wrong[0] == '\0'; i++) {
        char text[256];
        const float *row = (const float *)t->C + data->row[i] * N;
        TRY(device_read(t->got, row, N * sizeof(float), NULL, error));
        if (!sgemm_check_row(data, i, t->got, text, sizeof text)) {
            snprintf(wrong, size, "row %zu: %s", data->row[i], text);
        }
    }
    return STATUS_OK;
}

/* ---- The ladder ---- */

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct sgemm_options *o = setup->options;
    if (strcmp(o->form_text, "plain") == 0) {
        o->form = SGEMM_B_PLAIN;
    } else if (strcmp(o->form_text, "transposed") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--form is 'plain' or 'transposed', not '%s'", o->form_text);
    }
    return STATUS_OK;
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    TRY(ladder_parse_sizes(setup->shape_text, "M,N,K", shape, error));
    for (int i = 0; i < 3; i++) {
        if (shape->sizes[i] > SGEMM_MAX_SIZE) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "--shape %s: a size is at most %zu",
                             setup->shape_text, SGEMM_MAX_SIZE);
        }
    }
    return STATUS_OK;
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    const struct sgemm_shape s = sgemm_shape_of(shape);
    /* Below 2^62 bytes: sizes are at most 2^29. */
    size_t bytes = sizeof(float) * (s.M * s.K + s.N * s.K + s.M * s.N) + SGEMM_WORKSPACE_BYTES;
    TRY(ladder_check_products(setup, shape, SIMT_PRODUCTS, error));
    return ladder_check_memory(setup, shape, 3, bytes, error);
}

LADDER_STEP_NAME(sgemm_ladder)

static double flops_of(const struct ladder_shape *shape) {
    return sgemm_flops(sgemm_shape_of(shape));
}

static double bytes_of(const struct ladder_shape *shape) {
    return sgemm_bytes(sgemm_shape_of(shape));
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    const struct sgemm_shape s = sgemm_shape_of(shape);
    const bool plain = sgemm_form_of(setup) == SGEMM_B_PLAIN;
    snprintf(text->title, sizeof text->title, "M %zu, N %zu, K %zu, B %s, %s", s.M, s.N, s.K,
             plain ? "plain" : "transposed", device_bench_verb(&setup->gpu));
    snprintf(text->plot_title, sizeof text->plot_title, "SGEMM %zu x %zu x %zu", s.M, s.N, s.K);
    snprintf(text->shape, sizeof text->shape, "%zux%zux%zu", s.M, s.N, s.K);
    text->op = plain ? "sgemm" : "sgemm_transposed";
    text->dtype = "fp32";
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size, "\nroofs, %s: %.1f TFLOP/s fp32, %.0f GB/s; yardstick: %s",
             setup->roofs.modelled ? "from clocks and widths" : "measured",
             1e-12 * setup->roofs.flops_per_s, 1e-9 * setup->roofs.bytes_per_s,
             setup->cublas != NULL ? setup->cublas_name : "none (no cuBLAS here)");
    return text;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 9, "ms"},
    {LADDER_GFLOP_PER_S, 9, "GFLOP/s"},
    {LADDER_GB_PER_S, 8, "GB/s"},
    {LADDER_PERCENT_OF_PEER, 8, "cuBLAS"},
    {LADDER_ROOFLINE, 8, "roofline"},
    {LADDER_PEAK, 8, "peak"},
    {LADDER_STEP_UP, 8, "step up"},
    {LADDER_IN_ALL, 8, "in all"},
};

/* Of the engines that are compared in BERT: the first step, and the last. */
static const struct sgemm_step *end_of_ladder(size_t i) {
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    return &steps[i == 0 ? 0 : count - 1];
}

static const char *engine_name(size_t i) {
    return end_of_ladder(i)->name;
}

static enum status engine_create(struct engine *engine, size_t i, struct error *error) {
    return engine_sgemm_create_with(engine, end_of_ladder(i)->run, error);
}

static enum status bench_bert(const struct ladder_setup *setup, struct error *error) {
    const struct model_bench_engines engines = {.lab = "04_sgemm",
                                                .subject = WARPBOOK_SUBJECT,
                                                .what = "matmul",
                                                .width = 22,
                                                .digits = 2,
                                                .count = step_name(1) != NULL ? 2 : 1,
                                                .name = engine_name,
                                                .create = engine_create};
    return model_bench_compare_bert(&engines, &setup->gpu, setup->quick, 0, error);
}

static const struct ladder_bench bench = {
    .lab = "04_sgemm",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 04 with each other, with cuBLAS and in BERT",
    .epilogue =
        "Without --shape and --step: the ladder on cubes and BERT's shapes (on simt: smaller "
        "ones), then BERT.",
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
    struct sgemm_options o = {.form_text = "transposed", .form = SGEMM_B_TRANSPOSED};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        LADDER_FLAG_SHAPE(&setup, "M,N,K"),
        {"form", 'f', FLAG_STRING, &o.form_text, "FORM", "B: 'transposed', as weights, or 'plain'"},
        LADDER_FLAG_STEP(&setup),
        LADDER_FLAG_PLOT(&setup),
        LADDER_FLAG_ALL(&setup),
        LADDER_FLAG_QUICK(&setup),
    };
    return ladder_bench_main(&bench, flags, sizeof flags / sizeof *flags, &setup, argc, argv);
}
