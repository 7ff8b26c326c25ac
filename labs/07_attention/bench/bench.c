/**
 * @file bench.c
 * @brief Lab 07's bench: the steps of the ladder, lengths padded and packed, q, k and v in one
 *        product, and BERT.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <stdio.h>

#include "labs/07_attention/bench/trial.h"
#include "labs/07_attention/given/engine.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* B, NH, T = S, HS, with NH = KVH. A shape's form is whether it is causal. */
#define BATCH 16, 12, 512, 64
#define TEXT 1, 12, 128, 64
#define SIMT_BATCH 2, 66, 128, 64
static const struct ladder_shape gpu_shapes[] = {
    {.sizes = {BATCH}, .dtype = NN_F32},
    {.sizes = {BATCH}, .dtype = NN_F16},
    {.sizes = {BATCH}, .dtype = NN_BF16},
    {.sizes = {TEXT}, .dtype = NN_F32},
    {.sizes = {TEXT}, .dtype = NN_BF16},
    {.sizes = {4, 16, 8192, 128}, .dtype = NN_BF16, .form = 1},
};
static const struct ladder_shape gpu_quick_shapes[] = {{.sizes = {BATCH}, .dtype = NN_F32},
                                                       {.sizes = {BATCH}, .dtype = NN_F16}};
static const struct ladder_shape simt_shapes[] = {
    {.sizes = {TEXT}, .dtype = NN_F32},
    {.sizes = {TEXT}, .dtype = NN_BF16},
    {.sizes = {SIMT_BATCH}, .dtype = NN_F32},
    {.sizes = {SIMT_BATCH}, .dtype = NN_BF16},
};
static const struct ladder_shape simt_quick_shapes[] = {{.sizes = {TEXT}, .dtype = NN_F32},
                                                        {.sizes = {TEXT}, .dtype = NN_BF16}};

/* Limits of --shape: the bytes of q, k, v and out then fit into a size_t. */
enum { MOST_HEADS = 4096, MOST_TOKENS = 1 << 20 };
/* What simt does in a minute or so. */
static const double simt_flops = 4e9;

/* The lab's own flags, for --shape. */
struct options {
    const char *dtype_text;
    int dtype;
    bool causal;
};

static const char *dtype_name(size_t i) {
    return i <= NN_BF16 ? nn_dtype_name((enum nn_dtype)i) : NULL;
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct options *o = setup->options;
    return ladder_parse_name(o->dtype_text, dtype_name, "--dtype is 'fp32', 'fp16' or 'bf16'",
                             &o->dtype, error);
}

static struct bench_shape shape_of(const struct ladder_shape *s) {
    return (struct bench_shape){
        (enum nn_dtype)s->dtype, s->sizes[0], s->sizes[1], s->sizes[2], s->sizes[3], s->form != 0};
}

static double flops_of(const struct ladder_shape *shape) {
    const struct bench_shape s = shape_of(shape);
    return bench_flops(&s, NULL);
}

static double bytes_of(const struct ladder_shape *s) {
    return 4.0 * (double)s->sizes[0] * (double)s->sizes[1] * (double)s->sizes[2] *
           (double)s->sizes[3] * (double)nn_dtype_bytes((enum nn_dtype)s->dtype);
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    const struct options *o = setup->options;
    const size_t *s = shape->sizes;
    TRY(ladder_parse_sizes(setup->shape_text, "B,NH,T,HS", shape, error));
    if (s[0] > MOST_TOKENS || s[1] > MOST_HEADS || s[2] > MOST_TOKENS || s[3] > ATTENTION_MAX_HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape %s: B and T are at most %d, NH %d, HS %zu", setup->shape_text,
                         MOST_TOKENS, MOST_HEADS, ATTENTION_MAX_HS);
    }
    shape->dtype = o->dtype;
    shape->form = o->causal;
    return STATUS_OK;
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    TRY(ladder_check_memory(setup, shape, 4, (size_t)bytes_of(shape), error));
    if (setup->gpu.modelled && flops_of(shape) > simt_flops) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape: %.3g FLOP take simt very long; at most %.3g here",
                         flops_of(shape), simt_flops);
    }
    return STATUS_OK;
}

LADDER_STEP_NAME(attention_ladder)

static enum status create(void *problem, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    const struct bench_shape s = shape_of(shape);
    (void)setup;
    return bench_case_create(problem, &s, FORM_FULL, NULL, error);
}

static void free_case(void *problem) {
    bench_case_free(problem);
}

/* rows: the first sequences. */
static enum status run(void *problem, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    struct attention_problem p = ((const struct bench_case *)problem)->problem;
    p.B = rows;
    attention_name_tensors(&p);
    return attention_ladder(&count)[step].run(&p, stream, error);
}

static enum status check(void *problem, size_t step, char *wrong, size_t size,
                         struct error *error) {
    const struct bench_case *c = problem;
    TRY(bench_case_poison(c, error));
    TRY(run(problem, step, c->problem.B, NULL, error));
    return bench_case_verify(c, wrong, size, error);
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *s,
                     struct ladder_text *text) {
    (void)setup;
    text->op = "attention";
    text->dtype = dtype_name((size_t)s->dtype);
    snprintf(text->title, sizeof text->title, "b%zu h%zu s%zu d%zu %s%s", s->sizes[0], s->sizes[1],
             s->sizes[2], s->sizes[3], text->dtype, s->form != 0 ? ", causal" : "");
    snprintf(text->shape, sizeof text->shape, "b%zu h%zu s%zu d%zu%s", s->sizes[0], s->sizes[1],
             s->sizes[2], s->sizes[3], s->form != 0 ? " causal" : "");
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size, "%s", setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    return text;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 10, "ms"},
    {LADDER_TFLOP_PER_S, 10, "TFLOP/s"},
    {LADDER_SPEEDUP, 9, "in all"},
};

static const struct ladder_bench bench = {
    .lab = "07_attention",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 07 with each other, padded with packed, and in BERT",
    .epilogue = "Without --shape and --step: the ladder on BERT's shapes and a long causal one "
                "(on simt: small ones), lengths, the projection, BERT.",
    .check_options = check_options,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_quick_shapes),
               LADDER_SHAPES(simt_shapes), LADDER_SHAPES(simt_quick_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .step = step_name,
    .problem = LADDER_PROBLEM(struct bench_case, create, free_case, run, check),
    .seconds = BENCH_SECONDS,
    .quick_seconds = BENCH_QUICK_SECONDS,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 22,
    LADDER_COLUMNS(columns),
    .conditions = conditions,
    LADDER_PARTS(bench_lengths, bench_projection, bench_model),
};

int main(int argc, char **argv) {
    struct options o = {.dtype_text = "fp32"};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        LADDER_FLAG_SHAPE(&setup, "B,NH,T,HS"),
        {"dtype", 'd', FLAG_STRING, &o.dtype_text, "TYPE", "of --shape: 'fp32', 'fp16', 'bf16'"},
        {"causal", 'c', FLAG_SWITCH, &o.causal, NULL, "--shape: no query sees later keys"},
        LADDER_FLAG_STEP(&setup),
        LADDER_FLAG_ALL(&setup),
        LADDER_FLAG_QUICK(&setup),
    };
    return ladder_bench_main(&bench, flags, COUNT(flags), &setup, argc, argv);
}
