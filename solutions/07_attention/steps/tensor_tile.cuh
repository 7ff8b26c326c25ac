/**
 * @file tensor_tile.cuh
 * @brief The fp16 and bf16 kernel of steps v4 and v5: both products on tensor cores.
 *
 * A block of four warps has 64 * M_TILES queries, a warp 16 * M_TILES of them,
 * and goes through tiles of 64 keys; the next tile is copied while this one is
 * used. mma.sync m16n8k16 multiplies 16 queries by 8 keys (or channels), 16
 * deep, and sums in fp32.
 *
 * The accumulators of the scores, rounded to 16 bits, are the A operand of the second
 * product, in the same thread: the weights never leave registers. Each of K's and V's fragments
 * serves M_TILES products.
 *
 * Banks: rows are HS + 8 elements apart, an odd number of 16-byte pieces, so
 * the eight rows of an ldmatrix lie in different ones.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_TENSOR_TILE_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_TENSOR_TILE_CUH_

#include "solutions/07_attention/steps/fragments.cuh"

/* Sizes of the kernel for heads up to HS_ channels, in elements; BLOCKS_: of a multiprocessor. */
template <typename E_, int HS_, int M_TILES_, int BLOCKS_> struct tensor_tile {
    typedef E_ E;
    static constexpr int HS = HS_, M_TILES = M_TILES_, WARPS = 4, BLOCKS = BLOCKS_;
    static constexpr int THREADS = 32 * WARPS, WARP_QUERIES = 16 * M_TILES;
    static constexpr int QUERIES = WARPS * WARP_QUERIES, KEYS = 64;
    static constexpr int PITCH = HS + 8, DEPTH = HS / 16; /* of the first product, in mmas */
    static constexpr int KEY_TILES = KEYS / 8, CHANNEL_TILES = HS / 8;
    /* Heads of 64: the queries' fragments fit into registers, for all tiles of keys. */
    static constexpr bool KEEP_QUERIES = HS * M_TILES <= 128;
    static constexpr int STAGE = 2 * KEYS * PITCH; /* a tile of K and one of V */
    static constexpr size_t BYTES = (QUERIES * PITCH + 2 * STAGE) * sizeof(E);
};

/* A's fragment: 16 queries by the channels 16 * depth .. */
template <typename TILE>
static __device__ __forceinline__ struct fragment load_queries(const typename TILE::E *q, int m,
                                                               int depth) {
    int lane = threadIdx.x % 32;
    return ldmatrix_x4<false>(q + (m * 16 + lane % 16) * TILE::PITCH + depth * 16 + lane / 16 * 8);
}

/* scores[m][n] = 16 queries . 8 keys */
template <typename TILE>
static __device__ __forceinline__ void score(struct accumulator (*scores)[TILE::KEY_TILES],
                                             const struct fragment (*kept)[TILE::DEPTH],
                                             const typename TILE::E *q, const typename TILE::E *k) {
    int lane = threadIdx.x % 32;
    const typename TILE::E *row = k + (lane / 16 * 8 + lane % 8) * TILE::PITCH + lane / 8 % 2 * 8;
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int n = 0; n < TILE::KEY_TILES; n++) {
            scores[m][n] = {};
        }
    }
#pragma unroll
    for (int depth = 0; depth < TILE::DEPTH; depth++) {
        struct fragment a[TILE::M_TILES];
#pragma unroll
        for (int m = 0; m < TILE::M_TILES; m++) {
            a[m] = TILE::KEEP_QUERIES ? kept[m][depth] : load_queries<TILE>(q, m, depth);
        }
#pragma unroll
        for (int n = 0; n < TILE::KEY_TILES; n += 2) {
            struct fragment b = ldmatrix_x4<false>(row + n * 8 * TILE::PITCH + depth * 16);
#pragma unroll
            for (int m = 0; m < TILE::M_TILES; m++) {
                mma_m16n8k16(scores[m][n].x, a[m], b.x[0], b.x[1], typename TILE::E());
                mma_m16n8k16(scores[m][n + 1].x, a[m], b.x[2], b.x[3], typename TILE::E());
            }
        }
    }
}

/* P.V: out[m][n] += weights (16 queries, 64 keys) * v (64 keys, 8 channels) */
template <typename TILE>
static __device__ __forceinline__ void
multiply_pv(struct accumulator (*out)[TILE::CHANNEL_TILES],
            const struct accumulator (*weights)[TILE::KEY_TILES], const typename TILE::E *v) {
    int lane = threadIdx.x % 32;
    const typename TILE::E *row = v + lane % 16 * TILE::PITCH + lane / 16 * 8;
#pragma unroll
    for (int depth = 0; depth < TILE::KEYS / 16; depth++) {
        struct fragment a[TILE::M_TILES];
#pragma unroll
        for (int m = 0; m < TILE::M_TILES; m++) {
            const struct accumulator &low = weights[m][2 * depth],
                                     &high = weights[m][2 * depth + 1];
            a[m].x[0] = pack(low.x[0], low.x[1], typename TILE::E());
            a[m].x[1] = pack(low.x[2], low.x[3], typename TILE::E());
            a[m].x[2] = pack(high.x[0], high.x[1], typename TILE::E());
            a[m].x[3] = pack(high.x[2], high.x[3], typename TILE::E());
        }
#pragma unroll
        for (int n = 0; n < TILE::CHANNEL_TILES; n += 2) {
            struct fragment b = ldmatrix_x4<true>(row + depth * 16 * TILE::PITCH + n * 8);
#pragma unroll
            for (int m = 0; m < TILE::M_TILES; m++) {
                mma_m16n8k16(out[m][n].x, a[m], b.x[0], b.x[1], typename TILE::E());
                mma_m16n8k16(out[m][n + 1].x, a[m], b.x[2], b.x[3], typename TILE::E());
            }
        }
    }
}

/* `vector`: heads of q, k and v begin 16-byte aligned; `aligned`: those of out do. */
template <typename TILE, typename LIST>
static __global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS)
    tensor_attention(const struct attention_problem problem, const LIST list, bool skip,
                     bool vector, bool aligned, float *lse) {
#if __CUDA_ARCH__ >= 800 /* older GPUs use v2 */
    typedef typename TILE::E E;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    E *q = (E *)shared_bytes, *stages = q + TILE::QUERIES * TILE::PITCH;
    const struct sequence<E> s = sequence_of_block<E>(problem, list, TILE::QUERIES);
    if (s.first >= s.T) {
        return;
    }
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, channels = (int)problem.HS;
    int end = keys_seen(s, problem.causal, min(s.first + TILE::QUERIES, s.T) - 1);
    int own = s.first + warp * TILE::WARP_QUERIES; /* the warp's first query */
    int hidden_from = keys_seen(s, problem.causal, own);
    float factor = problem.scale * 1.4426950408889634f;
    const auto k_pieces = pieces_of<TILE::HS, TILE::THREADS>(s.k, problem.kv_stride, channels);
    const auto v_pieces = pieces_of<TILE::HS, TILE::THREADS>(s.v, problem.kv_stride, channels);
    auto load = [&](E *stage, const struct key_tile &keys) {
        size_t token = (size_t)keys.tile * TILE::KEYS;
        if (vector) {
            E *place = stage + k_pieces.row * TILE::PITCH + threadIdx.x % (TILE::HS / 8) * 8;
            constexpr int STEP = TILE::THREADS / (TILE::HS / 8) * TILE::PITCH;
            bool all = keys.visible == low_bits(TILE::KEYS);
            auto visible = [&]() { return keys.visible; };
            copy_rows<TILE::KEYS>(place, STEP, k_pieces, token, all, visible);
            copy_rows<TILE::KEYS>(place + TILE::KEYS * TILE::PITCH, STEP, v_pieces, token, all,
                                  visible);
        } else {
            auto inside = [&](int r) { return (keys.visible >> r & 1) != 0; };
            token *= problem.kv_stride;
            load_rows<TILE::KEYS, TILE::HS, TILE::THREADS>(
                stage, TILE::PITCH, s.k + token, problem.kv_stride, channels, false, inside);
            load_rows<TILE::KEYS, TILE::HS, TILE::THREADS>(
                stage + TILE::KEYS * TILE::PITCH, TILE::PITCH, s.v + token, problem.kv_stride,
                channels, false, inside);
        }
        cp_async_commit();
    };

    struct key_tile keys = seek<TILE::KEYS>(s.mask, 0, end, skip);
    load_rows<TILE::QUERIES, TILE::HS, TILE::THREADS>(
        q, TILE::PITCH, s.q + s.first * problem.q_stride, problem.q_stride, channels, vector,
        [&](int r) { return s.first + r < s.T; });
    load(stages, keys);
    cp_async_wait<0>();
    __syncthreads();
    q += warp * TILE::WARP_QUERIES * TILE::PITCH;
    struct fragment kept[TILE::M_TILES][TILE::DEPTH] = {};
    struct accumulator out[TILE::M_TILES][TILE::CHANNEL_TILES] = {};
    struct softmax_state rows[TILE::M_TILES][2];
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
        rows[m][0] = rows[m][1] = {-INFINITY, 0.0f};
#pragma unroll
        for (int depth = 0; TILE::KEEP_QUERIES && depth < TILE::DEPTH; depth++) {
            kept[m][depth] = load_queries<TILE>(q, m, depth);
        }
    }
    for (int stage = 0; keys.tile * TILE::KEYS < end; stage ^= 1) {
        const E *k = stages + stage * TILE::STAGE;
        struct key_tile next = seek<TILE::KEYS>(s.mask, keys.tile + 1, end, skip);
        if (next.tile * TILE::KEYS < end) {
            load(stages + (stage ^ 1) * TILE::STAGE, next);
        }
        bool all_visible =
            keys.visible == low_bits(TILE::KEYS) && (keys.tile + 1) * TILE::KEYS <= hidden_from;
        struct accumulator scores[TILE::M_TILES][TILE::KEY_TILES];
        score<TILE>(scores, kept, q, k);
#pragma unroll
        for (int m = 0; m < TILE::M_TILES && !all_visible; m++) {
            int t = own + m * 16 + lane / 4, first = keys.tile * TILE::KEYS + lane % 4 * 2;
            const int seen[2] = {keys_seen(s, problem.causal, t) - first,
                                 keys_seen(s, problem.causal, t + 8) - first};
            apply_mask<TILE>(scores[m], keys.visible >> lane % 4 * 2, seen);
        }
        float rescaling[TILE::M_TILES][2];
        if (update_max<TILE>(scores, rows, factor, rescaling)) {
            rescale<TILE>(out, rescaling);
        }
        softmax_weights<TILE>(scores, rows, factor);
        multiply_pv<TILE>(out, scores, k + TILE::KEYS * TILE::PITCH);
        cp_async_wait<0>();
        __syncthreads(); /* the next tile is there, and this one read */
        keys = next;
    }
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
        E *rows_of_q = q + m * 16 * TILE::PITCH; /* read by this warp alone, and not any more */
        store_rows<TILE>(s, problem.out_stride, own + m * 16, out[m], rows[m], channels, aligned,
                         [=](int r, int c) { return rows_of_q + r * TILE::PITCH + c; });
        if (lse != NULL) {
            store_lse_rows(lse_of_head(lse, s, problem), problem.NH, own + m * 16, s.T, rows[m]);
        }
    }
#endif
}

/* One launch; sequence_of_block() says how blocks are numbered. */
template <typename TILE, typename LIST>
static enum status launch_tensor_blocks(const struct attention_problem *p, float *lse,
                                        const LIST &list, bool skip, unsigned blocks,
                                        device_stream stream, struct error *error) {
    static const cudaError_t allowed = cudaFuncSetAttribute(
        tensor_attention<TILE, LIST>, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention: %s", cudaGetErrorString(allowed));
    }
    tensor_attention<TILE, LIST><<<blocks, TILE::THREADS, TILE::BYTES, stream>>>(
        *p, list, skip, heads_aligned(p), out_aligned(p), lse);
    return device_launched("tensor_attention", error);
}

template <typename TILE>
static enum status launch_tensor(const struct attention_problem *p, float *lse, bool lengths,
                                 device_stream stream, struct error *error) {
    if (lengths && p->starts != NULL) {
        auto launch = [&](const struct tile_list &list) {
            return launch_tensor_blocks<TILE>(p, lse, list, false, list.count * (unsigned)p->NH,
                                              stream, error);
        };
        return launch_lists(p, TILE::QUERIES, launch, error);
    }
    unsigned blocks = 0;
    TRY(count_blocks(p, TILE::QUERIES, &blocks, error));
    return blocks > 0
               ? launch_tensor_blocks<TILE>(p, lse, no_list(), lengths, blocks, stream, error)
               : STATUS_OK;
}

#endif
