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

/* dp becomes ds = p * (dp - delta); p: rounded, as accumulators' pairs */
template <typename TILE>
static __device__ __forceinline__ void compute_ds(float *dp, const struct fragment *p,
                                                  const float *delta) {
    const float *column = delta + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < TILE::QUERIES / 8; n++) {
        float2 of = *(const float2 *)(column + 8 * n);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            unsigned pair = p[n / 2].x[n % 2 * 2 + r];
            float *at = dp + 4 * n + 2 * r;
            at[0] = __uint_as_float(pair << 16) * (at[0] - of.x);
            at[1] = __uint_as_float(pair & 0xffff0000u) * (at[1] - of.y);
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
   its own rows of `place`, panels of (KEYS, 64). */
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

/* A consumer's state. */
template <typename TILE> struct backward_consumer {
    const struct backward_block<TILE> &block;
    int group, warp_key; /* the warp's first key, of the tile */
    float factor;
    unsigned steps;
    struct ring q;
};

/* p of a step: scores, which are there, become weights; key: the warpgroup's first. */
template <typename TILE>
static __device__ __forceinline__ void finish_p(const struct backward_consumer<TILE> &c,
                                                const struct backward_item &item, int query,
                                                float *scores) {
    const struct attention_backward_problem &p = c.block.p;
    int own = item.first + c.group * TILE::GROUP_KEYS;
    if (own + TILE::GROUP_KEYS > item.T || (p.causal && own + TILE::GROUP_KEYS - 1 > query)) {
        int key = item.first + c.warp_key + (int)threadIdx.x % 32 / 4;
        mask_scores<TILE>(scores, key, query, item.T, p.causal);
    }
    compute_p<TILE>(scores, c.block.tiles.lse + c.q.stage * TILE::QUERIES, c.factor);
}

/* Begins the scores of the step at hand, once its queries are there. */
template <typename TILE>
static __device__ __forceinline__ void begin_scores(const struct backward_consumer<TILE> &c,
                                                    const struct ring &q, float *scores) {
    const struct backward_tiles<TILE> &t = c.block.tiles;
    mbarrier_wait(shared_address(&c.block.b.q_full[q.stage]), q.parity);
    wgmma_fence();
    begin_dot_rows<TILE>(scores, t.k + c.group * TILE::GROUP_KEYS * 64, t.q + q.stage * TILE::Q);
}

/*
 * A step, whose scores are there: adds to dk and dv. It ends by beginning the scores of the next
 * step, unless it is the LAST one, so that the tensor cores have dk's product and these while dq's
 * sums go to shared memory.
 */
template <bool LAST, typename TILE>
static __device__ __forceinline__ void accumulate(struct backward_consumer<TILE> &c,
                                                  const struct backward_item &item, int query,
                                                  float *scores, float *dk, float *dv) {
    constexpr int DEPTH = TILE::QUERIES / 16;
    const struct backward_tiles<TILE> &t = c.block.tiles;
    struct backward_barriers<TILE> &b = c.block.b;
    float dp[TILE::QUERIES / 2], dq[32];
    struct fragment weights[DEPTH], ds[DEPTH];
    const bf16 *q_tile = t.q + c.q.stage * TILE::Q, *dout_tile = t.dout + c.q.stage * TILE::Q;
    bf16 *ds_tile = t.ds + c.steps % TILE::DS_STAGES * TILE::DS;
    mbarrier_wait(shared_address(&b.dout_full[c.q.stage]), c.q.parity);
    begin_dot_rows<TILE>(dp, t.v + c.group * TILE::GROUP_KEYS * 64, dout_tile);
    finish_p<TILE>(c, item, query, scores);
    round_sums<DEPTH>(weights, scores);
    wgmma_fence();
    begin_weighted_sum<TILE>(dv, weights, dout_tile);
    wgmma_wait<1>();
    wgmma_keep_order<TILE::QUERIES / 2>(dp);
    if (LAST) {
        arrive(&b.v_empty);
    }
    compute_ds<TILE>(dp, weights, t.delta + c.q.stage * TILE::QUERIES);
    round_sums<DEPTH>(ds, dp);
    store_ds<TILE>(ds_tile, ds, c.warp_key);
    wgmma_wait<0>();
    wgmma_keep_order<TILE::HS / 2>(dv);
    fence_proxy_async();
    named_barrier(1, TILE::CONSUMERS);
    wgmma_fence();
    begin_dq<TILE>(dq, ds_tile, t.k, c.group);
    begin_weighted_sum<TILE>(dk, ds, q_tile);
    uint64_t *read = &b.empty[c.q.stage];
    c.q.advance();
    if (!LAST) {
        begin_scores<TILE>(c, c.q, scores);
    }
    wgmma_wait<LAST ? 1 : 2>();
    wgmma_keep_order<32>(dq);
    if (LAST) {
        arrive(&b.k_empty);
    }
    mbarrier_wait(shared_address(&b.dq_empty), c.steps++ % 2 ^ 1);
    stage_dq<TILE>(t.dq, dq, c.group);
    fence_proxy_async();
    arrive(&b.dq_full);
    wgmma_wait<0>();
    wgmma_keep_order<TILE::HS / 2>(dk);
    if (!LAST) {
        wgmma_keep_order<TILE::QUERIES / 2>(scores);
    }
    arrive(read);
}

template <typename TILE>
static __device__ __forceinline__ void consume(const struct backward_block<TILE> &block) {
    const struct attention_backward_problem &p = block.p;
    struct backward_consumer<TILE> c = {
        block, (int)threadIdx.x / TILE::GROUP, (int)threadIdx.x / 32 * 16, p.scale *LOG2_E, 0, {
            0, 0
        }
    };
    unsigned items = 0;
    block.for_items([&](const struct backward_item &item) {
        float dk[TILE::HS / 2] = {}, dv[TILE::HS / 2] = {};
        mbarrier_wait(shared_address(&block.b.k_full), items % 2);
        mbarrier_wait(shared_address(&block.b.v_full), items++ % 2);
        int left = item.steps * (int)(p.NH / p.KVH), step = 0;
        auto query = [&]() { return query_tile<TILE>(p, item, step) * TILE::QUERIES; };
        float scores[TILE::QUERIES / 2];
        begin_scores<TILE>(c, c.q, scores);
        wgmma_wait<0>();
        wgmma_keep_order<TILE::QUERIES / 2>(scores);
        for (; left > 1; left--) {
            accumulate<false, TILE>(c, item, query(), scores, dk, dv);
            step = step + 1 < item.steps ? step + 1 : 0;
        }
        accumulate<true, TILE>(c, item, query(), scores, dk, dv);
        size_t row = (size_t)(item.start + item.first + c.warp_key);
        size_t to = row * p.kv_stride + item.head * (unsigned)TILE::HS;
        int rows = item.T - item.first - c.warp_key;
        bf16 *place = block.tiles.ds;
        named_barrier(1, TILE::CONSUMERS); /* no product reads ds any more */
        store_gradient<TILE>((bf16 *)p.dv + to, p.kv_stride, place, dv, 1.0f, c.warp_key, rows);
        store_gradient<TILE>((bf16 *)p.dk + to, p.kv_stride, place, dk, p.scale, c.warp_key, rows);
    });
}

#endif

#endif
