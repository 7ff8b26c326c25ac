/**
 * @file tensor_tile.cuh
 * @brief The fp16 and bf16 kernel of steps v4 and v5: both products on tensor cores.
 *
 * A block of four warps has 64 * M_TILES queries, a warp 16 * M_TILES of them,
 * and goes through tiles of 64 keys; the next tile is copied while this one is
 * used. mma.sync m16n8k16 multiplies 16 queries by 8 keys (or channels), 16
 * deep, and sums in fp32.
 *
 * What the scores' accumulators hold is, rounded to 16 bits, what the second
 * product wants as its A operand, in the same thread: the weights never leave
 * registers. Each of K's and V's fragments serves M_TILES products.
 *
 * Banks: rows are HS + 8 elements apart, an odd number of 16-byte pieces, so
 * the eight rows of an ldmatrix lie in different ones.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_TENSOR_TILE_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_TENSOR_TILE_CUH_

#include "solutions/07_attention/places.cuh"

/* Sizes of the kernel for heads up to HS_ channels, in elements. */
template <typename E_, int HS_, int M_TILES_> struct tensor_tile {
    typedef E_ E;
    static constexpr int HS = HS_, M_TILES = M_TILES_, WARPS = 4, THREADS = 32 * WARPS;
    static constexpr int WARP_QUERIES = 16 * M_TILES, QUERIES = WARPS * WARP_QUERIES, KEYS = 64;
    static constexpr int PITCH = HS + 8, DEPTH = HS / 16; /* of the first product, in mmas */
    static constexpr int KEY_TILES = KEYS / 8, CHANNEL_TILES = HS / 8;
    /* Heads of 64: the queries' fragments fit into registers, for all tiles of keys. */
    static constexpr bool KEEP_QUERIES = HS * M_TILES <= 128;
    static constexpr int STAGE = 2 * KEYS * PITCH; /* a tile of K and one of V */
    static constexpr size_t BYTES = (QUERIES * PITCH + 2 * STAGE) * sizeof(E);
};

/* What mma.sync sums into: 16 x 8. Of a thread: rows lane / 4 and that + 8, columns
   lane % 4 * 2 and that + 1. */
struct accumulator {
    float x[4];
};

/* What it multiplies: 16 x 16 of A, two of 16 x 8 of B. */
struct fragment {
    unsigned x[4];
};

/* Four 8 x 8 matrices, rows at the addresses of eight lanes each. */
template <bool TRANSPOSED>
static __device__ __forceinline__ struct fragment load_matrices(const void *row) {
    struct fragment f = {};
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(row);
    if (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])
                     : "r"(address)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])
                     : "r"(address)
                     : "memory");
    }
#endif
    return f;
}

static __device__ __forceinline__ void multiply(struct accumulator &c, const struct fragment &a,
                                                unsigned b0, unsigned b1, __half) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ __forceinline__ void multiply(struct accumulator &c, const struct fragment &a,
                                                unsigned b0, unsigned b1, __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ __forceinline__ unsigned pack(float low, float high, __half) {
    __half2 both = __floats2half2_rn(low, high);
    return *(unsigned *)&both;
}

static __device__ __forceinline__ unsigned pack(float low, float high, __nv_bfloat16) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(unsigned *)&both;
}

/* A's fragment: 16 queries by the channels 16 * depth .. */
template <typename TILE>
static __device__ __forceinline__ struct fragment load_queries(const typename TILE::E *q, int m,
                                                               int depth) {
    int lane = threadIdx.x % 32;
    return load_matrices<false>(q + (m * 16 + lane % 16) * TILE::PITCH + depth * 16 +
                                lane / 16 * 8);
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
            struct fragment b = load_matrices<false>(row + n * 8 * TILE::PITCH + depth * 16);
#pragma unroll
            for (int m = 0; m < TILE::M_TILES; m++) {
                multiply(scores[m][n], a[m], b.x[0], b.x[1], typename TILE::E());
                multiply(scores[m][n + 1], a[m], b.x[2], b.x[3], typename TILE::E());
            }
        }
    }
}

/* out[m][n] += weights (16 queries, 64 keys) * v (64 keys, 8 channels) */
template <typename TILE>
static __device__ __forceinline__ void mix(struct accumulator (*out)[TILE::CHANNEL_TILES],
                                           const struct accumulator (*weights)[TILE::KEY_TILES],
                                           const typename TILE::E *v) {
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
            struct fragment b = load_matrices<true>(row + depth * 16 * TILE::PITCH + n * 8);
#pragma unroll
            for (int m = 0; m < TILE::M_TILES; m++) {
                multiply(out[m][n], a[m], b.x[0], b.x[1], typename TILE::E());
                multiply(out[m][n + 1], a[m], b.x[2], b.x[3], typename TILE::E());
            }
        }
    }
}

/* -infinity for the keys that two rows of the warp must not see: `visible` is the tile's, from the
   thread's first key on, seen[r] how many of those keys causality leaves row r. */
template <typename TILE>
static __device__ __forceinline__ void hide(struct accumulator *scores, unsigned long long visible,
                                            const int *seen) {
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

/* What the online softmax keeps of one row. */
struct row_state {
    float largest, sum; /* sum: the thread's own keys only */
};

/* One step of the online softmax for the accumulators' row r, 0 or 1: scores become weights, what
   was summed up is scaled to the new largest score. `factor`: scale * log2(e). */
template <typename TILE>
static __device__ __forceinline__ void weigh(struct accumulator *scores, struct accumulator *out,
                                             int r, struct row_state &state, float factor) {
    float now = state.largest;
#pragma unroll
    for (int n = 0; n < TILE::KEY_TILES; n++) {
        now = fmaxf(now, fmaxf(scores[n].x[2 * r], scores[n].x[2 * r + 1]));
    }
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
    now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
    float base = now == -INFINITY ? 0.0f : now * factor; /* no key yet: 2^(-inf - 0) = 0 */
    float shrink = power_of_2(state.largest * factor - base);
    float sum = state.sum * shrink;
    state.largest = now;
#pragma unroll
    for (int n = 0; n < TILE::KEY_TILES; n++) {
#pragma unroll
        for (int i = 2 * r; i < 2 * r + 2; i++) {
            scores[n].x[i] = power_of_2(scores[n].x[i] * factor - base);
            sum += scores[n].x[i];
        }
    }
    state.sum = sum;
#pragma unroll
    for (int n = 0; n < TILE::CHANNEL_TILES; n++) {
        out[n].x[2 * r] *= shrink;
        out[n].x[2 * r + 1] *= shrink;
    }
}

/* The accumulators' row r, divided by the sum of its weights; `to` is the row's, or NULL. */
template <typename TILE>
static __device__ __forceinline__ void store_row(typename TILE::E *to,
                                                 const struct accumulator *out, int r, float sum,
                                                 int channels, bool paired) {
    int column = threadIdx.x % 4 * 2;
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    if (to == NULL) {
        return;
    }
#pragma unroll
    for (int n = 0; n < TILE::CHANNEL_TILES; n++) {
        int first = 8 * n + column;
        float low = out[n].x[2 * r] * inverse, high = out[n].x[2 * r + 1] * inverse;
        if (paired && first < channels) {
            *(unsigned *)(to + first) = pack(low, high, typename TILE::E());
        } else if (!paired) {
            if (first < channels) {
                to[first] = from_float<typename TILE::E>(low);
            }
            if (first + 1 < channels) {
                to[first + 1] = from_float<typename TILE::E>(high);
            }
        }
    }
}

/* `vector`: heads of q, k and v begin 16-byte aligned; `paired`: those of out do. */
template <typename TILE, typename LIST>
static __global__ void __launch_bounds__(TILE::THREADS, 2)
    tensor_attention(const struct attention_problem problem, const LIST list, bool skip,
                     bool vector, bool paired) {
    typedef typename TILE::E E;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    E *q = (E *)shared_bytes, *stages = q + TILE::QUERIES * TILE::PITCH;
    const struct sequence<E> s = place<E>(problem, list, TILE::QUERIES);
    if (s.first >= s.T) {
        return;
    }
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, channels = (int)problem.HS;
    int end = keys_seen(s, problem.causal, min(s.first + TILE::QUERIES, s.T) - 1);
    int own = s.first + warp * TILE::WARP_QUERIES; /* the warp's first query */
    int hidden_from = keys_seen(s, problem.causal, own);
    float factor = problem.scale * 1.4426950408889634f;
    auto load = [&](E *stage, const struct key_tile &keys) {
        size_t token = (size_t)keys.tile * TILE::KEYS * problem.kv_stride;
        auto inside = [&](int r) { return (keys.visible >> r & 1) != 0; };
        load_rows<TILE::KEYS, TILE::HS, TILE::THREADS>(stage, TILE::PITCH, s.k + token,
                                                       problem.kv_stride, channels, vector, inside);
        load_rows<TILE::KEYS, TILE::HS, TILE::THREADS>(stage + TILE::KEYS * TILE::PITCH,
                                                       TILE::PITCH, s.v + token, problem.kv_stride,
                                                       channels, vector, inside);
        commit_copies();
    };

    struct key_tile keys = seek<TILE::KEYS>(s.mask, 0, end, skip);
    load_rows<TILE::QUERIES, TILE::HS, TILE::THREADS>(
        q, TILE::PITCH, s.q + s.first * problem.q_stride, problem.q_stride, channels, vector,
        [&](int r) { return s.first + r < s.T; });
    load(stages, keys);
    wait_copies<0>();
    __syncthreads();
    q += warp * TILE::WARP_QUERIES * TILE::PITCH;
    struct fragment kept[TILE::M_TILES][TILE::DEPTH] = {};
    struct accumulator out[TILE::M_TILES][TILE::CHANNEL_TILES] = {};
    struct row_state rows[TILE::M_TILES][2];
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
        struct accumulator scores[TILE::M_TILES][TILE::KEY_TILES];
        score<TILE>(scores, kept, q, k);
        bool all_visible =
            keys.visible == low_bits(TILE::KEYS) && (keys.tile + 1) * TILE::KEYS <= hidden_from;
#pragma unroll
        for (int m = 0; m < TILE::M_TILES; m++) {
            if (!all_visible) {
                int t = own + m * 16 + lane / 4, first = keys.tile * TILE::KEYS + lane % 4 * 2;
                const int seen[2] = {keys_seen(s, problem.causal, t) - first,
                                     keys_seen(s, problem.causal, t + 8) - first};
                hide<TILE>(scores[m], keys.visible >> lane % 4 * 2, seen);
            }
            weigh<TILE>(scores[m], out[m], 0, rows[m][0], factor);
            weigh<TILE>(scores[m], out[m], 1, rows[m][1], factor);
        }
        mix<TILE>(out, scores, k + TILE::KEYS * TILE::PITCH);
        wait_copies<0>();
        __syncthreads(); /* the next tile is there, and this one read */
        keys = next;
    }
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int t = own + m * 16 + lane / 4 + 8 * r;
            store_row<TILE>(t < s.T ? s.out + t * problem.out_stride : NULL, out[m], r,
                            rows[m][r].sum, channels, paired);
        }
    }
}

/* Blocks of one launch; see place() for what they are. */
template <typename TILE, typename LIST>
static enum status launch_tensor_blocks(const struct attention_problem *p, const LIST &list,
                                        bool skip, unsigned blocks, device_stream stream,
                                        struct error *error) {
    static const cudaError_t allowed = cudaFuncSetAttribute(
        tensor_attention<TILE, LIST>, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention: %s", cudaGetErrorString(allowed));
    }
    tensor_attention<TILE, LIST><<<blocks, TILE::THREADS, TILE::BYTES, stream>>>(
        *p, list, skip, heads_aligned(p), out_aligned(p));
    return device_launched("tensor_attention", error);
}

template <typename TILE>
static enum status launch_tensor(const struct attention_problem *p, bool lengths,
                                 device_stream stream, struct error *error) {
    if (lengths && p->starts != NULL) {
        auto launch = [&](const struct tile_list &list) {
            return launch_tensor_blocks<TILE>(p, list, false, list.count * (unsigned)p->NH, stream,
                                              error);
        };
        return launch_lists(p, TILE::QUERIES, launch, error);
    }
    unsigned blocks = 0;
    enum status status = count_blocks(p, TILE::QUERIES, &blocks, error);
    return status == STATUS_OK && blocks > 0
               ? launch_tensor_blocks<TILE>(p, no_list(), lengths, blocks, stream, error)
               : status;
}

#endif
