/*
 * The cost of a long context per token, and the least cost of its keys and values.
 *
 * The probe reads gigabytes in one launch. A decoder reads keys and values layer by layer, so the
 * same bytes are also timed layer by layer: alone, and as in a token, between reads of the layers'
 * weights, whose time is subtracted. All are medians, as are the tokens' times.
 */
#include <math.h>
#include <stdio.h>

#include "common/bench/device/layer_reads.h"
#include "common/bench/models/decode_model.h"
#include "labs/10_llama2_decoder/bench/bench_internal.h"

/* ---- The reads ---- */

/* Bytes that one layer reads of the keys and values before a timed token. */
static double layer_cache_bytes(const struct bench *b, size_t which) {
    double rows = bench_rows_read(&b->plan, b->plan.context[which]);
    return bench_cache_bytes(b, rows) / (double)b->model.config->L;
}

static struct layer_reads reads_of(const struct bench *b, enum bench_read read) {
    const struct llama2_config *c = b->model.config;
    double weights = decode_layer_numbers(c) * (double)nn_dtype_bytes(b->dtype);
    double few = layer_cache_bytes(b, SHORT), many = layer_cache_bytes(b, LONG);
    const double cache[READS] = {[READ_MORE] = many - few,
                                 [READ_WEIGHTS_MORE] = many - few,
                                 [READ_WEIGHTS_SHORT] = few,
                                 [READ_WEIGHTS_LONG] = many};
    return (struct layer_reads){.layers = c->L,
                                .weight_bytes =
                                    read == READ_MORE ? 0 : (size_t)(weights / (double)c->L),
                                .cache_bytes = (size_t)cache[read]};
}

static enum status time_reads(struct bench *b, struct error *error) {
    for (int i = 0; i < READS; i++) {
        const struct layer_reads reads = reads_of(b, (enum bench_read)i);
        TRY(layer_reads_time(&reads, &b->reads[i], error));
    }
    return STATUS_OK;
}

/* ---- The yardsticks ---- */

struct yardstick {
    const char *text, *figure;
    double ms;
};

enum { YARDSTICKS = 4 };

static double more_ms(const struct bench *b, enum bench_read with, enum bench_read without) {
    return b->reads[with].median_ms - b->reads[without].median_ms;
}

static double context_bytes(const struct bench *b) {
    double layer = layer_cache_bytes(b, LONG) - layer_cache_bytes(b, SHORT);
    return (double)b->model.config->L * layer;
}

static double context_cost(const struct bench_result *r) {
    return r->decode[LONG].median_ms - r->decode[SHORT].median_ms;
}

/* All are of the same bytes. The last one excludes launches, as the cost does, because both of its
 * chains have them. */
static void find_yardsticks(const struct bench *b, struct yardstick found[YARDSTICKS]) {
    const struct yardstick all[YARDSTICKS] = {
        {"at the probe's speed", "context_ms_at_read_bandwidth",
         1e3 * context_bytes(b) / b->read_bytes_per_s},
        {"a launch a layer", "context_ms_a_launch_a_layer", b->reads[READ_MORE].median_ms},
        {"between weights, over the weights alone", "context_ms_between_weights",
         more_ms(b, READ_WEIGHTS_MORE, READ_WEIGHTS)},
        {"between weights, over the short context", "context_ms_beyond_short_context",
         more_ms(b, READ_WEIGHTS_LONG, READ_WEIGHTS_SHORT)},
    };
    for (size_t i = 0; i < YARDSTICKS; i++) {
        found[i] = all[i];
    }
}

static void print_cost(const struct bench *b, const struct bench_result *r) {
    struct yardstick found[YARDSTICKS];
    double cost = context_cost(r);
    find_yardsticks(b, found);
    printf("  %s: %zu tokens before it cost a token %.4f ms more than %zu do\n", r->stage->name,
           b->plan.context[LONG], cost, b->plan.context[SHORT]);
    printf("  %.3f MB of keys and values more, only read%*s  cost / this\n",
           1e-6 * context_bytes(b), 10, "ms");
    for (size_t i = 0; i < YARDSTICKS; i++) {
        printf("    %-42s %8.4f", found[i].text, found[i].ms);
        if (found[i].ms > 0.0 && cost > 0.0) {
            printf("  %11.3f\n", cost / found[i].ms);
        } else { /* the medians cannot tell them apart */
            printf("  %11s\n", "-");
        }
    }
    fflush(stdout);
}

/* ---- Records ---- */

static const char *const read_names[READS] = {
    [READ_MORE] = "read_kv",
    [READ_WEIGHTS] = "read_weights",
    [READ_WEIGHTS_MORE] = "read_weights_kv",
    [READ_WEIGHTS_SHORT] = "read_weights_kv_short",
    [READ_WEIGHTS_LONG] = "read_weights_kv_long",
};

static enum status record_reads(const struct bench *b, struct bench_record record,
                                struct error *error) {
    record.op = "layer_reads";
    record.figure = "share_of_read_bandwidth";
    for (int i = 0; i < READS; i++) {
        const struct layer_reads reads = reads_of(b, (enum bench_read)i);
        record.stage = read_names[i];
        record.timing = b->reads[i];
        record.bytes = (double)layer_reads_bytes(&reads);
        record.figure_value = 1e3 * record.bytes / record.timing.median_ms / b->read_bytes_per_s;
        TRY(bench_append(&record, error));
    }
    return STATUS_OK;
}

/* The times are those of the token after the long context. */
static enum status record_cost(const struct bench *b, const struct bench_result *r,
                               struct bench_record record, struct error *error) {
    struct yardstick found[YARDSTICKS];
    find_yardsticks(b, found);
    record.timing = r->decode[LONG];
    record.figure = "context_ms";
    record.figure_value = context_cost(r);
    TRY(bench_append(&record, error));
    for (size_t i = 0; i < YARDSTICKS; i++) {
        record.figure = found[i].figure;
        record.figure_value = found[i].ms;
        TRY(bench_append(&record, error));
    }
    return STATUS_OK;
}

enum status bench_context(struct bench *b, const struct bench_result *r, struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&b->driver->gpu);
    char shape[128];
    snprintf(shape, sizeof shape, "%s, context %zu over %zu", b->model.label, b->plan.context[LONG],
             b->plan.context[SHORT]);
    TRY(time_reads(b, error));
    print_cost(b, r);
    const struct bench_record record = bench_record_of(b, r, &gpu, "llama2_context", shape);
    TRY(record_reads(b, record, error));
    return record_cost(b, r, record, error);
}
