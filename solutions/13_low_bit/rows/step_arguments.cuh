/**
 * @file step_arguments.cuh
 * @brief A step of several texts as one persistent kernel: its arguments, how blocks and warps
 * share a matrix, and the exchange between blocks.
 *
 * A matrix is tiles of 16 rows, and an input chunks of 256 channels. A block has whole tiles. Each
 * of its warps has chunks, whose inputs stay in its registers for all of the block's tiles; where a
 * matrix has fewer chunks than a block has warps, groups of warps take tiles in turn.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_ARGUMENTS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_ARGUMENTS_CUH_

#include <cuda_bf16.h>

#include "common/cuda/convert.cuh"
#include "common/cuda/flagged_mailbox.cuh"
#include "solutions/13_low_bit/decoder/low_bit_layout.h"
#include "solutions/13_low_bit/decoder/low_bit_model.h"
#include "solutions/13_low_bit/rows/rows_kernels.h"

enum {
    STEP_WARPS = 16,
    STEP_THREADS = STEP_WARPS * 32,
    STEP_TEAMS = 2,   /* of attention */
    STEP_CHUNK = 256, /* channels */
    STEP_CHUNK_TILES = STEP_CHUNK / LOW_BIT_TILE_ROWS,
    STEP_OUTPUTS = 128,  /* of a tile: 16 rows of eight texts */
    STEP_LAYER_KINDS = 4 /* LOW_BIT_QKV .. LOW_BIT_DOWN */
};

/* Device memory. */
struct step_layer {
    const unsigned char *streams[STEP_LAYER_KINDS];
    const float *attention_norm, *ffn_norm;
};

/* A matrix: rows, channels of its input, and how warps share it. */
struct step_product {
    unsigned N, K, tiles, slices;
    unsigned chunks, group_bits; /* 2^group_bits groups of warps */
};

struct step_arguments {
    const struct step_layer *layers; /* (L + 1); the last one has the classifier as its stream 0 */
    const float *final_norm;
    const __nv_bfloat16 *embedding;
    struct step_product products[LOW_BIT_PRODUCTS];
    unsigned C, L, NH, KVH, HS, T, rows;
    unsigned residual_tiles; /* of the residual stream, that a block has at most */
    unsigned listed;         /* slices that a warp has at most, of a layer and the classifier */
    unsigned residual_at;    /* where the residual stream begins in shared memory */
    float eps, per_C;        /* 1 / C */
    bool rope_halves;
    const int32_t *tokens, *positions;
    const float2 *angles; /* (T, HS / 2) */
    struct rows_cache cache;
    float *logits;
    struct flagged_mailbox qkv;              /* (rows, (NH + 2 KVH) * HS) */
    struct flagged_mailbox x, heads, hidden; /* inputs of products, as input_place() says */
    struct flagged_mailbox squares;          /* of the residual stream, as square_place() says */
    unsigned *steps;                         /* steps made */
};

/* A block's tiles of a matrix. */
struct tile_range {
    unsigned first, count;
};

static __device__ __forceinline__ struct tile_range own_tiles(unsigned tiles) {
    unsigned first = tiles * blockIdx.x / gridDim.x;
    return {first, tiles * (blockIdx.x + 1) / gridDim.x - first};
}

/* A matrix as a block has it, in shared memory: divisions and arguments are slow to come by. */
struct __align__(16) block_product {
    struct step_product all;
    struct tile_range own;
};

/* Of a group; the first group's chunks are all there are. */
static __host__ __device__ __forceinline__ unsigned warps_of_group(const struct step_product &m) {
    return (unsigned)STEP_WARPS >> m.group_bits;
}

/* A warp's part of a matrix. */
struct warp_part {
    unsigned group, first_chunk;
    unsigned tiles; /* of the block's, of which it takes one in `groups`; 0: it has no part */
};

static __device__ __forceinline__ struct warp_part part_of(const struct block_product &m) {
    unsigned warp = threadIdx.x / 32, warps = warps_of_group(m.all),
             last = (1 << m.all.group_bits) - 1;
    struct warp_part part = {(warp << m.all.group_bits) / STEP_WARPS, warp & (warps - 1), 0};
    if (part.group < m.own.count && part.first_chunk < m.all.chunks) {
        part.tiles = (m.own.count - part.group + last) >> m.all.group_bits;
    }
    return part;
}

/* Where channels `channel` and `channel` + 2 of a text are in a mailbox of inputs, a pair of fp16
 * in a word: of 32 channels, a lane of the tensor cores' fragment has eight, 16 bytes. */
static __device__ __forceinline__ unsigned input_place(unsigned text, unsigned channel) {
    unsigned lane = text * 4 + channel % 32 / 8;
    return (channel / 32 * 32 + lane) * 4 + channel % 8 / 4 * 2 + channel % 2;
}

/* Publishes channels `channel`, of which bit 1 is 0, and `channel` + 2; they are cut off at the
 * largest fp16. */
static __device__ __forceinline__ void publish_pair(struct flagged_mailbox box, unsigned text,
                                                    unsigned channel, float first, float second,
                                                    unsigned flag) {
    const float most = 65504.0f;
    unsigned both =
        pack(fminf(fmaxf(first, -most), most), fminf(fmaxf(second, -most), most), __half());
    publish(box, input_place(text, channel), __uint_as_float(both), flag);
}

/* Where the sum of squares of a tile's rows of the residual stream is: a chunk's tiles of a text
 * are side by side. */
static __device__ __forceinline__ unsigned square_place(unsigned tile, unsigned text) {
    return (tile / STEP_CHUNK_TILES * (unsigned)ROWS_MOST + text) * STEP_CHUNK_TILES +
           tile % STEP_CHUNK_TILES;
}

/* ---- Flags: a mailbox's alternate from use to use ---- */

/* Of qkv, heads and hidden in layer l. @param steps made before this one */
static __device__ __forceinline__ unsigned layer_flag(unsigned steps, unsigned l,
                                                      const struct step_arguments &p) {
    return (steps * p.L + l + 1) & 1;
}

/* Of x after `sublayers` of the 2 L sublayers. */
static __device__ __forceinline__ unsigned residual_flag(unsigned steps, unsigned sublayers,
                                                         const struct step_arguments &p) {
    return (steps * (2 * p.L + 1) + sublayers + 1) & 1;
}

#endif
