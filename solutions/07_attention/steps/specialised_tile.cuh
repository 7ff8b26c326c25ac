/**
 * @file specialised_tile.cuh
 * @brief The fp16 and bf16 kernel of step v7: a producer warp brings K and V by TMA, consumer
 * warpgroups take turns at the tensor cores.
 *
 * Each consumer warpgroup has 64 queries, and all of them use the same tiles of K and V. In a turn
 * a warpgroup begins the scores of its next tile and P.V of this one, and passes the turn on. Its
 * softmax then runs under the other ones' products (ping-pong), and under its own P.V.
 *
 * The block is persistent: one a multiprocessor, which takes item after item (a head's queries, 64
 * a warpgroup). The producer copies the next item's queries and first keys while this one ends.
 *
 * A copy of whole tiles also brings rows behind a sequence's end: other sequences' rows, which may
 * be NaN. Scores of these keys are masked; their rows of V the producer warp sets to zero before
 * the consumers see them, as 0 * NaN would be NaN.
 *
 * Heads have 64 or 128 channels and begin 16-byte aligned. Compiled for anything but sm_90a the
 * kernel is empty: see hopper_code().
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_TILE_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_TILE_CUH_

#include "labs/12_tensor_cores/given/tensor_map.h"
#include "solutions/07_attention/steps/warpgroup.cuh"
#include "solutions/07_attention/steps/work_items.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/mbarrier.cuh"
#endif

/* Sizes of the kernel for heads of HS_ channels; in elements. Three consumer warpgroups where the
   registers allow it: sums of 64 rows by 128 channels leave room for two. */
template <typename E_, int HS_> struct specialised_tile {
    typedef E_ E;
    static constexpr int HS = HS_, KEYS = 128;
    static constexpr int GROUPS = HS == 64 ? 3 : 2, GROUP = 128, THREADS = (GROUPS + 1) * GROUP;
    /* Of a thread, in multiples of 8: together those of a launch, 4 * 128 or 3 * 168. */
    static constexpr int CONSUMER_REGISTERS = GROUPS == 3 ? 160 : 232;
    static constexpr int PRODUCER_REGISTERS = GROUPS == 3 ? 32 : 40;
    static constexpr int GROUP_QUERIES = 64, QUERIES = GROUPS * GROUP_QUERIES;
    static constexpr int M_TILES = 1, KEY_TILES = KEYS / 8, CHANNEL_TILES = HS / 8;
    static constexpr int PANELS = HS / 64; /* of 64 channels */
    static constexpr int DEPTH = HS / 16;  /* of the first product, in wgmmas */
    static constexpr int KEY_PANEL = KEYS * 64;
    static constexpr int Q = GROUP_QUERIES * HS, Q_STAGES = 2; /* of a warpgroup */
    static constexpr int TILE = KEYS * HS;                     /* of K or of V */
    static constexpr int FIT = (int)((226 * 1024 / sizeof(E) - GROUPS * Q_STAGES * Q) / (2 * TILE));
    static constexpr int STAGES = FIT < 4 ? FIT : 4; /* of each */
    static constexpr int ELEMENTS = GROUPS * Q_STAGES * Q + 2 * STAGES * TILE;
    static constexpr size_t BYTES = ELEMENTS * sizeof(E) + 1024; /* 1024: to align */
};

/* The TMA's descriptions of all tokens of q, k and v. */
struct attention_maps {
    CUtensorMap q, k, v;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Barriers of a block. "full": the copy is there; "empty": it has been read. */
template <typename TILE> struct attention_barriers {
    uint64_t q_full[TILE::Q_STAGES][TILE::GROUPS], q_empty[TILE::Q_STAGES][TILE::GROUPS];
    uint64_t k_full[TILE::STAGES], k_empty[TILE::STAGES];
    uint64_t v_full[TILE::STAGES], v_empty[TILE::STAGES];
    uint64_t landed;             /* a tile of V that the producer is to change */
    uint64_t turn[TILE::GROUPS]; /* at the tensor cores */
};

/* Tiles in shared memory. */
template <typename TILE> struct attention_tiles {
    typename TILE::E *q, *k, *v;

    /* The queries of a warpgroup. */
    __device__ __forceinline__ typename TILE::E *queries(unsigned stage, int group) const {
        return q + (stage * TILE::GROUPS + group) * TILE::Q;
    }
};

/* A stage of a ring, and the parity of its barriers' phase. */
template <int STAGES> struct ring {
    unsigned stage, parity;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <typename TILE>
static __device__ __forceinline__ void init_barriers(struct attention_barriers<TILE> &b) {
    constexpr unsigned WARPS = TILE::GROUP / 32;
    for (int stage = 0; stage < TILE::Q_STAGES; stage++) {
        for (int group = 0; group < TILE::GROUPS; group++) {
            mbarrier_init(shared_address(&b.q_full[stage][group]), 1);
            mbarrier_init(shared_address(&b.q_empty[stage][group]), WARPS);
        }
    }
    for (int stage = 0; stage < TILE::STAGES; stage++) {
        mbarrier_init(shared_address(&b.k_full[stage]), 1);
        mbarrier_init(shared_address(&b.v_full[stage]), 1);
        mbarrier_init(shared_address(&b.k_empty[stage]), TILE::GROUPS * WARPS);
        mbarrier_init(shared_address(&b.v_empty[stage]), TILE::GROUPS * WARPS);
    }
    mbarrier_init(shared_address(&b.landed), 1);
    for (int group = 0; group < TILE::GROUPS; group++) {
        mbarrier_init(shared_address(&b.turn[group]), WARPS);
    }
    mbarrier_init_fence();
}

/* One arrival a warp, after all its lanes are done. */
static __device__ __forceinline__ void arrive(uint64_t *barrier) {
    if (threadIdx.x % 32 == 0) {
        mbarrier_arrive(shared_address(barrier));
    }
}

/* ---- The producer, one warp ---- */

/* Starts the copy of `rows` rows and HS channels, which completes at `barrier`. One lane. */
template <typename TILE>
static __device__ __forceinline__ void copy_tile(typename TILE::E *to, const CUtensorMap *map,
                                                 int row, int column, int rows, uint64_t *barrier) {
    unsigned bytes = (unsigned)(rows * TILE::HS * (int)sizeof(typename TILE::E));
    mbarrier_arrive_expect_tx(shared_address(barrier), bytes);
#pragma unroll
    for (int panel = 0; panel < TILE::PANELS; panel++) {
        tma_load_2d(shared_address(to + panel * rows * 64), map, column + panel * 64, row,
                    shared_address(barrier));
    }
}

/* Zeros in the rows of a tile of V from `first` on. The whole warp. */
template <typename TILE>
static __device__ __forceinline__ void clear_rows(typename TILE::E *v, int first) {
    constexpr int PIECES = 64 / 8; /* of a panel's row, 16 bytes each */
    int count = (TILE::KEYS - first) * PIECES;
    for (int panel = 0; panel < TILE::PANELS; panel++) {
        uint4 *piece = (uint4 *)(v + panel * TILE::KEY_PANEL + first * 64);
        for (int i = threadIdx.x % 32; i < count; i += 32) {
            piece[i] = make_uint4(0, 0, 0, 0);
        }
    }
}

/* What both roles know. */
template <typename TILE, typename LIST> struct attention_block {
    const struct attention_problem &problem;
    const LIST &list;
    const struct work_order &order;
    const struct attention_tiles<TILE> &tiles;
    struct attention_barriers<TILE> &barriers;

    /* work(item, number of keys) for each of the block's items. */
    template <typename WORK> __device__ __forceinline__ void for_items(WORK work) const {
        for (unsigned round = 0;; round++) {
            unsigned index = index_of_round(round);
            if (index >= order.items) {
                return;
            }
            const auto item =
                work_item_at<typename TILE::E>(problem, list, order, index, TILE::QUERIES);
            int last = min(item.s.first + TILE::QUERIES, item.s.T) - 1;
            work(item, keys_seen(item.s, problem.causal, last));
        }
    }
};

/* Starts the copies of all items, as stages become empty. */
template <typename TILE, typename LIST>
static __device__ __forceinline__ void produce(const struct attention_maps &maps,
                                               const struct attention_block<TILE, LIST> &block) {
    typedef typename TILE::E E;
    struct attention_barriers<TILE> &b = block.barriers;
    struct ring<TILE::Q_STAGES> q = {
        0, 0
    };
    struct ring<TILE::STAGES> kv = {
        0, 0
    };
    unsigned landings = 0;
    bool first_lane = threadIdx.x % 32 == 0;
    block.for_items([&](const struct work_item<E> &item, int end) {
        for (int group = 0; group < TILE::GROUPS; group++) {
            mbarrier_wait(shared_address(&b.q_empty[q.stage][group]), q.parity ^ 1);
            if (first_lane) {
                copy_tile<TILE>(block.tiles.queries(q.stage, group), &maps.q,
                                item.q_token + item.s.first + group * TILE::GROUP_QUERIES,
                                item.q_column, TILE::GROUP_QUERIES, &b.q_full[q.stage][group]);
            }
        }
        q.advance();
        for (int key = 0; key < end; key += TILE::KEYS) {
            E *k = block.tiles.k + kv.stage * TILE::TILE,
              *v = block.tiles.v + kv.stage * TILE::TILE;
            bool whole = key + TILE::KEYS <= item.s.S;
            mbarrier_wait(shared_address(&b.k_empty[kv.stage]), kv.parity ^ 1);
            if (first_lane) {
                copy_tile<TILE>(k, &maps.k, item.kv_token + key, item.kv_column, TILE::KEYS,
                                &b.k_full[kv.stage]);
            }
            mbarrier_wait(shared_address(&b.v_empty[kv.stage]), kv.parity ^ 1);
            if (first_lane) {
                copy_tile<TILE>(v, &maps.v, item.kv_token + key, item.kv_column, TILE::KEYS,
                                whole ? &b.v_full[kv.stage] : &b.landed);
            }
            if (!whole) {
                mbarrier_wait(shared_address(&b.landed), landings++ % 2);
                clear_rows<TILE>(v, item.s.S - key);
                fence_proxy_async();
                __syncwarp();
                arrive(&b.v_full[kv.stage]);
            }
            kv.advance();
        }
    });
}

/* ---- A consumer warpgroup ---- */

/* Begins scores = 64 queries . KEYS keys, a group of wgmma. */
template <typename TILE>
static __device__ __forceinline__ void begin_tile_scores(struct accumulator *scores,
                                                         const typename TILE::E *q,
                                                         const typename TILE::E *k) {
#pragma unroll
    for (int depth = 0; depth < TILE::DEPTH; depth++) {
        int panel = depth / 4, column = depth % 4 * 2; /* of 16 bytes */
        uint64_t a = wgmma_descriptor<false>(shared_address(q + panel * 64 * 64)) + column;
        uint64_t b = wgmma_descriptor<false>(shared_address(k + panel * TILE::KEY_PANEL)) + column;
        wgmma<TILE::KEYS>::template run<0, 0>(scores[0].x, a, b, depth > 0, typename TILE::E());
    }
    wgmma_commit();
}

/* Begins P.V: out += weights . KEYS rows of v, a group of wgmma; 16 rows are 2048 bytes. */
template <typename TILE>
static __device__ __forceinline__ void
begin_tile_pv(struct accumulator *out, const struct fragment *weights, const typename TILE::E *v) {
#pragma unroll
    for (int depth = 0; depth < TILE::KEYS / 16; depth++) {
        if constexpr (TILE::PANELS == 2) {
            begin_wide_product(out, weights[depth], describe(v, TILE::KEY_PANEL) + depth * 128,
                               typename TILE::E());
        } else {
            begin_product(out, weights[depth], describe(v) + depth * 128, typename TILE::E());
        }
    }
    wgmma_commit();
}

/* Masks what the two rows of a thread do not see; seen[r]: number of keys from the tile's first key
   of this thread on. */
template <typename TILE>
static __device__ __forceinline__ void mask_unseen(struct accumulator *scores, const int *seen) {
#pragma unroll
    for (int n = 0; n < TILE::KEY_TILES; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (8 * n + i % 2 >= seen[i / 2]) {
                scores[n].x[i] = -INFINITY;
            }
        }
    }
}

/* What a consumer keeps from tile to tile. */
template <typename TILE> struct consumer {
    struct attention_barriers<TILE> &b;
    int group;
    unsigned turns; /* parity of its next turn */
    struct ring<TILE::Q_STAGES> q;
    struct ring<TILE::STAGES> k, v;

    __device__ __forceinline__ void take_turn() {
        mbarrier_wait(shared_address(&b.turn[group]), turns);
        turns ^= 1;
        wgmma_fence();
    }

    __device__ __forceinline__ void pass_turn() {
        arrive(&b.turn[(group + 1) % TILE::GROUPS]);
    }

    __device__ __forceinline__ void await_k() {
        mbarrier_wait(shared_address(&b.k_full[k.stage]), k.parity);
    }

    __device__ __forceinline__ void await_v() {
        mbarrier_wait(shared_address(&b.v_full[v.stage]), v.parity);
    }

    __device__ __forceinline__ void release_k() {
        arrive(&b.k_empty[k.stage]);
        k.advance();
    }

    __device__ __forceinline__ void release_v() {
        arrive(&b.v_empty[v.stage]);
        v.advance();
    }
};

/* The outputs of one warpgroup's 64 queries, out and rows; q: where the queries lie. */
template <typename TILE, typename LIST>
static __device__ __forceinline__ void
attend(const struct attention_block<TILE, LIST> &block, struct consumer<TILE> &c,
       const struct sequence<typename TILE::E> &s, int own, int end, const typename TILE::E *q,
       struct accumulator (*out)[TILE::CHANNEL_TILES], struct softmax_state (*rows)[2]) {
    const struct attention_problem &p = block.problem;
    struct accumulator scores[1][TILE::KEY_TILES];
    struct fragment weights[TILE::KEYS / 16];
    int row = own + (int)threadIdx.x % 32 / 4, column = (int)threadIdx.x % 4 * 2;
    int hidden_from = keys_seen(s, p.causal, own);
    float factor = p.scale * 1.4426950408889634f, rescaling[1][2];
    /* Scores of the tile from `key` on become weights. @return whether to rescale */
    auto soften = [&](int key) {
        if (key + TILE::KEYS > hidden_from) {
            const int seen[2] = {keys_seen(s, p.causal, row) - key - column,
                                 keys_seen(s, p.causal, row + 8) - key - column};
            mask_unseen<TILE>(scores[0], seen);
        }
        bool grown = update_max<TILE>(scores, rows, factor, rescaling);
        softmax_weights<TILE>(scores, rows, factor);
        return grown;
    };

    c.await_k();
    c.take_turn();
    begin_tile_scores<TILE>(scores[0], q, block.tiles.k + c.k.stage * TILE::TILE);
    c.pass_turn();
    wgmma_wait<0>();
    wgmma_keep_order<4 * TILE::KEY_TILES>(scores[0][0].x);
    c.release_k();
    soften(0); /* the outputs are 0 */
    pack_weights<TILE>(weights, scores[0]);
    for (int key = TILE::KEYS; key < end; key += TILE::KEYS) {
        c.await_k();
        c.await_v();
        c.take_turn();
        begin_tile_scores<TILE>(scores[0], q, block.tiles.k + c.k.stage * TILE::TILE);
        begin_tile_pv<TILE>(out[0], weights, block.tiles.v + c.v.stage * TILE::TILE);
        c.pass_turn();
        wgmma_wait<1>();
        wgmma_keep_order<4 * TILE::KEY_TILES>(scores[0][0].x);
        c.release_k();
        bool grown = soften(key);
        wgmma_wait<0>();
        wgmma_keep_order<4 * TILE::CHANNEL_TILES>(out[0][0].x);
        c.release_v();
        if (grown) {
            rescale<TILE>(out, rescaling);
        }
        pack_weights<TILE>(weights, scores[0]);
    }
    c.await_v();
    c.take_turn();
    begin_tile_pv<TILE>(out[0], weights, block.tiles.v + c.v.stage * TILE::TILE);
    c.pass_turn();
    wgmma_wait<0>();
    wgmma_keep_order<4 * TILE::CHANNEL_TILES>(out[0][0].x);
    c.release_v();
}

template <typename TILE, typename LIST>
static __device__ __forceinline__ void consume(const struct attention_block<TILE, LIST> &block,
                                               bool aligned, float *lse) {
    typedef typename TILE::E E;
    const struct attention_problem &p = block.problem;
    int group = (int)threadIdx.x / TILE::GROUP;
    /* The first turn is that of warpgroup 0: its barrier's phase before the first is complete. */
    struct consumer<TILE> c = {
        block.barriers, group, group == 0 ? 1u : 0u, {0, 0}, {0, 0}, {
            0, 0
        }
    };
    block.for_items([&](const struct work_item<E> &item, int end) {
        struct accumulator out[1][TILE::CHANNEL_TILES] = {};
        struct softmax_state rows[1][2] = {{{-INFINITY, 0.0f}, {-INFINITY, 0.0f}}};
        E *q = block.tiles.queries(c.q.stage, group);
        int first = item.s.first + group * TILE::GROUP_QUERIES;
        int own = first + (int)threadIdx.x % TILE::GROUP / 32 * 16; /* the warp's first query */
        mbarrier_wait(shared_address(&c.b.q_full[c.q.stage][group]), c.q.parity);
        attend<TILE>(block, c, item.s, own, end, q, out, rows);
        store_rows<TILE>(item.s, p.out_stride, own, out[0], rows[0], TILE::HS, aligned,
                         [=](int r, int channel) { return swizzled(q, own - first + r, channel); });
        if (lse != NULL) {
            store_lse_rows(lse_of_head(lse, item.s, p), p.NH, own, item.s.T, rows[0]);
        }
        fence_proxy_async(); /* this place was written as plain memory; next the TMA writes it */
        __syncwarp();
        arrive(&c.b.q_empty[c.q.stage][group]);
        c.q.advance();
    });
}

#endif

template <typename TILE, typename LIST>
static __global__ void __launch_bounds__(TILE::THREADS, 1)
    specialised_attention(const __grid_constant__ struct attention_maps maps,
                          const __grid_constant__ struct attention_problem problem,
                          const __grid_constant__ LIST list, const struct work_order order,
                          bool aligned, float *lse) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef typename TILE::E E;
    extern __shared__ unsigned char tile_bytes[];
    __shared__ struct attention_barriers<TILE> barriers;
    E *q = (E *)(tile_bytes + (1024 - shared_address(tile_bytes) % 1024) % 1024);
    E *k = q + TILE::GROUPS * TILE::Q_STAGES * TILE::Q;
    const struct attention_tiles<TILE> tiles = { q, k, k + TILE::STAGES *TILE::TILE };
    const struct attention_block<TILE, LIST> block = { problem, list, order, tiles, barriers };
    if (threadIdx.x == 0) {
        init_barriers<TILE>(barriers);
    }
    __syncthreads();
    if (threadIdx.x < TILE::GROUPS * TILE::GROUP) {
        warpgroup_reg_alloc<TILE::CONSUMER_REGISTERS>();
        consume<TILE>(block, aligned, lse);
    } else {
        warpgroup_reg_dealloc<TILE::PRODUCER_REGISTERS>();
        if (threadIdx.x < TILE::GROUPS * TILE::GROUP + 32) {
            produce<TILE>(maps, block);
        }
    }
#endif
}

/* ---- Host ---- */

/* q, k or v as a matrix (tokens, stride) in boxes of `rows` tokens and 64 channels. Its rows are as
   long as the stride, beyond the heads: no box is there. */
static inline enum status describe_tokens(CUtensorMap *map, const struct attention_problem *p,
                                          const void *data, size_t tokens, size_t stride, int rows,
                                          struct error *error) {
    const struct tensor_map_matrix matrix = {p->dtype,       data, tokens, stride,
                                             (unsigned)rows, 64,   128};
    return tensor_map_create(map, &matrix, error);
}

template <typename TILE>
static enum status describe_problem(struct attention_maps *maps, const struct attention_problem *p,
                                    struct error *error) {
    size_t q_tokens = p->starts != NULL ? (size_t)p->host_starts[p->B] : p->B * p->T;
    size_t kv_tokens = p->starts != NULL ? q_tokens : p->B * p->S;
    TRY(describe_tokens(&maps->q, p, p->q, q_tokens, p->q_stride, TILE::GROUP_QUERIES, error));
    TRY(describe_tokens(&maps->k, p, p->k, kv_tokens, p->kv_stride, TILE::KEYS, error));
    return describe_tokens(&maps->v, p, p->v, kv_tokens, p->kv_stride, TILE::KEYS, error);
}

template <typename TILE, typename LIST>
static enum status launch_items(const struct attention_problem *p, float *lse,
                                const struct attention_maps &maps, const LIST &list,
                                const struct work_order &order, unsigned most_blocks,
                                device_stream stream, struct error *error) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(specialised_attention<TILE, LIST>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention: %s", cudaGetErrorString(allowed));
    }
    unsigned blocks = order.items < most_blocks ? order.items : most_blocks;
    specialised_attention<TILE, LIST><<<blocks, TILE::THREADS, TILE::BYTES, stream>>>(
        maps, *p, list, order, out_aligned(p), lse);
    return device_launched("specialised_attention", error);
}

/* @param most_blocks of the launch: those that run at once */
template <typename TILE>
static enum status launch_specialised(const struct attention_problem *p, float *lse,
                                      unsigned most_blocks, device_stream stream,
                                      struct error *error) {
    struct attention_maps maps;
    TRY(describe_problem<TILE>(&maps, p, error));
    if (p->starts != NULL) {
        auto launch = [&](const struct tile_list &list) {
            const struct work_order order = {list.count * (unsigned)p->NH, 0, 0};
            return launch_items<TILE>(p, lse, maps, list, order, most_blocks, stream, error);
        };
        return launch_lists(p, TILE::QUERIES, launch, error);
    }
    struct work_order order = {0, (unsigned)((p->T + TILE::QUERIES - 1) / TILE::QUERIES), 1};
    TRY(count_blocks(p, TILE::QUERIES, &order.items, error));
    if (p->causal) {
        static const size_t l2_bytes = (size_t)gpu_attribute(cudaDevAttrL2CacheSize);
        order.heads_together = count_heads_together(p, l2_bytes);
    }
    return launch_items<TILE>(p, lse, maps, no_list(), order, most_blocks, stream, error);
}

#endif
