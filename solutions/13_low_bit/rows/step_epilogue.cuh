/**
 * @file step_epilogue.cuh
 * @brief What becomes of a block's tiles: a warp adds up the sums of all warps for a tile, and
 * publishes.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_EPILOGUE_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_EPILOGUE_CUH_

#include "solutions/13_low_bit/rows/step_shared.cuh"

/* A lane's four outputs of a tile are an accumulator's: rows g and g + 8, of each the texts 2t and
 * 2t
 * + 1; g = lane / 4, t = lane % 4. */
static __device__ __forceinline__ unsigned lane_row() {
    return threadIdx.x % 32 / 4;
}

static __device__ __forceinline__ unsigned lane_text() {
    return threadIdx.x % 4 * 2;
}

/* Rows g and g + 2 are a pair of channels, of two lanes: the lower one has its text 2t, the upper
 * one 2t + 1. */
static __device__ __forceinline__ bool is_upper_lane() {
    return threadIdx.x % 16 >= 8;
}

/* What the lane publishes of a pair. @param x, y the lane's row, of both texts @return lower row,
 * upper row of text lane_text() + is_upper_lane() */
static __device__ __forceinline__ float2 exchange_texts(float x, float y) {
    float other = __shfl_xor_sync(~0u, is_upper_lane() ? x : y, 8);
    return is_upper_lane() ? make_float2(other, y) : make_float2(x, other);
}

/* x * sigmoid(x), within some units of fp32's last place; what is published has 11 bits. */
static __device__ __forceinline__ float fast_silu(float x) {
    return __fdividef(x, 1.0f + __expf(-x));
}

/* Publishes a pair of the lanes' rows, for which all lanes call it. @param channel of row g */
static __device__ __forceinline__ void publish_rows(struct flagged_mailbox box, unsigned channel,
                                                    float x, float y, unsigned flag) {
    const float2 pair = exchange_texts(x, y);
    publish_pair(box, lane_text() + (is_upper_lane() ? 1 : 0), channel & ~2u, pair.x, pair.y, flag);
}

/* The sum of squares of a tile's rows, of each text. */
static __device__ __forceinline__ void
publish_squares(unsigned tile, const float x[4], unsigned flag, const struct step_arguments &p) {
    const float2 pair = exchange_texts(x[0] * x[0] + x[2] * x[2], x[1] * x[1] + x[3] * x[3]);
    float sum = pair.x + pair.y;
    sum += __shfl_xor_sync(~0u, sum, 4);
    sum += __shfl_xor_sync(~0u, sum, 16);
    if ((lane_row() & ~2u) == 0) {
        publish(p.squares, square_place(tile, lane_text() + (is_upper_lane() ? 1 : 0)), sum, flag);
    }
}

/* Publishes a tile of the residual stream, times the next norm's weights, and its squares. */
static __device__ __forceinline__ void publish_residual(unsigned tile, const float x[4],
                                                        float2 norm, unsigned flag,
                                                        const struct step_arguments &p) {
    unsigned channel = tile * LOW_BIT_TILE_ROWS + lane_row();
    publish_rows(p.x, channel, x[0] * norm.x, x[1] * norm.x, flag);
    publish_rows(p.x, channel + 8, x[2] * norm.y, x[3] * norm.y, flag);
    publish_squares(tile, x, flag, p);
}

/* The weights of the norm behind OUT or DOWN, of the block's rows. */
static __device__ __forceinline__ float *norms_of(const struct step_shared &s, unsigned kind,
                                                  const struct step_arguments &p) {
    return s.norms + (kind == LOW_BIT_DOWN ? p.residual_tiles * LOW_BIT_TILE_ROWS : 0);
}

/* Adds a tile of OUT or DOWN to the residual stream. @param tile of the block's */
static __device__ __forceinline__ void add_to_residual(const struct step_shared &s,
                                                       const struct step_output &o, unsigned first,
                                                       unsigned tile, const float x[4],
                                                       const struct step_arguments &p) {
    float4 *residual = (float4 *)(s.residual + tile * STEP_OUTPUTS) + threadIdx.x % 32;
    const float *norm = norms_of(s, o.kind, p) + tile * LOW_BIT_TILE_ROWS + lane_row();
    const float4 r = *residual;
    const float y[4] = {r.x + x[0], r.y + x[1], r.z + x[2], r.w + x[3]};
    *residual = make_float4(y[0], y[1], y[2], y[3]);
    publish_residual(first + tile, y, make_float2(norm[0], norm[8]), o.flag, p);
}

/* Stores a tile of QKV or of the classifier by text. */
static __device__ __forceinline__ void store_rows(const struct step_output &o,
                                                  const struct step_product &m, unsigned tile,
                                                  const float x[4],
                                                  const struct step_arguments &p) {
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        unsigned text = lane_text() + i % 2, n = tile * LOW_BIT_TILE_ROWS + lane_row() + i / 2 * 8;
        size_t at = (size_t)text * m.N + n;
        if (n < m.N && text < p.rows) {
            if (o.kind == LOW_BIT_QKV) {
                publish(p.qkv, at, x[i], o.flag);
            } else {
                p.logits[at] = x[i];
            }
        }
    }
}

/* What becomes of the block's tile number `tile`. All lanes of a warp execute it.
   @param x the lane's outputs, scaled */
static __device__ __forceinline__ void
finish_tile(const struct step_shared &s, const struct step_output &o, const struct step_product &m,
            unsigned first, unsigned tile, const float x[4], const struct step_arguments &p) {
    if (o.kind == LOW_BIT_GATE_UP) {
        unsigned channel = (first + tile) * (LOW_BIT_TILE_ROWS / 2) + lane_row();
        publish_rows(p.hidden, channel, fast_silu(x[0]) * x[2], fast_silu(x[1]) * x[3], o.flag);
    } else if (has_norm(o.kind)) {
        store_rows(o, m, first + tile, x, p);
    } else {
        add_to_residual(s, o, first, tile, x, p);
    }
}

/* 1 / RMS of the lane's two texts. Warps without squares have zeros. */
static __device__ __forceinline__ float2 rstd_of(const float *squares,
                                                 const struct step_arguments &p) {
    static_assert(STEP_WARPS == 16 && ROWS == 8, "four lanes a text, four warps a lane");
    const float4 x = *(const float4 *)(squares + threadIdx.x % 32 * 4);
    float sum = (x.x + x.y) + (x.z + x.w);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    float rstd = rsqrtf(sum * p.per_C + p.eps);
    unsigned from = lane_text() * 4;
    return make_float2(__shfl_sync(~0u, rstd, (int)from), __shfl_sync(~0u, rstd, (int)from + 4));
}

/* x += the sums of `COUNT` warps. */
template <int COUNT>
static __device__ __forceinline__ void add_warps(float x[4], const float4 *sums) {
#pragma unroll
    for (int w = 0; w < COUNT; w++) {
        const float4 y = sums[w * (STEP_OUTPUTS / 4)];
        x[0] += y.x, x[1] += y.y, x[2] += y.z, x[3] += y.w;
    }
}

/* Adds up a group's warps, a power of two. @param sums the lane's of its first one */
static __device__ __forceinline__ void sum_warps(float x[4], const float4 *sums, unsigned warps) {
    x[0] = x[1] = x[2] = x[3] = 0.0f;
    if (warps < 8) {
        for (unsigned w = 0; w < warps; w++) {
            add_warps<1>(x, sums + w * (STEP_OUTPUTS / 4));
        }
        return;
    }
    add_warps<8>(x, sums);
    if (warps > 8) {
        add_warps<8>(x, sums + 8 * (STEP_OUTPUTS / 4));
    }
}

/* The scales of rows g and g + 8 of a tile; sums of int8 are in units of 2^-24. */
template <typename W>
static __device__ __forceinline__ float2 row_scales(const struct step_output &o, unsigned tile) {
    if constexpr (W::GROUP != 0) {
        return make_float2(1.0f, 1.0f);
    }
    const float *scales = o.scales + (size_t)tile * LOW_BIT_TILE_ROWS + lane_row();
    return make_float2(PER_UNIT * __ldg(scales), PER_UNIT * __ldg(scales + 8));
}

/* The tile of a batch that the warp finishes first. Warps take turns: who finishes is late for the
 * next batch. */
static __device__ __forceinline__ unsigned finished_tile(const struct step_shared &s) {
    return (threadIdx.x / 32 - s.batches * 4) % STEP_WARPS;
}

/* The outputs of a batch: a warp a tile. @param scales of the rows of the warp's first tile */
template <typename W>
static __device__ __forceinline__ void finish_batch(const struct step_shared &s,
                                                    const struct step_output &o, unsigned batch,
                                                    float2 scales, const struct step_arguments &p) {
    const struct block_product product = product_of(s, o.kind);
    const struct step_product &m = product.all;
    const struct tile_range &own = product.own;
    unsigned warps = warps_of_group(m), bits = m.group_bits, skipped = batch << bits;
    unsigned count = smaller(own.count - skipped, (unsigned)W::BATCH << bits);
    for (unsigned i = finished_tile(s); i < count; i += STEP_WARPS) {
        unsigned slot = (i >> bits) * STEP_WARPS + (i & ((1 << bits) - 1)) * warps;
        const float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_OUTPUTS);
        float2 rstd = make_float2(1.0f, 1.0f);
        float x[4];
        sum_warps(x, (const float4 *)(sums + slot * STEP_OUTPUTS) + threadIdx.x % 32, warps);
        if (has_norm(o.kind)) {
            rstd = rstd_of(squares_of(s, o.kind), p);
        }
        if (i >= STEP_WARPS) {
            scales = row_scales<W>(o, own.first + skipped + i);
        }
        x[0] *= rstd.x * scales.x, x[1] *= rstd.y * scales.x;
        x[2] *= rstd.x * scales.y, x[3] *= rstd.y * scales.y;
        finish_tile(s, o, m, own.first, skipped + i, x, p);
    }
}

/* Two products ahead: memory may have to be asked. A thread a row. */
static __device__ __forceinline__ void load_norms(const struct step_shared &s, unsigned number,
                                                  const struct step_arguments &p) {
    unsigned kind = kind_of(number, p), l = number / STEP_LAYER_KINDS;
    const struct tile_range own = product_of(s, LOW_BIT_OUT).own;
    if (kind == LOW_BIT_QKV || kind == LOW_BIT_GATE_UP) {
        unsigned channel = own.first * LOW_BIT_TILE_ROWS + threadIdx.x;
        const float *norm = kind == LOW_BIT_QKV ? s.layers[l].ffn_norm
                            : l + 1 < p.L       ? s.layers[l + 1].attention_norm
                                                : p.final_norm;
        if (threadIdx.x < own.count * LOW_BIT_TILE_ROWS && channel < p.C) {
            norms_of(s, kind + 1, p)[threadIdx.x] = __ldg(norm + channel);
        }
    }
}

#endif
