/**
 * @file flash_tile.cuh
 * @brief A tile of p and of ds in fp32 on FMAs, for v4 and v7: sizes, the threads' places,
 * products.
 *
 * THREADS threads are EDGE x THREADS / EDGE: a thread's lane says which own rows, or channels, it
 * has, its group which other rows. A warp is WARP_LANES lanes of 32 / WARP_LANES groups.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_FLASH_TILE_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_FLASH_TILE_CUH_

#include "solutions/11_training/steps/tile_coordinates.cuh"

enum { EDGE = 16 };

/* Sizes: channels, own rows and other rows of a tile, threads of a block, lanes of a warp's group.
 */
template <int HS_, int OWN_, int OTHER_, int THREADS_, int WARP_LANES> struct flash_tile {
    static constexpr int HS = HS_, OWN = OWN_, OTHER = OTHER_, THREADS = THREADS_;
    static constexpr int GROUPS = THREADS / EDGE, CHANNELS = HS / EDGE;
    static constexpr int OWNS = OWN / EDGE, OTHERS = OTHER / GROUPS; /* of scores, a thread */
    static constexpr int SUM_ROWS = OWN / GROUPS;                    /* of a gradient, a thread */
    static constexpr int PITCH = HS + 4;    /* eight rows' vectors lie in different banks */
    static constexpr int P_PITCH = OWN + 4; /* p and ds: a row for each other row */
    struct shared {
        float own_x[OWN][PITCH], own_y[OWN][PITCH];
        float other_x[OTHER][PITCH], other_y[OTHER][PITCH];
        float p[OTHER][P_PITCH], ds[OTHER][P_PITCH];
        float lse[OWN > OTHER ? OWN : OTHER], delta[OWN > OTHER ? OWN : OTHER]; /* of queries */
    };

    static __device__ __forceinline__ int lane() {
        constexpr int PARTS = EDGE / WARP_LANES; /* warps that have a group's lanes */
        return (int)threadIdx.x / 32 % PARTS * WARP_LANES + (int)threadIdx.x % WARP_LANES;
    }

    static __device__ __forceinline__ int group() {
        constexpr int PARTS = EDGE / WARP_LANES;
        return (int)threadIdx.x / 32 / PARTS * (32 / WARP_LANES) +
               (int)threadIdx.x % 32 / WARP_LANES;
    }
};

/* sums[j][i] = own row lane + EDGE i . other row group + GROUPS j */
template <typename TILE>
static __device__ __forceinline__ void dot_rows(float (&sums)[TILE::OTHERS][TILE::OWNS],
                                                const float (*own)[TILE::PITCH],
                                                const float (*other)[TILE::PITCH]) {
    int lane = TILE::lane(), group = TILE::group();
#pragma unroll
    for (int i = 0; i < TILE::OTHERS * TILE::OWNS; i++) {
        sums[i / TILE::OWNS][i % TILE::OWNS] = 0.0f;
    }
#pragma unroll 4
    for (int c = 0; c < TILE::HS; c += 4) {
        float4 a[TILE::OWNS];
#pragma unroll
        for (int i = 0; i < TILE::OWNS; i++) {
            a[i] = *(const float4 *)&own[lane + EDGE * i][c];
        }
#pragma unroll
        for (int j = 0; j < TILE::OTHERS; j++) {
            float4 b = *(const float4 *)&other[group + TILE::GROUPS * j][c];
#pragma unroll
            for (int i = 0; i < TILE::OWNS; i++) {
                sums[j][i] += a[i].x * b.x; /* one FMA each: their sum first would be five */
                sums[j][i] += a[i].y * b.y;
                sums[j][i] += a[i].z * b.z;
                sums[j][i] += a[i].w * b.w;
            }
        }
    }
}

/* Computes p and ds of a tile, into shared memory; other: its first row. */
template <typename TILE, bool KEYS_OWN>
static __device__ __forceinline__ void compute_p_ds(typename TILE::shared &tile,
                                                    const struct attention_backward_problem &p,
                                                    const struct tile_coordinates &s, int other) {
    float scores[TILE::OTHERS][TILE::OWNS], dp[TILE::OTHERS][TILE::OWNS];
    int lane = TILE::lane(), group = TILE::group();
    dot_rows<TILE>(scores, tile.own_x, tile.other_x);
    dot_rows<TILE>(dp, tile.own_y, tile.other_y);
#pragma unroll
    for (int j = 0; j < TILE::OTHERS; j++) {
#pragma unroll
        for (int i = 0; i < TILE::OWNS; i++) {
            int o = lane + EDGE * i, t = group + TILE::GROUPS * j, query = KEYS_OWN ? t : o;
            float weight = exp2_approx(scores[j][i] * (p.scale * LOG2_E) - tile.lse[query]);
            weight = is_visible<KEYS_OWN>(s.first + o, other + t, s.T, p.causal) ? weight : 0.0f;
            tile.p[t][o] = weight;
            tile.ds[t][o] = weight * (dp[j][i] - tile.delta[query]);
        }
    }
}

/* COUNT contiguous floats: two, or a multiple of four. */
template <int COUNT>
static __device__ __forceinline__ void load_floats(float (&x)[COUNT], const float *from) {
    if constexpr (COUNT == 2) {
        float2 two = *(const float2 *)from;
        x[0] = two.x;
        x[1] = two.y;
    } else {
        static_assert(COUNT % 4 == 0, "two, or a multiple of four");
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) {
            float4 four = *(const float4 *)(from + i);
            x[i] = four.x;
            x[i + 1] = four.y;
            x[i + 2] = four.z;
            x[i + 3] = four.w;
        }
    }
}

/* sums of the thread's own rows SUM_ROWS group .. and channels 4 lane .., and 64 further on:
   += weights^T * rows */
template <typename TILE>
static __device__ __forceinline__ void add_products(float (&sums)[TILE::SUM_ROWS][TILE::CHANNELS],
                                                    const float (*weights)[TILE::P_PITCH],
                                                    const float (*rows)[TILE::PITCH]) {
    int lane = TILE::lane(), group = TILE::group();
#pragma unroll 4
    for (int t = 0; t < TILE::OTHER; t++) {
        float weight[TILE::SUM_ROWS];
        load_floats(weight, &weights[t][TILE::SUM_ROWS * group]);
#pragma unroll
        for (int c = 0; c < TILE::CHANNELS; c += 4) {
            float x[4];
            load_floats(x, &rows[t][4 * lane + EDGE * c]);
#pragma unroll
            for (int i = 0; i < 4 * TILE::SUM_ROWS; i++) {
                sums[i / 4][c + i % 4] += weight[i / 4] * x[i % 4];
            }
        }
    }
}

static __device__ __forceinline__ void store_four(float *to, const float *x, float factor) {
    *(float4 *)to = make_float4(x[0] * factor, x[1] * factor, x[2] * factor, x[3] * factor);
}

static __device__ __forceinline__ void store_four(__nv_bfloat16 *to, const float *x, float factor) {
    const __nv_bfloat16 type = __nv_bfloat16();
    *(uint2 *)to = make_uint2(pack(x[0] * factor, x[1] * factor, type),
                              pack(x[2] * factor, x[3] * factor, type));
}

/* The thread's sums, times a factor, to rows of a gradient. */
template <typename TILE, typename E>
static __device__ __forceinline__ void
store_sums(E *to, size_t stride, const float (&sums)[TILE::SUM_ROWS][TILE::CHANNELS], float factor,
           const struct tile_coordinates &s, int channels) {
    int lane = TILE::lane(), group = TILE::group();
#pragma unroll
    for (int i = 0; i < TILE::SUM_ROWS; i++) {
        int row = s.first + TILE::SUM_ROWS * group + i;
#pragma unroll
        for (int c = 0; c < TILE::CHANNELS; c += 4) {
            int channel = 4 * lane + EDGE * c;
            if (row < s.T && channel < channels) {
                store_four(to + (s.start + row) * stride + channel, sums[i] + c, factor);
            }
        }
    }
}

#endif
