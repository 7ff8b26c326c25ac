/**
 * @file attention.cu
 * @brief Lab 07: YOUR FILE. Make attention() fast and keep it right.
 *
 * What it must do is in attention.h, how to go about it in README.md. Everything in
 * this file may change; the two functions of attention.h must stay. Check and
 * measure with
 *
 *     bazel test //grader:07_attention_parity //grader:07_attention_speedup
 *     bazel run //labs/07_attention:bench
 */
#include "labs/07_attention/attention.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <limits.h>

enum { THREADS = 128 };

static __device__ float load(const void *tensor, size_t index, enum nn_dtype dtype) {
    switch (dtype) {
    case NN_F16:
        return __half2float(((const __half *)tensor)[index]);
    case NN_BF16:
        return __bfloat162float(((const __nv_bfloat16 *)tensor)[index]);
    default:
        return ((const float *)tensor)[index];
    }
}

static __device__ void store(void *tensor, size_t index, float x, enum nn_dtype dtype) {
    switch (dtype) {
    case NN_F16:
        ((__half *)tensor)[index] = __float2half_rn(x);
        break;
    case NN_BF16:
        ((__nv_bfloat16 *)tensor)[index] = __float2bfloat16_rn(x);
        break;
    default:
        ((float *)tensor)[index] = x;
    }
}

/* The largest, or the sum, of all threads' values, in every thread. */
template <bool LARGEST> static __device__ float reduce(float x) {
    __shared__ float values[THREADS];
    __syncthreads(); /* all threads have read the values of the call before */
    values[threadIdx.x] = x;
    __syncthreads();
    x = values[0];
    for (int i = 1; i < THREADS; i++) {
        x = LARGEST ? fmaxf(x, values[i]) : x + values[i];
    }
    return x;
}

/* Offsets of one query of one head in the tensors, in elements. */
struct offsets {
    size_t q, kv, out;   /* kv: key 0 */
    int seen;            /* number of keys that the query sees without a mask */
    const uint8_t *mask; /* of this sequence, or NULL */
};

/* @return whether there is such a query: packed sequences may be shorter than T */
static __device__ bool find_offsets(const struct attention_problem &p, struct offsets *at) {
    size_t h = blockIdx.x % p.NH, t = blockIdx.x / p.NH % p.T, b = blockIdx.x / p.NH / p.T;
    size_t T = p.T, S = p.S, q_token = b * p.T + t, kv_token = b * p.S;
    if (p.starts != NULL) {
        T = S = (size_t)(p.starts[b + 1] - p.starts[b]);
        kv_token = (size_t)p.starts[b];
        q_token = kv_token + t;
    }
    at->q = q_token * p.q_stride + h * p.HS;
    at->kv = kv_token * p.kv_stride + h / (p.NH / p.KVH) * p.HS;
    at->out = q_token * p.out_stride + h * p.HS;
    at->seen = (int)(p.causal ? S - T + t + 1 : S);
    at->mask = p.mask != NULL ? p.mask + b * p.S : NULL;
    return t < T;
}

static __device__ bool is_masked(const struct offsets &at, int s) {
    return at.mask != NULL && at.mask[s] == 0;
}

/*
 * Step 1: a block computes one query of one head. Right, and slow.
 *
 * All scores of the query lie in shared memory, 4 bytes a key: a thread computes
 * whole ones, then a thread computes whole channels of the result.
 */
static __global__ void attention_v1_plain_kernel(struct attention_problem p) {
    extern __shared__ float scores[];
    struct offsets at;
    if (!find_offsets(p, &at)) {
        return;
    }
    float largest = -INFINITY, sum = 0.0f;
    for (int s = threadIdx.x; s < at.seen; s += THREADS) {
        float score = -INFINITY;
        if (!is_masked(at, s)) {
            score = 0.0f;
            for (size_t c = 0; c < p.HS; c++) {
                score +=
                    load(p.q, at.q + c, p.dtype) * load(p.k, at.kv + s * p.kv_stride + c, p.dtype);
            }
            score *= p.scale;
        }
        scores[s] = score;
        largest = fmaxf(largest, score);
    }
    largest = reduce<true>(largest);
    for (int s = threadIdx.x; s < at.seen; s += THREADS) {
        scores[s] = is_masked(at, s) ? 0.0f : expf(scores[s] - largest);
        sum += scores[s];
    }
    sum = reduce<false>(sum); /* its barriers also show every thread all weights */
    for (size_t c = threadIdx.x; c < p.HS; c += THREADS) {
        float x = 0.0f;
        for (int s = 0; s < at.seen; s++) {
            if (!is_masked(at, s)) { /* a masked key's value may be NaN, and NaN * 0 is NaN */
                x += scores[s] * load(p.v, at.kv + s * p.kv_stride + c, p.dtype);
            }
        }
        store(p.out, at.out + c, sum == 0.0f ? 0.0f : x / sum, p.dtype);
    }
}

static enum status attention_v1_plain(const struct attention_problem *p, device_stream stream,
                                      struct error *error) {
    TRY(attention_check(p, error));
    size_t blocks = p->B * p->T * p->NH, bytes = p->S * sizeof(float);
    if (blocks * p->HS == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    if (blocks > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "attention: %zu queries are too many",
                         blocks);
    }
    cudaError_t allowed = cudaFuncSetAttribute(
        attention_v1_plain_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "attention: %zu keys: their scores do not fit into shared memory", p->S);
    }
    attention_v1_plain_kernel<<<(unsigned)blocks, THREADS, bytes, stream>>>(*p);
    return device_launched("attention_v1_plain", error);
}

/*
 * The steps the bench compares, in the order you wrote them; the last is your best.
 * Keep a step when you write the next one, and the bench shows what each one gained.
 */
const struct attention_step *attention_ladder(size_t *count) {
    static const struct attention_step steps[] = {
        {"v1_plain", attention_v1_plain},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

/* What the models and the grader call: the last step of the table. */
enum status attention(const struct attention_problem *problem, device_stream stream,
                      struct error *error) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    return steps[count - 1].run(problem, stream, error);
}
