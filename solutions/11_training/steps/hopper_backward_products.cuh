/**
 * @file hopper_backward_products.cuh
 * @brief A consumer warpgroup of v6's kernel: 64 keys, the five products with each tile of queries.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_PRODUCTS_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_PRODUCTS_CUH_

#include "solutions/11_training/steps/hopper_backward_block.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A barrier of `threads` threads, one of 1 to 15. */
static __device__ __forceinline__ void named_barrier(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* Begins sums = 64 own rows . QUERIES other rows, a group of wgmma. */
template <typename TILE>
static __device__ __forceinline__ void begin_dot_rows(float *sums, const bf16 *own,
                                                      const bf16 *other) {
#pragma unroll
    for (int depth = 0; depth < TILE::HS / 16; depth++) {
        int panel = depth / 4, column = depth % 4 * 2; /* of 16 bytes */
        uint64_t a =
            wgmma_descriptor<false>(shared_address(own + panel * TILE::KEYS * 64)) + column;
        uint64_t b =
            wgmma_descriptor<false>(shared_address(other + panel * TILE::QUERIES * 64)) + column;
        wgmma<TILE::QUERIES>::template run<0, 0>(sums, a, b, depth > 0, bf16());
    }
    wgmma_commit();
}

/* Begins sums += weights (64 keys, QUERIES) . rows (QUERIES, HS), a group of wgmma. */
template <typename TILE>
static __device__ __forceinline__ void
begin_weighted_sum(float *sums, const struct fragment *weights, const bf16 *rows) {
    uint64_t b = wgmma_descriptor<true>(shared_address(rows));
#pragma unroll
    for (int depth = 0; depth < TILE::QUERIES / 16; depth++) {
        wgmma_registers<TILE::HS>::template run<1>(sums, weights[depth].x, b + depth * 128, bf16());
    }
    wgmma_commit();
}

/* Begins dq = ds . K: of 64 queries all channels, or of heads of 128 all 64 queries and 64
   channels. A group of wgmma. */
template <typename TILE>
static __device__ __forceinline__ void begin_dq(float *dq, const bf16 *ds, const bf16 *k,
                                                int group) {
    bool by_queries = TILE::QUERY_PANELS == 2;
    const bf16 *left = by_queries ? ds + group * TILE::KEYS * 64 : ds;
    const bf16 *right = by_queries ? k : k + group * TILE::KEYS * 64;
    uint64_t a = wgmma_descriptor<true>(shared_address(left));
    uint64_t b = wgmma_descriptor<true>(shared_address(right));
#pragma unroll
    for (int depth = 0; depth < TILE::KEYS / 16; depth++) {
        wgmma<64>::run<1, 1>(dq, a + depth * 128, b + depth * 128, depth > 0, bf16());
    }
    wgmma_commit();
}

/* Accumulators, rounded, as a left operand of registers. */
template <int DEPTH>
static __device__ __forceinline__ void round_sums(struct fragment *to, const float *sums) {
#pragma unroll
    for (int i = 0; i < 4 * DEPTH; i++) {
        to[i / 4].x[i % 4] = pack(sums[2 * i], sums[2 * i + 1], bf16());
    }
}

/* Scores of pairs that are not visible become -infinity: keys behind the sequence's end, and of
   causal sequences keys behind the query. key: the thread's first; query: the tile's first. */
template <typename TILE>
static __device__ __forceinline__ void mask_scores(float *scores, int key, int query, int T,
                                                   bool causal) {
    int column = query + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < TILE::QUERIES / 2; i++) {
        int k = key + i / 2 % 2 * 8, q = column + i / 4 * 8 + i % 2;
        if (k >= T || (causal && k > q)) {
            scores[i] = -INFINITY;
        }
    }
}

/* scores become p; lse: of the tile's queries */
template <typename TILE>
static __device__ __forceinline__ void compute_p(float *scores, const float *lse, float factor) {
    const float *column = lse + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < TILE::QUERIES / 8; n++) {
        float2 of = *(const float2 *)(column + 8 * n);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float &score = scores[4 * n + i];
            score = exp2_approx(score * factor - (i % 2 == 0 ? of.x : of.y));
        }
    }
}

/* dp becomes ds */
template <typename TILE>
static __device__ __forceinline__ void compute_ds(float *dp, const float *p, const float *delta) {
    const float *column = delta + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < TILE::QUERIES / 8; n++) {
        float2 of = *(const float2 *)(column + 8 * n);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            dp[4 * n + i] = p[4 * n + i] * (dp[4 * n + i] - (i % 2 == 0 ? of.x : of.y));
        }
    }
}

/* Stores ds of the warp's 16 keys, the first of which is `key` of the tile, as (KEYS, QUERIES). */
template <typename TILE>
static __device__ __forceinline__ void store_ds(bf16 *to, const struct fragment *ds, int key) {
    int lane = threadIdx.x % 32, row = key + lane % 16;
    unsigned line = shared_address(to + row * 64);
#pragma unroll
    for (int depth = 0; depth < TILE::QUERIES / 16; depth++) {
        int piece = depth % 4 * 2 + lane / 16;
        stmatrix_x4(line + (unsigned)(depth / 4 * TILE::KEYS * 128 + (piece ^ row % 8) * 16),
                    ds[depth]);
    }
}

/* Puts a warpgroup's dq into its place, in the order of the accumulators: piece i of all threads
   side by side. */
template <typename TILE>
static __device__ __forceinline__ void stage_dq(float *to, const float *dq, int group) {
    float4 *piece = (float4 *)to + group * 8 * TILE::GROUP + threadIdx.x % TILE::GROUP;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        piece[i * TILE::GROUP] =
            make_float4(dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
    }
}

/* Stores the warp's 16 rows of a gradient, the first of which is row `key` of the tile, by way of
   the warpgroup's own rows of `place`, which no product reads any more. */
template <typename TILE>
static __device__ __forceinline__ void store_gradient(bf16 *to, size_t stride, bf16 *place,
                                                      const float *sums, float factor, int key,
                                                      int rows) {
    int lane = threadIdx.x % 32;
    auto at = [&](int row, int channel) {
        return place + channel / 64 * TILE::KEYS * 64 + (key + row) * 64 +
               (channel / 8 % 8 ^ row % 8) * 8 + channel % 8;
    };
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TILE::HS / 4; i++) {
        int n = i / 2, half = i % 2; /* columns 8 n, rows 8 half */
        *(unsigned *)at(lane / 4 + 8 * half, 8 * n + lane % 4 * 2) =
            pack(sums[4 * n + 2 * half] * factor, sums[4 * n + 2 * half + 1] * factor, bf16());
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TILE::HS / 16; i++) {
        int piece = i * 32 + lane, row = piece / (TILE::HS / 8);
        int channel = piece % (TILE::HS / 8) * 8;
        if (row < rows) {
            *(uint4 *)(to + row * stride + channel) = *(const uint4 *)at(row, channel);
        }
    }
}

template <typename TILE>
static __device__ __forceinline__ void consume(const struct backward_block<TILE> &block) {
    constexpr int DEPTH = TILE::QUERIES / 16;
    const struct attention_backward_problem &p = block.p;
    const struct backward_tiles<TILE> &t = block.tiles;
    struct backward_barriers<TILE> &b = block.b;
    int group = (int)threadIdx.x / TILE::GROUP, warp_key = (int)threadIdx.x / 32 * 16;
    const bf16 *own_k = t.k + group * TILE::GROUP_KEYS * 64,
               *own_v = t.v + group * TILE::GROUP_KEYS * 64;
    float factor = p.scale * LOG2_E;
    unsigned items = 0, steps = 0;
    struct ring q = {0, 0};
    block.for_items([&](const struct backward_item &item) {
        float dk[TILE::HS / 2] = {}, dv[TILE::HS / 2] = {};
        mbarrier_wait(shared_address(&b.kv_full), items++ % 2);
        block.for_steps(item, [&](unsigned, int tile) {
            float scores[TILE::QUERIES / 2], dp[TILE::QUERIES / 2], dq[32];
            struct fragment weights[DEPTH], ds[DEPTH];
            const bf16 *q_tile = t.q + q.stage * TILE::Q, *dout_tile = t.dout + q.stage * TILE::Q;
            const float *lse = t.lse + q.stage * TILE::QUERIES;
            const float *delta = t.delta + q.stage * TILE::QUERIES;
            bf16 *ds_tile = t.ds + steps % 2 * TILE::DS;
            int own = item.first + group * TILE::GROUP_KEYS, query = tile * TILE::QUERIES;
            mbarrier_wait(shared_address(&b.q_full[q.stage]), q.parity);
            wgmma_fence();
            begin_dot_rows<TILE>(scores, own_k, q_tile);
            mbarrier_wait(shared_address(&b.dout_full[q.stage]), q.parity);
            begin_dot_rows<TILE>(dp, own_v, dout_tile);
            wgmma_wait<1>();
            wgmma_keep_order<TILE::QUERIES / 2>(scores);
            if (own + TILE::GROUP_KEYS > item.T ||
                (p.causal && own + TILE::GROUP_KEYS - 1 > query)) {
                mask_scores<TILE>(scores, item.first + warp_key + (int)threadIdx.x % 32 / 4, query,
                                  item.T, p.causal);
            }
            compute_p<TILE>(scores, lse, factor);
            round_sums<DEPTH>(weights, scores);
            wgmma_wait<0>();
            wgmma_keep_order<TILE::QUERIES / 2>(dp);
            wgmma_fence();
            begin_weighted_sum<TILE>(dv, weights, dout_tile);
            compute_ds<TILE>(dp, scores, delta);
            round_sums<DEPTH>(ds, dp);
            store_ds<TILE>(ds_tile, ds, warp_key);
            fence_proxy_async();
            named_barrier(1, TILE::CONSUMERS);
            wgmma_fence();
            begin_dq<TILE>(dq, ds_tile, t.k, group);
            begin_weighted_sum<TILE>(dk, ds, q_tile);
            wgmma_wait<1>();
            wgmma_keep_order<32>(dq);
            mbarrier_wait(shared_address(&b.dq_empty), steps % 2 ^ 1);
            stage_dq<TILE>(t.dq, dq, group);
            fence_proxy_async();
            arrive(&b.dq_full);
            wgmma_wait<0>();
            wgmma_keep_order<TILE::HS / 2>(dv);
            wgmma_keep_order<TILE::HS / 2>(dk);
            arrive(&b.empty[q.stage]);
            q.advance();
            steps++;
        });
        size_t row = (size_t)(item.start + item.first + warp_key);
        size_t to = row * p.kv_stride + item.head * (unsigned)TILE::HS;
        int rows = item.T - item.first - warp_key;
        named_barrier(2 + group, TILE::GROUP); /* all warps' products with own_v are done */
        store_gradient<TILE>((bf16 *)p.dv + to, p.kv_stride, t.v, dv, 1.0f, warp_key, rows);
        store_gradient<TILE>((bf16 *)p.dk + to, p.kv_stride, t.v, dk, p.scale, warp_key, rows);
        fence_proxy_async(); /* this place was written as plain memory; next the TMA writes it */
        arrive(&b.kv_empty);
    });
}

#endif

#endif
