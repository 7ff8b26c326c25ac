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

/* One query of one head, and the keys that belong to it. */
struct query {
    const float *q;      /* (HS) */
    const float *k, *v;  /* (S, HS) inside rows of kv_stride */
    const uint8_t *mask; /* (S) or NULL */
    size_t seen;         /* keys that causality leaves */
};

/* scores[s] = scale * q.k[s], -inf where hidden. A hidden key is not read. @return the largest */
static double score(double *scores, const struct query *one, const struct nn_attention *a) {
    double largest = -INFINITY;
    for (size_t s = 0; s < one->seen; s++) {
        bool hidden = one->mask != NULL && one->mask[s] == 0;
        scores[s] =
            hidden ? -INFINITY : a->scale * nn_dot(one->q, one->k + s * a->kv_stride, a->HS);
        largest = scores[s] > largest ? scores[s] : largest;
    }
    return largest;
}

/* scores[s] = e^(scores[s] - largest), 0 where hidden. @return their sum */
static double exponentiate(double *scores, size_t seen, double largest) {
    double sum = 0.0;
    for (size_t s = 0; s < seen; s++) {
        scores[s] = scores[s] == -INFINITY ? 0.0 : exp(scores[s] - largest);
        sum += scores[s];
    }
    return sum;
}

/* out (count) = channels first .. first + count - 1 of sum_s weights[s] * v[s] / sum. */
static void weigh(float *out, const double *weights, double sum, const struct query *one,
                  const struct nn_attention *a, size_t first, size_t count) {
    double channels[CHANNELS] = {0.0};
    for (size_t s = 0; s < one->seen; s++) {
        if (weights[s] == 0.0) {
            continue; /* hidden: whatever is stored there, even NaN, has no part in the sum */
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
    double largest = score(scores, one, a);
    double sum = exponentiate(scores, one->seen, largest);
    for (size_t first = 0; first < a->HS; first += CHANNELS) {
        size_t count = a->HS - first < CHANNELS ? a->HS - first : CHANNELS;
        weigh(out + first, scores, sum, one, a, first, count);
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
                    .seen = a->causal ? a->S - a->T + t + 1 : a->S,
                };
                attend(out + ((b * a->T + t) * a->NH + h) * a->HS, &one, a, scores);
            }
        }
    }
}
