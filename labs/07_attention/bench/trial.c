/* One problem of the bench: values on the GPU, and some rows of the right result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/nn/nn.h"
#include "labs/07_attention/bench/trial.h"
#include "labs/07_attention/problem/case.h"

enum { CHECKED_QUERIES = 48 };

/* Values are uniform up to this magnitude, of mean square about 1. */
#define LARGEST_VALUE 1.7f

/* Queries of a head, compared with the oracle: their results close together. */
struct checked {
    float got[CHECKED_QUERIES * ATTENTION_MAX_HS];
    double want[CHECKED_QUERIES * ATTENTION_MAX_HS];
    size_t count; /* elements */
};

static size_t length_of(const struct bench_case *c, size_t b) {
    return c->lengths != NULL ? (size_t)c->lengths[b] : c->shape.T;
}

/* The sequence's first token in q, k, v and out. */
static size_t first_token(const struct bench_case *c, size_t b) {
    return c->form == FORM_PACKED ? (size_t)c->starts[b] : b * c->shape.T;
}

/* Device memory with these values. */
static enum status upload(void **d, const void *values, size_t bytes, struct error *error) {
    TRY(device_alloc(d, bytes, error));
    return device_write(*d, values, bytes, NULL, error);
}

/* As the format has them. */
static enum status make_values(struct bench_case *c, struct error *error) {
    size_t count = c->tokens * 3 * c->shape.NH * c->shape.HS;
    size_t bytes = count * nn_dtype_bytes(c->shape.dtype);
    struct rng rng = rng_create(1);
    void *stored = malloc(bytes + 1);
    c->qkv = malloc(count * sizeof *c->qkv + 1);
    if (stored == NULL || c->qkv == NULL) {
        free(stored);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < count; i++) {
        c->qkv[i] = 2.0f * LARGEST_VALUE * rng_uniform(&rng) - LARGEST_VALUE;
    }
    nn_dtype_store(stored, c->qkv, count, c->shape.dtype);
    nn_dtype_load(c->qkv, stored, count, c->shape.dtype);
    enum status status = upload(&c->d_qkv, stored, bytes, error);
    free(stored);
    return status;
}

static enum status make_mask(struct bench_case *c, struct error *error) {
    size_t B = c->shape.B, T = c->shape.T;
    uint8_t *mask = calloc(B * T + 1, 1);
    if (mask == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t b = 0; b < B; b++) {
        memset(mask + b * T, 1, length_of(c, b));
    }
    enum status status = upload(&c->d_mask, mask, B * T, error);
    free(mask);
    return status;
}

static enum status make_starts(struct bench_case *c, struct error *error) {
    size_t bytes = (c->shape.B + 1) * sizeof *c->starts;
    c->starts = malloc(bytes);
    if (c->starts == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    c->starts[0] = 0;
    for (size_t b = 0; b < c->shape.B; b++) {
        c->starts[b + 1] = c->starts[b] + c->lengths[b];
    }
    return upload(&c->d_starts, c->starts, bytes, error);
}

static size_t out_bytes(const struct bench_case *c) {
    return c->tokens * c->shape.NH * c->shape.HS * nn_dtype_bytes(c->shape.dtype);
}

enum status bench_case_create(struct bench_case *c, const struct bench_shape *s,
                              enum bench_form form, const int32_t *lengths, struct error *error) {
    *c = (struct bench_case){.shape = *s, .form = form, .lengths = lengths, .tokens = s->B * s->T};
    size_t C = s->NH * s->HS, e = nn_dtype_bytes(s->dtype);
    if (form == FORM_MASKED) {
        TRY(make_mask(c, error));
    } else if (form == FORM_PACKED) {
        TRY(make_starts(c, error));
        c->tokens = (size_t)c->starts[s->B];
    }
    TRY(make_values(c, error));
    TRY(device_alloc(&c->d_out, out_bytes(c), error));
    c->problem = (struct attention_problem){
        .dtype = s->dtype,
        .q = c->d_qkv,
        .k = (unsigned char *)c->d_qkv + C * e,
        .v = (unsigned char *)c->d_qkv + 2 * C * e,
        .out = c->d_out,
        .mask = c->d_mask,
        .starts = c->d_starts,
        .host_starts = c->starts,
        .B = s->B,
        .T = s->T,
        .S = s->T,
        .NH = s->NH,
        .KVH = s->NH,
        .HS = s->HS,
        .q_stride = 3 * C,
        .kv_stride = 3 * C,
        .out_stride = C,
        .causal = s->causal,
        .scale = 1.0f / sqrtf((float)s->HS),
    };
    return STATUS_OK;
}

double bench_flops(const struct bench_shape *s, const int32_t *lengths) {
    double pairs = 0.0;
    for (size_t b = 0; b < s->B; b++) {
        double length = lengths != NULL ? (double)lengths[b] : (double)s->T;
        pairs += s->causal ? length * (length + 1.0) / 2.0 : length * length;
    }
    return 4.0 * (double)s->NH * (double)s->HS * pairs;
}

double bench_case_bytes(const struct bench_case *c) {
    return 4.0 * (double)out_bytes(c);
}

enum status bench_case_poison(const struct bench_case *c, struct error *error) {
    return device_set(c->d_out, 0xff, out_bytes(c), NULL, error);
}

/* Adds one query of one head. */
static enum status add_query(struct checked *checked, const struct bench_case *c, size_t b,
                             size_t t, size_t h, struct error *error) {
    const struct bench_shape *s = &c->shape;
    size_t C = s->NH * s->HS, first = first_token(c, b), e = nn_dtype_bytes(s->dtype);
    const struct nn_attention a = {
        .q = c->qkv + (first + t) * 3 * C + h * s->HS,
        .k = c->qkv + first * 3 * C + C + h * s->HS,
        .v = c->qkv + first * 3 * C + 2 * C + h * s->HS,
        .B = 1,
        .T = 1,
        .S = s->causal ? t + 1 : length_of(c, b),
        .NH = 1,
        .KVH = 1,
        .HS = s->HS,
        .q_stride = 3 * C,
        .kv_stride = 3 * C,
        .scale = c->problem.scale,
    };
    float want[ATTENTION_MAX_HS];
    unsigned char stored[4 * ATTENTION_MAX_HS];
    double *scores = malloc((a.S + 1) * sizeof *scores);
    if (scores == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    nn_attention(want, &a, scores);
    free(scores);
    const unsigned char *place =
        (const unsigned char *)c->d_out + ((first + t) * C + h * s->HS) * e;
    TRY(device_read(stored, place, s->HS * e, NULL, error));
    nn_dtype_load(checked->got + checked->count, stored, s->HS, s->dtype);
    for (size_t i = 0; i < s->HS; i++) {
        checked->want[checked->count++] = (double)want[i];
    }
    return STATUS_OK;
}

enum status bench_case_verify(const struct bench_case *c, char *wrong, size_t size,
                              struct error *error) {
    const struct bench_shape *s = &c->shape;
    const struct tolerance tolerance =
        attention_tolerance(s->dtype, s->HS, 1.0, (double)LARGEST_VALUE);
    struct checked checked = {.count = 0};
    struct rng rng = rng_create(2);
    for (int i = 0; i < CHECKED_QUERIES; i++) {
        size_t b = i == 0 ? 0 : rng_below(&rng, s->B), length = length_of(c, b);
        size_t t = i < 2 ? length - 1 : rng_below(&rng, length);
        TRY(add_query(&checked, c, b, t, rng_below(&rng, s->NH), error));
    }
    const struct comparison result =
        compare_f32(checked.got, checked.want, checked.count, tolerance);
    wrong[0] = '\0';
    if (!result.pass) {
        comparison_describe(&result, s->HS, wrong, size);
    }
    return STATUS_OK;
}

void bench_case_free(struct bench_case *c) {
    device_free(c->d_qkv);
    device_free(c->d_out);
    device_free(c->d_mask);
    device_free(c->d_starts);
    free(c->starts);
    free(c->qkv);
}

struct step_call {
    const struct attention_step *step;
    const struct attention_problem *problem;
};

static enum status run_step(void *argument, device_stream stream, struct error *error) {
    const struct step_call *call = argument;
    return call->step->run(call->problem, stream, error);
}

enum status bench_case_time(const struct ladder_setup *setup, struct bench_case *c,
                            const struct attention_step *step, struct bench_timing *timing,
                            struct error *error) {
    char wrong[320];
    struct step_call call = {step, &c->problem};
    struct device_bench_options options = device_bench_defaults();
    options.flush_l2 = !setup->gpu.modelled; /* simt's report then shows your kernels alone */
    options.min_seconds = setup->quick ? BENCH_QUICK_SECONDS : BENCH_SECONDS;
    TRY(bench_case_poison(c, error));
    TRY(device_bench_run(&options, run_step, &call, NULL, timing, error));
    TRY(bench_case_verify(c, wrong, sizeof wrong, error));
    return wrong[0] == '\0'
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH, "%s is wrong: %s", step->name, wrong);
}

/* Squares of uniform numbers: half of the texts are shorter than a quarter of the longest. */
void bench_draw_lengths(int32_t *lengths, size_t B, size_t T) {
    struct rng rng = rng_create(512);
    for (size_t b = 0; b < B; b++) {
        float x = rng_uniform(&rng);
        lengths[b] = (int32_t)(1.0f + x * x * (float)(T - 1));
    }
    if (B > 0) {
        lengths[B / 2] = (int32_t)T;
    }
}
