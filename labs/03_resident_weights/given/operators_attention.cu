/**
 * @file operators_attention.cu
 * @brief Attention: one block of 256 threads for one query of one head.
 *
 * Three passes over the keys that the query sees: eight lanes a key for the
 * scores, the whole block for softmax's maximum and sum, a few threads a channel
 * for the weighted sum of the values. Scores, and then weights, are in shared
 * memory, 4 bytes a key.
 */
#include "common/cuda/block.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "labs/03_resident_weights/given/operators.h"

enum { BLOCK_THREADS = 256 };

/* Lanes that share a key, so that even few keys keep a block busy. */
enum { KEY_LANES = 8, KEYS_PER_ROUND = BLOCK_THREADS / KEY_LANES };

/* Loads in flight at a time. */
enum { AHEAD = 4 };

/* This lane's part of q.k: every KEY_LANES-th channel. */
static __device__ float partial_score(const float *q, const float *k, size_t HS, unsigned lane) {
    float sum = 0.0f;
    size_t c = lane;
    for (; c + (AHEAD - 1) * KEY_LANES < HS; c += AHEAD * KEY_LANES) {
        float values[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            values[i] = k[c + i * KEY_LANES];
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            sum += q[c + i * KEY_LANES] * values[i];
        }
    }
    for (; c < HS; c += KEY_LANES) {
        sum += q[c] * k[c];
    }
    return sum;
}

/* scores[s] = scale * q.k[s], or -inf where the key is masked; masked keys are not read. */
template <bool MASKED>
static __device__ void score_keys(float *scores, const float *q, const float *k,
                                  const uint8_t *mask, size_t seen, const struct nn_attention &a) {
    unsigned lane = threadIdx.x % KEY_LANES;
    for (size_t first = 0; first < seen; first += KEYS_PER_ROUND) {
        size_t s = first + threadIdx.x / KEY_LANES;
        bool masked = s >= seen || (MASKED && mask[s] == 0);
        float sum = masked ? 0.0f : partial_score(q, k + s * a.kv_stride, a.HS, lane);
        sum = warp_sum<KEY_LANES>(sum);
        if (lane == 0 && s < seen) {
            scores[s] = masked ? -INFINITY : a.scale * sum;
        }
    }
    __syncthreads();
}

/* Unnormalised weights: scores[s] = e^(scores[s] - largest), 0 where masked. @return their sum, in
   every thread */
static __device__ float exponentiate(float *scores, size_t seen) {
    float largest = -INFINITY;
    for (size_t s = threadIdx.x; s < seen; s += BLOCK_THREADS) {
        largest = fmaxf(largest, scores[s]);
    }
    largest = block_max<BLOCK_THREADS>(largest);
    float sum = 0.0f;
    for (size_t s = threadIdx.x; s < seen; s += BLOCK_THREADS) {
        scores[s] = scores[s] == -INFINITY ? 0.0f : expf(scores[s] - largest);
        sum += scores[s];
    }
    return block_sum<BLOCK_THREADS>(sum); /* its barriers also show every thread all scores */
}

/*
 * The sum of scores[s] * v[s] over every step-th key from s on. A masked key's value is not read,
 * so that even a NaN there has no effect.
 */
template <bool MASKED>
static __device__ float partial_output(const float *scores, const float *v, size_t s, size_t step,
                                       size_t seen, size_t stride) {
    float sum = 0.0f;
    for (; !MASKED && s + (AHEAD - 1) * step < seen; s += AHEAD * step) {
        float values[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            values[i] = v[(s + i * step) * stride];
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            sum += scores[s + i * step] * values[i];
        }
    }
    for (; s < seen; s += step) {
        if (!MASKED || scores[s] != 0.0f) {
            sum += scores[s] * v[s * stride];
        }
    }
    return sum;
}

/*
 * result[c] = the sum over s of scores[s] * v[s][c], divided by total. Most heads have fewer
 * channels than the block has threads: `groups` threads share a channel, and each adds up every
 * groups-th key.
 */
template <bool MASKED>
static __device__ void weighted_values(float *result, const float *scores, float total,
                                       const float *v, size_t seen, const struct nn_attention &a) {
    __shared__ float parts[BLOCK_THREADS];
    unsigned width = a.HS < BLOCK_THREADS ? (unsigned)a.HS : (unsigned)BLOCK_THREADS;
    unsigned groups = BLOCK_THREADS / width;
    unsigned group = threadIdx.x / width;
    for (size_t first = 0; first < a.HS; first += width) {
        size_t c = first + threadIdx.x % width;
        float part = 0.0f;
        if (group < groups && c < a.HS) {
            part = partial_output<MASKED>(scores, v + c, group, groups, seen, a.kv_stride);
        }
        parts[threadIdx.x] = part;
        __syncthreads();
        if (group == 0 && c < a.HS) {
            for (unsigned g = 1; g < groups; g++) {
                part += parts[g * width + threadIdx.x];
            }
            result[c] = total == 0.0f ? 0.0f : part / total;
        }
        __syncthreads(); /* before the next channels' parts */
    }
}

/* Grid: (NH, T, B) blocks. Dynamic shared memory: S floats. */
template <bool MASKED>
static __global__ void attention(float *out, const struct nn_attention a, unsigned heads_per_kv) {
    extern __shared__ float scores[];
    dependent_launch_begin();
    size_t h = blockIdx.x;
    size_t t = blockIdx.y;
    size_t b = blockIdx.z;
    size_t kv = b * a.S * a.kv_stride + blockIdx.x / heads_per_kv * a.HS;
    size_t seen = a.causal ? a.S - a.T + t + 1 : a.S;
    const float *q = a.q + (b * a.T + t) * a.q_stride + h * a.HS;
    const uint8_t *mask = MASKED ? a.mask + b * a.S : NULL;
    float *result = out + ((b * a.T + t) * a.NH + h) * a.HS;

    score_keys<MASKED>(scores, q, a.k + kv, mask, seen, a);
    float total = exponentiate(scores, seen);
    weighted_values<MASKED>(result, scores, total, a.v + kv, seen, a);
}

/* Largest y and z of a grid. */
enum { MAX_GRID_YZ = 65535 };

enum status launch_attention(float *out, const struct nn_attention *a, device_stream stream,
                             struct error *error) {
    if (a->S > ATTENTION_MAX_KEYS) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "attention over %zu key positions: this kernel holds at most %d", a->S,
                         (int)ATTENTION_MAX_KEYS);
    }
    if (a->B * a->T * a->NH * a->HS == 0) {
        return STATUS_OK;
    }
    if (a->B > MAX_GRID_YZ) {
        return error_set(error, STATUS_UNSUPPORTED, "attention over a batch of %zu: at most %d",
                         a->B, (int)MAX_GRID_YZ);
    }
    dim3 blocks((unsigned)a->NH, (unsigned)a->T, (unsigned)a->B);
    size_t shared_bytes = a->S * sizeof(float);
    unsigned heads_per_kv = (unsigned)(a->NH / a->KVH);
    if (a->mask != NULL) {
        launch_dependent<attention<true>>(blocks, BLOCK_THREADS, shared_bytes, stream, out, *a,
                                          heads_per_kv);
    } else {
        launch_dependent<attention<false>>(blocks, BLOCK_THREADS, shared_bytes, stream, out, *a,
                                           heads_per_kv);
    }
    return device_launched("attention", error);
}
