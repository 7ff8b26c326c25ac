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

#endif
