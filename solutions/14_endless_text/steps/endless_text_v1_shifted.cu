/**
 * @file endless_text_v1_shifted.cu
 * @brief Step v1: online softmax, a warp a query head; norms by a block each.
 *
 * Changes since the starter: scores no longer go through device memory, a warp reads neighbouring
 * channels together, and a norm's sums are made once by a block, not once by every thread. The
 * cache still moves down by a row with each token: 2 (reads and writes) * 2 (k and v) of all its
 * bytes, beside the one reading that attention needs.
 */
#include "common/base/checked.h"
#include "common/cuda/block.cuh"
#include "solutions/14_endless_text/steps/ladder.h"
#include "solutions/14_endless_text/steps/warp_attention.cuh"

enum { THREADS = 128, NORM_THREADS = 256 };

/* Mapping: a thread has a channel of k and of v in all rows, as in the starter. */
template <typename E> static __global__ void shift_and_store_kernel(struct endless_attention a) {
    size_t width = a.KVH * a.HS, c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= width) {
        return;
    }
    E *k = (E *)a.k + c, *v = (E *)a.v + c;
    int last = places_of(a).seen - 1;
    for (int s = (int)a.sinks; s<last && * a.position> last; s++) {
        k[s * width] = k[(s + 1) * width];
        v[s * width] = v[(s + 1) * width];
    }
    store_rounded(k + last * width, a.k_new[c]);
    store_rounded(v + last * width, a.v_new[c]);
}

enum status endless_attention_v1_shifted(const struct endless_attention *attention, void *workspace,
                                         device_stream stream, struct error *error) {
    (void)workspace;
    TRY(endless_attention_check(attention, error));
    const struct endless_attention &a = *attention;
    unsigned blocks = (unsigned)ceil_div(a.KVH * a.HS, THREADS), heads = (unsigned)a.NH;
    FOR_ELEMENT_TYPE(a.dtype, (shift_and_store_kernel<E><<<blocks, THREADS, 0, stream>>>(a)));
    TRY(device_launched("shift and store", error));
    FOR_ELEMENT_TYPE(a.dtype, (warp_attention_kernel<E, false><<<heads, 32, 0, stream>>>(a)));
    return device_launched("attention", error);
}

/* x += a + b. Mapping: a thread has a channel. */
static __global__ void add_kernel(struct endless_add_norms p) {
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c < p.C) {
        p.x[c] += (p.a != NULL ? p.a[c] : 0.0f) + (p.b != NULL ? p.b[c] : 0.0f);
    }
}

/* out = norm(x). Mapping: one block, a thread has every NORM_THREADS-th channel. */
static __global__ void norm_kernel(struct endless_add_norms p, struct endless_norm norm) {
    float mean = 0.0f, squares = 0.0f;
    for (size_t c = threadIdx.x; c < p.C && p.layernorm; c += NORM_THREADS) {
        mean += p.x[c];
    }
    mean = block_sum<NORM_THREADS>(mean) / (float)p.C;
    for (size_t c = threadIdx.x; c < p.C; c += NORM_THREADS) {
        squares += (p.x[c] - mean) * (p.x[c] - mean);
    }
    float rstd = 1.0f / sqrtf(block_sum<NORM_THREADS>(squares) / (float)p.C + p.eps);
    for (size_t c = threadIdx.x; c < p.C; c += NORM_THREADS) {
        float bias = norm.bias != NULL ? norm.bias[c] : 0.0f;
        norm.out[c] = (p.x[c] - mean) * rstd * norm.weight[c] + bias;
    }
}

enum status endless_add_norms_v1_apart(const struct endless_add_norms *add, device_stream stream,
                                       struct error *error) {
    TRY(endless_add_norms_check(add, error));
    if (add->a != NULL || add->b != NULL) {
        add_kernel<<<(unsigned)ceil_div(add->C, THREADS), THREADS, 0, stream>>>(*add);
        TRY(device_launched("add", error));
    }
    for (size_t i = 0; i < add->count; i++) {
        norm_kernel<<<1, NORM_THREADS, 0, stream>>>(*add, add->norms[i]);
        TRY(device_launched("norm", error));
    }
    return STATUS_OK;
}
