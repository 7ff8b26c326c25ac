/**
 * @file fragments.cuh
 * @brief Online softmax, and stores of the outputs, on accumulators of tensor cores (v4 and v6).
 *
 * TILE is a tile's sizes: M_TILES times 16 queries a warp, KEY_TILES times 8 keys a
 * step, CHANNEL_TILES times 8 channels of HS, of elements E.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_FRAGMENTS_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_FRAGMENTS_CUH_

#include "solutions/07_attention/steps/tile_list.cuh"

/* Applies the mask: -infinity for the keys that two rows of the warp must not see: `visible` is the
   tile's, from the thread's first key on, seen[r] how many of those keys causality leaves row r. */
template <typename TILE>
static __device__ __forceinline__ void apply_mask(struct accumulator *scores,
                                                  unsigned long long visible, const int *seen) {
#pragma unroll
    for (int n = 0; n < TILE::KEY_TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = 8 * n + i % 2;
            if ((visible >> key & 1) == 0 || key >= seen[i / 2]) {
                scores[n].x[i] = -INFINITY;
            }
        }
    }
}

/* The online softmax state of one row. */
struct softmax_state {
    float base; /* at most HEADROOM below the running max, scaled; weights are 2^(score * factor -
                   base); -infinity before the first key */
    float sum;  /* running sum, of the thread's own keys only */
};

/* The largest score of the accumulators' row r, 0 or 1. */
template <typename TILE>
static __device__ __forceinline__ float largest_score(const struct accumulator *scores, int r) {
    float largest = fmaxf(scores[0].x[2 * r], scores[0].x[2 * r + 1]);
#pragma unroll
    for (int n = 1; n < TILE::KEY_TILES; n++) {
        largest = fmaxf(largest, fmaxf(scores[n].x[2 * r], scores[n].x[2 * r + 1]));
    }
    return quad_max(largest);
}

/* Weights may be up to 2^8 before the base is updated: fp16 holds them, and sums are fp32. */
static constexpr float HEADROOM = 8.0f;

/* The first half of the online softmax update: when a score of any row of the warp exceeds its base
   by more than HEADROOM, all bases become the running max. `factor`: scale * log2(e).
   @return whether they did, the same in all lanes; then rescaling[m][r] is the rescaling factor: it
   is already applied to the running sums, not yet to the outputs */
template <typename TILE>
static __device__ __forceinline__ bool
update_max(const struct accumulator (*scores)[TILE::KEY_TILES], struct softmax_state (*rows)[2],
           float factor, float (*rescaling)[2]) {
    float largest[TILE::M_TILES][2];
    bool outgrown = false;
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            largest[m][r] = largest_score<TILE>(scores[m], r) * factor;
            outgrown = outgrown || largest[m][r] > rows[m][r].base + HEADROOM;
        }
    }
    outgrown = __any_sync(~0u, outgrown);
#pragma unroll
    for (int i = 0; i < 2 * TILE::M_TILES && outgrown; i++) {
        struct softmax_state &row = rows[i / 2][i % 2];
        float base = fmaxf(row.base, largest[i / 2][i % 2]);
        float factor_of_row = base == -INFINITY ? 0.0f : exp2_approx(row.base - base);
        rescaling[i / 2][i % 2] = factor_of_row;
        row.sum *= factor_of_row;
        row.base = base;
    }
    return outgrown;
}

/* The second half: scores become weights, which are added to the running sums. */
template <typename TILE>
static __device__ __forceinline__ void
softmax_weights(struct accumulator (*scores)[TILE::KEY_TILES], struct softmax_state (*rows)[2],
                float factor) {
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            /* no key yet: 2^(-inf - 0) = 0 */
            float base = rows[m][r].base == -INFINITY ? 0.0f : rows[m][r].base;
#pragma unroll
            for (int n = 0; n < TILE::KEY_TILES; n++) {
                float *pair = scores[m][n].x + 2 * r;
                pair[0] = exp2_approx(pair[0] * factor - base);
                pair[1] = exp2_approx(pair[1] * factor - base);
                rows[m][r].sum += pair[0] + pair[1];
            }
        }
    }
}

/* Sums of the first product, rounded, are the left operand of the second. */
template <typename TILE>
static __device__ __forceinline__ void pack_weights(struct fragment *weights,
                                                    const struct accumulator *scores) {
#pragma unroll
    for (int depth = 0; depth < TILE::KEYS / 16; depth++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *pair = scores[2 * depth + i / 2].x + i % 2 * 2;
            weights[depth].x[i] = pack(pair[0], pair[1], typename TILE::E());
        }
    }
}

/* Applies the rescaling factor of update_max() to the outputs. */
template <typename TILE>
static __device__ __forceinline__ void rescale(struct accumulator (*out)[TILE::CHANNEL_TILES],
                                               const float (*rescaling)[2]) {
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int n = 0; n < TILE::CHANNEL_TILES; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                out[m][n].x[i] *= rescaling[m][i / 2];
            }
        }
    }
}

/* 1 / the sum of a row's weights; 0 for a row without keys. */
static __device__ __forceinline__ float inverse_sum(float sum) {
    sum = quad_sum(sum);
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

/* One row, of a head that begins anywhere; `to` is the row's, or NULL. */
template <typename TILE>
static __device__ __forceinline__ void
store_row(typename TILE::E *to, const struct accumulator *out, int r, float inverse, int channels) {
#pragma unroll
    for (int n = 0; n < TILE::CHANNEL_TILES && to != NULL; n++) {
        int first = 8 * n + threadIdx.x % 4 * 2;
        if (first < channels) {
            to[first] = from_float<typename TILE::E>(out[n].x[2 * r] * inverse);
        }
        if (first + 1 < channels) {
            to[first + 1] = from_float<typename TILE::E>(out[n].x[2 * r + 1] * inverse);
        }
    }
}

/* A row's logarithm of the sum of its exponentials: weights are 2^(score * factor - base). */
static __device__ __forceinline__ void store_lse(float *to, const struct softmax_state &row) {
    float sum = quad_sum(row.sum);
    if (to != NULL && threadIdx.x % 4 == 0) {
        *to = logf(sum) + row.base * 0.69314718055994531f;
    }
}

/* Those of the 16 rows of a warp, queries `first` on of T; `to`: (T, heads), from the sequence's
   first query and the head on. */
static __device__ __forceinline__ void store_lse_rows(float *to, size_t heads, int first, int T,
                                                      const struct softmax_state *rows) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int t = first + threadIdx.x % 32 / 4 + 8 * r;
        store_lse(t < T ? to + t * heads : NULL, rows[r]);
    }
}

/*
 * 16 rows of a warp, the sequence's queries `first` on, divided by the sums of their weights. With
 * `aligned`, by way of shared memory, where place(row, channel) is the warp's own: neighbouring
 * lanes then store 16 bytes each of the same row.
 */
template <typename TILE, typename PLACE>
static __device__ __forceinline__ void
store_rows(const struct sequence<typename TILE::E> &s, size_t stride, int first,
           const struct accumulator *out, const struct softmax_state *rows, int channels,
           bool aligned, PLACE place) {
    typedef typename TILE::E E;
    int lane = threadIdx.x % 32;
    __syncwarp(); /* without keys there was no barrier since the loads: all lanes have read q */
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float inverse = inverse_sum(rows[r].sum);
        int row = lane / 4 + 8 * r;
        if (!aligned) {
            E *to = first + row < s.T ? s.out + (first + row) * stride : NULL;
            store_row<TILE>(to, out, r, inverse, channels);
            continue;
        }
#pragma unroll
        for (int n = 0; n < TILE::CHANNEL_TILES; n++) {
            *(unsigned *)place(row, 8 * n + lane % 4 * 2) =
                pack(out[n].x[2 * r] * inverse, out[n].x[2 * r + 1] * inverse, E());
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TILE::HS / 16 && aligned; i++) {
        int piece = i * 32 + lane, row = piece / (TILE::HS / 8);
        int channel = piece % (TILE::HS / 8) * 8;
        if (first + row < s.T && channel < channels) {
            *(uint4 *)(s.out + (first + row) * stride + channel) =
                *(const uint4 *)place(row, channel);
        }
    }
}

#endif
