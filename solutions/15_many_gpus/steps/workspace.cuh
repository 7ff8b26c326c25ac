/**
 * @file workspace.cuh
 * @brief What ranks exchange through: the layout of the workspace, signals with a fence, and
 * packets that carry their own flag.
 *
 * All numbers of calls start at 1, so that the workspace's zeros are no call's.
 */
#ifndef WARPBOOK_SOLUTIONS_15_MANY_GPUS_STEPS_WORKSPACE_CUH_
#define WARPBOOK_SOLUTIONS_15_MANY_GPUS_STEPS_WORKSPACE_CUH_

#include <cuda_bf16.h>
#include <stdint.h>

#include "labs/15_many_gpus/many_gpus.h"

enum {
    MOST_BLOCKS = 1024, /* of a kernel that exchanges */
    PACKET_THREADS = 256,
    PACKET_BYTES = 16 /* two 4-byte words of data, each with its flag */
};

/* Offsets in the workspace. */
enum {
    CALLS_AT = 0,               /* (MOST_BLOCKS) unsigned: calls that each block has made */
    SIGNALS_AT = 16 << 10,      /* (COMM_MAX_RANKS, 2, MOST_BLOCKS) unsigned */
    LINEAR_CALLS_AT = 96 << 10, /* one unsigned, and a counter of blocks that are done */
    PARTIAL_AT = 128 << 10,     /* (MANY_MAX_N) float: a product before it is added up */
    LINEAR_AT = 1 << 20,        /* (2, ranks, MANY_MAX_N) words of data with their flags */
    PACKETS_AT = 4 << 20        /* to the end: (2, ranks, blocks, PACKET_THREADS) packets */
};
static_assert(SIGNALS_AT + COMM_MAX_RANKS * 2 * MOST_BLOCKS * 4 <= LINEAR_CALLS_AT, "signals");
static_assert(PARTIAL_AT + MANY_MAX_N * 4 <= LINEAR_AT, "a partial product");
static_assert(LINEAR_AT + 2 * COMM_MAX_RANKS * MANY_MAX_N * 8 <= PACKETS_AT, "mailboxes");

/* All ranks' workspaces, by value, as a kernel's argument. */
struct peers {
    int rank, ranks;
    char *at[COMM_MAX_RANKS];
};

static inline struct peers peers_of(const struct comm *comm, const struct comm_memory *workspace) {
    struct peers p = {};
    p.rank = comm->rank;
    p.ranks = comm->ranks;
    for (int r = 0; r < comm->ranks; r++) {
        p.at[r] = (char *)workspace->at[r];
    }
    return p;
}

/* All ranks' data, as 16-byte vectors. */
struct vectors {
    uint4 *at[COMM_MAX_RANKS];
    size_t count;
};

static inline struct vectors vectors_of(const struct comm *comm,
                                        const struct many_all_reduce *reduce) {
    struct vectors v = {};
    v.count = reduce->count * nn_dtype_bytes(reduce->dtype) / sizeof(uint4);
    for (int r = 0; r < comm->ranks; r++) {
        v.at[r] = (uint4 *)reduce->data[r];
    }
    return v;
}

/* ---- Sums of vectors ---- */

/* a + b, rounded to the type. */
static __device__ __forceinline__ uint4 add_vectors(uint4 a, uint4 b, float) {
    return make_uint4(__float_as_uint(__uint_as_float(a.x) + __uint_as_float(b.x)),
                      __float_as_uint(__uint_as_float(a.y) + __uint_as_float(b.y)),
                      __float_as_uint(__uint_as_float(a.z) + __uint_as_float(b.z)),
                      __float_as_uint(__uint_as_float(a.w) + __uint_as_float(b.w)));
}

static __device__ __forceinline__ unsigned add_words(unsigned a, unsigned b, float) {
    return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
}

/* Two bf16: the upper half of a float each. */
static __device__ __forceinline__ unsigned add_words(unsigned a, unsigned b, __nv_bfloat16) {
    float2 x = __bfloat1622float2(*(const __nv_bfloat162 *)&a);
    float2 y = __bfloat1622float2(*(const __nv_bfloat162 *)&b);
    __nv_bfloat162 sum = __floats2bfloat162_rn(x.x + y.x, x.y + y.y);
    return *(const unsigned *)&sum;
}

static __device__ __forceinline__ uint4 add_vectors(uint4 a, uint4 b, __nv_bfloat16 e) {
    return make_uint4(add_words(a.x, b.x, e), add_words(a.y, b.y, e), add_words(a.z, b.z, e),
                      add_words(a.w, b.w, e));
}

/* ---- Signals: data first, then a number that says that it is there ---- */

/* Word of rank `to`'s workspace for what rank `from` tells block `b`. @param kind 0 or 1 */
static __device__ __forceinline__ unsigned *signal_of(const struct peers &p, int to, int from,
                                                      int kind, unsigned b) {
    return (unsigned *)(p.at[to] + SIGNALS_AT) + (from * 2 + kind) * MOST_BLOCKS + b;
}

/* What this thread has written is visible to whoever sees the signal. */
static __device__ __forceinline__ void send_signal(unsigned *signal, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(signal), "r"(value) : "memory");
}

/* Waits until a signal, which only grows, is at least `value`. */
static __device__ __forceinline__ void await_signal(const unsigned *signal, unsigned value) {
    unsigned seen;
    do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(signal) : "memory");
    } while ((int)(seen - value) < 0);
}

/* The block's number of this call, in thread 0 alone; the next one is one more. */
static __device__ __forceinline__ unsigned next_call(const struct peers &p, unsigned b) {
    unsigned *calls = (unsigned *)(p.at[p.rank] + CALLS_AT) + b;
    return *calls += 1;
}

/* ---- Packets: each word of data travels with its flag in one 8-byte word ---- */

struct packet {
    uint64_t first, second;
};

static __device__ __forceinline__ void send_packet(void *to, unsigned a, unsigned b,
                                                   unsigned flag) {
    uint64_t first = (uint64_t)flag << 32 | a, second = (uint64_t)flag << 32 | b;
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(first), "l"(second)
                 : "memory");
}

/* Waits until both words have the flag. */
static __device__ __forceinline__ uint2 await_packet(const void *from, unsigned flag) {
    uint64_t first, second;
    do {
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(first), "=l"(second)
                     : "l"(from)
                     : "memory");
    } while ((unsigned)(first >> 32) != flag || (unsigned)(second >> 32) != flag);
    return make_uint2((unsigned)first, (unsigned)second);
}

/* Half a packet: one word. */
static __device__ __forceinline__ void send_word(uint64_t *to, float value, unsigned flag) {
    uint64_t word = (uint64_t)flag << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

static __device__ __forceinline__ float await_word(const uint64_t *from, unsigned flag) {
    uint64_t word;
    do {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    } while ((unsigned)(word >> 32) != flag);
    return __uint_as_float((unsigned)word);
}

#endif
