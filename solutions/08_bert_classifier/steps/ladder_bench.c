/**
 * @file ladder_bench.c
 * @brief What each step of solution 08 gains: 64 news articles, from ids to their first rows.
 *
 * Weights and tokens are random. On a GPU the model is BERT-base and the fastest of several calls
 * counts; on simt it is a narrow one of two layers, and times are modelled. Each step is checked
 * against the first one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/device/device_launches.h"
#include "common/bench/models/compare_logits.h"
#include "common/device/device.h"
#include "labs/08_bert_classifier/problem/case.h"
#include "labs/08_bert_classifier/problem/lengths.h"
#include "solutions/08_bert_classifier/steps/ladder.h"

enum { CALLS = 11 };

static struct bert_config config_of(bool modelled) {
    return (struct bert_config){.C = modelled ? 192 : 768,
                                .hidden = modelled ? 768 : 3072,
                                .L = modelled ? 2 : 12,
                                .NH = modelled ? 3 : 12,
                                .V = 1000,
                                .T = 128,
                                .types = 2,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

struct bench {
    struct encoder_net net;
    struct encoder_case batch;
    struct encoder *encoder;
    device_stream stream;
    bool modelled;
    float *first_step, *step; /* (B, C): results */
};

/* A step's call, for counting. */
struct counted {
    const struct bench *bench;
    const struct encoder_step *step;
};

static enum status run_counted(void *argument, device_stream stream, struct error *error) {
    const struct counted *c = argument;
    (void)stream; /* the encoder's own */
    return c->step->run(c->bench->encoder, &c->bench->batch.batch, error);
}

/* The fastest call, after two untimed ones; on simt one call is enough. */
static enum status time_step(const struct bench *b, const struct encoder_step *step, double *ms,
                             struct error *error) {
    *ms = INFINITY;
    for (int i = b->modelled ? 0 : -2; i < (b->modelled ? 1 : CALLS); i++) {
        double start = device_now();
        TRY(step->run(b->encoder, &b->batch.batch, error));
        double end = device_now();
        *ms = i < 0 ? *ms : fmin(*ms, 1e3 * (end - start));
    }
    return device_synchronize(b->stream, error);
}

static enum status read_result(const struct bench *b, float *to, struct error *error) {
    size_t bytes = b->batch.batch.B * b->net.model.C * sizeof *to;
    return device_read(to, b->batch.first.data, bytes, b->stream, error);
}

static enum status show_steps(const struct bench *b, struct error *error) {
    size_t count, launches, floats = b->batch.batch.B * b->net.model.C;
    const struct encoder_step *steps = encoder_ladder(&count);
    double first_ms = 0.0, ms;
    printf("  %-16s %10s %12s %9s %8s\n", "step", "ms", "articles/s", "launches", "in all");
    for (size_t i = 0; i < count; i++) {
        struct counted counted = {b, &steps[i]};
        TRY(time_step(b, &steps[i], &ms, error));
        TRY(read_result(b, i == 0 ? b->first_step : b->step, error));
        TRY(device_count_launches_on(run_counted, &counted, b->stream, &launches, error));
        first_ms = i == 0 ? ms : first_ms;
        if (i > 0 && !(largest_difference(b->step, b->first_step, floats) <= ENCODER_TOLERANCE)) {
            return error_set(error, STATUS_MISMATCH, "%s differs from %s", steps[i].name,
                             steps[0].name);
        }
        printf("  %-16s %10.4f %12.0f %9zu %7.2fx\n", steps[i].name, ms,
               1e3 * (double)b->batch.batch.B / ms, launches, first_ms / ms);
    }
    return STATUS_OK;
}

static enum status run(struct bench *b, struct error *error) {
    struct device_properties gpu;
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    b->modelled = gpu.modelled;
    const struct bert_config config = config_of(gpu.modelled);
    const struct encoder_spec spec = {encoder_article_lengths, ENCODER_ARTICLES, true, false};
    struct rng rng = rng_create(1);
    TRY(encoder_net_create(&b->net, &config, 2, ENCODER_ARTICLES * config.T, error));
    TRY(encoder_case_create(&b->batch, &b->net, &spec, &rng, false, true, error));
    TRY(device_stream_create(&b->stream, error));
    TRY(encoder_create(&b->encoder, &b->net.model, b->batch.batch.rows, b->stream, error));
    size_t floats = spec.B * config.C;
    b->first_step = calloc(2 * floats, sizeof *b->first_step);
    if (b->first_step == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    b->step = b->first_step + floats;
    printf("BERT C %zu, %zu layers, random weights, %zu articles of %zu tokens in all, %s %s\n",
           config.C, config.L, spec.B, b->batch.batch.rows,
           gpu.modelled ? "modelled for" : "measured on", gpu.name);
    return show_steps(b, error);
}

static void bench_free(struct bench *b) {
    encoder_free(b->encoder);
    encoder_case_free(&b->batch);
    encoder_net_free(&b->net);
    device_stream_destroy(b->stream);
    free(b->first_step);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: ladder_bench\nTimes each version of the encoder's ladder.\n");
        return 0;
    }
    struct bench bench = {0};
    struct error error = {0};
    setenv("SIMT_CHECK", "bounds", 0); /* the tests run all checks */
    enum status status = run(&bench, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "ladder_bench: %s\n", error_text(&error, status));
    }
    bench_free(&bench);
    return status == STATUS_OK ? 0 : 1;
}
