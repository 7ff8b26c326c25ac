/* The least bytes of a token, the table of the stages, and its records. */
#include <math.h>
#include <stdio.h>

#include "common/bench/models/decode_model.h"
#include "labs/10_llama2_decoder/bench/bench_internal.h"

/* ---- Least bytes and FLOPs ---- */

double bench_weight_bytes(const struct bench *b) {
    const struct llama2_config *c = b->model.config;
    double row =
        b->model.shared ? 0.0 : (double)c->C; /* of the embedding; else it is the classifier's */
    double numbers = decode_layer_numbers(c) + (double)c->V * (double)c->C + row;
    double norms = (2.0 * (double)c->L + 1.0) * (double)c->C;
    return (double)nn_dtype_bytes(b->dtype) * numbers + sizeof(float) * norms;
}

double bench_cache_bytes(const struct bench *b, double rows) {
    const struct llama2_config *c = b->model.config;
    double row = 2.0 * (double)(c->KVH * c->HS) * (double)nn_dtype_bytes(b->dtype);
    return (double)c->L * rows * row;
}

/* Timed tokens lie at context + 1 .. context + steps, and each also reads its own row. */
double bench_rows_read(const struct bench_plan *plan, size_t context) {
    return (double)context + 2.0 + 0.5 * ((double)plan->steps - 1.0);
}

static double token_bytes(const struct bench *b, size_t which) {
    double rows = bench_rows_read(&b->plan, b->plan.context[which]);
    return bench_weight_bytes(b) + bench_cache_bytes(b, rows);
}

/* Matrices for every token, the classifier once, and attention to all tokens before. */
static double prefill_flops(const struct bench *b) {
    const struct llama2_config *c = b->model.config;
    double T = (double)b->plan.prompt;
    double attention = 2.0 * (double)(c->L * c->NH * c->HS) * T * (T + 1.0);
    return 2.0 * T * decode_layer_numbers(c) + 2.0 * (double)c->V * (double)c->C + attention;
}

/* ---- The table ---- */

void bench_print_head(const struct bench *b) {
    const struct bench_plan *p = &b->plan;
    printf("\nLlama2, %s, %s: a prompt of %zu tokens, then %zu token%s one at a time\n",
           b->model.name, nn_dtype_name(b->dtype), p->prompt, p->steps, p->steps == 1 ? "" : "s");
    printf("  %-20s %10s %10s %8s %10s %9s %8s %7s %8s  %s\n", "stage", "prompt ms", "tokens/s",
           "context", "ms/token", "tokens/s", "GB/s", "of read", "launches", "times");
}

static void print_row(const struct bench *b, const struct bench_result *r, size_t which) {
    bool first = which == SHORT;
    double ms = r->decode[which].median_ms;
    double speed = r->stage->on_device ? 1e3 * token_bytes(b, which) / ms : NAN;
    printf("  %-20s", first ? r->stage->name : "");
    bench_print_number("%*.3f", 10, first ? r->prefill.median_ms : NAN, "");
    bench_print_number("%*.1f", 10,
                       first ? 1e3 * (double)b->plan.prompt / r->prefill.median_ms : NAN, "");
    printf(" %8zu", b->plan.context[which]);
    bench_print_number("%*.4f", 10, ms, "");
    bench_print_number("%*.1f", 9, 1e3 / ms, "");
    bench_print_number("%*.1f", 8, 1e-9 * speed, "");
    bench_print_number("%*.1f", 6, 100.0 * speed / b->read_bytes_per_s, "%");
    bench_print_number("%*.0f", 8, first ? r->launches : NAN, "");
    printf("  %s\n", r->modelled ? "modelled" : "measured");
}

void bench_print_result(const struct bench *b, const struct bench_result *r) {
    for (size_t i = 0; i < b->plan.contexts; i++) {
        print_row(b, r, i);
    }
    fflush(stdout);
}

void bench_print_foot(const struct bench *b, const struct bench_result *results, size_t count) {
    printf("a token reads %.2f MB of weights, and %.4f MB of keys and values for each token before "
           "it;\nof read: of %.0f GB/s, which reading alone %s; launches: those of a graph "
           "count each\n",
           1e-6 * bench_weight_bytes(b), 1e-6 * bench_cache_bytes(b, 1.0),
           1e-9 * b->read_bytes_per_s, b->driver->gpu.modelled ? "has on the modelled GPU" : "got");
    for (size_t i = 0; i < count; i++) {
        const struct bench_result *r = &results[i];
        if (r->no_launches[0] != '\0') {
            printf("  %s: launches are %s: %s\n", r->stage->name,
                   isnan(r->launches) ? "not counted" : "counted in part", r->no_launches);
        }
        if (!isnan(r->difference)) {
            printf("  %s: logits differ by %.1e of the largest from %s's\n", r->stage->name,
                   r->difference, b->first);
        }
    }
}

/* ---- Records ---- */

struct bench_record bench_record_of(const struct bench *b, const struct bench_result *r,
                                    const struct bench_gpu *gpu, const char *op,
                                    const char *shape) {
    return (struct bench_record){
        .lab = "10_llama2_decoder",
        .subject = WARPBOOK_SUBJECT,
        .stage = r->stage->name,
        .op = op,
        .shape = shape,
        .dtype = nn_dtype_name(b->dtype),
        .threads = r->stage->on_device ? 1 : b->options.threads,
        .gpu = r->stage->on_device ? gpu : NULL,
        .bytes = NAN,
        .flops = NAN,
        .peer_ratio = NAN,
    };
}

static enum status record_prefill(const struct bench *b, const struct bench_result *r,
                                  const struct bench_gpu *gpu, struct error *error) {
    char shape[128];
    snprintf(shape, sizeof shape, "%s, %zu tokens", b->model.label, b->plan.prompt);
    struct bench_record record = bench_record_of(b, r, gpu, "llama2_prefill", shape);
    record.timing = r->prefill;
    record.flops = prefill_flops(b);
    record.figure = "tokens_per_second";
    record.figure_value = 1e3 * (double)b->plan.prompt / r->prefill.median_ms;
    return bench_append(&record, error);
}

static enum status record_decode(const struct bench *b, const struct bench_result *r, size_t which,
                                 const struct bench_gpu *gpu, struct error *error) {
    char shape[128];
    double ms = r->decode[which].median_ms;
    snprintf(shape, sizeof shape, "%s, context %zu", b->model.label, b->plan.context[which]);
    struct bench_record record = bench_record_of(b, r, gpu, "llama2_decode", shape);
    record.timing = r->decode[which];
    record.bytes = token_bytes(b, which);
    record.figure = "tokens_per_second";
    record.figure_value = 1e3 / ms;
    TRY(bench_append(&record, error));
    if (r->stage->on_device) {
        record.figure = "share_of_read_bandwidth";
        record.figure_value = 1e3 * record.bytes / ms / b->read_bytes_per_s;
        TRY(bench_append(&record, error));
    }
    if (which == SHORT && !isnan(r->launches)) {
        record.figure = "launches_per_token";
        record.figure_value = r->launches;
        TRY(bench_append(&record, error));
    }
    return STATUS_OK;
}

enum status bench_record(const struct bench *b, const struct bench_result *r, struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&b->driver->gpu);
    TRY(record_prefill(b, r, &gpu, error));
    for (size_t i = 0; i < b->plan.contexts; i++) {
        TRY(record_decode(b, r, i, &gpu, error));
    }
    return STATUS_OK;
}
