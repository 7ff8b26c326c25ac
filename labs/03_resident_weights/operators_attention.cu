/**
 * @file operators_attention.cu
 * @brief Attention: one block of 256 threads for one query of one head.
 *
 * Three passes over the keys that the query sees: a warp a key for the scores,
 * the block for the largest and the sum, a thread a channel for the weighted
 * sum of the values. The scores stay in shared memory, 4 bytes a key.
 */
#include "labs/03_resident_weights/block.cuh"
#include "labs/03_resident_weights/operators.h"

/* scores[s] = scale * q.k[s], -inf where the mask hides the key; hidden keys are not read. */
static __device__ void score_keys(float *scores, const float *q, const float *k,
                                  const uint8_t *mask, size_t seen, const struct nn_attention &a) {
    unsigned lane = threadIdx.x % 32;
    for (size_t s = threadIdx.x / 32; s < seen; s += BLOCK_WARPS) {
        bool hidden = mask != NULL && mask[s] == 0; /* the same for the whole warp */
        float sum = 0.0f;
        for (size_t c = lane; c < a.HS && !hidden; c += 32) {
            sum += q[c] * k[s * a.kv_stride + c];
        }
        sum = warp_reduce<add>(sum);
        if (lane == 0) {
            scores[s] = hidden ? -INFINITY : a.scale * sum;
        }
    }
    __syncthreads();
}

/* scores[s] = e^(scores[s] - largest), 0 where hidden. @return their sum, in every thread */
static __device__ float exponentiate(float *scores, size_t seen) {
    float largest = -INFINITY;
    for (size_t s = threadIdx.x; s < seen; s += BLOCK_THREADS) {
        largest = fmaxf(largest, scores[s]);
    }
    largest = block_reduce<larger>(largest);
    float sum = 0.0f;
    for (size_t s = threadIdx.x; s < seen; s += BLOCK_THREADS) {
        scores[s] = scores[s] == -INFINITY ? 0.0f : expf(scores[s] - largest);
        sum += scores[s];
    }
    return block_reduce<add>(sum); /* its barriers also show every thread all scores */
}

/*
 * The assembler reads scores four at a time, and the next four before it knows
 * whether the loop goes on: machine code reaches beyond the last key, PTX does not.
 */
enum { READ_AHEAD = 8 };

/* Grid: B * T * NH blocks, heads fastest. Dynamic shared memory: S + READ_AHEAD floats. */
static __global__ void attention(float *out, const struct nn_attention a) {
    extern __shared__ float scores[];
    size_t h = blockIdx.x % a.NH;
    size_t t = blockIdx.x / a.NH % a.T;
    size_t b = blockIdx.x / a.NH / a.T;
    size_t kv = b * a.S * a.kv_stride + h / (a.NH / a.KVH) * a.HS;
    size_t seen = a.causal ? a.S - a.T + t + 1 : a.S;
    const float *q = a.q + (b * a.T + t) * a.q_stride + h * a.HS;
    float *result = out + (size_t)blockIdx.x * a.HS;

    score_keys(scores, q, a.k + kv, a.mask != NULL ? a.mask + b * a.S : NULL, seen, a);
    float sum = exponentiate(scores, seen);
    for (size_t c = threadIdx.x; c < a.HS; c += BLOCK_THREADS) {
        const float *v = a.v + kv + c;
        float mixed = 0.0f;
        for (size_t s = 0; s < seen; s++) {
            if (scores[s] != 0.0f) { /* what a hidden key's value holds, even NaN, has no part */
                mixed += scores[s] * v[s * a.kv_stride];
            }
        }
        result[c] = sum == 0.0f ? 0.0f : mixed / sum;
    }
}

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
    unsigned blocks = (unsigned)(a->B * a->T * a->NH);
    attention<<<blocks, BLOCK_THREADS, (a->S + READ_AHEAD) * sizeof(float), stream>>>(out, *a);
    return device_launched("attention", error);
}
