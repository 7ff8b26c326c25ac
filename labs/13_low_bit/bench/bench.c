/**
 * @file bench.c
 * @brief Lab 13's bench: the steps of the ladder beside lab 09's product with bf16 weights.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <stdio.h>
#include <string.h>

#include "common/bench/ladder/ladder_bench.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/13_low_bit/problem/problem.h"

enum weights { INT8, INT4_128, INT4_32, FP8, WEIGHTS };

static const struct {
    const char *name, *title;
    struct low_bit_case c;
} forms[WEIGHTS] = {
    {"int8", "int8 by row", {.type = LOW_BIT_INT8}},
    {"int4",
     "int4 in groups of 128",
     {.type = LOW_BIT_INT4, .group = 128, .scale_dtype = NN_BF16, .has_zeros = true}},
    {"int4g32",
     "int4 in groups of 32",
     {.type = LOW_BIT_INT4, .group = 32, .scale_dtype = NN_BF16, .has_zeros = true}},
    {"fp8", "e4m3 by row", {.type = LOW_BIT_FP8}},
};

#define SHAPE(M, N, K, WEIGHTS) \
    { .sizes = {M, N, K}, .form = (int)(WEIGHTS), }

/* A layer of Llama2 7B: the output product, gate and up together, down; eight texts at once; and
   one of a 1.1B model. */
static const struct ladder_shape gpu_shapes[] = {
    SHAPE(1, 4096, 4096, INT8),      SHAPE(1, 22016, 4096, INT8),
    SHAPE(1, 4096, 11008, INT8),     SHAPE(8, 22016, 4096, INT8),
    SHAPE(16, 22016, 4096, INT8),    SHAPE(1, 4096, 4096, INT4_128),
    SHAPE(1, 22016, 4096, INT4_128), SHAPE(1, 4096, 11008, INT4_128),
    SHAPE(8, 22016, 4096, INT4_128), SHAPE(16, 22016, 4096, INT4_128),
    SHAPE(1, 2048, 2048, INT4_128),  SHAPE(1, 11264, 2048, INT4_128),
    SHAPE(1, 22016, 4096, INT4_32),  SHAPE(1, 22016, 4096, FP8)};
static const struct ladder_shape gpu_quick_shapes[] = {SHAPE(1, 4096, 4096, INT8),
                                                       SHAPE(1, 4096, 4096, INT4_128)};
static const struct ladder_shape simt_shapes[] = {
    SHAPE(1, 2048, 2048, INT8), SHAPE(1, 2048, 2048, INT4_128), SHAPE(8, 1024, 1024, INT4_128)};
static const struct ladder_shape simt_quick_shapes[] = {SHAPE(1, 256, 512, INT4_128)};

/* Products that simt does in about a minute. */
#define SIMT_PRODUCTS 0x1p30

/* Products that are checked, about: a second of one core. */
#define CHECKED_PRODUCTS ((size_t)1 << 26)

/* --weights */
struct options {
    const char *weights;
    int form;
};

struct trial {
    struct low_bit_data data;
    size_t prepared_by; /* step whose order the weights are in, plus 1 */
    struct kv_linear bf16;
    void *d_weight; /* of bf16 */
    void *d_in, *d_out;
};

static struct low_bit_case case_of(const struct ladder_shape *shape) {
    const size_t *s = shape->sizes;
    struct low_bit_case c = forms[shape->form].c;
    size_t checked = CHECKED_PRODUCTS / (s[0] * s[2] + 1);
    c.M = s[0];
    c.N = s[1];
    c.K = s[2];
    c.out_dtype = NN_BF16;
    c.checked = checked < 8 ? 8 : checked;
    return c;
}

/* Lab 09's product has one row. */
static bool has_peer(const struct ladder_shape *shape) {
    return shape->sizes[0] == 1;
}

static enum status create_peer(struct trial *t, const struct ladder_shape *shape,
                               struct error *error) {
    size_t N = shape->sizes[1], K = shape->sizes[2];
    TRY(device_alloc(&t->d_weight, N * K * 2, error));
    TRY(device_alloc(&t->d_in, K * sizeof(float), error));
    TRY(device_alloc(&t->d_out, N * sizeof(float), error));
    TRY(device_set(t->d_weight, 0, N * K * 2, NULL, error));
    TRY(device_set(t->d_in, 0, K * sizeof(float), NULL, error));
    t->bf16 = (struct kv_linear){
        .N = N, .K = K, .dtype = NN_BF16, .weight = t->d_weight, .in = t->d_in, .out = t->d_out};
    return STATUS_OK;
}

static enum status create(void *trial, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    struct trial *t = trial;
    const struct low_bit_case c = case_of(shape);
    (void)setup;
    TRY(low_bit_data_create(&t->data, &c, error));
    return has_peer(shape) ? create_peer(t, shape, error) : STATUS_OK;
}

static void free_trial(void *trial) {
    struct trial *t = trial;
    low_bit_data_free(&t->data);
    device_free(t->d_weight);
    device_free(t->d_in);
    device_free(t->d_out);
}

static enum status prepare(struct trial *t, size_t step, struct error *error) {
    size_t count;
    t->prepared_by = step + 1;
    TRY(low_bit_ladder(&count)[step].prepare(&t->data.matrix, t->data.prepared.data, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status run(void *trial, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    struct trial *t = trial;
    struct low_bit_linear linear = t->data.linear;
    linear.M = rows;
    if (t->prepared_by != step + 1) {
        TRY(prepare(t, step, error));
    }
    return low_bit_ladder(&count)[step].linear(&linear, t->data.workspace, stream, error);
}

static enum status run_bf16(void *trial, device_stream stream, struct error *error) {
    const struct trial *t = trial;
    return kv_linear(&t->bf16, stream, error);
}

static enum status check(void *trial, size_t step, char *wrong, size_t size, struct error *error) {
    struct trial *t = trial;
    low_bit_name_tensors(&t->data);
    TRY(low_bit_data_reset(&t->data, error));
    TRY(prepare(t, step, error));
    TRY(run(trial, step, t->data.c.M, NULL, error));
    return low_bit_data_check(&t->data, wrong, size, error);
}

static const char *weights_name(size_t i) {
    return i < WEIGHTS ? forms[i].name : NULL;
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct options *o = setup->options;
    return ladder_parse_name(o->weights, weights_name,
                             "--weights is 'int8', 'int4', 'int4g32' or 'fp8'", &o->form, error);
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    TRY(ladder_parse_sizes(setup->shape_text, "M,N,K", shape, error));
    shape->form = ((const struct options *)setup->options)->form;
    const size_t *s = shape->sizes, group = forms[shape->form].c.group;
    if (s[0] > LOW_BIT_MAX_ROWS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape %s: M is at most %zu",
                         setup->shape_text, LOW_BIT_MAX_ROWS);
    }
    if (s[1] > LOW_BIT_MAX_SIZE || s[2] > LOW_BIT_MAX_SIZE || s[2] < group) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s: N and K are at most %zu, and K is at least a group of %zu",
                         setup->shape_text, LOW_BIT_MAX_SIZE, group);
    }
    return STATUS_OK;
}

static double flops_of(const struct ladder_shape *shape) {
    const struct low_bit_case c = case_of(shape);
    return low_bit_case_flops(&c);
}

static double bytes_of(const struct ladder_shape *shape) {
    const struct low_bit_case c = case_of(shape);
    return low_bit_case_bytes(&c);
}

/* The matrix plain and prepared, and as bf16. Below 2^60 bytes: sizes are at most 2^28. */
static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    double weights = (double)shape->sizes[1] * (double)shape->sizes[2];
    TRY(ladder_check_products(setup, shape, SIMT_PRODUCTS, error));
    return ladder_check_memory(
        setup, shape, 3, (size_t)(2.3 * bytes_of(shape) + (has_peer(shape) ? 2.0 : 0.0) * weights),
        error);
}

LADDER_STEP_NAME(low_bit_ladder)

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    static const char *const ops[WEIGHTS] = {"low_bit_int8", "low_bit_int4_128", "low_bit_int4_32",
                                             "low_bit_fp8"};
    const size_t *s = shape->sizes;
    snprintf(text->title, sizeof text->title, "M %zu, N %zu, K %zu, %s, %s", s[0], s[1], s[2],
             forms[shape->form].title, device_bench_verb(&setup->gpu));
    snprintf(text->plot_title, sizeof text->plot_title, "%s %zu x %zu x %zu",
             forms[shape->form].name, s[0], s[1], s[2]);
    snprintf(text->shape, sizeof text->shape, "%zux%zux%zu", s[0], s[1], s[2]);
    text->op = ops[shape->form];
    text->dtype = forms[shape->form].name;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 9, "ms"},
    {LADDER_GB_PER_S, 8, "GB/s"},
    {LADDER_ROOFLINE, 9, "roofline"},
    {LADDER_SPEED_OF_PEER, 8, "of bf16"},
    {LADDER_STEP_UP, 8, "step up"},
    {LADDER_IN_ALL, 8, "in all"},
};

static const struct ladder_bench bench = {
    .lab = "13_low_bit",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 13 with each other and with lab 09's bf16 product",
    .epilogue = "Without --shape and --step: shapes of Llama2 7B and of a 1.1B model (on simt: "
                "smaller ones).",
    .check_options = check_options,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_quick_shapes),
               LADDER_SHAPES(simt_shapes), LADDER_SHAPES(simt_quick_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .step = step_name,
    .problem = LADDER_PROBLEM(struct trial, create, free_trial, run, check),
    .peer = {.run = run_bf16,
             .has = has_peer,
             .order = LADDER_PEER_BEFORE_STEPS,
             .name = "product of lab 09 in bf16",
             .in_title = true},
    .seconds = 0.1,
    .quick_seconds = 0.05,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 16,
    LADDER_COLUMNS(columns),
    .needs_roofs = true,
};

int main(int argc, char **argv) {
    struct options o = {.weights = "int8"};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        LADDER_FLAG_SHAPE(&setup, "M,N,K"),
        {"weights", 0, FLAG_STRING, &o.weights, "TYPE",
         "with --shape: int8, int4 (groups of 128), int4g32 or fp8"},
        LADDER_FLAG_STEP(&setup),
        LADDER_FLAG_PLOT(&setup),
        LADDER_FLAG_ALL(&setup),
        LADDER_FLAG_QUICK(&setup),
    };
    return ladder_bench_main(&bench, flags, sizeof flags / sizeof *flags, &setup, argc, argv);
}
