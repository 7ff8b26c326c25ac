/**
 * @file float_tile.cuh
 * @brief The fp32 kernel of steps v3 and v5: register tiles for both products.
 *
 * A block of 128 threads has 16 * ROWS queries. A thread has ROWS queries, 16
 * apart, and of each tile of keys every eighth one; of the result the same
 * queries and HS / 8 channels. The eight threads that share queries are
 * neighbours in a warp, so weights and the row's largest score pass between
 * them without a barrier of the block.
 *
 * FMAs against loads, HS 64, ROWS 8, a tile of 64 keys: four channels of scores
 * are 8 + 8 loads of 16 bytes for 256 FMAs, four keys of the weighted sum the
 * same. 512 loads, 64 stores and about 450 other instructions for 8192 FMAs.
 *
 * Banks: rows of q and k are HS + 4 floats apart. Eight threads that read 16
 * bytes of eight neighbouring rows then meet 32 different banks. Rows of the
 * weights are 8 banks apart, so that four rows of eight neighbouring keys do.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_FLOAT_TILE_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_FLOAT_TILE_CUH_

#include "solutions/07_attention/steps/tile_list.cuh"

/* Sizes of the kernel for heads up to HS_ channels, in floats; KEYS_: of a tile, 32 or 64. */
template <int HS_, int ROWS_, int KEYS_ = HS_ <= 64 ? 64 : 32> struct float_tile {
    static constexpr int HS = HS_, ROWS = ROWS_, THREADS = 128, QUERIES = 16 * ROWS;
    static constexpr int KEYS = KEYS_, THREAD_KEYS = KEYS / 8, THREAD_CHANNELS = HS / 8;
    static constexpr int PITCH = HS + 4, P_PITCH = KEYS + 8;
    static constexpr int Q = 0, K = Q + QUERIES * PITCH, V = K + KEYS * PITCH, P = V + KEYS * HS;
    static constexpr size_t BYTES = (P + QUERIES * P_PITCH) * sizeof(float);
};

static __device__ __forceinline__ float4 read4(const float *from) {
    return *(const float4 *)from;
}

/* scores[i][j] = query row + 16 i . key column + 8 j */
template <typename TILE>
static __device__ __forceinline__ void score(float (*scores)[TILE::THREAD_KEYS], const float *q,
                                             const float *k) {
#pragma unroll
    for (int i = 0; i < TILE::ROWS; i++) {
#pragma unroll
        for (int j = 0; j < TILE::THREAD_KEYS; j++) {
            scores[i][j] = 0.0f;
        }
    }
#pragma unroll 2
    for (int c = 0; c < TILE::HS; c += 4) {
        float4 y[TILE::THREAD_KEYS];
#pragma unroll
        for (int j = 0; j < TILE::THREAD_KEYS; j++) {
            y[j] = read4(k + j * 8 * TILE::PITCH + c);
        }
#pragma unroll
        for (int i = 0; i < TILE::ROWS; i++) {
            float4 x = read4(q + i * 16 * TILE::PITCH + c);
#pragma unroll
            for (int j = 0; j < TILE::THREAD_KEYS; j++) {
                scores[i][j] += x.x * y[j].x;
                scores[i][j] += x.y * y[j].y;
                scores[i][j] += x.z * y[j].z;
                scores[i][j] += x.w * y[j].w;
            }
        }
    }
}

/* P.V: out[i][c] += sum over the tile's keys of p[row + 16 i][key] * v[key][channel c of the
 * thread] */
template <typename TILE>
static __device__ __forceinline__ void multiply_pv(float (*out)[TILE::THREAD_CHANNELS],
                                                   const float *p, const float *v) {
#pragma unroll 2
    for (int s = 0; s < TILE::KEYS; s += 4) {
        float4 x[TILE::ROWS];
#pragma unroll
        for (int i = 0; i < TILE::ROWS; i++) {
            x[i] = read4(p + i * 16 * TILE::P_PITCH + s);
        }
#pragma unroll
        for (int n = 0; n < 4; n++) {
#pragma unroll
            for (int c = 0; c < TILE::THREAD_CHANNELS; c += 4) {
                float4 y = read4(v + (s + n) * TILE::HS + c * 8);
#pragma unroll
                for (int i = 0; i < TILE::ROWS; i++) {
                    float weight = n == 0 ? x[i].x : n == 1 ? x[i].y : n == 2 ? x[i].z : x[i].w;
                    out[i][c] += weight * y.x;
                    out[i][c + 1] += weight * y.y;
                    out[i][c + 2] += weight * y.z;
                    out[i][c + 3] += weight * y.w;
                }
            }
        }
    }
}

/* Applies the mask: -infinity for the keys that query row + 16 i must not see: `visible` is the
   tile's, from the thread's first key on, and `seen` how many of those keys causality leaves the
   row. */
template <typename TILE>
static __device__ __forceinline__ void apply_mask(float *scores, unsigned long long visible,
                                                  int seen) {
#pragma unroll
    for (int j = 0; j < TILE::THREAD_KEYS; j++) {
        if ((visible >> 8 * j & 1) == 0 || 8 * j >= seen) {
            scores[j] = -INFINITY;
        }
    }
}

/* One row's online softmax update: scores become weights, which are stored to `p`; the running sum
   and the outputs are multiplied with the rescaling factor. `factor`: scale * log2(e). */
template <typename TILE>
static __device__ __forceinline__ void online_softmax(float *scores, float *out, float &running_max,
                                                      float &running_sum, float factor, float *p) {
    float new_max = running_max;
#pragma unroll
    for (int j = 0; j < TILE::THREAD_KEYS; j++) {
        new_max = fmaxf(new_max, scores[j]);
    }
    new_max = warp_max<8>(new_max);
    float base = new_max == -INFINITY ? 0.0f : new_max * factor; /* no key yet: 2^(-inf - 0) = 0 */
    float rescaling = exp2_approx(running_max * factor - base);
    running_max = new_max;
    running_sum *= rescaling;
#pragma unroll
    for (int j = 0; j < TILE::THREAD_KEYS; j++) {
        float weight = exp2_approx(scores[j] * factor - base);
        running_sum += weight;
        p[8 * j] = weight;
    }
#pragma unroll
    for (int c = 0; c < TILE::THREAD_CHANNELS; c++) {
        out[c] *= rescaling;
    }
}

/* The thread's part of one query's result. */
template <typename TILE>
static __device__ __forceinline__ void store_row(float *to, const float *out, float sum,
                                                 int channel, int channels, bool vector) {
    sum = warp_sum<8>(sum);
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
    for (int c = 0; c < TILE::THREAD_CHANNELS; c += 4) {
        int first = channel + c * 8;
        if (to != NULL && vector && first < channels) {
            *(float4 *)(to + first) = {out[c] * inverse, out[c + 1] * inverse, out[c + 2] * inverse,
                                       out[c + 3] * inverse};
        } else if (to != NULL && !vector) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (first + i < channels) {
                    to[first + i] = out[c + i] * inverse;
                }
            }
        }
    }
}

/* One query's logarithm of the sum of its exponentials. */
static __device__ __forceinline__ void store_lse(float *to, float running_max, float sum) {
    sum = warp_sum<8>(sum);
    if (to != NULL && threadIdx.x % 8 == 0) {
        *to = running_max + logf(sum);
    }
}

/* `vector`: heads of q, k and v begin 16-byte aligned; `vector_out`: those of out do. */
template <typename TILE, typename LIST>
static __global__ void __launch_bounds__(TILE::THREADS, 2)
    float_attention(const struct attention_problem problem, const LIST list, bool skip, bool vector,
                    bool vector_out, float *lse) {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    float *shared = (float *)shared_bytes;
    float *q = shared + TILE::Q, *k = shared + TILE::K, *v = shared + TILE::V,
          *p = shared + TILE::P;
    const struct sequence<float> s = sequence_of_block<float>(problem, list, TILE::QUERIES);
    if (s.first >= s.T) {
        return;
    }
    int row = threadIdx.x / 8, column = threadIdx.x % 8, channels = (int)problem.HS;
    int end = keys_seen(s, problem.causal, min(s.first + TILE::QUERIES, s.T) - 1);
    int hidden_from =
        keys_seen(s, problem.causal, s.first); /* no query of the block is denied less */
    float factor = problem.scale * 1.4426950408889634f;
    float out[TILE::ROWS][TILE::THREAD_CHANNELS] = {}, running_max[TILE::ROWS],
          sum[TILE::ROWS] = {};
#pragma unroll
    for (int i = 0; i < TILE::ROWS; i++) {
        running_max[i] = -INFINITY;
    }
    auto load = [&](float *to, int pitch, const float *from, const struct key_tile &keys) {
        load_rows<TILE::KEYS, TILE::HS, TILE::THREADS>(
            to, pitch, from + (size_t)keys.tile * TILE::KEYS * problem.kv_stride, problem.kv_stride,
            channels, vector, [&](int r) { return (keys.visible >> r & 1) != 0; });
    };

    struct key_tile keys = seek<TILE::KEYS>(s.mask, 0, end, skip);
    load_rows<TILE::QUERIES, TILE::HS, TILE::THREADS>(
        q, TILE::PITCH, s.q + s.first * problem.q_stride, problem.q_stride, channels, vector,
        [&](int r) { return s.first + r < s.T; });
    load(k, TILE::PITCH, s.k, keys);
    cp_async_commit();
    while (keys.tile * TILE::KEYS < end) {
        load(v, TILE::HS, s.v, keys);
        cp_async_commit();
        struct key_tile next = seek<TILE::KEYS>(s.mask, keys.tile + 1, end, skip);
        cp_async_wait<1>();
        __syncthreads(); /* the keys are there */
        float scores[TILE::ROWS][TILE::THREAD_KEYS];
        score<TILE>(scores, q + row * TILE::PITCH, k + column * TILE::PITCH);
        __syncthreads(); /* and read */
        if (next.tile * TILE::KEYS < end) {
            load(k, TILE::PITCH, s.k, next);
        }
        cp_async_commit();
        bool all_visible =
            keys.visible == low_bits(TILE::KEYS) && (keys.tile + 1) * TILE::KEYS <= hidden_from;
#pragma unroll
        for (int i = 0; i < TILE::ROWS; i++) {
            if (!all_visible) {
                int seen = keys_seen(s, problem.causal, s.first + row + 16 * i);
                apply_mask<TILE>(scores[i], keys.visible >> column,
                                 seen - keys.tile * TILE::KEYS - column);
            }
            online_softmax<TILE>(scores[i], out[i], running_max[i], sum[i], factor,
                                 p + (row + 16 * i) * TILE::P_PITCH + column);
        }
        cp_async_wait<1>();
        __syncthreads(); /* the values are there, and the warp's weights */
        multiply_pv<TILE>(out, p + row * TILE::P_PITCH, v + column * 4);
        __syncthreads(); /* and read */
        keys = next;
    }
    cp_async_wait<0>();
#pragma unroll
    for (int i = 0; i < TILE::ROWS; i++) {
        int t = s.first + row + 16 * i;
        store_row<TILE>(t < s.T ? s.out + t * problem.out_stride : NULL, out[i], sum[i], column * 4,
                        channels, vector_out);
        if (lse != NULL) {
            float *to = lse_of_head(lse, s, problem) + (size_t)t * problem.NH;
            store_lse(t < s.T ? to : NULL, running_max[i] * problem.scale, sum[i]);
        }
    }
}

/* One launch; sequence_of_block() says how blocks are numbered. */
template <typename TILE, typename LIST>
static enum status launch_float_blocks(const struct attention_problem *p, float *lse,
                                       const LIST &list, bool skip, unsigned blocks,
                                       device_stream stream, struct error *error) {
    static const cudaError_t allowed = cudaFuncSetAttribute(
        float_attention<TILE, LIST>, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention: %s", cudaGetErrorString(allowed));
    }
    float_attention<TILE, LIST><<<blocks, TILE::THREADS, TILE::BYTES, stream>>>(
        *p, list, skip, heads_aligned(p), out_aligned(p), lse);
    return device_launched("float_attention", error);
}

template <typename TILE>
static enum status launch_float(const struct attention_problem *p, float *lse, bool lengths,
                                device_stream stream, struct error *error) {
    if (lengths && p->starts != NULL) {
        auto launch = [&](const struct tile_list &list) {
            return launch_float_blocks<TILE>(p, lse, list, false, list.count * (unsigned)p->NH,
                                             stream, error);
        };
        return launch_lists(p, TILE::QUERIES, launch, error);
    }
    unsigned blocks = 0;
    TRY(count_blocks(p, TILE::QUERIES, &blocks, error));
    return blocks > 0 ? launch_float_blocks<TILE>(p, lse, no_list(), lengths, blocks, stream, error)
                      : STATUS_OK;
}

#endif
