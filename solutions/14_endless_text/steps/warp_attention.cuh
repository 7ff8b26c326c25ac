/**
 * @file warp_attention.cuh
 * @brief Attention of steps v1 and v2: a warp has a query head and goes through the keys one by
 * one.
 *
 * A lane has every 32nd channel. It rotates its channels of each key, whose partners it loads, too,
 * and keeps the output's in registers (online softmax): no scores in device memory.
 *
 * Mapping: blocks of one warp, one for each query head.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_WARP_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_WARP_ATTENTION_CUH_

#include <math.h>

#include "common/cuda/convert.cuh"
#include "common/cuda/warp.cuh"
#include "solutions/14_endless_text/steps/places.cuh"

/* Channel c of a head at place s, rotated. */
template <typename E>
static __device__ __forceinline__ float rotated(const E *head, int c, int s,
                                                const struct endless_attention &a) {
    if (c >= (int)a.rotary) {
        return to_float(head[c]);
    }
    struct partner p = partner_of(c, a);
    float2 angle = angle_of(s, p.pair, a);
    return to_float(head[c]) * angle.x + p.sign * to_float(head[p.other]) * angle.y;
}

/* RING: the row of place s is ring_row(); else s. */
template <typename E, bool RING>
static __global__ void warp_attention_kernel(struct endless_attention a) {
    enum { MOST = ENDLESS_MAX_HS / 32 }; /* channels of a lane */
    int h = blockIdx.x, HS = (int)a.HS;
    struct places p = places_of(a);
    size_t stride = a.KVH * a.HS, head = h / (a.NH / a.KVH) * a.HS;
    float scale = 1.0f / sqrtf((float)HS), largest = -INFINITY, sum = 0.0f;
    float q[MOST] = {}, out[MOST] = {};
    for (int i = 0, c = threadIdx.x; i < MOST && c < HS; i++, c += 32) {
        q[i] = scale * rotated(a.q + h * a.HS, c, p.seen - 1, a);
    }
    for (int s = 0; s < p.seen; s++) {
        size_t row = (RING ? ring_row(p, s) : s) * stride + head;
        float score = 0.0f;
        for (int i = 0, c = threadIdx.x; i < MOST && c < HS; i++, c += 32) {
            score += q[i] * rotated((const E *)a.k + row, c, s, a);
        }
        score = warp_sum(score);
        float larger = fmaxf(largest, score);
        float rescale = expf(largest - larger), weight = expf(score - larger);
        largest = larger;
        sum = sum * rescale + weight;
        for (int i = 0, c = threadIdx.x; i < MOST && c < HS; i++, c += 32) {
            out[i] = out[i] * rescale + weight * to_float(((const E *)a.v)[row + c]);
        }
    }
    for (int i = 0, c = threadIdx.x; i < MOST && c < HS; i++, c += 32) {
        a.out[h * a.HS + c] = out[i] / sum;
    }
}

#endif
