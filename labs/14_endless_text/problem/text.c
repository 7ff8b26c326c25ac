#include "labs/14_endless_text/problem/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng_bell.h"
#include "common/testing/compare.h"
#include "common/testing/words.h"
#include "labs/14_endless_text/given/angles.h"

#define F (sizeof(float))

static size_t width_of(const struct endless_text *t) {
    return t->spec.KVH * t->spec.HS;
}

static size_t rows_of(const struct endless_text *t) {
    return t->spec.sinks + t->spec.window;
}

static void name_text(struct endless_text *t) {
    const struct endless_text_spec *s = &t->spec;
    char skew[64] = "", loud[64] = "";
    if (s->skew > 0) {
        snprintf(skew, sizeof skew, ", pointers %zu element%s past a multiple of 256", s->skew,
                 plural(s->skew));
    }
    if (s->loudness > 0.0f) {
        snprintf(loud, sizeof loud, ", scores of about %g", (double)s->loudness);
    }
    snprintf(t->name, sizeof t->name,
             "endless_attention %s NH=%zu KVH=%zu HS=%zu rotary=%zu, %zu sinks, window %zu%s%s%s",
             nn_dtype_name(s->dtype), s->NH, s->KVH, s->HS, s->rotary, s->sinks, s->window,
             s->layout == NN_ROPE_HALVES ? ", halves" : "", loud, skew);
}

/* ---- Creation ---- */

static enum status place(const struct endless_text *t, struct device_buffer *block, size_t count,
                         size_t element, bool guarded, struct error *error) {
    TRY(device_buffer_create_bytes(block, count * element, guarded, t->spec.skew * element, error));
    return device_buffer_put(block, NULL, error);
}

static enum status make_memory(struct endless_text *t, bool guarded, struct error *error) {
    const struct endless_text_spec *s = &t->spec;
    size_t e = nn_dtype_bytes(s->dtype), q = s->NH * s->HS, angles = rows_of(t) * s->rotary;
    TRY(place(t, &t->in[ENDLESS_POSITION], 1, sizeof(int32_t), guarded, error));
    TRY(place(t, &t->in[ENDLESS_ANGLES], angles, F, guarded, error));
    TRY(place(t, &t->in[ENDLESS_Q], q, F, guarded, error));
    TRY(place(t, &t->in[ENDLESS_K_NEW], width_of(t), F, guarded, error));
    TRY(place(t, &t->in[ENDLESS_V_NEW], width_of(t), F, guarded, error));
    TRY(place(t, &t->k, rows_of(t) * width_of(t), e, guarded, error));
    TRY(place(t, &t->v, rows_of(t) * width_of(t), e, guarded, error));
    TRY(place(t, &t->out, q, F, guarded, error));
    float *table = calloc(angles + 1, F);
    if (table == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    endless_angles(table, rows_of(t), s->rotary, 10000.0);
    enum status status = device_buffer_put(&t->in[ENDLESS_ANGLES], table, error);
    free(table);
    return status;
}

static void fill_call(struct endless_text *t) {
    const struct endless_text_spec *s = &t->spec;
    t->call = (struct endless_attention){
        .NH = s->NH,
        .KVH = s->KVH,
        .HS = s->HS,
        .rotary = s->rotary,
        .layout = s->layout,
        .sinks = s->sinks,
        .window = s->window,
        .dtype = s->dtype,
        .position = (const int32_t *)(const void *)t->in[ENDLESS_POSITION].data,
        .angles = t->in[ENDLESS_ANGLES].data,
        .q = t->in[ENDLESS_Q].data,
        .k_new = t->in[ENDLESS_K_NEW].data,
        .v_new = t->in[ENDLESS_V_NEW].data,
        .k = t->k.data,
        .v = t->v.data,
        .out = t->out.data};
}

enum status endless_text_create(struct endless_text *t, const struct endless_text_spec *spec,
                                size_t tokens, uint64_t seed, bool guarded, struct error *error) {
    *t = (struct endless_text){.spec = *spec, .rng = rng_create(seed), .tokens = tokens};
    name_text(t);
    size_t q = spec->NH * spec->HS;
    t->q = calloc(q, F);
    t->k_all = calloc(tokens * width_of(t), F);
    t->v_all = calloc(tokens * width_of(t), F);
    t->rotated = calloc(2 * spec->HS, sizeof *t->rotated);
    t->scores = calloc(2 * rows_of(t), sizeof *t->scores);
    t->terms = t->scores + rows_of(t);
    t->want = calloc(q, sizeof *t->want);
    t->got = calloc(q, F);
    if (t->q == NULL || t->k_all == NULL || t->v_all == NULL || t->rotated == NULL ||
        t->scores == NULL || t->want == NULL || t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(make_memory(t, guarded, error));
    fill_call(t);
    return STATUS_OK;
}

void endless_text_free(struct endless_text *t) {
    for (int i = 0; i < ENDLESS_TEXT_INPUTS; i++) {
        device_buffer_free(&t->in[i]);
    }
    device_buffer_free(&t->k);
    device_buffer_free(&t->v);
    device_buffer_free(&t->out);
    free(t->q);
    free(t->k_all);
    free(t->v_all);
    free(t->rotated);
    free(t->scores);
    free(t->want);
    free(t->got);
}

void endless_text_restart(struct endless_text *t) {
    t->position = 0;
}

/* ---- Tokens ---- */

/* What the cache makes of a row: each number rounded once. */
static void round_row(float *row, size_t count, enum nn_dtype dtype) {
    unsigned char stored[sizeof(float)];
    for (size_t i = 0; i < count; i++) {
        nn_dtype_store(stored, &row[i], 1, dtype);
        nn_dtype_load(&row[i], stored, 1, dtype);
    }
}

enum status endless_text_next(struct endless_text *t, struct error *error) {
    const struct endless_text_spec *s = &t->spec;
    size_t q = s->NH * s->HS, width = width_of(t);
    int32_t number = (int32_t)t->position;
    float *k = t->k_all + t->position * width, *v = t->v_all + t->position * width;
    rng_fill_bell_rows(&t->rng, t->q, 1, q);
    rng_fill_bell_rows(&t->rng, k, 1, width);
    rng_fill_bell_rows(&t->rng, v, 1, width);
    for (size_t i = 0; i < q && s->loudness > 0.0f; i++) {
        t->q[i] *= s->loudness;
    }
    TRY(device_buffer_put(&t->in[ENDLESS_POSITION], &number, error));
    TRY(device_buffer_put(&t->in[ENDLESS_Q], t->q, error));
    TRY(device_buffer_put(&t->in[ENDLESS_K_NEW], k, error));
    TRY(device_buffer_put(&t->in[ENDLESS_V_NEW], v, error));
    TRY(device_buffer_put(&t->out, NULL, error));
    round_row(k, width, s->dtype);
    round_row(v, width, s->dtype);
    t->position++;
    return STATUS_OK;
}

/* ---- The expected result ---- */

/* to (HS) = a head at a place, rotated. */
static void rotate(const struct endless_text *t, double *to, const float *head, size_t at) {
    const struct endless_text_spec *s = &t->spec;
    size_t half = s->rotary / 2;
    for (size_t c = 0; c < s->HS; c++) {
        to[c] = (double)head[c];
    }
    for (size_t i = 0; i < half; i++) {
        bool together = s->layout == NN_ROPE_INTERLEAVED;
        size_t one = together ? 2 * i : i, other = together ? one + 1 : i + half;
        double angle = (double)at * pow(10000.0, -2.0 * (double)i / (double)s->rotary);
        double x = (double)head[one], y = (double)head[other];
        to[one] = x * cos(angle) - y * sin(angle);
        to[other] = x * sin(angle) + y * cos(angle);
    }
}

/* The token at place s of the n that the last one sees. */
static size_t token_at(const struct endless_text *t, size_t s, size_t n) {
    return s < t->spec.sinks ? s : t->position - n + s;
}

static void score(struct endless_text *t, size_t h, size_t n) {
    size_t HS = t->spec.HS, head = h / (t->spec.NH / t->spec.KVH) * HS;
    double *q = t->rotated, *k = t->rotated + HS;
    rotate(t, q, t->q + h * HS, n - 1);
    for (size_t s = 0; s < n; s++) {
        double sum = 0.0, squares = 0.0;
        rotate(t, k, t->k_all + token_at(t, s, n) * width_of(t) + head, s);
        for (size_t c = 0; c < HS; c++) {
            sum += q[c] * k[c];
            squares += q[c] * k[c] * q[c] * k[c];
        }
        t->scores[s] = sum / sqrt((double)HS);
        t->terms[s] = sqrt(squares / (double)HS);
        t->largest_score = fmax(t->largest_score, t->terms[s]);
    }
}

static void attend(struct endless_text *t, size_t h, size_t n) {
    size_t HS = t->spec.HS, head = h / (t->spec.NH / t->spec.KVH) * HS;
    double largest = -INFINITY, sum = 0.0, *want = t->want + h * HS;
    score(t, h, n);
    memset(want, 0, HS * sizeof *want);
    for (size_t s = 0; s < n; s++) {
        largest = fmax(largest, t->scores[s]);
    }
    for (size_t s = 0; s < n; s++) {
        const float *v = t->v_all + token_at(t, s, n) * width_of(t) + head;
        double weight = exp(t->scores[s] - largest);
        sum += weight;
        for (size_t c = 0; c < HS; c++) {
            want[c] += weight * (double)v[c];
            t->largest_value = fmax(t->largest_value, fabs((double)v[c]));
        }
    }
    for (size_t c = 0; c < HS; c++) {
        want[c] /= sum;
    }
    for (size_t s = 0; s < n; s++) {
        t->scores[s] = exp(t->scores[s] - largest) / sum;
    }
    for (size_t c = 0; c < HS; c++) {
        double drift = 0.0;
        for (size_t s = 0; s < n; s++) {
            double v = (double)t->v_all[token_at(t, s, n) * width_of(t) + head + c];
            double by_weight = t->scores[s] * v;
            double by_score = t->scores[s] * t->terms[s] * (v - want[c]);
            drift += by_score * by_score + by_weight * by_weight;
        }
        t->drift += drift;
        t->largest_drift = fmax(t->largest_drift, drift);
    }
}

/* ---- Checks ---- */

/* Largest of many errors, of which one is expected to be at most 1. */
enum { LARGEST_OF_MANY = 4 };

/* A key in 16 bits is rounded as it is stored, which the reference does, too, and perhaps once more
   when it is rotated, and so may its weight be: errors of keys do not know of each other, so that
   their squares add up (t->drift). An element, and all of an output even more, is then off by far
   less than if all keys were off in the same direction. As a rounding's bound is 2.4 times what it
   is on average, that leaves room for a rounded q, but none for a cache with a byte for each
   number. */
static struct tolerance tolerance_of(const struct endless_text *t) {
    size_t count = t->spec.NH * t->spec.HS;
    double rounding = t->spec.dtype == NN_F32 ? 0.0 : nn_dtype_rounding(t->spec.dtype);
    double element = 0x1p-20, squares = 0.0; /* an angle in fp32, and two products */
    double exact = 2.0 * element + tolerance_dot_f32(t->spec.HS, 1.0).absolute;
    double score = t->largest_score * (exact + 2.0 * rounding);
    double absolute = t->largest_value * (score + element + 2.0 * rounding);
    for (size_t i = 0; i < count; i++) {
        squares += t->want[i] * t->want[i];
    }
    double norm = 0.5 * absolute * sqrt((double)count / squares);
    if (rounding > 0.0) {
        double usual = (exact + rounding) * sqrt(t->largest_drift);
        absolute = fmin(absolute, LARGEST_OF_MANY * usual + t->largest_value * element);
        norm = fmin(norm, element + (exact + rounding) * sqrt(t->drift / squares));
    }
    return (struct tolerance){.absolute = absolute, .norm = norm};
}

static enum status check_blocks(const struct endless_text *t, char *text, size_t size,
                                struct error *error) {
    static const char *const names[] = {"position", "angles", "q", "k_new", "v_new"};
    bool intact, changed;
    for (int i = 0; i < ENDLESS_TEXT_INPUTS && text[0] == '\0'; i++) {
        TRY(device_buffer_get(&t->in[i], NULL, &intact, &changed, error));
        if (!intact || changed) {
            snprintf(text, size, "changed its input: %s", names[i]);
        }
    }
    for (int i = 0; i < 2 && text[0] == '\0'; i++) {
        TRY(device_buffer_get(i == 0 ? &t->k : &t->v, NULL, &intact, &changed, error));
        if (!intact) {
            snprintf(text, size, "wrote outside of %s", i == 0 ? "k" : "v");
        }
    }
    return STATUS_OK;
}

enum status endless_text_check(struct endless_text *t, char *text, size_t size,
                               struct error *error) {
    size_t n = t->position < rows_of(t) ? t->position : rows_of(t);
    bool intact, unused;
    char found[320];
    text[0] = '\0';
    t->largest_score = t->largest_value = t->drift = t->largest_drift = 0.0;
    for (size_t h = 0; h < t->spec.NH; h++) {
        attend(t, h, n);
    }
    TRY(device_buffer_get(&t->out, t->got, &intact, &unused, error));
    struct comparison result =
        compare_f32(t->got, t->want, t->spec.NH * t->spec.HS, tolerance_of(t));
    if (!result.pass) {
        comparison_describe(&result, t->spec.HS, found, sizeof found);
        snprintf(text, size, "out, [head, channel]: %s", found);
    } else if (!intact) {
        snprintf(text, size, "wrote outside of out");
    }
    return text[0] == '\0' ? check_blocks(t, text, size, error) : STATUS_OK;
}
