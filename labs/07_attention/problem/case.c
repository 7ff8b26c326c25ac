#include "labs/07_attention/problem/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/rng_bell.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"

enum { GUARD_BYTES = 4096, POISON = 0xff }; /* bytes of NaN in all three formats */

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_STARTS };

static const char *const mask_names[] = {"", ", padding hidden", ", random keys hidden",
                                         ", runs of keys hidden", ", every key hidden"};

static const char *const layout_names[] = {"", ", q k v joined", ", odd strides and pointers"};

static void name_case(struct attention_case *c) {
    const struct attention_spec *s = &c->spec;
    snprintf(c->name, sizeof c->name,
             "%s B=%zu T=%zu S=%zu NH=%zu KVH=%zu HS=%zu%s%s%s%s, scores of about %g",
             nn_dtype_name(s->dtype), s->B, s->T, s->S, s->NH, s->KVH, s->HS,
             s->causal ? ", causal" : "", s->starts != NULL ? ", packed" : "", mask_names[s->mask],
             layout_names[s->layout], (double)s->loudness);
}

/* Values of about a normal distribution, as the format has them. */
static float *make_values(struct rng *rng, size_t count, float scale, enum nn_dtype dtype) {
    float *values = malloc(count * sizeof *values + 1);
    void *stored = malloc(count * sizeof *values + 1);
    if (values != NULL && stored != NULL) {
        rng_fill_bell(rng, values, count, scale);
        nn_dtype_store(stored, values, count, dtype);
        nn_dtype_load(values, stored, count, dtype);
    }
    free(stored);
    return values;
}

static uint8_t *make_mask(struct rng *rng, const struct attention_spec *s) {
    uint8_t *mask = malloc(s->B * s->S + 1);
    for (size_t b = 0; b < s->B && mask != NULL; b++) {
        size_t length = 1 + rng_below(rng, s->S);
        bool run = true;
        for (size_t i = 0; i < s->S; i++) {
            if (i % 64 == 0) {
                run = rng_below(rng, 2) != 0;
            }
            bool seen = s->mask == MASK_PADDING  ? i < length
                        : s->mask == MASK_RANDOM ? rng_below(rng, 2) != 0
                        : s->mask == MASK_BLOCKS ? run
                                                 : b % 2 != 0;
            mask[b * s->S + i] = seen ? (uint8_t)(1 + rng_below(rng, 255)) : 0;
        }
    }
    return mask;
}

/* The oracle on the sequences one by one. */
static bool make_result(struct attention_case *c) {
    const struct attention_spec *s = &c->spec;
    size_t q_row = s->NH * s->HS, kv_row = s->KVH * s->HS;
    float *out = malloc((s->T * q_row + 1) * sizeof *out);
    double *scores = malloc((s->S + 1) * sizeof *scores);
    for (size_t b = 0; b < s->B && out != NULL && scores != NULL; b++) {
        size_t q_first = s->starts != NULL ? (size_t)s->starts[b] : b * s->T;
        size_t kv_first = s->starts != NULL ? q_first : b * s->S;
        size_t length = s->starts != NULL ? (size_t)(s->starts[b + 1] - s->starts[b]) : 0;
        const struct nn_attention a = {
            .q = c->q + q_first * q_row,
            .k = c->k + kv_first * kv_row,
            .v = c->v + kv_first * kv_row,
            .mask = c->mask != NULL ? c->mask + b * s->S : NULL,
            .B = 1,
            .T = s->starts != NULL ? length : s->T,
            .S = s->starts != NULL ? length : s->S,
            .NH = s->NH,
            .KVH = s->KVH,
            .HS = s->HS,
            .q_stride = q_row,
            .kv_stride = kv_row,
            .causal = s->causal,
            .scale = c->problem.scale,
        };
        nn_attention(out, &a, scores);
        for (size_t i = 0; i < a.T * q_row; i++) {
            c->want[q_first * q_row + i] = (double)out[i];
        }
    }
    bool good = out != NULL && scores != NULL;
    free(out);
    free(scores);
    return good;
}

/* Elements from the first to the last of `tokens` rows. */
static size_t extent(size_t tokens, size_t row, size_t stride) {
    return tokens == 0 ? 0 : (tokens - 1) * stride + row;
}

/* A tensor's rows in the format, `stride` apart, NaN between them and where a key is masked. */
static void store_rows(unsigned char *to, const float *from, size_t tokens, size_t row,
                       size_t stride, const uint8_t *mask, enum nn_dtype dtype) {
    for (size_t t = 0; t < tokens; t++) {
        if (mask == NULL || mask[t] != 0) {
            nn_dtype_store(to + t * stride * nn_dtype_bytes(dtype), from + t * row, row, dtype);
        }
    }
}

/* Host memory of a block of inputs: `from`, or NaN. */
static enum status reserve(struct attention_case *c, int which, size_t bytes, const void *from,
                           struct error *error) {
    c->in_bytes[which] = bytes;
    c->in_host[which] = malloc(bytes + 1);
    if (c->in_host[which] == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the test is out of memory");
    }
    memset(c->in_host[which], POISON, bytes);
    if (from != NULL) {
        memcpy(c->in_host[which], from, bytes);
    }
    return STATUS_OK;
}

/* q, k and v into the blocks that they have. */
static void store_inputs(struct attention_case *c) {
    const struct attention_spec *s = &c->spec;
    const struct attention_problem *p = &c->problem;
    const float *const values[3] = {c->q, c->k, c->v};
    for (int i = 0; i < 3; i++) {
        bool is_q = i == 0;
        if (c->in_bytes[c->block[i]] > 0) {
            store_rows((unsigned char *)c->in_host[c->block[i]] + c->offset[i], values[i],
                       is_q ? c->q_tokens : c->kv_tokens, (is_q ? s->NH : s->KVH) * s->HS,
                       is_q ? p->q_stride : p->kv_stride, is_q ? NULL : c->mask, s->dtype);
        }
    }
}

/* Strides, and host memory of q, k and v as the device has them. */
static enum status lay_out(struct attention_case *c, struct error *error) {
    const struct attention_spec *s = &c->spec;
    size_t e = nn_dtype_bytes(s->dtype), q_row = s->NH * s->HS, kv_row = s->KVH * s->HS;
    size_t odd = s->layout == LAYOUT_ODD ? 1 : 0;
    bool joined = s->layout == LAYOUT_JOINED;
    struct attention_problem *p = &c->problem;
    p->q_stride = joined ? 3 * q_row : q_row + 3 * odd;
    p->kv_stride = joined ? 3 * q_row : kv_row + 3 * odd;
    p->out_stride = q_row + 3 * odd;
    if (joined) {
        TRY(reserve(c, IN_Q, c->q_tokens * 3 * q_row * e, NULL, error));
    }
    for (int i = 0; i < 3; i++) {
        c->block[i] = joined ? IN_Q : i;
        c->offset[i] = (joined ? (size_t)i * q_row : odd) * e;
        if (!joined) {
            size_t elements = i == 0 ? extent(c->q_tokens, q_row, p->q_stride)
                                     : extent(c->kv_tokens, kv_row, p->kv_stride);
            TRY(reserve(c, i, elements == 0 ? 0 : (elements + odd) * e, NULL, error));
        }
    }
    store_inputs(c);
    return STATUS_OK;
}

static enum status lay_out_result(struct attention_case *c, bool guarded, struct error *error) {
    const struct attention_spec *s = &c->spec;
    size_t e = nn_dtype_bytes(s->dtype), odd = s->layout == LAYOUT_ODD ? 1 : 0;
    size_t elements = extent(c->q_tokens, s->NH * s->HS, c->problem.out_stride);
    c->guard_bytes = guarded ? GUARD_BYTES : 0;
    c->out_offset = c->guard_bytes + odd * e;
    c->out_bytes = elements == 0 ? 0 : c->out_offset + elements * e + c->guard_bytes;
    c->out_host = malloc(c->out_bytes + 1);
    return c->out_host != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "the test is out of memory");
}

static enum status lay_out_all(struct attention_case *c, bool guarded, struct error *error) {
    const struct attention_spec *s = &c->spec;
    TRY(lay_out(c, error));
    if (c->mask != NULL) {
        TRY(reserve(c, IN_MASK, s->B * s->S, c->mask, error));
    }
    if (s->starts != NULL) {
        TRY(reserve(c, IN_STARTS, (s->B + 1) * sizeof *s->starts, s->starts, error));
    }
    return lay_out_result(c, guarded, error);
}

static enum status write_inputs(const struct attention_case *c, struct error *error) {
    for (int i = 0; i < ATTENTION_CASE_BLOCKS; i++) {
        if (c->in_bytes[i] > 0) {
            TRY(device_write(c->in[i], c->in_host[i], c->in_bytes[i], NULL, error));
        }
    }
    return STATUS_OK;
}

/* The problem's pointers into device memory. */
static void set_pointers(struct attention_case *c) {
    struct attention_problem *p = &c->problem;
    const void **const pointers[3] = {&p->q, &p->k, &p->v};
    for (int i = 0; i < 3; i++) {
        unsigned char *block = c->in[c->block[i]];
        *pointers[i] = block != NULL ? block + c->offset[i] : NULL;
    }
    p->mask = c->in[IN_MASK];
    p->starts = c->in[IN_STARTS];
    p->host_starts = c->spec.starts;
    p->out = c->out_block != NULL ? (unsigned char *)c->out_block + c->out_offset : NULL;
}

enum status attention_case_place(struct attention_case *c, struct error *error) {
    memset(c->in, 0, sizeof c->in);
    c->out_block = NULL;
    for (int i = 0; i < ATTENTION_CASE_BLOCKS; i++) {
        if (c->in_bytes[i] > 0) {
            TRY(device_alloc(&c->in[i], c->in_bytes[i], error));
        }
    }
    if (c->out_bytes > 0) {
        TRY(device_alloc(&c->out_block, c->out_bytes, error));
    }
    set_pointers(c);
    return write_inputs(c, error);
}

void attention_case_unplace(struct attention_case *c) {
    for (int i = 0; i < ATTENTION_CASE_BLOCKS; i++) {
        device_free(c->in[i]);
        c->in[i] = NULL;
    }
    device_free(c->out_block);
    c->out_block = NULL;
}

static void find_sizes(struct attention_case *c) {
    struct attention_spec *s = &c->spec;
    if (s->starts != NULL) {
        s->T = 0;
        for (size_t b = 0; b < s->B; b++) {
            size_t length = (size_t)(s->starts[b + 1] - s->starts[b]);
            s->T = length > s->T ? length : s->T;
        }
        s->S = s->T;
    }
    c->q_tokens = s->starts != NULL ? (size_t)s->starts[s->B] : s->B * s->T;
    c->kv_tokens = s->starts != NULL ? c->q_tokens : s->B * s->S;
    c->problem = (struct attention_problem){
        .dtype = s->dtype,
        .B = s->B,
        .T = s->T,
        .S = s->S,
        .NH = s->NH,
        .KVH = s->KVH,
        .HS = s->HS,
        .causal = s->causal,
        .scale = 1.0f / sqrtf(s->HS > 0 ? (float)s->HS : 1.0f),
    };
}

enum status attention_case_create(struct attention_case *c, const struct attention_spec *spec,
                                  uint64_t seed, bool guarded, struct error *error) {
    struct rng rng = rng_create(seed);
    *c = (struct attention_case){.spec = *spec};
    find_sizes(c);
    name_case(c);
    size_t q_count = c->q_tokens * spec->NH * spec->HS;
    size_t kv_count = c->kv_tokens * spec->KVH * spec->HS;
    c->q = make_values(&rng, q_count, spec->loudness, spec->dtype);
    c->k = make_values(&rng, kv_count, 1.0f, spec->dtype);
    c->v = make_values(&rng, kv_count, 1.0f, spec->dtype);
    c->mask = spec->mask != MASK_NONE ? make_mask(&rng, spec) : NULL;
    c->want = calloc(q_count + 1, sizeof *c->want);
    c->got = calloc(q_count + 1, sizeof *c->got);
    if (c->q == NULL || c->k == NULL || c->v == NULL || c->want == NULL || c->got == NULL ||
        (spec->mask != MASK_NONE && c->mask == NULL) || !make_result(c)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the test is out of memory");
    }
    TRY(lay_out_all(c, guarded, error));
    return attention_case_place(c, error);
}

/* Changes signs by column: row r of `group` heads that share `signs`, (HS) each. */
static void flip(float *values, size_t tokens, size_t heads, size_t HS, size_t group,
                 const float *signs) {
    for (size_t t = 0; t < tokens; t++) {
        for (size_t h = 0; h < heads; h++) {
            for (size_t c = 0; c < HS; c++) {
                values[(t * heads + h) * HS + c] *= signs[h / group * HS + c];
            }
        }
    }
}

static void flip_result(struct attention_case *c, size_t group, const float *signs) {
    const struct attention_spec *s = &c->spec;
    for (size_t t = 0; t < c->q_tokens; t++) {
        for (size_t i = 0; i < s->NH * s->HS; i++) {
            c->want[t * s->NH * s->HS + i] *= (double)signs[i / s->HS / group * s->HS + i % s->HS];
        }
    }
}

enum status attention_case_renew(struct attention_case *c, struct rng *rng, struct error *error) {
    const struct attention_spec *s = &c->spec;
    size_t count = s->KVH * s->HS, group = s->KVH > 0 ? s->NH / s->KVH : 1;
    float *signs = malloc((2 * count + 1) * sizeof *signs);
    if (signs == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the test is out of memory");
    }
    for (size_t i = 0; i < 2 * count; i++) {
        signs[i] = rng_below(rng, 2) == 0 ? 1.0f : -1.0f;
    }
    flip(c->q, c->q_tokens, s->NH, s->HS, group, signs);
    flip(c->k, c->kv_tokens, s->KVH, s->HS, 1, signs);
    flip(c->v, c->kv_tokens, s->KVH, s->HS, 1, signs + count);
    flip_result(c, group, signs + count);
    free(signs);
    store_inputs(c);
    return write_inputs(c, error);
}

enum status attention_case_poison(const struct attention_case *c, device_stream stream,
                                  struct error *error) {
    return c->out_bytes > 0 ? device_set(c->out_block, POISON, c->out_bytes, stream, error)
                            : STATUS_OK;
}

enum status attention_case_read(struct attention_case *c, device_stream stream,
                                struct error *error) {
    size_t e = nn_dtype_bytes(c->spec.dtype), row = c->spec.NH * c->spec.HS;
    TRY(device_synchronize(stream, error));
    if (c->out_bytes == 0) {
        return STATUS_OK;
    }
    TRY(device_read(c->out_host, c->out_block, c->out_bytes, stream, error));
    for (size_t t = 0; t < c->q_tokens; t++) {
        nn_dtype_load(c->got + t * row, c->out_host + c->out_offset + t * c->problem.out_stride * e,
                      row, c->spec.dtype);
    }
    return STATUS_OK;
}

enum status attention_case_run(struct attention_case *c, attention_function *run,
                               device_stream stream, struct error *error) {
    TRY(attention_case_poison(c, stream, error));
    TRY(run(&c->problem, stream, error));
    return attention_case_read(c, stream, error);
}

/* Outside the result's elements every byte must still be what it was. */
static bool out_intact(const struct attention_case *c) {
    size_t e = nn_dtype_bytes(c->spec.dtype), row = c->spec.NH * c->spec.HS * e;
    size_t stride = c->problem.out_stride * e;
    for (size_t i = 0; i < c->out_bytes; i++) {
        bool inside = i >= c->out_offset && i < c->out_bytes - c->guard_bytes &&
                      (i - c->out_offset) % stride < row;
        if (!inside && c->out_host[i] != POISON) {
            return false;
        }
    }
    return true;
}

static bool inputs_intact(const struct attention_case *c) {
    struct error error = {0};
    bool intact = true;
    for (int i = 0; i < ATTENTION_CASE_BLOCKS && intact; i++) {
        unsigned char *now = malloc(c->in_bytes[i] + 1);
        if (now == NULL) {
            return false;
        }
        if (c->in_bytes[i] > 0) {
            intact = device_read(now, c->in[i], c->in_bytes[i], NULL, &error) == STATUS_OK &&
                     memcmp(now, c->in_host[i], c->in_bytes[i]) == 0;
        }
        free(now);
    }
    return intact;
}

bool attention_case_check(const struct attention_case *c, char *text, size_t size) {
    size_t columns = c->spec.NH * c->spec.HS;
    struct comparison result =
        compare_f32(c->got, c->want, c->q_tokens * columns, attention_case_tolerance(&c->spec));
    if (!result.pass) {
        comparison_describe(&result, columns, text, size);
    } else if (!out_intact(c)) {
        snprintf(text, size, "wrote outside of the output");
    } else if (!inputs_intact(c)) {
        snprintf(text, size, "changed its input");
    } else {
        return true;
    }
    return false;
}

void attention_case_free(struct attention_case *c) {
    attention_case_unplace(c);
    for (int i = 0; i < ATTENTION_CASE_BLOCKS; i++) {
        free(c->in_host[i]);
    }
    free(c->out_host);
    free(c->q);
    free(c->k);
    free(c->v);
    free(c->mask);
    free(c->want);
    free(c->got);
}
