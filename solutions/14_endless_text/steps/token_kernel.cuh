/**
 * @file token_kernel.cuh
 * @brief v6's arguments, and what its warps stream from memory.
 *
 * A token of GPT-NeoX is one persistent kernel, as a token of Llama2 in lab 10's d8. A layer with
 * parallel residual needs only two exchanges that a block has to wait for: attention runs between
 * two parts of the up projection, long after q has been published.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_KERNEL_CUH_

#include "common/cuda/activation.cuh"
#include "common/cuda/async_copy.cuh"
#include "common/cuda/convert.cuh"
#include "common/cuda/flagged_mailbox.cuh"
#include "common/cuda/warp.cuh"
#include "solutions/14_endless_text/steps/ladder.h"

/* cp.async came with compute capability 8.0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TOKEN_HAS_CP_ASYNC 1
#else
#define TOKEN_HAS_CP_ASYNC 0
#endif

enum { TOKEN_WARPS = 12, TOKEN_THREADS = TOKEN_WARPS * 32, TOKEN_STAGES = 5, TOKEN_HELD_BACK = 3 };

enum {
    TOKEN_MOST_SPLITS = 4,
    TOKEN_QUADS = 3,     /* of the residual stream, a thread: C up to 4608 */
    TOKEN_DISTANCES = 16 /* of the smaller table of angles */
};

/* What a block streams in a layer, in this order; the classifier follows the last layer. */
enum token_kind {
    TOKEN_QKV,
    TOKEN_UP_FIRST, /* half of the block's rows */
    TOKEN_KEYS,     /* and values */
    TOKEN_UP_SECOND,
    TOKEN_UP_THIRD,
    TOKEN_OUT,
    TOKEN_DOWN,
    TOKEN_CLASSIFIER,
    TOKEN_END
};

/* Matrices and keys of a layer: the streams that kinds read. */
enum token_stream { STREAM_QKV, STREAM_UP, STREAM_KEYS, STREAM_OUT, STREAM_DOWN, TOKEN_STREAMS };

/* Device memory: a layer's streams, norms and biases; NULL: no bias. */
struct token_layer {
    const void *streams[TOKEN_STREAMS];
    const float *norms[2], *norm_biases[2];
    const float *qkv_bias, *up_bias, *out_bias, *down_bias;
};

/* The kernel's arguments. */
struct token_arguments {
    const struct token_layer *layers;
    const void *classifier;
    const float *final_norm, *final_norm_bias;
    unsigned C, hidden, L, NH, V;
    unsigned sinks, window;
    unsigned splits, split_rows; /* of a head's cache */
    size_t head_bytes;           /* of the cache, from a head's keys to the next head's */
    ptrdiff_t key_to_value;      /* bytes */
    float eps;
    enum nn_activation activation;
    const int32_t *position;
    const float *angles;             /* (sinks + window, HS / 8, 2) */
    const float *x;                  /* (C): the token's embedding */
    float *logits;                   /* (V), or NULL */
    unsigned launch;                 /* launches before this one */
    struct flagged_mailbox residual; /* (C) */
    struct flagged_mailbox qkv;      /* (3 C) */
    struct flagged_mailbox partial;  /* (NH, splits, HS + 2): values, running max, running sum */
    struct flagged_mailbox heads;    /* (C) */
    struct flagged_mailbox up;       /* (hidden) */
};

/* Sizes of a model that the code knows: 16-byte pieces, a stage of ROUNDS pieces a lane. */
template <int HS, int ROUNDS> struct token_shape {
    static constexpr int STAGE = ROUNDS * 512;     /* bytes */
    static constexpr int PIECES = HS / 8;          /* of a head */
    static constexpr int KEYS = ROUNDS * 256 / HS; /* of a stage */
    static constexpr int KEY_LANES = 32 / KEYS;    /* a lane has ROUNDS pieces of a key */
    static constexpr int GROUPS = 32 / PIECES;     /* of lanes: each has a value */
    static constexpr int HALF = HS / 8;            /* rotated pairs: a quarter of the head */
    static constexpr int CHANNELS = ROUNDS * 8;    /* of a lane */
    static_assert(KEYS * HS == ROUNDS * 256 && KEYS * KEY_LANES == 32, "keys fill a stage");
    static_assert(3 * HS <= TOKEN_THREADS, "a thread fetches a channel of q, k or v");
    static_assert(2 * HALF <= CHANNELS, "a key's first lane has all its pairs");
};

/* A block's rows of a matrix; slices are stages. For keys a slice is KEYS of them. */
struct token_part {
    unsigned first, rows, columns; /* columns: slices of a row */
    unsigned slices;
};

/* Shared memory: what a block has of everything, and where it begins. */
struct token_plan {
    struct token_part parts[TOKEN_END];
    unsigned head, split;
    bool active;  /* whether the block has keys */
    bool owns;    /* whether the newest token's row is among them */
    unsigned row; /* of the newest token */
    unsigned seen;
    float squares[2][TOKEN_WARPS];
    struct token_layer layers[]; /* (L) */
};

static __host__ __device__ __forceinline__ size_t token_plan_bytes(size_t L) {
    return (sizeof(struct token_plan) + L * sizeof(struct token_layer) + 127) / 128 * 128;
}

/* Floats of attention's working memory. */
template <int HS, int ROUNDS>
static __host__ __device__ __forceinline__ size_t token_attention_floats() {
    return 2 * HS + TOKEN_WARPS * (token_shape<HS, ROUNDS>::GROUPS * HS + 2);
}

/* Slices of the block with the most rows. */
static __host__ __device__ __forceinline__ size_t token_most_slices(size_t N, size_t row_bytes,
                                                                    size_t blocks, size_t stage) {
    return (N + blocks - 1) / blocks * (row_bytes / stage);
}

/* A flag of exchange `number`: mailboxes begin as zeros. */
static __device__ __forceinline__ unsigned token_flag(unsigned number) {
    return (number + 1) & 1;
}

#endif
