/**
 * @file attention.c
 * @brief softmax(scale * q k^T) v, one query of one head at a time.
 *
 * The scores of a query are kept in double from the dot products to the
 * weighted sum, so the whole operator rounds once, when it stores.
 */
#include <math.h>

#include "common/nn/dot.h"
#include "common/nn/nn.h"

/* Channels of the weighted sum held in registers at a time. */
enum { CHANNELS = 32 };

/* One query of one head, and the keys and values of its key head. */
struct query {
    const float *q;      /* (HS) */
    const float *k, *v;  /* (S, HS) inside rows of kv_stride */
    const uint8_t *mask; /* (S) or NULL */
    size_t keys;         /* number of keys within the causal mask */
};

/* scores[s] = scale * q.k[s], -inf where masked. A masked key is not read. @return the maximum */
static double compute_scores(double *scores, const struct query *one,
                             const struct nn_attention *a) {
    double max = -INFINITY;
    for (size_t s = 0; s < one->keys; s++) {
        bool masked = one->mask != NULL && one->mask[s] == 0;
        scores[s] =
            masked ? -INFINITY : a->scale * nn_dot(one->q, one->k + s * a->kv_stride, a->HS);
        max = scores[s] > max ? scores[s] : max;
    }
    return max;
}

/* scores[s] becomes e^(scores[s] - max), the softmax numerator; 0 where masked. @return their sum
 */
static double exponentiate(double *scores, size_t keys, double max) {
    double sum = 0.0;
    for (size_t s = 0; s < keys; s++) {
        scores[s] = scores[s] == -INFINITY ? 0.0 : exp(scores[s] - max);
        sum += scores[s];
    }
    return sum;
}

/* P * V: out (count) = channels first .. first + count - 1 of sum_s weights[s] * v[s] / sum. */
static void multiply_values(float *out, const double *weights, double sum, const struct query *one,
                            const struct nn_attention *a, size_t first, size_t count) {
    double channels[CHANNELS] = {0.0};
    for (size_t s = 0; s < one->keys; s++) {
        if (weights[s] == 0.0) {
            continue; /* masked: even a NaN in v must not enter the sum */
        }
        const float *v = one->v + s * a->kv_stride + first;
        for (size_t i = 0; i < count; i++) {
            channels[i] += weights[s] * v[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = sum == 0.0 ? 0.0f : (float)(channels[i] / sum);
    }
}

static void attend(float *out, const struct query *one, const struct nn_attention *a,
                   double *scores) {
    double max = compute_scores(scores, one, a);
    double sum = exponentiate(scores, one->keys, max);
    for (size_t first = 0; first < a->HS; first += CHANNELS) {
        size_t count = a->HS - first < CHANNELS ? a->HS - first : CHANNELS;
        multiply_values(out + first, scores, sum, one, a, first, count);
    }
}

void nn_attention(float *out, const struct nn_attention *a, double *scores) {
    for (size_t b = 0; b < a->B; b++) {
        for (size_t t = 0; t < a->T; t++) {
            for (size_t h = 0; h < a->NH; h++) {
                size_t kv = b * a->S * a->kv_stride + h / (a->NH / a->KVH) * a->HS;
                struct query one = {
                    .q = a->q + (b * a->T + t) * a->q_stride + h * a->HS,
                    .k = a->k + kv,
                    .v = a->v + kv,
                    .mask = a->mask != NULL ? a->mask + b * a->S : NULL,
                    .keys = a->causal ? a->S - a->T + t + 1 : a->S,
                };
                attend(out + ((b * a->T + t) * a->NH + h) * a->HS, &one, a, scores);
            }
        }
    }
}
