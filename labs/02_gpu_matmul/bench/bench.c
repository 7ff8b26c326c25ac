/**
 * @file bench.c
 * @brief Lab 02's bench: the kernels alone, then Llama2's decode with every matmul over the bus.
 *
 * Built once for the learner's ladder and once for the solution's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/bench.h"
#include "common/bench/ladder/ladder_bench.h"
#include "common/bench/models/decode_bench.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/02_gpu_matmul/given/engine.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"
#include "labs/02_gpu_matmul/problem/case.h"

/* Tokens that are enough on a GPU, and on simt, whose modelled time does not vary. */
enum { STEPS = 32, STEPS_MODELLED = 4 };

static const struct ladder_shape shapes[] = {
    {.sizes = {1, 768, 288}, .name = "a layer of the 15M shape"},
    {.sizes = {1, 32000, 288}, .name = "its classifier"},
    {.sizes = {1, 768, 2048}, .name = "a layer of the 110M shape"},
    {.sizes = {1, 5632, 2048}, .name = "a layer of the 1.1B shape"},
    {.sizes = {1, 1024, 11264}, .name = "few, long rows, as the grader times them"},
    {.sizes = {64, 2048, 768}, .name = "64 tokens of a prompt"},
};
static const struct ladder_shape quick_shapes[] = {
    {.sizes = {1, 768, 288}, .name = "a layer of the 15M shape"},
    {.sizes = {4, 96, 288}, .name = "four tokens of a prompt"},
};

/* ---- The problem ---- */

static struct matmul_shape matmul_shape_of(const struct ladder_shape *shape) {
    return (struct matmul_shape){shape->sizes[0], shape->sizes[1], shape->sizes[2]};
}

struct trial {
    struct matmul_data data;
    struct gpu_matmul_buffers buffers; /* without canaries */
    float *got;                        /* host, (M, N) */
};

static enum status create(void *trial, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    struct trial *t = trial;
    struct rng rng = rng_create(1);
    const struct matmul_shape s = matmul_shape_of(shape);
    (void)setup;
    t->got = malloc(s.M * s.N * sizeof *t->got);
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    TRY(matmul_data_create(&t->data, s, 0, MATMUL_NORMAL, &rng, error));
    TRY(gpu_matmul_buffers_create(&t->buffers, s, 0, false, error));
    return gpu_matmul_buffers_put(&t->buffers, &t->data, error);
}

static void free_trial(void *trial) {
    struct trial *t = trial;
    gpu_matmul_buffers_free(&t->buffers);
    matmul_data_free(&t->data);
    free(t->got);
}

static enum status run(void *trial, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    size_t count;
    const struct trial *t = trial;
    const struct gpu_matmul_buffers *b = &t->buffers;
    return gpu_matmul_ladder(&count)[step].run(b->out.data, b->in.data, b->weight.data, rows,
                                               t->data.shape.N, t->data.shape.K, stream, error);
}

static enum status check(void *trial, size_t step, char *wrong, size_t size, struct error *error) {
    struct trial *t = trial;
    bool intact, changed;
    char text[300];
    TRY(device_buffer_put(&t->buffers.out, NULL, error));
    TRY(run(trial, step, t->data.shape.M, NULL, error));
    TRY(device_buffer_get(&t->buffers.out, t->got, &intact, &changed, error));
    const bool right = matmul_check(&t->data, t->got, text, sizeof text);
    snprintf(wrong, size, "%s", right ? "" : text);
    return STATUS_OK;
}

/* ---- The ladder ---- */

static enum status check_options(struct ladder_setup *setup, struct error *error) {
    return decode_options_check(setup->options, error);
}

static enum ladder_scope scope(const struct ladder_setup *setup) {
    const struct decode_options *o = setup->options;
    return o->checkpoint != NULL ? LADDER_PARTS_ALONE : LADDER_AND_PARTS;
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    return ladder_check_memory(setup, shape, 3, (size_t)matmul_bytes(matmul_shape_of(shape)),
                               error);
}

LADDER_STEP_NAME(gpu_matmul_ladder)

static double flops_of(const struct ladder_shape *shape) {
    return matmul_flops(matmul_shape_of(shape));
}

static double bytes_of(const struct ladder_shape *shape) {
    return matmul_bytes(matmul_shape_of(shape));
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    const struct matmul_shape s = matmul_shape_of(shape);
    (void)setup;
    snprintf(text->title, sizeof text->title, "M %zu, N %zu, K %zu: %s", s.M, s.N, s.K,
             shape->name);
    snprintf(text->shape, sizeof text->shape, "%zux%zux%zu", s.M, s.N, s.K);
    text->op = "matmul";
    text->dtype = "fp32";
}

static const char *conditions(const struct ladder_setup *setup, char *text, size_t size) {
    snprintf(text, size, "\nroofs: %.0f GFLOP/s fp32, %.0f GB/s from memory, %s",
             1e-9 * setup->roofs.flops_per_s, 1e-9 * setup->roofs.bytes_per_s,
             setup->roofs.modelled ? "from a table" : "measured");
    return text;
}

static const struct ladder_column columns[] = {
    {LADDER_MS, 9, "ms"},
    {LADDER_GB_PER_S, 9, "GB/s"},
    {LADDER_GFLOP_PER_S, 9, "GFLOP/s"},
    {LADDER_ROOFLINE, 13, "of roofline"},
    {LADDER_SPEEDUP, 9, "speedup"},
};

/* What the comparison of stages needs, to be freed together. */
struct decoders {
    struct decode_model model;
    struct engine cpu, gpu;
};

static enum status compare_stages(const struct ladder_setup *setup, struct decoders *d,
                                  struct error *error) {
    char name[64];
    const struct decode_options *o = setup->options;
    const int steps = setup->gpu.modelled ? STEPS_MODELLED : STEPS;
    const struct decode_bench decode = {
        .lab = "02_gpu_matmul",
        .subject = WARPBOOK_SUBJECT,
        .properties = &setup->gpu,
        .steps = (size_t)(o->steps > 0 ? o->steps : steps),
    };
    struct decode_stage stages[] = {
        {.name = name, .engine = &d->cpu, .threads = o->threads},
        {.name = "02, matmul on the GPU", .engine = &d->gpu, .threads = 1, .on_device = true},
    };
    snprintf(name, sizeof name, "01, %d CPU thread%s", o->threads, o->threads == 1 ? "" : "s");
    TRY(decode_model_open(&d->model, o->checkpoint, o->shape, error));
    TRY(engine_cpu_matmul_create(&d->cpu, o->threads));
    TRY(engine_gpu_matmul_create(&d->gpu, error));
    return decode_bench(&decode, &d->model, stages, sizeof stages / sizeof *stages, error);
}

static enum status bench_llama2(const struct ladder_setup *setup, struct error *error) {
    struct decoders decoders = {0};
    enum status status = compare_stages(setup, &decoders, error);
    engine_destroy(&decoders.gpu);
    engine_destroy(&decoders.cpu);
    decode_model_close(&decoders.model);
    return status;
}

static const struct ladder_bench bench = {
    .lab = "02_gpu_matmul",
    .subject = WARPBOOK_SUBJECT,
    .summary = "compares the steps of lab 02 with each other, and in Llama2 with lab 01",
    .check_options = check_options,
    .scope = scope,
    .shapes = {LADDER_SHAPES(shapes), LADDER_SHAPES(quick_shapes), LADDER_SHAPES(shapes),
               LADDER_SHAPES(quick_shapes)},
    .check_shape = check_shape,
    .step = step_name,
    .problem = LADDER_PROBLEM(struct trial, create, free_trial, run, check),
    .seconds = 0.2,
    .quick_seconds = 0.02,
    .flush_on_simt = true, /* a decoder's weights come from memory */
    .flops = flops_of,
    .bytes = bytes_of,
    .describe = describe,
    .name_width = 26,
    LADDER_COLUMNS(columns),
    .needs_roofs = true,
    .conditions = conditions,
    LADDER_PARTS(bench_llama2),
};

int main(int argc, char **argv) {
    struct decode_options o = {.shape_text = "15m", .threads = bench_cpu_count()};
    struct ladder_setup setup = {.options = &o, .all = true};
    const struct flag flags[] = {
        {"shape", 's', FLAG_STRING, &o.shape_text, "NAME",
         "the model: 15m, 110m or 1.1b, random weights"},
        {"checkpoint", 'c', FLAG_STRING, &o.checkpoint, "FILE",
         "the model: this llama2.c checkpoint; no ladder"},
        {"steps", 'n', FLAG_INT, &o.steps, "N", "tokens to decode; 0: 32, on simt 4"},
        {"threads", 't', FLAG_INT, &o.threads, "N", "most CPU threads of lab 01's engine"},
        {"quick", 'q', FLAG_SWITCH, &setup.quick, NULL, "fewer sizes, shorter runs"},
    };
    return ladder_bench_main(&bench, flags, sizeof flags / sizeof *flags, &setup, argc, argv);
}
