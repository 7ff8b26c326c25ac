/**
 * @file bench.c
 * @brief Lab 14's bench: the steps of the ladder, operator by operator, and time per token of a
 * model far behind its cache's length.
 *
 * Built once for the learner's ladder and once for the solution's. Every step is checked against
 * the double reference before it is timed. Each row is appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "labs/14_endless_text/bench/endless_bench.h"
#include "labs/14_endless_text/problem/norms.h"
#include "labs/14_endless_text/problem/text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Multiply-adds that simt does in about a minute a step. */
#define SIMT_WORK 2e7

/* Layers of Pythia-2.8B and 6.9B, and of a Llama with grouped heads; their norms. */
static const struct ladder_shape gpu_shapes[] = {
    {.op = BENCH_ATTENTION, .sizes = {1024, 32, 32, 80}},
    {.op = BENCH_ATTENTION, .sizes = {1024, 32, 32, 128}},
    {.op = BENCH_ATTENTION, .sizes = {1024, 32, 8, 128}},
    {.op = BENCH_ADD_NORMS, .sizes = {2560, 2}},
    {.op = BENCH_ADD_NORMS, .sizes = {4096, 1}},
};

static const struct ladder_shape simt_shapes[] = {
    {.op = BENCH_ATTENTION, .sizes = {96, 4, 4, 64}},
    {.op = BENCH_ADD_NORMS, .sizes = {1024, 2}},
};
static const struct ladder_shape simt_quick_shapes[] = {
    {.op = BENCH_ATTENTION, .sizes = {12, 4, 2, 32}},
    {.op = BENCH_ADD_NORMS, .sizes = {256, 2}},
};

/* ---- The command line ---- */

static const char *op_name(size_t i) {
    static const char *const names[] = {"attention", "add_norms"};
    return i < BENCH_OPS ? names[i] : NULL;
}

static const char *step_by_number(size_t i) {
    size_t count;
    const struct endless_step *steps = endless_ladder(&count);
    return i < count ? steps[i].name : NULL;
}

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    struct endless_options *o = setup->options;
    struct endless_model shape;
    if (o->op_text != NULL) {
        TRY(ladder_parse_name(o->op_text, op_name, "--op is 'attention' or 'add_norms'", &o->op,
                              error));
    }
    int unused;
    if (o->model_text != NULL && !large_model_shape(o->model_text, &shape)) {
        TRY(ladder_parse_name(o->model_text, large_model_name,
                              "--model is '70m', '160m', '2.8b', '6.9b' or 'llama2-7b'", &unused,
                              error));
    }
    if (o->window < 0 || o->window > 100000) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--window %d: from 1 to 100000, or 0",
                         o->window);
    }
    o->tokens = o->model_text != NULL || o->window > 0;
    if (o->from != NULL) {
        TRY(ladder_parse_name(o->from, step_by_number, "--from is a step of the ladder", &unused,
                              error));
    }
    if (o->tokens && (o->op_text != NULL || setup->shape_text != NULL)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--op and --shape are an operator's; --model and --window are a model's");
    }
    return STATUS_OK;
}

static enum status prepare(struct ladder_setup *setup, struct error *error) {
    const struct endless_options *o = setup->options;
    return setup->gpu.modelled && o->model_text != NULL
               ? error_set(error, STATUS_INVALID_ARGUMENT,
                           "--model: simt takes hours for it; leave it out")
               : STATUS_OK;
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    const struct endless_options *o = setup->options;
    if (o->op < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape wants --op");
    }
    shape->op = o->op;
    if (o->op == BENCH_ADD_NORMS) {
        TRY(ladder_parse_sizes(setup->shape_text, "C,N", shape, error));
        return shape->sizes[0] <= ENDLESS_MAX_C && shape->sizes[1] <= 2
                   ? STATUS_OK
                   : error_set(error, STATUS_INVALID_ARGUMENT,
                               "--shape of --op add_norms is C,N: C up to %zu, 1 or 2 norms",
                               ENDLESS_MAX_C);
    }
    TRY(ladder_parse_sizes(setup->shape_text, "R,N,K,H", shape, error));
    const size_t *s = shape->sizes;
    return s[0] > BENCH_SINKS && s[0] <= 1 << 16 && s[1] <= 1024 && s[2] <= s[1] &&
                   s[1] % s[2] == 0 && s[3] <= ENDLESS_MAX_HS && s[0] * s[1] <= ENDLESS_MAX_SCORES
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--shape of --op attention is ROWS,NH,KVH,HS: ROWS from %d to 65536, NH "
                           "up to 1024 and a multiple of KVH, HS up to %zu",
                           BENCH_SINKS + 1, ENDLESS_MAX_HS);
}

/* On a GPU and on simt the whole cache has to be filled, token by token. */
static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    const size_t *s = shape->sizes;
    double work = shape->op == BENCH_ATTENTION ? (double)s[0] * (double)s[0] * (double)(s[1] * s[3])
                                               : (double)s[0] * (double)s[0];
    return setup->gpu.modelled && work > SIMT_WORK
               ? error_set(
                     error, STATUS_INVALID_ARGUMENT,
                     "--shape: too large for simt, which has to fill the cache token by token")
               : STATUS_OK;
}

static enum ladder_scope scope_of(const struct ladder_setup *setup) {
    const struct endless_options *o = setup->options;
    bool whole = o->op < 0 && setup->shape_text == NULL && setup->step == NULL;
    return o->tokens ? LADDER_PARTS_ALONE : whole ? LADDER_AND_PARTS : LADDER_ALONE;
}

static bool choose_table(const struct ladder_setup *setup, struct ladder_shape *shape, size_t i) {
    const struct endless_options *o = setup->options;
    (void)i;
    return o->op < 0 || o->op == shape->op;
}

/* ---- Tables ---- */

LADDER_STEP_NAME(endless_ladder)

/* Steps whose operator is a new one. */
static bool has_step(const struct ladder_shape *shape, size_t i) {
    size_t count;
    const struct endless_step *steps = endless_ladder(&count);
    if (i == 0) {
        return true;
    }
    const struct endless_functions *a = &steps[i].functions, *b = &steps[i - 1].functions;
    return shape->op == BENCH_ATTENTION ? a->attention != b->attention
                                        : a->add_norms != b->add_norms;
}

static double flops_of(const struct ladder_shape *shape) {
    const size_t *s = shape->sizes;
    return shape->op == BENCH_ATTENTION ? 4.0 * (double)s[0] * (double)(s[1] * s[3])
                                        : (5.0 + 2.0 * (double)s[1]) * (double)s[0];
}

static double bytes_of(const struct ladder_shape *shape) {
    const size_t *s = shape->sizes;
    return shape->op == BENCH_ATTENTION ? 2.0 * 2.0 * (double)s[0] * (double)(s[2] * s[3])
                                        : 4.0 * (4.0 + 3.0 * (double)s[1]) * (double)s[0];
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    const size_t *s = shape->sizes;
    bool attention = shape->op == BENCH_ATTENTION;
    text->op = attention ? "endless_attention" : "endless_add_norms";
    text->dtype = attention ? "bf16" : "fp32";
    if (attention) {
        snprintf(text->shape, sizeof text->shape,
                 "%d sinks and %zu, %zu heads of %zu, %zu key heads", BENCH_SINKS,
                 s[0] - BENCH_SINKS, s[1], s[3], s[2]);
    } else {
        snprintf(text->shape, sizeof text->shape, "C%zu, %zu LayerNorm%s", s[0], s[1],
                 s[1] == 1 ? "" : "s");
    }
    snprintf(text->title, sizeof text->title, "%s %s, %s, %s", text->op, text->dtype, text->shape,
             device_bench_verb(&setup->gpu));
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size, "\nroof of memory, %s: %.0f GB/s%s",
             setup->roofs.modelled ? "from clock and width" : "measured by a copy",
             1e-9 * setup->roofs.bytes_per_s,
             setup->gpu.modelled ? "" : "; L2 is flushed before each run");
    return text;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 9, "ms"},           {LADDER_GB_PER_S, 9, "GB/s"}, {LADDER_ROOFLINE, 9, "roofline"},
    {LADDER_STEP_UP, 9, "step up"}, {LADDER_IN_ALL, 9, "in all"},
};

/* ---- Problems ---- */

struct bench_problem {
    bool attention;
    struct endless_text text;
    struct endless_norms norms;
    void *workspace;
};

static enum status create_problem(void *problem, const struct ladder_setup *setup,
                                  const struct ladder_shape *shape, struct error *error) {
    struct bench_problem *p = problem;
    const size_t *s = shape->sizes;
    struct rng rng = rng_create(1);
    (void)setup;
    p->attention = shape->op == BENCH_ATTENTION;
    if (!p->attention) {
        const struct endless_norms_spec spec = {
            .C = s[0], .count = s[1], .layernorm = true, .bias = true, .addends = 3};
        return endless_norms_create(&p->norms, &spec, &rng, false, error);
    }
    const struct endless_text_spec spec = {.NH = s[1],
                                           .KVH = s[2],
                                           .HS = s[3],
                                           .rotary = s[3] / 8 * 2,
                                           .layout = NN_ROPE_HALVES,
                                           .sinks = BENCH_SINKS,
                                           .window = s[0] - BENCH_SINKS,
                                           .dtype = NN_BF16};
    TRY(endless_text_create(&p->text, &spec, s[0] + 2, 1, false, error));
    TRY(device_alloc(&p->workspace, ENDLESS_WORKSPACE_BYTES, error));
    TRY(device_set(p->workspace, 0, ENDLESS_WORKSPACE_BYTES, NULL, error));
    return endless_text_next(&p->text, error); /* the driver first sees how long a step takes */
}

static void free_problem(void *problem) {
    struct bench_problem *p = problem;
    if (p->attention) {
        endless_text_free(&p->text);
        device_free(p->workspace);
    } else {
        endless_norms_free(&p->norms);
    }
}

static const struct endless_functions *functions_of(size_t step) {
    size_t count;
    return &endless_ladder(&count)[step].functions;
}

/* The last token again, or the same addition. */
static enum status run(void *problem, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    struct bench_problem *p = problem;
    (void)rows; /* all of them */
    return p->attention ? functions_of(step)->attention(&p->text.call, p->workspace, stream, error)
                        : functions_of(step)->add_norms(&p->norms.call, stream, error);
}

/* Fills the cache, and checks the token behind it. */
static enum status check(void *problem, size_t step, char *wrong, size_t size,
                         struct error *error) {
    struct bench_problem *p = problem;
    struct rng rng = rng_create(1);
    if (!p->attention) {
        TRY(endless_norms_draw(&p->norms, &rng, error));
        TRY(run(p, step, 0, NULL, error));
        return endless_norms_check(&p->norms, wrong, size, error);
    }
    TRY(device_set(p->workspace, 0, ENDLESS_WORKSPACE_BYTES, NULL, error));
    endless_text_restart(&p->text);
    while (p->text.position < p->text.tokens) {
        TRY(endless_text_next(&p->text, error));
        TRY(run(p, step, 0, NULL, error));
    }
    return endless_text_check(&p->text, wrong, size, error);
}

/* ---- The bench ---- */

static const struct ladder_bench bench = {
    .lab = "14_endless_text",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 14 with each other, alone and in a model that writes",
    .epilogue =
        "Without --op, --shape and --step: the ladder on layers of Pythia (on simt: a small "
        "one), and time per token\nof a GPT-NeoX of 160 million parameters (on simt of a tiny "
        "one), random weights, in bf16.\n--model, --window: time per token alone.",
    .check_options = check_options,
    .prepare = prepare,
    .scope = scope_of,
    .shapes = {LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(gpu_shapes), LADDER_SHAPES(simt_shapes),
               LADDER_SHAPES(simt_quick_shapes)},
    .parse_shape = parse_shape,
    .check_shape = check_shape,
    .tables = 1,
    .table = choose_table,
    .step = step_name,
    .has_step = has_step,
    .problem = LADDER_PROBLEM(struct bench_problem, create_problem, free_problem, run, check),
    .seconds = 0.1,
    .quick_seconds = 0.02,
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 14,
    LADDER_COLUMNS(columns),
    .needs_roofs = true,
    .conditions = conditions,
    LADDER_PARTS(bench_tokens),
};

int main(int argc, char **argv) {
    struct endless_options o = {.op = -1};
    struct ladder_setup setup = {.options = &o};
    const struct flag flags[] = {
        {"op", 'o', FLAG_STRING, &o.op_text, "NAME", "'attention' or 'add_norms'"},
        {"shape", 's', FLAG_STRING, &setup.shape_text, "SIZES",
         "of --op: ROWS,NH,KVH,HS, or C,NORMS"},
        {"model", 'm', FLAG_STRING, &o.model_text, "NAME",
         "only time per token: '70m', '160m', '2.8b', '6.9b', 'llama2-7b'"},
        {"window", 0, FLAG_INT, &o.window, "N",
         "only time per token: beside 4 sinks the last N tokens; 0: 1020"},
        {"step", 0, FLAG_STRING, &setup.step, "NAME", "only this step of the ladder"},
        {"from", 0, FLAG_STRING, &o.from, "NAME",
         "of time per token: only this step and later ones"},
        LADDER_FLAG_ALL(&setup),
        {"quick", 'q', FLAG_SWITCH, &setup.quick, NULL, "smaller shapes, shorter runs"},
    };
    return ladder_bench_main(&bench, flags, COUNT(flags), &setup, argc, argv);
}
