/**
 * @file rotate.cu
 * @brief Rotary embedding and the cache's new row, a launch of its own: steps v1 to v3.
 */
#include "solutions/09_kv_cache/steps/helpers.cuh"
#include "solutions/09_kv_cache/steps/ladder.h"

enum { THREADS = 128 };

/* Grid: a thread a pair of channels of q, k and v. q is rotated in place, k and v are stored in the
 * cache. */
template <typename E>
static __global__ void rotate_kernel(struct kv_attention a, float *qkv, double log2_theta) {
    int half = (int)a.HS / 2, position = *a.position;
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x, head = index / half;
    if (head >= a.NH + 2 * a.KVH) {
        return;
    }
    int i = (int)(index % half);
    struct pair at = pair_of(i, a);
    float *x = qkv + head * a.HS;
    float2 two = make_float2(x[at.first], x[at.second]);
    if (head < a.NH + a.KVH) {
        two = rotated(two.x, two.y, angle_of(i, position, (int)a.HS, log2_theta));
    }
    if (head < a.NH) {
        x[at.first] = two.x, x[at.second] = two.y;
        return;
    }
    bool key = head < a.NH + a.KVH;
    size_t key_head = head - a.NH - (key ? 0 : a.KVH);
    E *row = (E *)(key ? a.k : a.v) + ((size_t)position * a.KVH + key_head) * a.HS;
    store_rounded(row + at.first, two.x), store_rounded(row + at.second, two.y);
}

enum status kv_rotate_and_store(const struct kv_attention *a, float *qkv, device_stream stream,
                                struct error *error) {
    unsigned blocks = (unsigned)ceil_div((a->NH + 2 * a->KVH) * (a->HS / 2), THREADS);
    double log2_theta = log2((double)a->theta);
    FOR_ELEMENT_TYPE(a->dtype,
                     (rotate_kernel<E><<<blocks, THREADS, 0, stream>>>(*a, qkv, log2_theta)));
    return device_launched("rotate", error);
}
