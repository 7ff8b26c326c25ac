/**
 * @file endless_text_v1_ring.cu
 * @brief Step v1: the window is a ring, so that nothing moves.
 *
 * Changes since the starter, whose cache moves down by a row with each token (2 reads and writes of
 * k and of v beside the one reading that attention needs): token p has row p among the sinks, else
 * row sinks + (p - sinks) mod window, which is the row of the token that leaves. A token writes one
 * row of k and of v; attention goes through the places in order and asks for their rows. Otherwise
 * the starter's kernels: a thread a score, scores in device memory, a thread a channel of the
 * result.
 */
#include <math.h>

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "solutions/14_endless_text/steps/ladder.h"
#include "solutions/14_endless_text/steps/places.cuh"

enum { THREADS = 128 };

/* Mapping: a thread has a channel of the new row. */
template <typename E> static __global__ void store_kernel(struct endless_attention a) {
    size_t width = a.KVH * a.HS, c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    struct places p = places_of(a);
    if (c < width) {
        size_t row = ring_row(p, p.seen - 1) * width;
        store_rounded((E *)a.k + row + c, a.k_new[c]);
        store_rounded((E *)a.v + row + c, a.v_new[c]);
    }
}

/* scores (NH, rows): q k / sqrt(HS). Mapping: a thread has a query head and a place. */
template <typename E>
static __global__ void scores_kernel(struct endless_attention a, float *scores) {
    size_t rows = a.sinks + a.window, index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    int h = (int)(index / rows), s = (int)(index % rows);
    struct places p = places_of(a);
    if (h >= (int)a.NH || s >= p.seen) {
        return;
    }
    const float *q = a.q + h * a.HS;
    const E *k = (const E *)a.k + (ring_row(p, s) * a.KVH + h / (a.NH / a.KVH)) * a.HS;
    float sum = 0.0f;
    for (int c = 0; c < (int)a.HS; c++) {
        sum += rotated(q, c, p.seen - 1, a) * rotated(k, c, s, a);
    }
    scores[index] = sum / sqrtf((float)a.HS);
}

/* out = softmax(scores) v. Mapping: a thread has a query head's channel. */
template <typename E>
static __global__ void values_kernel(struct endless_attention a, const float *scores) {
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x, h = index / a.HS;
    struct places p = places_of(a);
    if (h >= a.NH) {
        return;
    }
    const float *score = scores + h * (a.sinks + a.window);
    const E *v = (const E *)a.v + h / (a.NH / a.KVH) * a.HS + index % a.HS;
    float largest = -INFINITY, sum = 0.0f, out = 0.0f;
    for (int s = 0; s < p.seen; s++) {
        largest = fmaxf(largest, score[s]);
    }
    for (int s = 0; s < p.seen; s++) {
        float weight = expf(score[s] - largest);
        sum += weight;
        out += weight * to_float(v[ring_row(p, s) * a.KVH * a.HS]);
    }
    a.out[index] = out / sum;
}

enum status endless_attention_v1_ring(const struct endless_attention *attention, void *workspace,
                                      device_stream stream, struct error *error) {
    TRY(endless_attention_check(attention, error));
    const struct endless_attention &a = *attention;
    float *scores = (float *)workspace;
    unsigned store = (unsigned)ceil_div(a.KVH * a.HS, THREADS);
    unsigned pairs = (unsigned)ceil_div(a.NH * (a.sinks + a.window), THREADS);
    unsigned values = (unsigned)ceil_div(a.NH * a.HS, THREADS);
    FOR_ELEMENT_TYPE(a.dtype, (store_kernel<E><<<store, THREADS, 0, stream>>>(a)));
    TRY(device_launched("store", error));
    FOR_ELEMENT_TYPE(a.dtype, (scores_kernel<E><<<pairs, THREADS, 0, stream>>>(a, scores)));
    TRY(device_launched("scores", error));
    FOR_ELEMENT_TYPE(a.dtype, (values_kernel<E><<<values, THREADS, 0, stream>>>(a, scores)));
    return device_launched("values", error);
}
