#include "labs/14_endless_text/problem/norms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng_bell.h"
#include "common/testing/compare.h"
#include "common/testing/words.h"

#define F (sizeof(float))

static const float EPS = 0.25f; /* large enough that a wrong one fails */

static void name_call(struct endless_norms *n) {
    static const char *const addends[] = {"", ", a", ", b", ", a and b"};
    const struct endless_norms_spec *s = &n->spec;
    char mean[48] = "", skew[64] = "";
    if (s->mean != 0.0f) {
        snprintf(mean, sizeof mean, ", mean about %g", (double)s->mean);
    }
    if (s->skew > 0) {
        snprintf(skew, sizeof skew, ", pointers %zu element%s past a multiple of 256", s->skew,
                 plural(s->skew));
    }
    snprintf(n->name, sizeof n->name, "endless_add_norms C=%zu, %zu %s%s%s%s%s%s", s->C, s->count,
             s->layernorm ? "LayerNorm" : "RMSNorm", plural(s->count), s->bias ? " with bias" : "",
             addends[s->addends], mean, skew);
}

/* Whether the call has this array. */
static bool has(const struct endless_norms_spec *s, int array) {
    if (array == NORMS_A || array == NORMS_B) {
        return (s->addends & (array == NORMS_A ? 1 : 2)) != 0;
    }
    bool second = array == NORMS_WEIGHT + 1 || array == NORMS_BIAS + 1 || array == NORMS_OUT + 1;
    bool bias = array == NORMS_BIAS || array == NORMS_BIAS + 1;
    return (!second || s->count == 2) && (!bias || s->bias);
}

static void fill_call(struct endless_norms *n) {
    const float *data[NORMS_ARRAYS];
    for (int i = 0; i < NORMS_ARRAYS; i++) {
        data[i] = has(&n->spec, i) ? n->blocks[i].data : NULL;
    }
    n->call = (struct endless_add_norms){.C = n->spec.C,
                                         .layernorm = n->spec.layernorm,
                                         .eps = EPS,
                                         .a = data[NORMS_A],
                                         .b = data[NORMS_B],
                                         .x = n->blocks[NORMS_X].data,
                                         .count = n->spec.count};
    for (size_t i = 0; i < n->spec.count; i++) {
        n->call.norms[i] = (struct endless_norm){.weight = data[NORMS_WEIGHT + i],
                                                 .bias = data[NORMS_BIAS + i],
                                                 .out = n->blocks[NORMS_OUT + i].data};
    }
}

enum status endless_norms_create(struct endless_norms *n, const struct endless_norms_spec *spec,
                                 struct rng *rng, bool guarded, struct error *error) {
    *n = (struct endless_norms){.spec = *spec};
    name_call(n);
    n->want = calloc(spec->C, sizeof *n->want);
    n->got = calloc(spec->C, F);
    bool made = n->want != NULL && n->got != NULL;
    for (int i = 0; i < NORMS_ARRAYS && made; i++) {
        n->host[i] = calloc(spec->C, F);
        made = n->host[i] != NULL;
    }
    if (!made) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    for (int i = 0; i < NORMS_ARRAYS; i++) {
        size_t count = has(spec, i) ? spec->C : 0;
        TRY(device_buffer_create(&n->blocks[i], count, guarded, spec->skew, error));
    }
    fill_call(n);
    return endless_norms_draw(n, rng, error);
}

enum status endless_norms_draw(struct endless_norms *n, struct rng *rng, struct error *error) {
    for (int i = 0; i < NORMS_ARRAYS; i++) {
        bool out = i >= NORMS_OUT;
        rng_fill_bell_rows(rng, n->host[i], 1, n->spec.C);
        for (size_t c = 0; c < n->spec.C && i == NORMS_X; c++) {
            n->host[i][c] += n->spec.mean;
        }
        TRY(device_buffer_put(&n->blocks[i], out || !has(&n->spec, i) ? NULL : n->host[i], error));
    }
    return STATUS_OK;
}

void endless_norms_free(struct endless_norms *n) {
    for (int i = 0; i < NORMS_ARRAYS; i++) {
        device_buffer_free(&n->blocks[i]);
        free(n->host[i]);
    }
    free(n->want);
    free(n->got);
}

/* ---- Checks ---- */

static double repeats_of(const struct endless_norms *n) {
    return n->spec.repeats > 0 ? (double)n->spec.repeats : 1.0;
}

static double sum_at(const struct endless_norms *n, size_t c, double *size) {
    double x = (double)n->host[NORMS_X][c];
    double a = has(&n->spec, NORMS_A) ? (double)n->host[NORMS_A][c] : 0.0;
    double b = has(&n->spec, NORMS_B) ? (double)n->host[NORMS_B][c] : 0.0;
    *size = fmax(*size, fabs(x) + repeats_of(n) * (fabs(a) + fabs(b)));
    return x + repeats_of(n) * (a + b);
}

static void compare(struct endless_norms *n, const char *what, double absolute, char *text,
                    size_t size) {
    double squares = 0x1p-100, count = (double)n->spec.C;
    char found[320];
    for (size_t c = 0; c < n->spec.C; c++) {
        squares += n->want[c] * n->want[c];
    }
    const struct tolerance tolerance = {.absolute = absolute,
                                        .norm = absolute * sqrt(count / squares)};
    struct comparison result = compare_f32(n->got, n->want, n->spec.C, tolerance);
    if (!result.pass) {
        comparison_describe(&result, n->spec.C, found, sizeof found);
        snprintf(text, size, "%s: %s", what, found);
    }
}

static enum status check_output(struct endless_norms *n, size_t which, double mean, double rstd,
                                double largest, char *text, size_t size, struct error *error) {
    static const char *const names[] = {"norms[0].out", "norms[1].out"};
    const float *weight = n->host[NORMS_WEIGHT + which], *bias = n->host[NORMS_BIAS + which];
    double unused = 0.0, normed = 0.0, heaviest = 0.0;
    bool intact, changed;
    for (size_t c = 0; c < n->spec.C; c++) {
        double y = (sum_at(n, c, &unused) - mean) * rstd;
        normed = fmax(normed, fabs(y));
        heaviest = fmax(heaviest, fabs((double)weight[c]));
        n->want[c] = y * (double)weight[c] + (n->spec.bias ? (double)bias[c] : 0.0);
    }
    double sums = tolerance_dot_f32(n->spec.C, 1.0).absolute + 0x1p-21;
    /* Of x as large as its mean: the additions, and a sum that is rounded C times, by chance. */
    double roundings = 3.0 + sqrt((double)n->spec.C);
    double absolute =
        heaviest * (normed * sums + roundings * 0x1p-24 * repeats_of(n) * largest * rstd) + 0x1p-22;
    TRY(device_buffer_get(&n->blocks[NORMS_OUT + which], n->got, &intact, &changed, error));
    compare(n, names[which], absolute, text, size);
    if (text[0] == '\0' && !intact) {
        snprintf(text, size, "wrote outside of %s", names[which]);
    }
    return STATUS_OK;
}

static enum status check_inputs(const struct endless_norms *n, char *text, size_t size,
                                struct error *error) {
    static const char *const names[] = {"x", "a", "b", "a weight", "a weight", "a bias", "a bias"};
    bool intact, changed;
    for (int i = NORMS_A; i < NORMS_OUT && text[0] == '\0'; i++) {
        TRY(device_buffer_get(&n->blocks[i], NULL, &intact, &changed, error));
        if (!intact || changed) {
            snprintf(text, size, "changed its input: %s", names[i]);
        }
    }
    return STATUS_OK;
}

enum status endless_norms_check(struct endless_norms *n, char *text, size_t size,
                                struct error *error) {
    double largest = 0.0, mean = 0.0, squares = 0.0, C = (double)n->spec.C;
    bool intact, changed;
    text[0] = '\0';
    for (size_t c = 0; c < n->spec.C; c++) {
        n->want[c] = sum_at(n, c, &largest);
        mean += n->want[c] / C;
    }
    mean = n->spec.layernorm ? mean : 0.0;
    for (size_t c = 0; c < n->spec.C; c++) {
        squares += (n->want[c] - mean) * (n->want[c] - mean) / C;
    }
    TRY(device_buffer_get(&n->blocks[NORMS_X], n->got, &intact, &changed, error));
    compare(n, "x", 2.0 * 0x1p-24 * repeats_of(n) * largest, text, size);
    if (text[0] == '\0' && !intact) {
        snprintf(text, size, "wrote outside of x");
    }
    double rstd = 1.0 / sqrt(squares + (double)EPS);
    for (size_t i = 0; i < n->spec.count && text[0] == '\0'; i++) {
        TRY(check_output(n, i, mean, rstd, largest, text, size, error));
    }
    return text[0] == '\0' ? check_inputs(n, text, size, error) : STATUS_OK;
}
