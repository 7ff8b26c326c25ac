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

#include "common/programs/dtype_flag.h"
#include "labs/09_kv_cache/bench/bench_internal.h"

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

static enum status choose_shape(struct bench_setup *s, struct error *error) {
    enum llama2_shape shape = LLAMA2_SHAPE_110M;
    if (s->shape_text != NULL) {
        TRY(llama2_shape_parse(s->shape_text, &shape, error));
    }
    s->config = s->products = llama2_shape_config(shape);
    snprintf(s->shape, sizeof s->shape, "%s shape", llama2_shape_name(shape));
    snprintf(s->products_shape, sizeof s->products_shape, "%s", s->shape);
    if (s->shape_text == NULL && s->driver->gpu.modelled) {
        s->config = small_config();
        snprintf(s->shape, sizeof s->shape, "small shape");
        if (s->driver->quick) {
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
    double decoder = decode_token_bytes(c, setup->dtype) +
                     rows * kept * (double)nn_dtype_bytes(setup->dtype) +
                     rows * (double)c->C * sizeof(float);
    double activations = (double)c->T * (double)(5 * c->C + 2 * c->hidden) * sizeof(float);
    return decode_token_bytes(c, NN_F32) + rows * kept * sizeof(float) + activations +
           2.0 * decoder;
}

/* Refuses models that would take simt hours, or that do not fit a GPU. */
static enum status check_room(const struct bench_setup *setup, struct error *error) {
    const struct device_properties *gpu = &setup->driver->gpu;
    double weights = decode_token_bytes(&setup->config, NN_F32), bytes = device_bytes(setup);
    if (gpu->modelled && weights > 2e6) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--shape: %.0f MB of weights take simt hours; leave it out",
                         1e-6 * weights);
    }
    if (bytes > 0.9 * (double)gpu->memory_bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "--shape needs %.1f GB on the GPU for three stages at once, which has "
                         "%.1f; bf16 needs less than fp32",
                         1e-9 * bytes, 1e-9 * (double)gpu->memory_bytes);
    }
    return STATUS_OK;
}

static enum status prepare(struct ladder_setup *driver, struct error *error) {
    struct bench_setup *setup = driver->options;
    TRY(choose_shape(setup, error));
    return check_room(setup, error);
}

static const char *conditions(const struct ladder_setup *driver, char *text, size_t size) {
    const struct bench_setup *setup = driver->options;
    const struct llama2_config *c = &setup->config;
    snprintf(text, size,
             "\nroof of memory, %s: %.0f GB/s\n"
             "%s: C %zu, hidden %zu, %zu layer%s, %zu heads of %zu, %zu key heads, %zu tokens, "
             "context %zu; random weights",
             driver->roofs.modelled ? "from clock and width" : "measured by a copy",
             1e-9 * driver->roofs.bytes_per_s, setup->shape, c->C, c->hidden, c->L,
             c->L == 1 ? "" : "s", c->NH, c->HS, c->KVH, c->V, c->T);
    return text;
}

static enum status run_parts(struct stored_model *model, const struct bench_setup *setup,
                             struct error *error) {
    TRY(stored_model_random(model, &setup->config, "chosen", NN_F32, true, error));
    TRY(bench_positions(setup, model, error));
    TRY(bench_operators(setup, error));
    return bench_decode(setup, model, error);
}

static enum status run(const struct ladder_setup *driver, struct error *error) {
    struct stored_model model = {0};
    enum status status = run_parts(&model, driver->options, error);
    stored_model_close(&model);
    return status;
}

static enum status check_options(struct ladder_setup *driver, struct error *error) {
    struct bench_setup *setup = driver->options;
    enum llama2_shape shape;
    setup->driver = driver;
    TRY(dtype_flag_parse(setup->dtype_text, &setup->dtype, error));
    return setup->shape_text != NULL ? llama2_shape_parse(setup->shape_text, &shape, error)
                                     : STATUS_OK;
}

static const struct ladder_bench bench = {
    .lab = "09_kv_cache",
    .subject = WARPBOOK_SUBJECT,
    .summary = "times tokens of a Llama2 with and without a KV cache, and lab 09's operators",
    .epilogue = "Without --shape: the 110M shape; on simt a small one, but for the operators.",
    .check_options = check_options,
    .prepare = prepare,
    .needs_roofs = true,
    .conditions = conditions,
    LADDER_PARTS(run),
};

int main(int argc, char **argv) {
    struct bench_setup options = {.dtype_text = "fp32"};
    struct ladder_setup driver = {.options = &options};
    const struct flag flags[] = {
        {"shape", 's', FLAG_STRING, &options.shape_text, "NAME",
         "the model: '260k', '15m', '110m', '1.1b' or '7b'"},
        {"dtype", 'd', FLAG_STRING, &options.dtype_text, "TYPE",
         "of stage 09's weights and cache: 'fp32', 'fp16', 'bf16'"},
        {"plot", 'p', FLAG_STRING, &driver.plot, "FILE",
         "write time against position as a picture, SVG"},
        {"quick", 'q', FLAG_SWITCH, &driver.quick, NULL, "fewer tokens, shorter runs"},
    };
    return ladder_bench_main(&bench, flags, sizeof flags / sizeof *flags, &driver, argc, argv);
}
