/**
 * @file hopper_tile.cuh
 * @brief The fp16 and bf16 kernel of step v6: both products by wgmma, which only sm_90a has.
 *
 * A block is a warpgroup: four warps, 64 queries. wgmma.m64n64k16 multiplies 64 x 16
 * by 16 x 64 for all four warps at once, reads its operands from shared memory by
 * itself, and runs on while the warps do something else. Its sums lie in a warp's
 * registers as mma.sync's do, and so does a left operand from registers, so v4 and v6
 * share update_max(), softmax_weights(), apply_mask() and store_rows().
 *
 * The scores of the next tile are begun together with the weighted sum of this one,
 * so that the tensor cores have the second product to do while the softmax of the
 * first begins. Four blocks a multiprocessor (heads of 128: two) do the rest: while
 * some wait for 2^x, others multiply. Blocks of two warpgroups, which share K and V,
 * were slower: a barrier a tile keeps their softmaxes at the same time.
 *
 * V has three tiles, so that the copy of the next one need not wait for a product.
 *
 * Compiled for anything else the kernel is empty: see hopper_code().
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_HOPPER_TILE_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_HOPPER_TILE_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "solutions/07_attention/steps/fragments.cuh"
#include "solutions/07_attention/steps/warpgroup.cuh"

/* Sizes of the kernel for heads up to HS_ channels, in elements. */
template <typename E_, int HS_> struct hopper_tile {
    typedef E_ E;
    static constexpr int HS = HS_, BLOCKS = HS == 64 ? 4 : 2;
    static constexpr int THREADS = 128, QUERIES = 64, KEYS = 64;
    static constexpr int M_TILES = 1, KEY_TILES = KEYS / 8, CHANNEL_TILES = HS / 8;
    static constexpr int DEPTH = HS / 16, PANELS = HS / 64, PANEL = 64 * 64, CHUNKS = HS / 8;
    static constexpr int STEP =
        THREADS / CHUNKS * 64;           /* from one of a thread's pieces to the next */
    static constexpr int TILE = 64 * HS; /* of Q, K or V */
    static constexpr int K_TILES = 2, V_TILES = 3;
    static constexpr size_t BYTES = (1 + K_TILES + V_TILES) * TILE * sizeof(E);
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Begins scores = 64 queries . 64 keys. */
template <typename TILE>
static __device__ __forceinline__ void
begin_scores(struct accumulator *scores, const typename TILE::E *q, const typename TILE::E *k) {
#pragma unroll
    for (int depth = 0; depth < TILE::DEPTH; depth++) {
        int panel = depth / 4 * TILE::PANEL, column = depth % 4 * 2; /* of 16 bytes */
        begin_product(scores, describe(q + panel) + column, describe(k + panel) + column, depth > 0,
                      typename TILE::E());
    }
    wgmma_commit();
}

/* Begins P.V: out += weights . 64 rows of v; 16 rows are 2048 bytes. */
template <typename TILE>
static __device__ __forceinline__ void
begin_pv(struct accumulator *out, const struct fragment *weights, const typename TILE::E *v) {
#pragma unroll
    for (int panel = 0; panel < TILE::PANELS; panel++) {
#pragma unroll
        for (int depth = 0; depth < TILE::KEYS / 16; depth++) {
            begin_product(out + 8 * panel, weights[depth],
                          describe(v + panel * TILE::PANEL) + depth * 128, typename TILE::E());
        }
    }
    wgmma_commit();
}

#endif

/*
 * The loop, for tile t of the keys, whose scores are there: softmax of t, while the products with
 * tile t - 1 end; barrier: K of t + 1 and V of t are there; scores of t + 1 and products with t
 * begin; copies of K of t + 2 and V of t + 1 begin.
 *
 * Heads of q, k and v begin 16-byte aligned; `aligned`: those of out do.
 */
template <typename TILE, bool MASKED, typename LIST>
static __global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS)
    hopper_attention(const struct attention_problem problem, const LIST list, bool aligned,
                     float *lse) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    dependent_launch_begin();
    typedef typename TILE::E E;
    extern __shared__ __align__(1024) unsigned char panel_bytes[];
    E *q = (E *)panel_bytes, *k = q + TILE::TILE, *v = k + TILE::K_TILES * TILE::TILE;
    const struct sequence<E> s = sequence_of_block<E>(problem, list, TILE::QUERIES);
    if (s.first >= s.T) {
        return;
    }
    int lane = threadIdx.x % 32, channels = (int)problem.HS;
    int end = keys_seen(s, problem.causal, min(s.first + TILE::QUERIES, s.T) - 1);
    int own = s.first + (int)threadIdx.x / 32 * 16; /* the warp's first query */
    int hidden_from = keys_seen(s, problem.causal, own);
    float factor = problem.scale * 1.4426950408889634f;
    const auto k_pieces = pieces_of<TILE::HS, TILE::THREADS>(s.k, problem.kv_stride, channels);
    const auto v_pieces = pieces_of<TILE::HS, TILE::THREADS>(s.v, problem.kv_stride, channels);
    E *piece = swizzled(q, k_pieces.row, (int)threadIdx.x % TILE::CHUNKS * 8);
    auto visible = [&](const struct key_tile &keys) {
        return MASKED ? keys.visible : low_bits(end - keys.tile * TILE::KEYS);
    };
    auto all_visible = [&](const struct key_tile &keys) {
        return MASKED ? keys.visible == low_bits(64) : (keys.tile + 1) * TILE::KEYS <= end;
    };
    auto load = [&](E *to, const auto &pieces, const struct key_tile &keys) {
        copy_rows<TILE::KEYS>(to + (piece - q), TILE::STEP, pieces, (size_t)keys.tile * TILE::KEYS,
                              all_visible(keys), [&]() { return visible(keys); });
    };
    auto seek_from = [&](int tile) {
        return seek<TILE::KEYS>(MASKED ? s.mask : NULL, tile, end, MASKED);
    };

    struct accumulator out[1][TILE::CHANNEL_TILES] = {}, scores[1][TILE::KEY_TILES];
    struct softmax_state rows[1][2] = {{{-INFINITY, 0.0f}, {-INFINITY, 0.0f}}};
    struct key_tile keys = seek_from(0);
    if (keys.tile * TILE::KEYS < end) {
        const auto q_pieces = pieces_of<TILE::HS, TILE::THREADS>(s.q, problem.q_stride, channels);
        int queries = s.T - s.first;
        copy_rows<TILE::QUERIES>(piece, TILE::STEP, q_pieces, (size_t)s.first, queries >= 64,
                                 [=]() { return low_bits(queries); });
        load(k, k_pieces, keys);
        cp_async_commit();
        struct key_tile next = seek_from(keys.tile + 1);
        load(v, v_pieces, keys);
        if (next.tile * TILE::KEYS < end) {
            load(k + TILE::TILE, k_pieces, next);
        }
        cp_async_commit();
        wait_for_tiles<1>();
        wgmma_fence();
        begin_scores<TILE>(scores[0], q, k);
        wait_products<0>(scores[0], 1);
        for (int k_stage = 0, v_stage = 0;; k_stage ^= 1) {
            if (!all_visible(keys) || (keys.tile + 1) * TILE::KEYS > hidden_from) {
                int t = own + lane / 4, first = keys.tile * TILE::KEYS + lane % 4 * 2;
                const int seen[2] = {keys_seen(s, problem.causal, t) - first,
                                     keys_seen(s, problem.causal, t + 8) - first};
                apply_mask<TILE>(scores[0], (MASKED ? keys.visible : ~0ull) >> lane % 4 * 2, seen);
            }
            float rescaling[1][2];
            bool grown = update_max<TILE>(scores, rows, factor, rescaling);
            softmax_weights<TILE>(scores, rows, factor);
            wait_for_tiles<0>();
            wait_products<0>(out[0], TILE::PANELS);
            if (grown) {
                rescale<TILE>(out, rescaling);
            }
            struct fragment weights[TILE::KEYS / 16];
            pack_weights<TILE>(weights, scores[0]);
            wgmma_fence();
            const E *values = v + v_stage * TILE::TILE;
            if (next.tile * TILE::KEYS >= end) {
                begin_pv<TILE>(out[0], weights, values);
                break;
            }
            begin_scores<TILE>(scores[0], q, k + (k_stage ^ 1) * TILE::TILE);
            begin_pv<TILE>(out[0], weights, values);
            keys = next;
            next = seek_from(keys.tile + 1);
            v_stage = v_stage == TILE::V_TILES - 1 ? 0 : v_stage + 1;
            load(v + v_stage * TILE::TILE, v_pieces, keys);
            if (next.tile * TILE::KEYS < end) {
                load(k + k_stage * TILE::TILE, k_pieces, next);
            }
            cp_async_commit();
            wait_products<1>(scores[0], 1);
        }
        wait_products<0>(out[0], TILE::PANELS);
    }
    store_rows<TILE>(s, problem.out_stride, own, out[0], rows[0], channels, aligned,
                     [=](int r, int c) { /* the warp's queries lay there */
                                         return swizzled(q, own - s.first + r, c);
                     });
    if (lse != NULL) {
        store_lse_rows(lse_of_head(lse, s, problem), problem.NH, own, s.T, rows[0]);
    }
#endif
}

/* One launch; sequence_of_block() says how blocks are numbered. */
template <typename TILE, bool MASKED, typename LIST>
static enum status launch_hopper_blocks(const struct attention_problem *p, float *lse,
                                        const LIST &list, unsigned blocks, device_stream stream,
                                        struct error *error) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(hopper_attention<TILE, MASKED, LIST>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention: %s", cudaGetErrorString(allowed));
    }
    static const unsigned multiprocessors = (unsigned)gpu_limits().multiprocessors;
    if (blocks < multiprocessors) { /* a graph of short kernels is slower with early launches */
        hopper_attention<TILE, MASKED, LIST>
            <<<blocks, TILE::THREADS, TILE::BYTES, stream>>>(*p, list, out_aligned(p), lse);
    } else {
        launch_dependent<hopper_attention<TILE, MASKED, LIST>>(
            blocks, TILE::THREADS, TILE::BYTES, stream, *p, list, out_aligned(p), lse);
    }
    return device_launched("hopper_attention", error);
}

template <typename TILE>
static enum status launch_hopper(const struct attention_problem *p, float *lse,
                                 device_stream stream, struct error *error) {
    if (p->starts != NULL) {
        auto launch = [&](const struct tile_list &list) {
            return launch_hopper_blocks<TILE, false>(p, lse, list, list.count * (unsigned)p->NH,
                                                     stream, error);
        };
        return launch_lists(p, TILE::QUERIES, launch, error);
    }
    unsigned blocks = 0;
    TRY(count_blocks(p, TILE::QUERIES, &blocks, error));
    if (blocks == 0) {
        return STATUS_OK;
    }
    return p->mask != NULL
               ? launch_hopper_blocks<TILE, true>(p, lse, no_list(), blocks, stream, error)
               : launch_hopper_blocks<TILE, false>(p, lse, no_list(), blocks, stream, error);
}

#endif
