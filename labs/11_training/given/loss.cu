/**
 * @file loss.cu
 * @brief Softmax cross-entropy together with its gradient.
 *
 * A block a row, in two passes: the first finds the largest logit and the sum of the exponentials
 * (online: Milakov and Gimelshein 2018), the second writes scale * (p - one at label) over the
 * logits. The row then comes from cache: 60,000 logits in bf16 are 120 KB. Bytes: each logit once
 * in from memory, once out. FLOPs: about 8 a logit, and two exponentials.
 *
 * A row of an odd V does not begin 16-byte aligned: elements up to the first boundary and behind
 * the last one go one by one, all between in vectors.
 *
 * The rows' losses go to memory, and a second kernel of one block adds them up, always in the same
 * order.
 */
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int SHORT_ROW = 2048; /* bytes of a row: up to these 64 threads, else 512 */
constexpr int ADDERS = 1024;    /* threads of the second kernel */

/* A row's elements before, in, and behind its whole vectors. */
struct aligned_row {
    int head, vectors, edges; /* edges: elements in no vector, head first */
};

template <typename E> __device__ __forceinline__ struct aligned_row align_row(const E *row, int V) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    struct aligned_row p;
    p.head = min((int)((16 - (uintptr_t)row % 16) % 16 / sizeof(E)), V);
    p.vectors = (V - p.head) / L;
    p.edges = V - p.vectors * L;
    return p;
}

/* The column of edge e. */
template <typename E>
__device__ __forceinline__ int edge_at(const struct aligned_row &p, int V, int e) {
    return e < p.head ? e : V - (p.edges - e);
}

/* Online softmax: the running max, and the running sum of e^(x - max). */
struct online {
    float largest, sum;
};

template <int L> __device__ __forceinline__ void update(struct online &o, const float (&x)[L]) {
    float largest = o.largest;
#pragma unroll
    for (int i = 0; i < L; i++) {
        largest = fmaxf(largest, x[i]);
    }
    float sum = o.sum * __expf(o.largest - largest);
#pragma unroll
    for (int i = 0; i < L; i++) {
        sum += __expf(x[i] - largest);
    }
    o = {largest, sum};
}

/* log(sum of e^x) over the row. */
template <typename E, int THREADS>
__device__ __forceinline__ float log_sum(const E *row, int V, const struct aligned_row &p) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    struct online o = {-3.0e38f, 0.0f}; /* finite: differences stay numbers */
#pragma unroll 4
    for (int v = threadIdx.x; v < p.vectors; v += THREADS) {
        float x[L];
        load_whole(x, row + p.head + v * L);
        update(o, x);
    }
    if ((int)threadIdx.x < p.edges) {
        const float x[1] = {to_float(row[edge_at<E>(p, V, threadIdx.x)])};
        update(o, x);
    }
    float largest = block_max<THREADS>(o.largest);
    return largest + logf(block_sum<THREADS>(o.sum * __expf(o.largest - largest)));
}

template <typename E, int THREADS>
__global__ void __launch_bounds__(THREADS)
    entropy_rows(E *logits, float *losses, const int32_t *labels, float scale, int V) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    static_assert(THREADS >= 2 * L, "a thread an edge");
    E *row = logits + (size_t)blockIdx.x * V;
    const struct aligned_row p = align_row(row, V);
    int label = labels[blockIdx.x];
    bool counts = label >= 0;
    float lse = 0.0f;
    if (counts) {
        float own = to_float(row[label]);
        lse = log_sum<E, THREADS>(row, V, p);
        if (threadIdx.x == 0) {
            losses[blockIdx.x] = lse - own;
        }
        __syncthreads(); /* all have read the label's logit */
    } else if (threadIdx.x == 0) {
        losses[blockIdx.x] = 0.0f;
    }
    auto gradient = [=](float x, int at) {
        return counts ? scale * (__expf(x - lse) - (at == label ? 1.0f : 0.0f)) : 0.0f;
    };
#pragma unroll 2
    for (int v = threadIdx.x; v < p.vectors; v += THREADS) {
        float x[L] = {};
        int first = p.head + v * L;
        if (counts) {
            load_whole(x, row + first);
        }
#pragma unroll
        for (int i = 0; i < L; i++) {
            x[i] = gradient(x[i], first + i);
        }
        store_whole(row + first, x);
    }
    if ((int)threadIdx.x < p.edges) {
        int at = edge_at<E>(p, V, threadIdx.x);
        store_rounded(row + at, gradient(counts ? to_float(row[at]) : 0.0f, at));
    }
}

__global__ void __launch_bounds__(ADDERS)
    add_losses(float *loss, const float *losses, float scale, size_t M) {
    float sum = 0.0f;
    for (size_t i = threadIdx.x; i < M; i += ADDERS) {
        sum += losses[i];
    }
    sum = block_sum<ADDERS>(sum);
    if (threadIdx.x == 0) {
        *loss += scale * sum;
    }
}

} // namespace

enum status given_cross_entropy(const struct given_call *call, void *logits, float *loss,
                                const int32_t *labels, float scale, size_t M, size_t V,
                                float *losses) {
    if (M * V == 0) {
        return STATUS_OK;
    }
    if (V > INT32_MAX) {
        return error_set(call->error, STATUS_INVALID_ARGUMENT, "cross_entropy: V = %zu is above %d",
                         V, INT32_MAX);
    }
    enum status status = by_type(call, [&](auto e) {
        typedef decltype(e) E;
        unsigned rows = (unsigned)M;
        if (V * sizeof(E) <= SHORT_ROW) {
            entropy_rows<E, 64>
                <<<rows, 64, 0, call->stream>>>((E *)logits, losses, labels, scale, (int)V);
        } else {
            entropy_rows<E, 512>
                <<<rows, 512, 0, call->stream>>>((E *)logits, losses, labels, scale, (int)V);
        }
        return device_launched("cross_entropy", call->error);
    });
    if (status != STATUS_OK) {
        return status;
    }
    add_losses<<<1, ADDERS, 0, call->stream>>>(loss, losses, scale, M);
    return device_launched("add_losses", call->error);
}
