/**
 * @file one_kernel.cuh
 * @brief d8's arguments, and what its blocks send each other.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_KERNEL_CUH_

#include "solutions/10_llama2_decoder/steps/elements.cuh"

/* cp.async came with compute capability 8.0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define ONE_CODE 1
#else
#define ONE_CODE 0
#endif

enum { ONE_WARPS = 12, ONE_SLOT_BYTES = 2048, ONE_SLOTS = 7 };
enum { ONE_THREADS = ONE_WARPS * 32, ONE_RING_BYTES = ONE_WARPS * ONE_SLOTS * ONE_SLOT_BYTES };

/* What streams in a layer, in this order, and behind all layers: matrices, and between two of them
   the keys and values of earlier tokens. */
enum one_kind { ONE_QKV, ONE_KEYS, ONE_OUT, ONE_GATE, ONE_UP, ONE_DOWN, ONE_CLASSIFIER, ONE_END };

/* Device memory: where what streams in a layer is, in the order of enum one_kind, and its norms. */
struct one_layer {
    const void *streams[ONE_CLASSIFIER];
    const float *attention_norm, *ffn_norm;
};

/*
 * Values that blocks exchange. Each is written once, by one thread, as 8 bytes with a tag that says
 * which part of which launch it is from; who needs it reads until the tag is right. So nobody waits
 * for a memory fence, nor for a counter and then for the values.
 */
struct post {
    uint64_t *values;
};

/*
 * The same for values that each block reads at each use. What may be there is this use's value or
 * the last one's, so a bit tells them apart, and a value takes 4 bytes: the bit is its lowest one.
 */
struct board {
    unsigned *values;
};

/* All that the kernel is given. */
struct one {
    const struct one_layer *layers;
    const void *embedding, *classifier;
    const float *final_norm;
    unsigned C, hidden, L, NH, KVH, HS, V, T;
    float eps;
    double log2_theta;
    bool halves; /* layout of rotary embedding */
    const int32_t *token;
    int32_t position;
    unsigned room;          /* floats of shared memory for a product's input */
    float *x;               /* (C): the residual stream; each row is one thread's own */
    float *logits;          /* (V) */
    void *k, *v;            /* (L, T, KVH*HS) */
    size_t key_bytes;       /* from a token's key to the next one's */
    ptrdiff_t key_to_value; /* bytes */
    struct post qkv;        /* ((NH + 2 KVH) * HS) */
    struct post partial; /* (NH / GROUP, parts, GROUP, HS + 2): attention of parts of the context */
    struct board stream; /* (C): the residual stream, for all */
    struct board heads;  /* (NH*HS): attention's result */
    struct board gated;  /* (hidden): silu(gate) * up */
    unsigned *tag;       /* the first tag of the launch */
};

/* ---- What blocks exchange ---- */

/* Parts of a layer whose values have tags. A layer's first tag is a multiple of ONE_PARTS. */
enum one_part { ONE_QKV_PART, ONE_PARTIAL_PART, ONE_PARTS };

static __device__ __forceinline__ void send(struct post post, size_t i, float value, unsigned tag) {
    uint64_t both = (uint64_t)tag << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(post.values + i), "l"(both)
                 : "memory");
}

/* Two values, from an even i on, which are there when both tags are right. */
struct pair {
    uint64_t first, second;
};

static __device__ __forceinline__ struct pair look(struct post post, size_t i) {
    struct pair x;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(x.first), "=l"(x.second)
                 : "l"(post.values + i)
                 : "memory");
    return x;
}

static __device__ __forceinline__ bool is_there(struct pair x, unsigned tag) {
    return (unsigned)(x.first >> 32) == tag && (unsigned)(x.second >> 32) == tag;
}

static __device__ __forceinline__ float2 values_of(struct pair x) {
    return make_float2(__uint_as_float((unsigned)x.first), __uint_as_float((unsigned)x.second));
}

static __device__ __forceinline__ uint64_t look_at_one(struct post post, size_t i) {
    uint64_t x;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(post.values + i) : "memory");
    return x;
}

/* Two values, wherever they are. */
static __device__ __forceinline__ struct pair look_at_two(struct post post, size_t i, size_t j) {
    return {look_at_one(post, i), look_at_one(post, j)};
}

/* ---- Boards ---- */

/* The bit of the residual stream's values, which change twice a layer, and of others in a layer. */
enum { ONE_BEHIND_OUT = 1, ONE_BEHIND_DOWN = 0 };

static __device__ __forceinline__ unsigned bit_of(unsigned tag) {
    return tag / ONE_PARTS & 1;
}

static __device__ __forceinline__ void show(struct board board, size_t i, float value,
                                            unsigned bit) {
    unsigned bits = (__float_as_uint(value) & ~1u) | bit;
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(board.values + i), "r"(bits)
                 : "memory");
}

/* Four values, from 4i on. */
static __device__ __forceinline__ uint4 look_at_four(struct board board, size_t i) {
    uint4 x;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"((uint4 *)board.values + i)
                 : "memory");
    return x;
}

static __device__ __forceinline__ bool are_there(uint4 x, unsigned bit) {
    return (((x.x ^ bit) | (x.y ^ bit) | (x.z ^ bit) | (x.w ^ bit)) & 1) == 0;
}

static __device__ __forceinline__ float4 values_of(uint4 x) {
    return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z),
                       __uint_as_float(x.w));
}

#endif
