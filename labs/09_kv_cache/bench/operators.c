/*
 * Part (b) of the bench: kv_linear() at the products of one token, and kv_attention() at the first
 * and the last position of a filled cache. Bytes are those of the weights and of the cache's rows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"
#include "labs/09_kv_cache/bench/bench_internal.h"
#include "labs/09_kv_cache/problem/linear.h"
#include "labs/09_kv_cache/problem/text.h"

struct product {
    const char *name;
    size_t N, K;
    bool norm;
    enum kv_residual residual;
};

static struct device_bench_options options_of(const struct bench_setup *setup) {
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 =
        !setup->driver->gpu.modelled; /* in a decoder other layers' weights have replaced these */
    options.min_seconds = setup->driver->quick ? 0.05 : options.min_seconds;
    return options;
}

/* Prints a row and appends its record. */
static enum status report(const struct bench_setup *setup, const char *op, const char *name,
                          const char *shape, double bytes, double flops,
                          const struct bench_timing *timing, struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&setup->driver->gpu);
    double rate = 1e3 * bytes / timing->median_ms;
    printf("  %-12s %-26s %9.2f %10.4f %9.0f %7.1f%%\n", name, shape, 1e-6 * bytes,
           timing->median_ms, 1e-9 * rate, 100.0 * rate / setup->driver->roofs.bytes_per_s);
    struct bench_record record = bench_record_of(&gpu, name, op, shape, setup->dtype);
    record.timing = *timing;
    record.bytes = bytes;
    record.flops = flops;
    return bench_append(&record, error);
}

/* ---- Products ---- */

static enum status run_linear(void *argument, device_stream stream, struct error *error) {
    return kv_linear(&((const struct kv_linear_case *)argument)->call, stream, error);
}

/* Creates the case, checks one call and times it. */
static enum status time_linear(const struct bench_setup *setup, const struct product *p,
                               struct kv_linear_case *c, struct bench_timing *timing,
                               struct error *error) {
    const struct kv_linear_spec spec = {
        .N = p->N, .K = p->K, .dtype = setup->dtype, .norm = p->norm, .residual = p->residual};
    struct device_bench_options options = options_of(setup);
    struct rng rng = rng_create(1);
    char text[400];
    TRY(kv_linear_case_create(c, &spec, &rng, false, error));
    TRY(kv_linear_case_run(c, kv_linear, NULL, error));
    TRY(kv_linear_case_check(c, text, sizeof text, error));
    if (text[0] != '\0') {
        return error_set(error, STATUS_MISMATCH, "%s is wrong: %s", c->name, text);
    }
    return device_bench_run(&options, run_linear, c, NULL, timing, error);
}

static enum status measure_linear(const struct bench_setup *setup, const struct product *p,
                                  struct error *error) {
    struct kv_linear_case c;
    struct bench_timing timing;
    char shape[64];
    double elements = (double)p->N * (double)p->K;
    snprintf(shape, sizeof shape, "N%zu K%zu%s%s", p->N, p->K, p->norm ? ", norm" : "",
             p->residual != KV_NO_RESIDUAL ? ", residual" : "");
    enum status status = time_linear(setup, p, &c, &timing, error);
    kv_linear_case_free(&c);
    TRY(status);
    return report(setup, "kv_linear", p->name, shape,
                  elements * (double)nn_dtype_bytes(setup->dtype), 2.0 * elements, &timing, error);
}

/* ---- Attention ---- */

struct attention_call {
    struct kv_text text;
    void *workspace;
};

static enum status run_attention(void *argument, device_stream stream, struct error *error) {
    const struct attention_call *c = argument;
    return kv_attention(&c->text.call, c->workspace, stream, error);
}

/* Creates the text, checks one call and times it. */
static enum status time_attention(const struct bench_setup *setup, const struct kv_text_spec *spec,
                                  struct attention_call *c, size_t position,
                                  struct bench_timing *timing, struct error *error) {
    struct device_bench_options options = options_of(setup);
    char text[400];
    TRY(kv_text_create(&c->text, spec, 1, false, error));
    TRY(device_alloc(&c->workspace, KV_WORKSPACE_BYTES, error));
    TRY(kv_text_prepare(&c->text, position, error));
    TRY(kv_text_call(&c->text, position + 1, kv_attention, c->workspace, NULL, error));
    TRY(kv_text_check(&c->text, position, text, sizeof text, error));
    if (text[0] != '\0') {
        return error_set(error, STATUS_MISMATCH, "%s, position %zu, is wrong: %s", c->text.name,
                         position, text);
    }
    return device_bench_run(&options, run_attention, c, NULL, timing, error);
}

/* One layer's attention with `position` rows before it; it reads qkv and these rows. */
static enum status measure_attention(const struct bench_setup *setup, size_t position,
                                     struct error *error) {
    const struct llama2_config *m = &setup->products;
    const struct kv_text_spec spec = {.C = m->C,
                                      .NH = m->NH,
                                      .KVH = m->KVH,
                                      .HS = m->HS,
                                      .T = position + 1,
                                      .dtype = setup->dtype,
                                      .layout = m->rope_layout};
    struct attention_call c = {0};
    struct bench_timing timing;
    char shape[64];
    double kept = 2.0 * (double)position * (double)(m->KVH * m->HS);
    double weights = (double)((m->NH + 2 * m->KVH) * m->HS) * (double)m->C;
    double pairs = (double)(position + 1) * (double)(m->NH * m->HS);
    snprintf(shape, sizeof shape, "position %zu", position);
    enum status status = time_attention(setup, &spec, &c, position, &timing, error);
    device_free(c.workspace);
    kv_text_free(&c.text);
    TRY(status);
    return report(setup, "kv_attention", "attention", shape,
                  (kept + weights) * (double)nn_dtype_bytes(setup->dtype),
                  2.0 * weights + 4.0 * pairs, &timing, error);
}

enum status bench_operators(const struct bench_setup *setup, struct error *error) {
    const struct llama2_config *c = &setup->products;
    const struct product products[] = {
        {"out", c->C, c->NH * c->HS, false, KV_IN_PLACE},
        {"gate and up", 2 * c->hidden, c->C, true, KV_NO_RESIDUAL},
        {"down", c->C, c->hidden, false, KV_IN_PLACE},
        {"classifier", c->V, c->C, true, KV_NO_RESIDUAL},
    };
    printf("\nthe operators of one token, %s, %s, %s%s\n", setup->products_shape,
           nn_dtype_name(setup->dtype), device_bench_verb(&setup->driver->gpu),
           setup->driver->gpu.modelled ? "" : ", L2 flushed before each");
    printf("  %-12s %-26s %9s %10s %9s %8s\n", "operator", "sizes", "MB", "ms", "GB/s", "of roof");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        TRY(measure_linear(setup, &products[i], error));
    }
    TRY(measure_attention(setup, 0, error));
    return measure_attention(setup, c->T - 1, error);
}
