#include "labs/09_kv_cache/problem/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng_bell.h"
#include "common/testing/compare.h"
#include "common/testing/dot.h"
#include "common/testing/words.h"

#define F (sizeof(float))

static const float THETA = 10000.0f, NORM_EPS = 0.25f; /* large enough that a wrong eps fails */

static size_t kv_width(const struct kv_text *t) {
    return t->spec.KVH * t->spec.HS;
}

static size_t projected_rows(const struct kv_text *t) {
    return (t->spec.NH + 2 * t->spec.KVH) * t->spec.HS;
}

static void name_text(struct kv_text *t) {
    const struct kv_text_spec *s = &t->spec;
    char skew[64] = "", loud[64] = "";
    if (s->skew > 0) {
        snprintf(skew, sizeof skew, ", pointers %zu element%s past a multiple of 256", s->skew,
                 plural(s->skew));
    }
    if (s->loudness > 0.0f) {
        snprintf(loud, sizeof loud, ", scores of about %g", (double)s->loudness);
    }
    snprintf(t->name, sizeof t->name, "kv_attention %s C=%zu NH=%zu KVH=%zu HS=%zu T=%zu%s%s%s%s",
             nn_dtype_name(s->dtype), s->C, s->NH, s->KVH, s->HS, s->T,
             s->layout == NN_ROPE_HALVES ? ", halves" : "", s->inputs ? "" : ", no inputs", loud,
             skew);
}

/* ---- Creation ---- */

static enum status put(struct device_buffer *block, const void *values, size_t count,
                       size_t element, const struct kv_text *t, bool guarded, struct error *error) {
    TRY(device_buffer_create_bytes(block, count * element, guarded, t->spec.skew * element, error));
    block->data = count > 0 ? block->data : NULL; /* an argument that a call does not have */
    return values != NULL ? device_buffer_put(block, values, error) : STATUS_OK;
}

/* Rows of about 1 / sqrt(C), so that q, k and v are about 1; queries louder. */
static enum status make_qkv(struct kv_text *t, bool guarded, struct error *error) {
    const struct kv_text_spec *s = &t->spec;
    size_t count = projected_rows(t) * s->C, queries = s->NH * s->HS * s->C;
    float quiet = 1.0f / sqrtf((float)s->C), loud = s->loudness > 0.0f ? s->loudness : 1.0f;
    void *stored = malloc(count * nn_dtype_bytes(s->dtype) + 1);
    if (stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    rng_fill_bell_rows(&t->rng, t->qkv, projected_rows(t), s->C);
    for (size_t i = 0; i < count; i++) {
        t->qkv[i] *= quiet * (i < queries ? loud : 1.0f);
    }
    nn_dtype_store(stored, t->qkv, count, s->dtype);
    nn_dtype_load(t->qkv, stored, count, s->dtype);
    enum status status =
        put(&t->in[KV_QKV], stored, count, nn_dtype_bytes(s->dtype), t, guarded, error);
    free(stored);
    return status;
}

static enum status make_memory(struct kv_text *t, bool guarded, struct error *error) {
    const struct kv_text_spec *s = &t->spec;
    size_t e = nn_dtype_bytes(s->dtype), cache = s->T * kv_width(t);
    rng_fill_bell_rows(&t->rng, t->norm, 1, s->C);
    TRY(make_qkv(t, guarded, error));
    TRY(put(&t->in[KV_NORM], t->norm, s->C, F, t, guarded, error));
    TRY(put(&t->in[KV_X], NULL, s->C, F, t, guarded, error));
    TRY(put(&t->in[KV_POSITION], NULL, 1, sizeof(int32_t), t, guarded, error));
    TRY(put(&t->inputs, NULL, s->inputs ? s->T * s->C : 0, F, t, guarded, error));
    TRY(put(&t->k, NULL, cache, e, t, guarded, error));
    TRY(put(&t->v, NULL, cache, e, t, guarded, error));
    return put(&t->out, NULL, s->NH * s->HS, F, t, guarded, error);
}

static void fill_call(struct kv_text *t) {
    const struct kv_text_spec *s = &t->spec;
    t->call =
        (struct kv_attention){.C = s->C,
                              .NH = s->NH,
                              .KVH = s->KVH,
                              .HS = s->HS,
                              .T = s->T,
                              .dtype = s->dtype,
                              .eps = NORM_EPS,
                              .theta = THETA,
                              .layout = s->layout,
                              .position = (const int32_t *)(const void *)t->in[KV_POSITION].data,
                              .x = t->in[KV_X].data,
                              .norm = t->in[KV_NORM].data,
                              .qkv = t->in[KV_QKV].data,
                              .inputs = t->inputs.data,
                              .k = t->k.data,
                              .v = t->v.data,
                              .out = t->out.data};
}

enum status kv_text_create(struct kv_text *t, const struct kv_text_spec *spec, uint64_t seed,
                           bool guarded, struct error *error) {
    *t = (struct kv_text){.spec = *spec, .rng = rng_create(seed)};
    name_text(t);
    size_t rows = projected_rows(t), out = spec->NH * spec->HS, cache = spec->T * kv_width(t);
    t->x = malloc(spec->C * F);
    t->norm = malloc(spec->C * F);
    t->qkv = malloc(rows * spec->C * F);
    t->y = malloc(spec->C * sizeof *t->y);
    t->projected = malloc(rows * sizeof *t->projected);
    t->want_k = malloc(cache * F);
    t->want_v = malloc(cache * F);
    t->scores = malloc(spec->T * sizeof *t->scores);
    t->want = malloc(out * sizeof *t->want);
    t->got = malloc((out > cache ? out : cache) * F);
    if (t->x == NULL || t->norm == NULL || t->qkv == NULL || t->y == NULL || t->projected == NULL ||
        t->want_k == NULL || t->want_v == NULL || t->scores == NULL || t->want == NULL ||
        t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(make_memory(t, guarded, error));
    fill_call(t);
    return STATUS_OK;
}

void kv_text_free(struct kv_text *t) {
    struct device_buffer *blocks[] = {&t->in[0],  &t->in[1], &t->in[2], &t->in[3],
                                      &t->inputs, &t->k,     &t->v,     &t->out};
    for (int i = 0; i < 8; i++) {
        device_buffer_free(blocks[i]);
    }
    void *host[] = {t->x,      t->norm,   t->qkv,    t->y,    t->projected,
                    t->want_k, t->want_v, t->scores, t->want, t->got};
    for (int i = 0; i < 10; i++) {
        free(host[i]);
    }
}

/* ---- The expected result ---- */

/* Rotates every head of x (heads, HS). */
static void rotate(const struct kv_text *t, double *x, size_t heads, size_t position) {
    size_t HS = t->spec.HS;
    bool halves = t->spec.layout == NN_ROPE_HALVES;
    for (size_t i = 0; i < HS / 2; i++) {
        double angle = (double)position * pow((double)THETA, -2.0 * (double)i / (double)HS);
        size_t first = halves ? i : 2 * i, second = halves ? i + HS / 2 : 2 * i + 1;
        for (size_t h = 0; h < heads; h++) {
            double a = x[h * HS + first], b = x[h * HS + second];
            x[h * HS + first] = a * cos(angle) - b * sin(angle);
            x[h * HS + second] = a * sin(angle) + b * cos(angle);
        }
    }
}

static void project(struct kv_text *t, size_t position) {
    const struct kv_text_spec *s = &t->spec;
    double squares = 0.0;
    for (size_t c = 0; c < s->C; c++) {
        squares += (double)t->x[c] * t->x[c];
    }
    double rstd = 1.0 / sqrt(squares / (double)s->C + (double)NORM_EPS);
    for (size_t c = 0; c < s->C; c++) {
        t->y[c] = (double)t->x[c] * rstd * (double)t->norm[c];
    }
    for (size_t r = 0; r < projected_rows(t); r++) {
        t->projected[r] = dot_f64(t->y, t->qkv + r * s->C, s->C);
    }
    rotate(t, t->projected, s->NH + s->KVH, position);
}

/* A row of the cache, rounded to its type. */
static void keep_row(const struct kv_text *t, float *row, const double *values) {
    unsigned char stored[sizeof(float)];
    for (size_t i = 0; i < kv_width(t); i++) {
        float value = (float)values[i];
        nn_dtype_store(stored, &value, 1, t->spec.dtype);
        nn_dtype_load(&row[i], stored, 1, t->spec.dtype);
    }
}

static void attend(struct kv_text *t, size_t h, size_t position) {
    const struct kv_text_spec *s = &t->spec;
    size_t HS = s->HS, stride = kv_width(t), head = h / (s->NH / s->KVH) * HS;
    const double *q = t->projected + h * HS;
    double scale = 1.0 / sqrt((double)HS), largest = -INFINITY, sum = 0.0;
    for (size_t r = 0; r <= position; r++) {
        double score = 0.0, squares = 0.0;
        for (size_t i = 0; i < HS; i++) {
            double product = q[i] * (double)t->want_k[r * stride + head + i];
            score += product;
            squares += product * product;
        }
        t->scores[r] = scale * score;
        largest = fmax(largest, t->scores[r]);
        t->largest_score = fmax(t->largest_score, scale * sqrt(squares));
    }
    for (size_t i = 0; i < HS; i++) {
        t->want[h * HS + i] = 0.0;
    }
    for (size_t r = 0; r <= position; r++) {
        double weight = exp(t->scores[r] - largest);
        sum += weight;
        for (size_t i = 0; i < HS; i++) {
            t->want[h * HS + i] += weight * (double)t->want_v[r * stride + head + i];
        }
    }
    for (size_t i = 0; i < HS; i++) {
        t->want[h * HS + i] /= sum;
    }
}

/* This token's q, k and v: what later ones see of it. */
static void make_token(struct kv_text *t, size_t position) {
    const struct kv_text_spec *s = &t->spec;
    size_t width = kv_width(t);
    project(t, position);
    keep_row(t, t->want_k + position * width, t->projected + s->NH * s->HS);
    keep_row(t, t->want_v + position * width, t->projected + (s->NH + s->KVH) * s->HS);
}

/* Its result, behind make_token(). */
static void make_result(struct kv_text *t, size_t position) {
    const struct kv_text_spec *s = &t->spec;
    size_t width = kv_width(t);
    t->largest_score = t->largest_key = t->largest_value = 0.0;
    for (size_t i = 0; i < (position + 1) * width; i++) {
        t->largest_key = fmax(t->largest_key, fabs((double)t->want_k[i]));
        t->largest_value = fmax(t->largest_value, fabs((double)t->want_v[i]));
    }
    for (size_t h = 0; h < s->NH; h++) {
        attend(t, h, position);
    }
}

/* ---- Calls ---- */

/* Draws rows 0 .. position - 1 of the cache; the others are NaN. */
static enum status give_rows(struct kv_text *t, struct device_buffer *block, float *want,
                             size_t position, struct error *error) {
    size_t width = kv_width(t), e = nn_dtype_bytes(t->spec.dtype);
    unsigned char *stored = malloc(t->spec.T * width * e);
    if (stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    memset(stored, 0xff, t->spec.T * width * e);
    rng_fill_bell_rows(&t->rng, want, position, width);
    nn_dtype_store(stored, want, position * width, t->spec.dtype);
    nn_dtype_load(want, stored, position * width, t->spec.dtype);
    enum status status = device_buffer_put(block, stored, error);
    free(stored);
    return status;
}

enum status kv_text_prepare(struct kv_text *t, size_t position, struct error *error) {
    int32_t number = (int32_t)position;
    if (!t->spec.inputs) {
        TRY(give_rows(t, &t->k, t->want_k, position, error));
        TRY(give_rows(t, &t->v, t->want_v, position, error));
    }
    rng_fill_bell_rows(&t->rng, t->x, 1, t->spec.C);
    TRY(device_buffer_put(&t->in[KV_X], t->x, error));
    TRY(device_buffer_put(&t->in[KV_POSITION], &number, error));
    TRY(device_buffer_put(&t->out, NULL, error));
    make_token(t, position);
    return STATUS_OK;
}

enum status kv_text_call(struct kv_text *t, size_t longest, kv_attention_function *run,
                         void *workspace, device_stream stream, struct error *error) {
    t->call.longest = longest;
    TRY(run(&t->call, workspace, stream, error));
    return device_synchronize(stream, error);
}

/* ---- Checks ---- */

/* Relative error of an element of q, k or v: its sum, the norm, the angle. */
static double element_error(const struct kv_text *t, size_t position) {
    return tolerance_dot_f32(t->spec.C, 1.0).absolute + 0x1p-21 * (double)(position + 2);
}

static double rounding_of(const struct kv_text *t) {
    return t->spec.dtype == NN_F32 ? 0.0 : nn_dtype_rounding(t->spec.dtype);
}

static struct tolerance out_tolerance(const struct kv_text *t, size_t position) {
    double element = element_error(t, position), rounding = rounding_of(t), squares = 0.0;
    double score = t->largest_score *
                   (2.0 * element + tolerance_dot_f32(t->spec.HS, 1.0).absolute + 2.0 * rounding);
    double absolute = t->largest_value * (score + element + 2.0 * rounding);
    size_t count = t->spec.NH * t->spec.HS;
    for (size_t i = 0; i < count; i++) {
        squares += t->want[i] * t->want[i];
    }
    return (struct tolerance){.absolute = absolute,
                              .norm = 0.5 * absolute * sqrt((double)count / squares)};
}

static bool check_out(struct kv_text *t, size_t position, char *text, size_t size) {
    size_t count = t->spec.NH * t->spec.HS;
    char found[320];
    struct comparison result = compare_f32(t->got, t->want, count, out_tolerance(t, position));
    if (!result.pass) {
        comparison_describe(&result, t->spec.HS, found, sizeof found);
        snprintf(text, size, "out, [head, channel]: %s", found);
    }
    return result.pass;
}

/* Rows up to the position must be right, those after it unchanged. */
static enum status check_cache(struct kv_text *t, const struct device_buffer *block,
                               const float *want, double largest, size_t position, const char *name,
                               char *text, size_t size, struct error *error) {
    size_t width = kv_width(t), e = nn_dtype_bytes(t->spec.dtype);
    size_t seen = (position + 1) * width * e;
    double allowed = largest * element_error(t, position);
    unsigned char *stored = malloc(block->bytes + 1);
    bool intact = false, unused;
    if (stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = device_buffer_get(block, stored, &intact, &unused, error);
    nn_dtype_load(t->got, stored, (position + 1) * width, t->spec.dtype);
    for (size_t i = 0; i < (position + 1) * width && text[0] == '\0'; i++) {
        double difference = fabs((double)t->got[i] - (double)want[i]);
        double most = allowed + 2.0 * rounding_of(t) * fabs((double)want[i]);
        if (!(difference <= most)) {
            snprintf(text, size,
                     "row %zu of %s, channel %zu: got %.9g, want %.9g, difference %.3g, tolerance "
                     "%.3g",
                     i / width, name, i % width, (double)t->got[i], (double)want[i], difference,
                     most);
        }
    }
    if (text[0] == '\0' && !intact) {
        snprintf(text, size, "wrote outside of %s", name);
    }
    if (text[0] == '\0' &&
        memcmp(stored + seen, (const unsigned char *)block->expect + block->before + seen,
               block->bytes - seen) != 0) {
        snprintf(text, size, "wrote a row of %s behind row %zu", name, position);
    }
    free(stored);
    return status;
}

static enum status check_inputs(const struct kv_text *t, char *text, size_t size,
                                struct error *error) {
    static const char *const names[] = {"x", "norm", "qkv", "position"};
    bool intact, changed;
    for (int i = 0; i < KV_TEXT_INPUTS && text[0] == '\0'; i++) {
        TRY(device_buffer_get(&t->in[i], NULL, &intact, &changed, error));
        if (!intact || changed) {
            snprintf(text, size, "changed its input: %s", names[i]);
        }
    }
    if (text[0] == '\0') {
        TRY(device_buffer_get(&t->inputs, NULL, &intact, &changed, error));
        if (!intact) {
            snprintf(text, size, "wrote outside of inputs");
        }
    }
    return STATUS_OK;
}

enum status kv_text_check(struct kv_text *t, size_t position, char *text, size_t size,
                          struct error *error) {
    bool intact, unused;
    text[0] = '\0';
    make_result(t, position);
    TRY(check_cache(t, &t->k, t->want_k, t->largest_key, position, "k", text, size, error));
    TRY(check_cache(t, &t->v, t->want_v, t->largest_value, position, "v", text, size, error));
    TRY(device_buffer_get(&t->out, t->got, &intact, &unused, error));
    if (text[0] == '\0' && check_out(t, position, text, size) && !intact) {
        snprintf(text, size, "wrote outside of out");
    }
    return text[0] == '\0' ? check_inputs(t, text, size, error) : STATUS_OK;
}
