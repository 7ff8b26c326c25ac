/**
 * @file elementwise.cu
 * @brief Activations, dropout and rounding, forward and backward: each element by itself.
 *
 * A block of 256 threads has 512 vectors of 16 bytes, a thread the vectors t and t + 256: all of
 * its loads are on their way before the first is used. Bytes: each tensor once. FLOPs: a few dozen
 * an element for erf and exp, so that memory is the limit in fp32, and nearly so in bf16.
 */
#include "common/cuda/dependent_launch.cuh"
#include "labs/11_training/given/functions.cuh"
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int THREADS = 256, EACH = 2; /* vectors of a thread */

/* Whole vectors of a thread. No branch lies between the loads: a load in a branch of its own is
   waited for where the branch ends. */
template <typename E, int L>
__device__ __forceinline__ void load_each(float (&x)[EACH][L], const E *from) {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        load_whole(x[i], from + (size_t)i * THREADS * L);
    }
}

/* out = f(a, b); b may be NULL: zeros. f gets a vector and the index of its first element. */
template <typename E, typename F>
__global__ void __launch_bounds__(THREADS)
    each(E *out, const E *a, const E *b, size_t count, bool vector, F f) {
    dependent_launch_begin();
    constexpr int L = VECTOR_ELEMENTS<E>;
    size_t first = ((size_t)blockIdx.x * EACH * THREADS + threadIdx.x) * L;
    bool all = vector && first + (size_t)(EACH - 1) * THREADS * L + L <= count;
    float x[EACH][L], y[EACH][L] = {};
    if (all && b != NULL) {
        load_each(x, a + first);
        load_each(y, b + first);
    } else if (all) {
        load_each(x, a + first);
    }
#pragma unroll
    for (int i = 0; i < EACH && !all; i++) {
        load_some(x[i], a, first + (size_t)i * THREADS * L, count, vector);
        if (b != NULL) {
            load_some(y[i], b, first + (size_t)i * THREADS * L, count, vector);
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        size_t at = first + (size_t)i * THREADS * L;
        if (at < count) {
            f(x[i], y[i], at);
            store_some(out, x[i], at, count, vector);
        }
    }
}

template <typename E, typename F>
enum status run_each(const struct given_call *call, void *out, const void *a, const void *b,
                     size_t count, const char *name, F f) {
    size_t blocks = ceil_div(count, (size_t)EACH * THREADS * VECTOR_ELEMENTS<E>);
    if (count == 0) {
        return STATUS_OK;
    }
    launch_dependent<each<E, F>>((unsigned)blocks, THREADS, 0, call->stream, (E *)out, (const E *)a,
                                 (const E *)b, count, whole(0, out, a, b), f);
    return device_launched(name, call->error);
}

/* out = in, rounded to bf16. */
__global__ void __launch_bounds__(THREADS)
    round_each(__nv_bfloat16 *out, const float *in, size_t count, bool vector) {
    constexpr int L = VECTOR_ELEMENTS<__nv_bfloat16>;
    size_t first = ((size_t)blockIdx.x * THREADS + threadIdx.x) * L;
    float x[L];
    if (first < count) {
        load_some(x, in, first, count, vector);
        store_some(out, x, first, count, vector);
    }
}

/* 1 / (1 + e^-x) */
__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + __expf(-x));
}

/* A row's vector of gate and of up: blocks are (row, chunk), chunks innermost. */
struct gate_coordinates {
    size_t row, first;
};

template <int L>
__device__ __forceinline__ struct gate_coordinates find_gate_coordinates(unsigned chunks) {
    return {blockIdx.x / chunks, (size_t)(blockIdx.x % chunks * THREADS + threadIdx.x) * L};
}

template <typename E>
__global__ void __launch_bounds__(THREADS)
    gate_rows(E *out, const E *gate_up, size_t hidden, unsigned chunks, bool vector) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    const struct gate_coordinates p = find_gate_coordinates<L>(chunks);
    if (p.first >= hidden) {
        return;
    }
    const E *gate = gate_up + p.row * 2 * hidden;
    float g[L], u[L];
    if (vector) {
        load_whole(g, gate + p.first);
        load_whole(u, gate + hidden + p.first);
    } else {
        load_some(g, gate, p.first, hidden, false);
        load_some(u, gate + hidden, p.first, hidden, false);
    }
#pragma unroll
    for (int i = 0; i < L; i++) {
        u[i] *= g[i] * sigmoid(g[i]);
    }
    store_some(out + p.row * hidden, u, p.first, hidden, vector);
}

/* With s = sigmoid(gate): dgate = dout * up * s * (1 + gate * (1 - s)); dup = dout * gate * s. */
template <typename E>
__global__ void __launch_bounds__(THREADS)
    gate_rows_backward(E *dgate_up, const E *dout, const E *gate_up, size_t hidden, unsigned chunks,
                       bool vector) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    const struct gate_coordinates p = find_gate_coordinates<L>(chunks);
    if (p.first >= hidden) {
        return;
    }
    const E *gate = gate_up + p.row * 2 * hidden;
    float g[L], u[L], d[L];
    if (vector) {
        load_whole(g, gate + p.first);
        load_whole(u, gate + hidden + p.first);
        load_whole(d, dout + p.row * hidden + p.first);
    } else {
        load_some(g, gate, p.first, hidden, false);
        load_some(u, gate + hidden, p.first, hidden, false);
        load_some(d, dout + p.row * hidden, p.first, hidden, false);
    }
#pragma unroll
    for (int i = 0; i < L; i++) {
        float s = sigmoid(g[i]), up = u[i];
        u[i] = d[i] * g[i] * s;
        g[i] = d[i] * up * s * (1.0f + g[i] * (1.0f - s));
    }
    E *dgate = dgate_up + p.row * 2 * hidden;
    store_some(dgate, g, p.first, hidden, vector);
    store_some(dgate + hidden, u, p.first, hidden, vector);
}

} // namespace

enum status given_activation(const struct given_call *call, void *out, const void *in, size_t count,
                             enum nn_activation f) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        return f == NN_GELU ? run_each<E>(call, out, in, NULL, count, "gelu", vectorwise<gelu>())
                            : run_each<E>(call, out, in, NULL, count, "tanh",
                                          vectorwise<hyperbolic_tangent>());
    });
}

enum status given_activation_backward(const struct given_call *call, void *din, const void *dout,
                                      const void *in, size_t count, enum nn_activation f) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        return f == NN_GELU ? run_each<E>(call, din, in, dout, count, "gelu_backward",
                                          vectorwise<gelu_gradient>())
                            : run_each<E>(call, din, in, dout, count, "tanh_backward",
                                          vectorwise<tangent_gradient>());
    });
}

enum status given_dropout(const struct given_call *call, void *out, const void *add, const void *in,
                          size_t count, const struct train_dropout *dropout) {
    const struct dropped f = {drop_of(dropout)};
    return by_type(call, [&](auto e) {
        return run_each<decltype(e)>(call, out, in, add, count, "dropout", f);
    });
}

enum status given_convert(const struct given_call *call, void *out, const float *in, size_t count) {
    if (call->type == NN_F32) {
        return device_copy(out, in, count * sizeof *in, call->stream, call->error);
    }
    size_t blocks = ceil_div(count, (size_t)THREADS * VECTOR_ELEMENTS<__nv_bfloat16>);
    if (count == 0) {
        return STATUS_OK;
    }
    round_each<<<(unsigned)blocks, THREADS, 0, call->stream>>>((__nv_bfloat16 *)out, in, count,
                                                               whole(0, out, in));
    return device_launched("round_each", call->error);
}

enum status given_silu_gate(const struct given_call *call, void *out, const void *gate_up,
                            size_t rows, size_t hidden) {
    if (rows * hidden == 0) {
        return STATUS_OK;
    }
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        unsigned chunks = (unsigned)ceil_div(hidden, (size_t)THREADS * VECTOR_ELEMENTS<E>);
        gate_rows<<<(unsigned)(rows * chunks), THREADS, 0, call->stream>>>(
            (E *)out, (const E *)gate_up, hidden, chunks, whole(hidden * sizeof(E), out, gate_up));
        return device_launched("gate_rows", call->error);
    });
}

enum status given_silu_gate_backward(const struct given_call *call, void *dgate_up,
                                     const void *dout, const void *gate_up, size_t rows,
                                     size_t hidden) {
    if (rows * hidden == 0) {
        return STATUS_OK;
    }
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        unsigned chunks = (unsigned)ceil_div(hidden, (size_t)THREADS * VECTOR_ELEMENTS<E>);
        bool vector = whole(hidden * sizeof(E), dgate_up, dout, gate_up);
        gate_rows_backward<<<(unsigned)(rows * chunks), THREADS, 0, call->stream>>>(
            (E *)dgate_up, (const E *)dout, (const E *)gate_up, hidden, chunks, vector);
        return device_launched("gate_rows_backward", call->error);
    });
}
