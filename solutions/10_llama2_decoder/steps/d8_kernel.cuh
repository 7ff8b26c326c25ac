/**
 * @file d8_kernel.cuh
 * @brief d8's arguments, and the flag-with-data exchange between its blocks.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_KERNEL_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/flagged_mailbox.cuh"
#include "solutions/10_llama2_decoder/steps/elements.cuh"

/* cp.async came with compute capability 8.0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define ONE_HAS_CP_ASYNC 1
#else
#define ONE_HAS_CP_ASYNC 0
#endif

/* The form of a block's pipelines: warps, stages of each, bytes of a slice of weights, and bytes
 * from a stage to the next one. A file whose weights are stored otherwise defines its own. */
#ifndef ONE_FORM
#define ONE_FORM 12, 7, 2048, 2048
#endif

struct one_form {
    int warps, stages, stage_bytes, stage_stride;
};

static constexpr struct one_form ONE_FORM_OF_FILE = {ONE_FORM};

enum {
    ONE_WARPS = ONE_FORM_OF_FILE.warps,
    ONE_STAGES = ONE_FORM_OF_FILE.stages,
    ONE_STAGE_BYTES = ONE_FORM_OF_FILE.stage_bytes,
    ONE_STAGE_STRIDE = ONE_FORM_OF_FILE.stage_stride,
    ONE_KEY_BYTES = 2048, /* of a stage's keys and values */
    ONE_THREADS = ONE_WARPS * 32,
    ONE_PIPELINE_BYTES = ONE_WARPS * ONE_STAGES * ONE_STAGE_STRIDE
};
/* Whether keys and values have 8 bits, and scales: then lanes read what other lanes have copied. */
#ifndef ONE_KEYS_HAVE_SCALES
#define ONE_KEYS_HAVE_SCALES 0
#endif

/* Whether each slice fills its stage, and a warp's slices of a matrix are one after another in
 * memory. */
#ifndef ONE_SLICES_ARE_RUNS
#define ONE_SLICES_ARE_RUNS 0
#endif

static_assert(ONE_STAGE_BYTES <= ONE_STAGE_STRIDE && ONE_KEY_BYTES <= ONE_STAGE_STRIDE &&
                  ONE_STAGE_STRIDE % 16 == 0,
              "a stage holds a slice of weights, or keys and values");

/* What a layer streams from memory, in this order: its matrices, and the keys and values of earlier
 * tokens. The classifier follows the last layer. */
enum one_kind { ONE_QKV, ONE_KEYS, ONE_OUT, ONE_GATE, ONE_UP, ONE_DOWN, ONE_CLASSIFIER, ONE_END };

/* Device memory: a layer's streams, in the order of enum one_kind, and its norms. */
struct one_layer {
    const void *streams[ONE_CLASSIFIER];
    const float *attention_norm, *ffn_norm;
};

/*
 * Mailbox of a flag-with-data exchange between blocks. One thread publishes a value as 8 bytes with
 * a tag, which tells the exchange and the launch; a reader polls until the tag is right. So the
 * exchange needs no memory fence, and no counter to wait for before the values.
 *
 */
struct tagged_mailbox {
    uint64_t *values;
};

/* The kernel's arguments. */
struct one_arguments {
    const struct one_layer *layers;
    const void *embedding, *classifier;
    const float *final_norm;
    unsigned C, hidden, L, NH, KVH, HS, V, T;
    float eps;
    double log2_theta;
    bool rope_halves; /* rotary embedding: pairs are (i, i + HS/2), else (2i, 2i + 1) */
    const int32_t *token;
    int32_t position;
    unsigned input_floats;  /* of shared memory for a product's input */
    unsigned held_back;     /* prefetches that a warp holds back before it waits for other blocks */
    unsigned ahead;         /* slices that L2 fetches while a warp waits, its pipeline full */
    float *x;               /* (C): the residual stream; one thread reads and writes each element */
    float *logits;          /* (V) */
    void *k, *v;            /* (L, T, KVH*HS) */
    size_t key_bytes;       /* from a token's key to the next one's */
    ptrdiff_t key_to_value; /* bytes */
    float2 *scales;         /* (L, T, KVH): of a key and its value, where they have 8 bits; NULL */
    struct tagged_mailbox qkv; /* ((NH + 2 KVH) * HS) */
    /* (NH / GROUP, splits, GROUP, HS + 2): split-KV attention's partial results */
    struct tagged_mailbox partial;
    struct flagged_mailbox residual; /* (C): the residual stream */
    struct flagged_mailbox heads;    /* (NH*HS): attention's result */
    struct flagged_mailbox gated;    /* (hidden): silu(gate) * up */
    unsigned *tag;                   /* the first tag of the launch */
};

/* ---- Flag-with-data exchange: tags ---- */

/* A layer's tagged exchanges. A layer's first tag is a multiple of ONE_TAGS. */
enum one_tag { ONE_TAG_QKV, ONE_TAG_PARTIAL, ONE_TAGS };

static __device__ __forceinline__ void publish(struct tagged_mailbox box, size_t i, float value,
                                               unsigned tag) {
    uint64_t both = (uint64_t)tag << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(box.values + i), "l"(both) : "memory");
}

/* Two neighbouring values, the first with an even index; valid when both tags are right. */
struct pair {
    uint64_t first, second;
};

static __device__ __forceinline__ struct pair read_pair(struct tagged_mailbox box, size_t i) {
    struct pair x;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(x.first), "=l"(x.second)
                 : "l"(box.values + i)
                 : "memory");
    return x;
}

static __device__ __forceinline__ bool has_tag(struct pair x, unsigned tag) {
    return (unsigned)(x.first >> 32) == tag && (unsigned)(x.second >> 32) == tag;
}

static __device__ __forceinline__ float2 values_of(struct pair x) {
    return make_float2(__uint_as_float((unsigned)x.first), __uint_as_float((unsigned)x.second));
}

static __device__ __forceinline__ uint64_t read_one(struct tagged_mailbox box, size_t i) {
    uint64_t x;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(box.values + i) : "memory");
    return x;
}

/* Any two values. */
static __device__ __forceinline__ struct pair read_two(struct tagged_mailbox box, size_t i,
                                                       size_t j) {
    return {read_one(box, i), read_one(box, j)};
}

/* ---- Flag-with-data exchange: one bit ---- */

/* Flags of the residual stream, which is published twice a layer. The other values alternate from
 * layer to layer: flag_of(). */
enum { ONE_FLAG_AFTER_OUT = 1, ONE_FLAG_AFTER_DOWN = 0 };

static __device__ __forceinline__ unsigned flag_of(unsigned tag) {
    return tag / ONE_TAGS & 1;
}

#endif
