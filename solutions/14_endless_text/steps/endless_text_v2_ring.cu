/**
 * @file endless_text_v2_ring.cu
 * @brief Step v2: the window is a ring, so that nothing moves.
 *
 * Changes since v1: token p has row p among the sinks, else row sinks + (p - sinks) mod window,
 * which is the row of the token that leaves. A token writes one row of k and of v; attention goes
 * through the places in order and asks for their rows.
 */
#include "common/base/checked.h"
#include "solutions/14_endless_text/steps/ladder.h"
#include "solutions/14_endless_text/steps/warp_attention.cuh"

enum { THREADS = 128 };

/* Mapping: a thread has a channel. */
template <typename E> static __global__ void store_kernel(struct endless_attention a) {
    size_t width = a.KVH * a.HS, c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    struct places p = places_of(a);
    if (c < width) {
        size_t row = ring_row(p, p.seen - 1) * width;
        store_rounded((E *)a.k + row + c, a.k_new[c]);
        store_rounded((E *)a.v + row + c, a.v_new[c]);
    }
}

enum status endless_attention_v2_ring(const struct endless_attention *attention, void *workspace,
                                      device_stream stream, struct error *error) {
    (void)workspace;
    TRY(endless_attention_check(attention, error));
    const struct endless_attention &a = *attention;
    unsigned blocks = (unsigned)ceil_div(a.KVH * a.HS, THREADS), heads = (unsigned)a.NH;
    FOR_ELEMENT_TYPE(a.dtype, (store_kernel<E><<<blocks, THREADS, 0, stream>>>(a)));
    TRY(device_launched("store", error));
    FOR_ELEMENT_TYPE(a.dtype, (warp_attention_kernel<E, true><<<heads, 32, 0, stream>>>(a)));
    return device_launched("attention", error);
}
