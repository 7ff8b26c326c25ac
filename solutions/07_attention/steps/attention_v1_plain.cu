/**
 * @file attention_v1_plain.cu
 * @brief The formula: a block a query of a head, all its scores in shared memory.
 *
 * Three passes over the keys: scores, eight lanes a key; the largest and the sum,
 * the whole block; the weighted sum of the values, a thread or more a channel.
 *
 * Launch: 128 threads for each (b, t, h), h innermost. Shared memory: 4 bytes a
 * key, so S is limited to what a block may have. Bytes: every query reads all of
 * K and V it sees, 2 * S * HS elements for 4 * S * HS FLOPs. FLOPs: 4 B NH T S HS.
 */
#include "solutions/07_attention/steps/ladder.h"
#include "solutions/07_attention/steps/tile_loads.cuh"

enum { THREADS = 128, KEY_LANES = 8 };

/* The largest, or the sum, of all threads' values, in every thread. */
template <bool LARGEST> static __device__ float reduce(float x) {
    __shared__ float parts[THREADS / 32];
    x = LARGEST ? warp_max(x) : warp_sum(x);
    __syncthreads(); /* all threads have read the values of the call before */
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < THREADS / 32; i++) {
        x = LARGEST ? fmaxf(x, parts[i]) : x + parts[i];
    }
    return x;
}

/* scores[i] = scale * q . k[i], -infinity where the key is masked, which is then not read. */
template <typename E>
static __device__ void score_keys(float *scores, const struct sequence<E> &s, int t, int seen,
                                  const struct attention_problem &p) {
    int lane = threadIdx.x % KEY_LANES, HS = (int)p.HS;
    const E *q = s.q + t * p.q_stride;
    for (int first = 0; first < seen; first += THREADS / KEY_LANES) {
        int i = first + threadIdx.x / KEY_LANES;
        bool hidden = i >= seen || (s.mask != NULL && s.mask[i] == 0);
        float sum = 0.0f;
        for (int c = lane; c < HS && !hidden; c += KEY_LANES) {
            sum += to_float(q[c]) * to_float(s.k[i * p.kv_stride + c]);
        }
        sum = warp_sum<KEY_LANES>(sum);
        if (lane == 0 && i < seen) {
            scores[i] = hidden ? -INFINITY : p.scale * sum;
        }
    }
    __syncthreads();
}

/* The scores become weights. @return their sum */
static __device__ float exponentiate(float *scores, int seen) {
    float largest = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < seen; i += THREADS) {
        largest = fmaxf(largest, scores[i]);
    }
    largest = reduce<true>(largest);
    for (int i = threadIdx.x; i < seen; i += THREADS) {
        scores[i] = scores[i] == -INFINITY ? 0.0f : expf(scores[i] - largest);
        sum += scores[i];
    }
    return reduce<false>(sum); /* its barriers also show every thread all weights */
}

/* out[c] = sum of weights[i] * v[i][c], over their total; groups of threads share the keys. */
template <typename E>
static __device__ void weighted_sum(E *out, const float *weights, float total,
                                    const struct sequence<E> &s, int seen,
                                    const struct attention_problem &p) {
    __shared__ float parts[THREADS];
    int HS = (int)p.HS, groups = THREADS / HS, c = threadIdx.x % HS, group = threadIdx.x / HS;
    float sum = 0.0f;
    for (int i = group; i < seen && group < groups; i += groups) {
        if (s.mask == NULL || s.mask[i] != 0) { /* a masked key's value may be NaN */
            sum += weights[i] * to_float(s.v[i * p.kv_stride + c]);
        }
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (group == 0) {
        for (int g = 1; g < groups; g++) {
            sum += parts[g * HS + c];
        }
        out[c] = from_float<E>(total == 0.0f ? 0.0f : sum / total);
    }
}

template <typename E>
static __global__ void __launch_bounds__(THREADS)
    attention_plain(const struct attention_problem problem) {
    extern __shared__ float scores[];
    unsigned rest = blockIdx.x / (unsigned)problem.NH;
    int t = (int)(rest % (unsigned)problem.T);
    const struct sequence<E> s =
        sequence_of<E>(problem, rest / (unsigned)problem.T, blockIdx.x % (unsigned)problem.NH);
    if (t >= s.T) {
        return;
    }
    int seen = keys_seen(s, problem.causal, t);
    score_keys(scores, s, t, seen, problem);
    float total = exponentiate(scores, seen);
    weighted_sum(s.out + t * problem.out_stride, scores, total, s, seen, problem);
}

template <typename E>
static enum status launch(const struct attention_problem *p, device_stream stream,
                          struct error *error) {
    size_t bytes = p->S * sizeof(float);
    unsigned blocks = 0;
    TRY(count_blocks(p, 1, &blocks, error));
    if (blocks == 0) {
        return STATUS_OK;
    }
    cudaError_t allowed = cudaFuncSetAttribute(
        attention_plain<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (allowed != cudaSuccess) {
        (void)cudaGetLastError();
        return attention_v2_flash(p, stream, error); /* more keys than fit */
    }
    attention_plain<E><<<blocks, THREADS, bytes, stream>>>(*p);
    return device_launched("attention_plain", error);
}

enum status attention_v1_plain(const struct attention_problem *p, device_stream stream,
                               struct error *error) {
    TRY(attention_check(p, error));
    FOR_ELEMENT_TYPE(p->dtype, return launch<E>(p, stream, error));
}
