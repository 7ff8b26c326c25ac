/**
 * @file specialised_consumer.cuh
 * @brief A consumer warpgroup of v7's kernel: both products and the softmax of 64 queries.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_CONSUMER_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_CONSUMER_CUH_

#include "solutions/07_attention/steps/specialised_block.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

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

    /* To the next one of the first `groups` warpgroups, those that take this turn. */
    __device__ __forceinline__ void pass_turn(int groups) {
        int next = group + 1;
        arrive(&b.turn[next < groups ? next : 0]);
    }

    __device__ __forceinline__ void await_q(const struct ring<TILE::Q_STAGES> &at) {
        mbarrier_wait(shared_address(&b.q_full[at.stage][group]), at.parity);
    }

    __device__ __forceinline__ void release_q() {
        __syncwarp();
        arrive(&b.q_empty[q.stage][group]);
        q.advance();
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

/* A warpgroup's share of an item. */
template <typename TILE> struct consumer_item {
    struct block_item<typename TILE::E> of;
    int own;     /* the warp's first query */
    bool active; /* whether the warpgroup has queries */
};

/* @return false: the block has no item in this round */
template <typename TILE, typename LIST>
static __device__ __forceinline__ bool find_own(const struct attention_block<TILE, LIST> &block,
                                                const struct consumer<TILE> &c, unsigned round,
                                                struct consumer_item<TILE> *item) {
    bool found = block.find(round, &item->of);
    item->own = item->of.work.s.first + c.group * TILE::GROUP_QUERIES +
                (int)threadIdx.x % TILE::GROUP / 32 * 16;
    item->active = found && c.group < item->of.groups;
    return found;
}

/* Scores of the tile from `key` on become weights. @return whether to rescale the outputs */
template <typename TILE>
static __device__ __forceinline__ bool
soften(const struct attention_problem &p, const struct consumer_item<TILE> &item, int key,
       struct accumulator (*scores)[TILE::KEY_TILES], struct softmax_state (*rows)[2],
       float (*rescaling)[2]) {
    const struct sequence<typename TILE::E> &s = item.of.work.s;
    float factor = p.scale * 1.4426950408889634f;
    if (key + TILE::KEYS > keys_seen(s, p.causal, item.own)) {
        int row = item.own + (int)threadIdx.x % 32 / 4, column = (int)threadIdx.x % 4 * 2;
        const int seen[2] = {keys_seen(s, p.causal, row) - key - column,
                             keys_seen(s, p.causal, row + 8) - key - column};
        mask_unseen<TILE>(scores[0], seen);
    }
    bool grown = update_max<TILE>(scores, rows, factor, rescaling);
    softmax_weights<TILE>(scores, rows, factor);
    return grown;
}

/* An item's tiles of keys but for the last P.V; the first tile's scores are in flight. */
template <typename TILE, typename LIST>
static __device__ __forceinline__ void
attend(const struct attention_block<TILE, LIST> &block, struct consumer<TILE> &c,
       const struct consumer_item<TILE> &item, struct accumulator (*scores)[TILE::KEY_TILES],
       struct fragment *weights, struct accumulator (*out)[TILE::CHANNEL_TILES],
       struct softmax_state (*rows)[2]) {
    const struct attention_problem &p = block.problem;
    const typename TILE::E *q = block.tiles.queries(c.q.stage, c.group);
    float rescaling[1][2];
    wgmma_wait<0>();
    wgmma_keep_order<4 * TILE::KEY_TILES>(scores[0][0].x);
    c.release_k();
    soften<TILE>(p, item, 0, scores, rows, rescaling); /* the outputs are 0 */
    pack_weights<TILE>(weights, scores[0]);
    for (int key = TILE::KEYS; key < item.of.keys; key += TILE::KEYS) {
        c.await_k();
        c.await_v();
        c.take_turn();
        begin_tile_scores<TILE>(scores[0], q, block.tiles.k + c.k.stage * TILE::TILE);
        begin_tile_pv<TILE>(out[0], weights, block.tiles.v + c.v.stage * TILE::TILE);
        c.pass_turn(item.of.groups);
        wgmma_wait<1>();
        wgmma_keep_order<4 * TILE::KEY_TILES>(scores[0][0].x);
        c.release_k();
        bool grown = soften<TILE>(p, item, key, scores, rows, rescaling);
        wgmma_wait<0>();
        wgmma_keep_order<4 * TILE::CHANNEL_TILES>(out[0][0].x);
        c.release_v();
        if (grown) {
            rescale<TILE>(out, rescaling);
        }
        pack_weights<TILE>(weights, scores[0]);
    }
}

/* An item of which the warpgroup has no query: gives back its places as they are filled. */
template <typename TILE>
static __device__ __forceinline__ void pass_over(struct consumer<TILE> &c, int keys) {
    c.await_q(c.q);
    c.release_q();
    for (int key = 0; key < keys; key += TILE::KEYS) {
        c.await_k();
        c.release_k();
        c.await_v();
        c.release_v();
    }
}

template <typename TILE>
static __device__ __forceinline__ void clear(struct accumulator (*out)[TILE::CHANNEL_TILES],
                                             struct softmax_state (*rows)[2]) {
#pragma unroll
    for (int i = 0; i < 4 * TILE::CHANNEL_TILES; i++) {
        out[0][i / 4].x[i % 4] = 0.0f;
    }
    for (int r = 0; r < 2; r++) {
        rows[0][r].base = -INFINITY;
        rows[0][r].sum = 0.0f;
    }
}

/* Stores an item's outputs by way of its queries' place. */
template <typename TILE, typename LIST>
static __device__ __forceinline__ void
store_item(const struct attention_block<TILE, LIST> &block, const struct consumer<TILE> &c,
           const struct consumer_item<TILE> &item, const struct accumulator *out,
           const struct softmax_state *rows, bool aligned, float *lse) {
    const struct sequence<typename TILE::E> &s = item.of.work.s;
    const struct attention_problem &p = block.problem;
    typename TILE::E *q = block.tiles.queries(c.q.stage, c.group);
    int warp_row = (int)threadIdx.x % TILE::GROUP / 32 * 16;
    store_rows<TILE>(s, p.out_stride, item.own, out, rows, TILE::HS, aligned,
                     [=](int r, int channel) { return swizzled(q, warp_row + r, channel); });
    if (lse != NULL) {
        store_lse_rows(lse_of_head(lse, s, p), p.NH, item.own, s.T, rows);
    }
    fence_proxy_async(); /* this place was written as plain memory; next the TMA writes it */
}

template <typename TILE, typename LIST>
static __device__ __forceinline__ void consume(const struct attention_block<TILE, LIST> &block,
                                               bool aligned, float *lse) {
    int group = (int)threadIdx.x / TILE::GROUP;
    /* The first turn is that of warpgroup 0: its barrier's phase before the first is complete. */
    struct consumer<TILE> c = {
        block.barriers, group, group == 0 ? 1u : 0u, {0, 0}, {0, 0}, {
            0, 0
        }
    };
    struct consumer_item<TILE> item;
    for (unsigned round = 0; find_own<TILE>(block, c, round, &item); round++) {
        if (!item.active) {
            pass_over<TILE>(c, item.of.keys);
            continue;
        }
        struct accumulator scores[1][TILE::KEY_TILES], out[1][TILE::CHANNEL_TILES] = {};
        struct fragment weights[TILE::KEYS / 16];
        struct softmax_state rows[1][2] = {{{-INFINITY, 0.0f}, {-INFINITY, 0.0f}}};
        c.await_q(c.q);
        c.await_k();
        c.take_turn();
        begin_tile_scores<TILE>(scores[0], block.tiles.queries(c.q.stage, group),
                                block.tiles.k + c.k.stage * TILE::TILE);
        c.pass_turn(item.of.groups);
        attend<TILE>(block, c, item, scores, weights, out, rows);
        c.await_v();
        c.take_turn();
        begin_tile_pv<TILE>(out[0], weights, block.tiles.v + c.v.stage * TILE::TILE);
        c.pass_turn(item.of.groups);
        wgmma_wait<0>();
        wgmma_keep_order<4 * TILE::CHANNEL_TILES>(out[0][0].x);
        c.release_v();
        store_item<TILE>(block, c, item, out[0], rows[0], aligned, lse);
        c.release_q();
    }
}

#endif

#endif
