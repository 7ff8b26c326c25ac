#include "labs/15_many_gpus/problem/sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

/* ---- All-reduces ---- */

static void name_sums(struct many_sums_problem *p) {
    snprintf(p->name, sizeof p->name, "%d ranks, %zu x %zu of %s%s", p->ranks, p->sums.calls,
             p->sums.count, nn_dtype_name(p->sums.dtype),
             p->sums.delays != 0 ? ", ranks that come at different times" : "");
}

static enum status no_memory(size_t bytes, struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu bytes", bytes);
}

/* Draws `count` numbers with all their digits in use, so that sums round; then to the type. */
static enum status draw(void *to, size_t count, enum nn_dtype dtype, float scale, struct rng *rng,
                        struct error *error) {
    float *numbers = malloc(count * sizeof *numbers);
    if (numbers == NULL) {
        return no_memory(count * sizeof *numbers, error);
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = scale * (2.0f * rng_uniform(rng) - 1.0f) * (0.25f + rng_uniform(rng));
    }
    nn_dtype_store(to, numbers, count, dtype);
    free(numbers);
    return STATUS_OK;
}

enum status many_sums_create(struct many_sums_problem *p, int ranks, const struct many_sums *sums,
                             struct rng *rng, struct error *error) {
    memset(p, 0, sizeof *p);
    p->ranks = ranks;
    p->sums = *sums;
    name_sums(p);
    size_t bytes = many_sums_bytes(sums) * (size_t)ranks;
    p->in = malloc(bytes);
    p->out = malloc(bytes);
    if (p->in == NULL || p->out == NULL) {
        many_sums_free(p);
        return no_memory(2 * bytes, error);
    }
    memset(p->out, 0xff, bytes);
    return draw(p->in, sums->calls * (size_t)ranks * sums->count, sums->dtype, 1.0f, rng, error);
}

void many_sums_free(struct many_sums_problem *p) {
    free(p->in);
    free(p->out);
    p->in = p->out = NULL;
}

static float number_at(const void *numbers, size_t i, enum nn_dtype dtype) {
    float x;
    nn_dtype_load(&x, (const char *)numbers + i * nn_dtype_bytes(dtype), 1, dtype);
    return x;
}

static double addend(const struct many_sums_problem *p, size_t call, size_t rank, size_t i) {
    size_t at = (call * (size_t)p->ranks + rank) * p->sums.count + i;
    return (double)number_at(p->in, at, p->sums.dtype);
}

/* What a wrong sum has in place of a rank's number: that of another call, or nothing. Only in fp32,
 * where two sums are not alike by chance. */
static void explain(const struct many_sums_problem *p, size_t call, size_t i, double error,
                    double allowed, char *text, size_t size) {
    text[0] = '\0';
    for (size_t r = 0; r < (size_t)p->ranks && p->sums.dtype == NN_F32; r++) {
        double own = addend(p, call, r, i);
        if (fabs(error + own) <= allowed) {
            snprintf(text, size, "; nothing of rank %zu is in it: left out, or read before it came",
                     r);
        }
        for (size_t c = 0; c < p->sums.calls; c++) {
            if (c != call && fabs(error + own - addend(p, c, r, i)) <= allowed) {
                snprintf(text, size, "; it has the number that rank %zu had in call %zu, which %s",
                         r, c,
                         c < call ? "was read before the new one came"
                                  : "was written before the old one had been read");
            }
        }
    }
}

/* Element i of a call on a rank: each addition may round once, by half a unit of the type. */
static bool is_right(const struct many_sums_problem *p, size_t call, size_t rank, size_t i,
                     char *text, size_t size) {
    size_t ranks = (size_t)p->ranks;
    double want = 0.0, magnitude = 0.0;
    char why[200];
    for (size_t r = 0; r < ranks; r++) {
        double x = addend(p, call, r, i);
        want += x;
        magnitude += fabs(x);
    }
    double allowed = (double)(ranks - 1) * nn_dtype_rounding(p->sums.dtype) * magnitude * 1.01;
    double got =
        (double)number_at(p->out, (call * ranks + rank) * p->sums.count + i, p->sums.dtype);
    if (fabs(got - want) <= allowed) {
        return true;
    }
    explain(p, call, i, got - want, 2.0 * allowed, why, sizeof why);
    snprintf(text, size,
             "call %zu, rank %zu, element %zu: got %.9g, want %.9g, difference %.3g, tolerance "
             "%.3g%s",
             call, rank, i, got, want, fabs(got - want), allowed, why);
    return false;
}

/* A rank's bits against rank 0's. */
static bool same_bits(const struct many_sums_problem *p, size_t call, size_t rank, char *text,
                      size_t size) {
    size_t ranks = (size_t)p->ranks, element = nn_dtype_bytes(p->sums.dtype);
    const char *first = (const char *)p->out + call * ranks * p->sums.count * element;
    const char *other = first + rank * p->sums.count * element;
    for (size_t i = 0; i < p->sums.count; i++) {
        if (memcmp(first + i * element, other + i * element, element) != 0) {
            snprintf(text, size,
                     "call %zu, element %zu: rank 0 has %.9g, rank %zu %.9g; all ranks must have "
                     "the same bits: add in the same order everywhere",
                     call, i, (double)number_at(first, i, p->sums.dtype), rank,
                     (double)number_at(other, i, p->sums.dtype));
            return false;
        }
    }
    return true;
}

void many_sums_check(const struct many_sums_problem *p, char *text, size_t size) {
    for (size_t call = 0; call < p->sums.calls; call++) {
        for (size_t at = 0; at < (size_t)p->ranks * p->sums.count; at++) {
            if (!is_right(p, call, at / p->sums.count, at % p->sums.count, text, size)) {
                return;
            }
        }
        for (size_t r = 1; r < (size_t)p->ranks; r++) {
            if (!same_bits(p, call, r, text, size)) {
                return;
            }
        }
    }
}

/* ---- Products ---- */

static enum status fill_product(struct many_products_problem *p, struct rng *rng,
                                struct error *error) {
    size_t N = p->products.N, K = p->products.K, ranks = (size_t)p->ranks;
    p->weight = malloc(N * K * nn_dtype_bytes(p->products.dtype));
    p->in = malloc((K + 2 * N + ranks * N) * sizeof(float));
    if (p->weight == NULL || p->in == NULL) {
        return no_memory(N * K, error);
    }
    p->add = p->in + K;
    p->x = p->add + N;
    p->out = p->x + N;
    memset(p->out, 0xff, ranks * N * sizeof(float));
    TRY(draw(p->weight, N * K, p->products.dtype, 1.0f, rng, error));
    TRY(draw(p->in, K, NN_F32, 1.0f, rng, error));
    TRY(draw(p->add, N, NN_F32, 10.0f, rng, error));
    return draw(p->x, N, NN_F32, 10.0f, rng, error);
}

enum status many_products_create(struct many_products_problem *p, int ranks,
                                 const struct many_products *shape, struct rng *rng,
                                 struct error *error) {
    memset(p, 0, sizeof *p);
    p->ranks = ranks;
    p->products = *shape;
    snprintf(p->name, sizeof p->name, "%d ranks, %zu x N %zu, K %zu of %s%s%s", ranks, shape->calls,
             shape->N, shape->K, nn_dtype_name(shape->dtype), shape->bias ? ", bias" : "",
             shape->delays != 0 ? ", ranks that come at different times" : "");
    enum status status = fill_product(p, rng, error);
    if (status != STATUS_OK) {
        many_products_free(p);
        return status;
    }
    p->products.weight = p->weight;
    p->products.in = p->in;
    p->products.add = p->add;
    p->products.x = p->x;
    p->products.out = p->out;
    return STATUS_OK;
}

void many_products_free(struct many_products_problem *p) {
    free(p->weight);
    free(p->in);
    p->weight = NULL;
    p->in = NULL;
}

/* Row n behind all calls. @param row its weights */
static bool row_is_right(const struct many_products_problem *p, size_t n, const float *row,
                         char *text, size_t size) {
    const struct many_products *s = &p->products;
    double sum = s->bias ? (double)p->add[n] : 0.0, magnitude = fabs(sum);
    for (size_t k = 0; k < s->K; k++) {
        double product = (double)row[k] * (double)p->in[k];
        sum += product;
        magnitude += fabs(product);
    }
    double calls = (double)s->calls, want = (double)p->x[n] + calls * sum;
    double got = (double)p->out[n], difference = fabs(got - want);
    double largest = fabs((double)p->x[n]) + calls * magnitude;
    double allowed = ((double)s->K / 4.0 + 8.0 + calls) * nn_dtype_rounding(NN_F32) * largest;
    if (!(difference <= allowed)) {
        snprintf(text, size,
                 "rank 0, row %zu: got %.9g, want %.9g, difference %.3g, tolerance %.3g%s", n, got,
                 want, difference, allowed,
                 s->bias && fabs(difference - fabs((double)p->add[n]) * calls) < allowed
                     ? "; that is the bias"
                     : "");
        return false;
    }
    for (size_t r = 1; r < (size_t)p->ranks; r++) {
        if (memcmp(&p->out[n], &p->out[r * s->N + n], sizeof *p->out) != 0) {
            snprintf(text, size,
                     "row %zu: rank 0 has %.9g, rank %zu %.9g; all ranks must have the same bits: "
                     "add in the same order everywhere",
                     n, got, r, (double)p->out[r * s->N + n]);
            return false;
        }
    }
    return true;
}

enum status many_products_check(const struct many_products_problem *p, char *text, size_t size,
                                struct error *error) {
    const struct many_products *s = &p->products;
    size_t bytes = s->K * nn_dtype_bytes(s->dtype);
    float *row = malloc(s->K * sizeof *row);
    if (row == NULL) {
        return no_memory(s->K * sizeof *row, error);
    }
    for (size_t n = 0; n < s->N; n++) {
        nn_dtype_load(row, (const char *)p->weight + n * bytes, s->K, s->dtype);
        if (!row_is_right(p, n, row, text, size)) {
            break;
        }
    }
    free(row);
    return STATUS_OK;
}

/* ---- Cuts ---- */

static const char *const matrix_names[MANY_MATRICES] = {"q", "k", "v", "out", "gate", "up", "down"};

/* All parts of one matrix. */
struct cut {
    enum many_matrix matrix;
    size_t N, K;
    int ranks;
    struct many_part parts[COMM_MAX_RANKS];
};

static bool inside(size_t first, size_t count, size_t all) {
    return first <= all && count <= all - first;
}

static bool overlap(size_t a, size_t as, size_t b, size_t bs) {
    return a < b + bs && b < a + as;
}

/* Each weight once: the areas add up to the whole and do not overlap. The same for biases. */
static void check_once(const struct cut *c, char *text, size_t size) {
    const char *name = matrix_names[c->matrix];
    size_t area = 0, biases = 0;
    for (int r = 0; r < c->ranks; r++) {
        const struct many_part *a = &c->parts[r];
        if (!inside(a->row, a->rows, c->N) || !inside(a->column, a->columns, c->K) ||
            !inside(a->bias, a->biases, c->N)) {
            snprintf(text, size,
                     "%s (%zu, %zu): rank %d has rows %zu + %zu, columns %zu + %zu, biases %zu + "
                     "%zu: not inside the matrix",
                     name, c->N, c->K, r, a->row, a->rows, a->column, a->columns, a->bias,
                     a->biases);
            return;
        }
        area += a->rows * a->columns;
        biases += a->biases;
        for (int s = 0; s < r; s++) {
            const struct many_part *b = &c->parts[s];
            if (overlap(a->row, a->rows, b->row, b->rows) &&
                overlap(a->column, a->columns, b->column, b->columns)) {
                snprintf(text, size, "%s (%zu, %zu): ranks %d and %d both have weights of row %zu",
                         name, c->N, c->K, s, r, a->row > b->row ? a->row : b->row);
                return;
            }
            if (overlap(a->bias, a->biases, b->bias, b->biases)) {
                snprintf(text, size, "%s (%zu, %zu): ranks %d and %d both add bias %zu", name, c->N,
                         c->K, s, r, a->bias > b->bias ? a->bias : b->bias);
                return;
            }
        }
    }
    if (area != c->N * c->K) {
        snprintf(text, size, "%s (%zu, %zu): all ranks together have %zu of %zu weights", name,
                 c->N, c->K, area, c->N * c->K);
    } else if (biases != c->N) {
        snprintf(text, size, "%s (%zu, %zu): all ranks together add %zu of %zu biases", name, c->N,
                 c->K, biases, c->N);
    }
}

/* Parts of one rank fit together: heads with their key heads, and down with gate and up. */
static void check_rank(const struct many_shape *s, const struct cut *cuts, int r, char *text,
                       size_t size) {
    const struct many_part *q = &cuts[MANY_Q].parts[r], *k = &cuts[MANY_K].parts[r];
    const struct many_part *v = &cuts[MANY_V].parts[r], *out = &cuts[MANY_OUT].parts[r];
    const struct many_part *gate = &cuts[MANY_GATE].parts[r], *up = &cuts[MANY_UP].parts[r];
    const struct many_part *down = &cuts[MANY_DOWN].parts[r];
    size_t group = s->NH / s->KVH;
    if (q->row % s->HS != 0 || q->rows % s->HS != 0 || k->row % s->HS != 0 ||
        k->rows % s->HS != 0) {
        snprintf(text, size, "rank %d: q has rows %zu + %zu, k %zu + %zu: heads of %zu are cut", r,
                 q->row, q->rows, k->row, k->rows, s->HS);
    } else if (q->row != k->row * group || q->rows != k->rows * group || v->row != k->row ||
               v->rows != k->rows) {
        snprintf(text, size,
                 "rank %d: q has heads from %zu on, k from %zu, v from %zu: %zu query heads belong "
                 "to a key head",
                 r, q->row / s->HS, k->row / s->HS, v->row / s->HS, group);
    } else if (out->column != q->row || out->columns != q->rows) {
        snprintf(text, size, "rank %d: out has columns %zu + %zu, the heads are %zu + %zu", r,
                 out->column, out->columns, q->row, q->rows);
    } else if (gate->row != up->row || gate->rows != up->rows || down->column != gate->row ||
               down->columns != gate->rows) {
        snprintf(text, size,
                 "rank %d: gate has rows %zu + %zu, up %zu + %zu, down columns %zu + %zu", r,
                 gate->row, gate->rows, up->row, up->rows, down->column, down->columns);
    } else if ((out->columns > 0 && out->rows != s->C) ||
               (down->columns > 0 && down->rows != s->C) || (q->rows > 0 && q->columns != s->C) ||
               (gate->rows > 0 && gate->columns != s->C)) {
        snprintf(text, size, "rank %d: a part must have all of the C = %zu channels of x", r, s->C);
    } else if ((q->biases > 0 && (q->bias != q->row || q->biases != q->rows)) ||
               (gate->biases > 0 && (gate->bias != gate->row || gate->biases != gate->rows))) {
        snprintf(text, size, "rank %d: biases of q and gate belong to rows of the same rank", r);
    }
}

void many_cut_check(const struct many_shape *s, int ranks,
                    void (*cut)(enum many_matrix matrix, const struct many_shape *shape, int rank,
                                int ranks, struct many_part *part),
                    bool shared, char *text, size_t size) {
    size_t heads = s->NH * s->HS, keys = s->KVH * s->HS;
    const size_t N[MANY_MATRICES] = {heads, keys, keys, s->C, s->hidden, s->hidden, s->C};
    const size_t K[MANY_MATRICES] = {s->C, s->C, s->C, heads, s->C, s->C, s->hidden};
    struct cut cuts[MANY_MATRICES];
    for (int m = 0; m < MANY_MATRICES && text[0] == '\0'; m++) {
        cuts[m] = (struct cut){(enum many_matrix)m, N[m], K[m], ranks, {{0}}};
        for (int r = 0; r < ranks; r++) {
            memset(&cuts[m].parts[r], 0xff, sizeof cuts[m].parts[r]);
            cut((enum many_matrix)m, s, r, ranks, &cuts[m].parts[r]);
        }
        check_once(&cuts[m], text, size);
        const struct many_part *first = &cuts[m].parts[0];
        if (text[0] == '\0' && shared &&
            first->rows * first->columns * (size_t)ranks != N[m] * K[m]) {
            snprintf(text, size, "%s: rank 0 has %zu of %zu weights, which is not a share of %d",
                     matrix_names[m], first->rows * first->columns, N[m] * K[m], ranks);
        }
    }
    for (int r = 0; r < ranks && text[0] == '\0'; r++) {
        check_rank(s, cuts, r, text, size);
    }
}
