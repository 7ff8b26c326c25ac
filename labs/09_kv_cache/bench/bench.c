/**
 * @file bench.c
 * @brief Lab 09's bench: time per token against position, with and without a cache; the operators
 *        at a model's shapes; decoding, stage by stage.
 *
 * Built once for the learner's operators and once for the solution's. Timed calls are checked, too.
 * Each row is appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "common/programs/dtype_flag.h"
#include "labs/09_kv_cache/bench/parts.h"

/* The command line, with its texts before parsing. */
struct options {
    const char *shape_text, *dtype_text;
    struct bench_setup setup;
};

/* A model that simt runs in seconds. */
static struct llama2_config small_config(void) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_260K);
    config.C = 128;
    config.hidden = 256;
    config.L = 1;
    config.NH = 4;
    config.KVH = 2;
    config.HS = 32;
    config.V = 128;
    config.T = 256;
    return config;
}

static enum status choose_shape(struct options *o, struct error *error) {
    struct bench_setup *s = &o->setup;
    enum llama2_shape shape = LLAMA2_SHAPE_110M;
    if (o->shape_text != NULL) {
        TRY(llama2_shape_parse(o->shape_text, &shape, error));
    }
    s->config = s->products = llama2_shape_config(shape);
    snprintf(s->shape, sizeof s->shape, "%s shape", llama2_shape_name(shape));
    snprintf(s->products_shape, sizeof s->products_shape, "%s", s->shape);
    if (o->shape_text == NULL && s->gpu.modelled) {
        s->config = small_config();
        snprintf(s->shape, sizeof s->shape, "small shape");
        if (s->quick) {
            s->config.T = 8;
            s->products = s->config;
            snprintf(s->products_shape, sizeof s->products_shape, "%s", s->shape);
        }
    }
    return STATUS_OK;
}

/* Device memory of bench_positions(), with three stages at once: 07, and 09 with two pairs of
 * operators. */
static double device_bytes(const struct bench_setup *setup) {
    const struct llama2_config *c = &setup->config;
    double rows = (double)(c->L * c->T), kept = 2.0 * (double)(c->KVH * c->HS);
    double decoder = bench_weight_bytes(c, setup->dtype) +
                     rows * kept * (double)nn_dtype_bytes(setup->dtype) +
                     rows * (double)c->C * sizeof(float);
    double activations = (double)c->T * (double)(5 * c->C + 2 * c->hidden) * sizeof(float);
    return bench_weight_bytes(c, NN_F32) + rows * kept * sizeof(float) + activations +
           2.0 * decoder;
}

/* Refuses models that would take simt hours, or that do not fit a GPU. */
static enum status check_room(const struct bench_setup *setup, struct error *error) {
    double weights = bench_weight_bytes(&setup->config, NN_F32), bytes = device_bytes(setup);
    if (setup->gpu.modelled && weights > 2e6) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape: %.0f MB of weights take simt hours; leave it out",
                         1e-6 * weights);
    }
    if (bytes > 0.9 * (double)setup->gpu.memory_bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape needs %.1f GB on the GPU for three stages at once, which has "
                         "%.1f; bf16 needs less than fp32",
                         1e-9 * bytes, 1e-9 * (double)setup->gpu.memory_bytes);
    }
    return STATUS_OK;
}

static enum status open_gpu(struct options *o, struct error *error) {
    struct bench_setup *setup = &o->setup;
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    TRY(choose_shape(o, error));
    TRY(check_room(setup, error));
    return device_peaks(&setup->roofs, error);
}

static void print_conditions(const struct bench_setup *setup) {
    char text[400];
    const struct llama2_config *c = &setup->config;
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&setup->gpu, text, sizeof text));
    printf("roof of memory, %s: %.0f GB/s\n",
           setup->roofs.modelled ? "from clock and width" : "measured by a copy",
           1e-9 * setup->roofs.bytes_per_s);
    printf("%s: C %zu, hidden %zu, %zu layer%s, %zu heads of %zu, %zu key heads, %zu tokens, "
           "context %zu; random weights\n",
           setup->shape, c->C, c->hidden, c->L, c->L == 1 ? "" : "s", c->NH, c->HS, c->KVH, c->V,
           c->T);
}

static enum status run_parts(struct bench_model *model, const struct bench_setup *setup,
                             struct error *error) {
    TRY(bench_model_create(model, setup, error));
    TRY(bench_positions(setup, model, error));
    TRY(bench_operators(setup, error));
    return bench_decode(setup, model, error);
}

static enum status run(void *options, struct error *error) {
    struct options *o = options;
    struct bench_model model = {0};
    TRY(open_gpu(o, error));
    print_conditions(&o->setup);
    enum status status = run_parts(&model, &o->setup, error);
    bench_model_free(&model);
    TRY(status);
    bench_print_recorded();
    return STATUS_OK;
}

/* Checks the flags' values. */
static enum status check(void *options, struct error *error) {
    struct options *o = options;
    enum llama2_shape shape;
    TRY(dtype_flag_parse(o->dtype_text, &o->setup.dtype, error));
    return o->shape_text != NULL ? llama2_shape_parse(o->shape_text, &shape, error) : STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.dtype_text = "fp32"};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o.shape_text, "NAME",
         "the model: '260k', '15m', '110m', '1.1b' or '7b'"},
        {"dtype", 'd', FLAG_STRING, &o.dtype_text, "TYPE",
         "of stage 09's weights and cache: 'fp32', 'fp16', 'bf16'"},
        {"plot", 'p', FLAG_STRING, &o.setup.plot, "FILE",
         "write time against position as a picture, SVG"},
        {"quick", 'q', FLAG_SWITCH, &o.setup.quick, NULL, "fewer tokens, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "times tokens of a Llama2 with and without a KV cache, and lab 09's operators",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "Without --shape: the 110M shape; on simt a small one, but for the operators.",
    };
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}
