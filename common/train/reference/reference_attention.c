/**
 * @file reference_attention.c
 * @brief Attention within each sequence, its gradient, and rotary positions, in double.
 *
 * Per query t of a head, over the keys u that it sees: s = scale * q[t] . k[u], lse = log(sum of
 * exp(s)), p = exp(s - lse), out = sum of p * v[u] (Vaswani et al. 2017). Backward: dv[u] += p *
 * dout; dp = dout . v[u]; ds = p * (dp - dout . out), since sum of p * dp = dout . out; dq += scale
 * * ds * k[u]; dk[u] += scale * ds * q. Scores are computed again wherever they are needed, so that
 * no matrix is stored.
 */
#include <math.h>
#include <string.h>

#include "common/train/reference/reference_internal.h"

/* One query of one head. */
struct query {
    size_t t;           /* its row */
    size_t first, last; /* the rows of the keys that it sees, the last one exclusive */
    size_t q, kv;       /* where its head begins in a row of q and of k and v */
    size_t out;         /* where it begins in out */
    size_t lse;         /* its element of lse */
};

/* @return query t, of sequence b, of head h */
static struct query query_of(const struct train_attention *a, size_t b, size_t t, size_t h) {
    return (struct query){
        .t = t,
        .first = (size_t)a->starts[b],
        .last = a->causal ? t + 1 : (size_t)a->starts[b + 1],
        .q = t * a->q_stride + h * a->HS,
        .kv = h / (a->NH / a->KVH) * a->HS,
        .out = (t * a->NH + h) * a->HS,
        .lse = t * a->NH + h,
    };
}

/* @return scale * q[t] . k[u] */
static double score(const struct train_attention *a, const struct query *one, size_t u) {
    const double *q = (const double *)a->q + one->q;
    const double *k = (const double *)a->k + u * a->kv_stride + one->kv;
    return (double)a->scale * reference_dot(q, k, a->HS);
}

/* @return log of the sum of exp(score) over the keys that are seen, the largest taken out first */
static double log_sum_exp(const struct train_attention *a, const struct query *one) {
    double largest = -INFINITY, sum = 0.0;
    for (size_t u = one->first; u < one->last; u++) {
        largest = fmax(largest, score(a, one, u));
    }
    for (size_t u = one->first; u < one->last; u++) {
        sum += exp(score(a, one, u) - largest);
    }
    return largest + log(sum);
}

static void attend(double *out, double lse, const struct train_attention *a,
                   const struct query *one) {
    memset(out, 0, a->HS * sizeof *out);
    for (size_t u = one->first; u < one->last; u++) {
        const double *v = (const double *)a->v + u * a->kv_stride + one->kv;
        reference_add(out, exp(score(a, one, u) - lse), v, a->HS);
    }
}

enum status reference_attention(void *context, void *out, void *lse,
                                const struct train_attention *a) {
    (void)context;
    for (size_t b = 0; b < a->B; b++) {
        for (size_t t = (size_t)a->starts[b]; t < (size_t)a->starts[b + 1]; t++) {
            for (size_t h = 0; h < a->NH; h++) {
                struct query one = query_of(a, b, t, h);
                double *log_sum = (double *)lse + one.lse;
                *log_sum = log_sum_exp(a, &one);
                attend((double *)out + one.out, *log_sum, a, &one);
            }
        }
    }
    return STATUS_OK;
}

/* Zeros (rows, heads * HS), rows `stride` apart; what lies between stays. */
static void clear(double *x, size_t rows, size_t width, size_t stride) {
    for (size_t row = 0; row < rows; row++) {
        memset(x + row * stride, 0, width * sizeof *x);
    }
}

/* What one query adds to the gradients. dout, out: of its head, (HS). */
static void attend_back(const struct train_attention_gradient *gradient, const double *dout,
                        const double *out, double lse, const struct train_attention *a,
                        const struct query *one) {
    const double *q = (const double *)a->q + one->q;
    double *dq = (double *)gradient->dq + one->q;
    double mean_dp = reference_dot(dout, out, a->HS);
    for (size_t u = one->first; u < one->last; u++) {
        size_t key = u * a->kv_stride + one->kv;
        double p = exp(score(a, one, u) - lse);
        double dp = reference_dot(dout, (const double *)a->v + key, a->HS);
        double ds = (double)a->scale * p * (dp - mean_dp);
        reference_add((double *)gradient->dv + key, p, dout, a->HS);
        reference_add(dq, ds, (const double *)a->k + key, a->HS);
        reference_add((double *)gradient->dk + key, ds, q, a->HS);
    }
}

enum status reference_attention_backward(void *context,
                                         const struct train_attention_gradient *gradient,
                                         const void *dout, const void *out, const void *lse,
                                         const struct train_attention *a) {
    (void)context;
    clear(gradient->dq, a->rows, a->NH * a->HS, a->q_stride);
    clear(gradient->dk, a->rows, a->KVH * a->HS, a->kv_stride);
    clear(gradient->dv, a->rows, a->KVH * a->HS, a->kv_stride);
    for (size_t b = 0; b < a->B; b++) {
        for (size_t t = (size_t)a->starts[b]; t < (size_t)a->starts[b + 1]; t++) {
            for (size_t h = 0; h < a->NH; h++) {
                struct query one = query_of(a, b, t, h);
                attend_back(gradient, (const double *)dout + one.out, (const double *)out + one.out,
                            ((const double *)lse)[one.lse], a, &one);
            }
        }
    }
    return STATUS_OK;
}

/* Turns the pair (x[0], x[second]) of every head by one angle. */
static void rotate(double *x, size_t second, size_t heads, size_t HS, double angle) {
    double cosine = cos(angle), sine = sin(angle);
    for (size_t h = 0; h < heads; h++) {
        double a = x[h * HS], b = x[h * HS + second];
        x[h * HS] = a * cosine - b * sine;
        x[h * HS + second] = a * sine + b * cosine;
    }
}

/* A rotation is orthogonal: its transpose, which the gradient needs, is the rotation back. */
enum status reference_rope(void *context, void *x, const int32_t *positions, size_t rows,
                           size_t heads, size_t HS, size_t stride, float theta,
                           enum nn_rope_layout layout, bool back) {
    (void)context;
    size_t pairs = HS / 2, second = layout == NN_ROPE_INTERLEAVED ? 1 : pairs;
    for (size_t i = 0; i < pairs; i++) {
        double frequency = pow((double)theta, -2.0 * (double)i / (double)HS);
        size_t first = layout == NN_ROPE_INTERLEAVED ? 2 * i : i;
        for (size_t row = 0; row < rows; row++) {
            double angle = (double)positions[row] * frequency;
            rotate((double *)x + row * stride + first, second, heads, HS, back ? -angle : angle);
        }
    }
    return STATUS_OK;
}
