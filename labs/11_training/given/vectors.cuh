/**
 * @file vectors.cuh
 * @brief Shared by the given kernels: vectors of elements, and dropout.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_GIVEN_VECTORS_CUH_
#define WARPBOOK_LABS_11_TRAINING_GIVEN_VECTORS_CUH_

#include <stdint.h>

#include "common/base/checked.h"
#include "common/cuda/block.cuh"
#include "common/cuda/convert.cuh"
#include "labs/11_training/given/given.h"

static __device__ __forceinline__ void load_whole(float (&x)[4], const float *from) {
    float4 v = *(const float4 *)from;
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}

/* fp32 parameters beside eight bf16 elements. */
static __device__ __forceinline__ void load_whole(float (&x)[8], const float *from) {
    float4 low = ((const float4 *)from)[0], high = ((const float4 *)from)[1];
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

/* A vector of 16 bytes: four fp32 elements, or eight of bf16. */
static __device__ __forceinline__ void unpack_whole(float (&x)[4], uint4 v) {
    unpack(v, x, float());
}

static __device__ __forceinline__ void unpack_whole(float (&x)[8], uint4 v) {
    unpack(v, x, __nv_bfloat16());
}

static __device__ __forceinline__ void load_whole(float (&x)[8], const __nv_bfloat16 *from) {
    unpack_whole(x, *(const uint4 *)from);
}

/* One 16-byte store, as inline assembly: where another branch stores the same elements one by one,
   the compiler would merge both, and split the vector store. */
static __device__ __forceinline__ void store_16(void *to, unsigned a, unsigned b, unsigned c,
                                                unsigned d) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

static __device__ __forceinline__ void store_four(float *to, const float *x) {
    store_16(to, __float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
             __float_as_uint(x[3]));
}

static __device__ __forceinline__ void store_whole(float *to, const float (&x)[4]) {
    store_four(to, x);
}

static __device__ __forceinline__ void store_whole(float *to, const float (&x)[8]) {
    store_four(to, x);
    store_four(to + 4, x + 4);
}

static __device__ __forceinline__ void store_whole(__nv_bfloat16 *to, const float (&x)[8]) {
    store_16(to, pack(x[0], x[1], __nv_bfloat16()), pack(x[2], x[3], __nv_bfloat16()),
             pack(x[4], x[5], __nv_bfloat16()), pack(x[6], x[7], __nv_bfloat16()));
}

/* Loads elements first .. of `count`: a whole vector, or the elements that exist, and zeros. */
template <typename E, int L>
static __device__ __forceinline__ void load_some(float (&x)[L], const E *from, size_t first,
                                                 size_t count, bool vector) {
    if (vector && first + L <= count) {
        load_whole(x, from + first);
        return;
    }
#pragma unroll
    for (int i = 0; i < L; i++) {
        x[i] = first + i < count ? to_float(from[first + i]) : 0.0f;
    }
}

template <typename E, int L>
static __device__ __forceinline__ void store_some(E *to, const float (&x)[L], size_t first,
                                                  size_t count, bool vector) {
    if (vector && first + L <= count) {
        store_whole(to + first, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < L; i++) {
        if (first + i < count) {
            store_rounded(to + first + i, x[i]);
        }
    }
}

/* Dropout's parameters as kernels need them; limit 0: none. */
struct drop {
    uint64_t seed;
    uint32_t site, step, limit;
    float factor;
};

static inline struct drop drop_of(const struct train_dropout *dropout) {
    struct drop d = {0, 0, 0, 0, 1.0f};
    if (dropout != NULL && dropout->p > 0.0f) {
        d.seed = dropout->seed;
        d.site = dropout->site;
        d.step = dropout->step;
        d.limit = train_dropout_limit(dropout->p);
        d.factor = 1.0f / (1.0f - dropout->p);
    }
    return d;
}

/* x becomes dropout(x), for L elements from row-major index `first` on. Four of them share a draw
   where they begin at a multiple of 4. */
template <int L>
static __device__ __forceinline__ void drop_some(float (&x)[L], const struct drop &d,
                                                 uint64_t first) {
    if (d.limit == 0) {
        return;
    }
    struct train_random4 numbers = train_philox(d.seed, first / 4, d.site, d.step);
#pragma unroll
    for (int i = 0; i < L; i++) {
        uint64_t at = first + i;
        if (i > 0 && at % 4 == 0) {
            numbers = train_philox(d.seed, at / 4, d.site, d.step);
        }
        uint32_t number = at % 4 == 0   ? numbers.at[0]
                          : at % 4 == 1 ? numbers.at[1]
                          : at % 4 == 2 ? numbers.at[2]
                                        : numbers.at[3];
        x[i] = number < d.limit ? 0.0f : x[i] * d.factor;
    }
}

/* Whether each pointer is 16-byte aligned and `bytes` is a multiple of 16; NULL is aligned. */
static inline bool whole(size_t bytes, const void *a, const void *b = NULL, const void *c = NULL,
                         const void *d = NULL) {
    return (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | bytes) & 15u) == 0;
}

/* run(E()) with the call's element. */
template <typename RUN> static enum status by_type(const struct given_call *call, RUN run) {
    return call->type == NN_F32 ? run(float()) : run(__nv_bfloat16());
}

#endif
