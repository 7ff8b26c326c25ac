/**
 * @file places.cuh
 * @brief Places, rows of the ring, and rotation: shared by the steps.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_PLACES_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_PLACES_CUH_

#include "common/cuda/convert.cuh"
#include "labs/14_endless_text/endless_text.h"

/* How the cache lies at one token. */
struct places {
    int sinks, window;
    int seen;   /* tokens, the new one included; its place is seen - 1 */
    int oldest; /* ring: row, behind the sinks, of the token at place `sinks` */
};

/* The ring's row p - sinks mod window belongs to token p, so the oldest token's row is the one
   behind the newest token's. */
static __device__ __forceinline__ struct places places_of(const struct endless_attention &a) {
    int position = *a.position, rows = (int)(a.sinks + a.window);
    struct places p = {(int)a.sinks, (int)a.window, min(position, rows - 1) + 1, 0};
    if (position >= rows) {
        p.oldest = (position + 1 - p.sinks) % p.window;
    }
    return p;
}

/* The cache's row of place s: what wraps around does so once. */
static __device__ __forceinline__ int ring_row(const struct places &p, int s) {
    int row = s + p.oldest;
    return s < p.sinks ? s : row < p.sinks + p.window ? row : row - p.window;
}

/* Where channel c's other half is, and the sign of its sine: rotated c = c cos + sign other sin. */
struct partner {
    int pair, other;
    float sign;
};

static __device__ __forceinline__ struct partner partner_of(int c,
                                                            const struct endless_attention &a) {
    int half = (int)a.rotary / 2;
    bool together = a.layout == NN_ROPE_INTERLEAVED;
    bool first = together ? c % 2 == 0 : c < half;
    return {together ? c / 2 : c % half,
            together ? c ^ 1
            : first  ? c + half
                     : c - half,
            first ? -1.0f : 1.0f};
}

/* (cosine, sine) of a pair at a place. */
static __device__ __forceinline__ float2 angle_of(int place, int pair,
                                                  const struct endless_attention &a) {
    const float *angle = a.angles + ((size_t)place * (a.rotary / 2) + pair) * 2;
    return make_float2(angle[0], angle[1]);
}

/* Channel c of a head at a place, rotated: for the steps that rotate keys. */
template <typename E>
static __device__ __forceinline__ float rotated(const E *head, int c, int place,
                                                const struct endless_attention &a) {
    if (c >= (int)a.rotary) {
        return to_float(head[c]);
    }
    struct partner p = partner_of(c, a);
    float2 angle = angle_of(place, p.pair, a);
    return to_float(head[c]) * angle.x + p.sign * to_float(head[p.other]) * angle.y;
}

#endif
