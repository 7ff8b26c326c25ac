/**
 * @file attention_v2_flash.cu
 * @brief Tiles of keys in shared memory, and the online softmax over them.
 *
 * Changes since v1: a block has 16 queries of a head. It brings 32 keys and
 * their values to shared memory at a time; a query's eight lanes score four keys
 * each, rescale the running sums to the new largest score
 * (Milakov and Gimelshein 2018; Dao et al. 2022), and add the tile's part.
 *
 * Why: relieves the caches, K and V are read once for 16 queries; and the limit
 * on S is gone, no row of scores is ever kept.
 *
 * Launch: 128 threads for each (b, h, 16 queries). Shared memory: 41 KiB. Bytes:
 * B NH (2 T + 2 S T / 16) HS elements. FLOPs: as v1. Each FMA asks shared memory
 * twice: that is the limit now.
 */
#include "solutions/07_attention/steps/ladder.h"
#include "solutions/07_attention/steps/tile_loads.cuh"

enum { THREADS = 128, LANES = 8, QUERIES = THREADS / LANES, KEYS = 32 };
enum { MOST_HS = (int)ATTENTION_MAX_HS, PITCH = MOST_HS + 1, LANE_KEYS = KEYS / LANES };
enum { LANE_CHANNELS = MOST_HS / LANES };

struct tile {
    float q[QUERIES][PITCH], k[KEYS][PITCH], v[KEYS][MOST_HS], weights[QUERIES][KEYS + 1];
};

/* Tokens first .. first + rows - 1 of a head as fp32; those that are not there become 0. */
template <typename E, typename INSIDE>
static __device__ void load(float *to, int pitch, int rows, const E *from, size_t stride, int HS,
                            INSIDE inside) {
    for (int i = threadIdx.x; i < rows * HS; i += THREADS) {
        int row = i / HS, c = i % HS;
        to[row * pitch + c] = inside(row) ? to_float(from[row * stride + c]) : 0.0f;
    }
}

/* One tile's online softmax update of the lane's query: weights to shared memory; running sum and
   out multiplied with the rescaling factor. */
static __device__ void online_softmax(struct tile &tile, int query, int lane, int HS,
                                      unsigned visible, float scale, float &running_max,
                                      float &running_sum, float *out) {
    float scores[LANE_KEYS], new_max = running_max;
#pragma unroll
    for (int j = 0; j < LANE_KEYS; j++) {
        int key = lane + j * LANES;
        scores[j] = 0.0f;
        for (int c = 0; c < HS; c++) {
            scores[j] += tile.q[query][c] * tile.k[key][c];
        }
        scores[j] = (visible >> key & 1) != 0 ? scale * scores[j] : -INFINITY;
        new_max = fmaxf(new_max, scores[j]);
    }
    new_max = warp_max<LANES>(new_max);
    float base = new_max == -INFINITY ? 0.0f : new_max; /* no key yet: e^(-inf - 0) = 0 */
    float rescaling = expf(running_max - base);
    running_max = new_max;
    running_sum *= rescaling;
#pragma unroll
    for (int j = 0; j < LANE_KEYS; j++) {
        float weight = expf(scores[j] - base);
        tile.weights[query][lane + j * LANES] = weight;
        running_sum += weight;
    }
#pragma unroll
    for (int i = 0; i < LANE_CHANNELS; i++) {
        out[i] *= rescaling;
    }
    __syncwarp(); /* a query's lanes are of one warp */
}

/* P.V: out += weights . v */
static __device__ void multiply_pv(const struct tile &tile, int query, int lane, int HS,
                                   float *out) {
    for (int key = 0; key < KEYS; key++) {
        float weight = tile.weights[query][key];
#pragma unroll
        for (int i = 0; i < LANE_CHANNELS; i++) {
            int c = lane + i * LANES;
            if (c < HS) {
                out[i] += weight * tile.v[key][c];
            }
        }
    }
}

template <typename E>
static __global__ void __launch_bounds__(THREADS)
    attention_flash(const struct attention_problem problem) {
    __shared__ struct tile tile;
    const struct sequence<E> s = padded_sequence<E>(problem, QUERIES);
    if (s.first >= s.T) {
        return;
    }
    int query = threadIdx.x / LANES, lane = threadIdx.x % LANES, HS = (int)problem.HS;
    int t = s.first + query, own = keys_seen(s, problem.causal, t);
    int end = keys_seen(s, problem.causal, min(s.first + QUERIES, s.T) - 1);
    float out[LANE_CHANNELS] = {}, running_max = -INFINITY, sum = 0.0f;
    load(&tile.q[0][0], PITCH, QUERIES, s.q + s.first * problem.q_stride, problem.q_stride, HS,
         [&](int row) { return s.first + row < s.T; });
    for (int first = 0; first < end; first += KEYS) {
        struct key_tile keys = seek<KEYS>(s.mask, first / KEYS, end, false);
        auto inside = [&](int row) { return (keys.visible >> row & 1) != 0; };
        size_t from = first * problem.kv_stride;
        load(&tile.k[0][0], PITCH, KEYS, s.k + from, problem.kv_stride, HS, inside);
        load(&tile.v[0][0], MOST_HS, KEYS, s.v + from, problem.kv_stride, HS, inside);
        __syncthreads();
        unsigned visible = (unsigned)(keys.visible & low_bits(own - first));
        online_softmax(tile, query, lane, HS, visible, problem.scale, running_max, sum, out);
        multiply_pv(tile, query, lane, HS, out);
        __syncthreads();
    }
    sum = warp_sum<LANES>(sum);
#pragma unroll
    for (int i = 0; i < LANE_CHANNELS; i++) {
        int c = lane + i * LANES;
        if (t < s.T && c < HS) {
            s.out[t * problem.out_stride + c] = from_float<E>(sum == 0.0f ? 0.0f : out[i] / sum);
        }
    }
}

template <typename E>
static enum status launch(const struct attention_problem *p, device_stream stream,
                          struct error *error) {
    unsigned blocks = 0;
    TRY(count_blocks(p, QUERIES, &blocks, error));
    if (blocks == 0) {
        return STATUS_OK;
    }
    attention_flash<E><<<blocks, THREADS, 0, stream>>>(*p);
    return device_launched("attention_flash", error);
}

enum status attention_v2_flash(const struct attention_problem *p, device_stream stream,
                               struct error *error) {
    TRY(attention_check(p, error));
    FOR_ELEMENT_TYPE(p->dtype, return launch<E>(p, stream, error));
}
