/**
 * @file operators.cu
 * @brief Elementwise operators, rotary embedding and table lookup: one thread an element.
 *
 * All kernels run with blocks of 256 threads and as many blocks as there are
 * 256 elements. They read and write each byte once, so memory bandwidth is
 * their limit. At the sizes of a single token the launch itself takes longest, so
 * each kernel is set up while the one before still runs (dependent_launch.cuh).
 */
#include "labs/03_resident_weights/given/operators.h"

#include "common/base/checked.h"
#include "common/cuda/activation.cuh"
#include "common/cuda/dependent_launch.cuh"

enum { THREADS = 256 };

static inline unsigned blocks_for(size_t count) {
    return (unsigned)ceil_div(count, THREADS);
}

static __device__ __forceinline__ size_t element() {
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __global__ void bias_add(float *x, const float *bias, size_t count, size_t C) {
    dependent_launch_begin();
    size_t i = element();
    if (i < count) {
        x[i] += bias[i % C];
    }
}

enum status launch_bias_add(float *x, const float *bias, size_t rows, size_t C,
                            device_stream stream, struct error *error) {
    if (rows * C == 0) {
        return STATUS_OK;
    }
    launch_dependent<bias_add>(blocks_for(rows * C), THREADS, 0, stream, x, bias, rows * C, C);
    return device_launched("bias_add", error);
}

static __global__ void activation(float *out, const float *in, size_t count, enum nn_activation f) {
    dependent_launch_begin();
    size_t i = element();
    if (i < count) {
        out[i] = activate(in[i], f);
    }
}

enum status launch_activation(float *out, const float *in, size_t count, enum nn_activation f,
                              device_stream stream, struct error *error) {
    if (count == 0) {
        return STATUS_OK;
    }
    launch_dependent<activation>(blocks_for(count), THREADS, 0, stream, out, in, count, f);
    return device_launched("activation", error);
}

static __global__ void silu_gate(float *out, const float *gate, const float *up, size_t count) {
    dependent_launch_begin();
    size_t i = element();
    if (i < count) {
        out[i] = silu(gate[i]) * up[i];
    }
}

enum status launch_silu_gate(float *out, const float *gate, const float *up, size_t count,
                             device_stream stream, struct error *error) {
    if (count == 0) {
        return STATUS_OK;
    }
    launch_dependent<silu_gate>(blocks_for(count), THREADS, 0, stream, out, gate, up, count);
    return device_launched("silu_gate", error);
}

static __global__ void residual(float *out, const float *a, const float *b, size_t count) {
    dependent_launch_begin();
    size_t i = element();
    if (i < count) {
        out[i] = a[i] + b[i];
    }
}

enum status launch_residual(float *out, const float *a, const float *b, size_t count,
                            device_stream stream, struct error *error) {
    if (count == 0) {
        return STATUS_OK;
    }
    launch_dependent<residual>(blocks_for(count), THREADS, 0, stream, out, a, b, count);
    return device_launched("residual", error);
}

/* Rotates pair i of a head's channels. */
static __device__ __forceinline__ void rotate(float *head, size_t i, size_t pairs,
                                              enum nn_rope_layout layout, double angle) {
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    float *first = layout == NN_ROPE_INTERLEAVED ? head + 2 * i : head + i;
    float *second = layout == NN_ROPE_INTERLEAVED ? first + 1 : first + pairs;
    double a = *first;
    double b = *second;
    *first = (float)(a * cosine - b * sine);
    *second = (float)(a * sine + b * cosine);
}

/*
 * One thread rotates one pair of channels of one head. Angles are computed in
 * double: at position 1000 a float's 24 bits leave 14 behind the point.
 */
static __global__ void rope(float *x, size_t T, size_t heads, size_t HS, size_t stride,
                            size_t position, double log2_theta, enum nn_rope_layout layout) {
    dependent_launch_begin();
    size_t pairs = HS / 2;
    size_t index = element();
    if (index >= T * heads * pairs) {
        return;
    }
    size_t i = index % pairs;
    size_t h = index / pairs % heads;
    size_t t = index / pairs / heads;
    double frequency = exp2(-2.0 * (double)i / (double)HS * log2_theta); /* theta^(-2i/HS) */
    rotate(x + t * stride + h * HS, i, pairs, layout, (double)(position + t) * frequency);
}

enum status launch_rope(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
                        float theta, enum nn_rope_layout layout, device_stream stream,
                        struct error *error) {
    size_t count = T * heads * (HS / 2);
    if (count == 0) {
        return STATUS_OK;
    }
    launch_dependent<rope>(blocks_for(count), THREADS, 0, stream, x, T, heads, HS, stride, position,
                           log2((double)theta), layout);
    return device_launched("rope", error);
}

/* As rope, but the pair's frequency comes from a table: Llama 3.1 and others scale them. */
static __global__ void rope_table(float *x, size_t T, size_t heads, size_t HS, size_t stride,
                                  size_t position, const float *__restrict__ frequencies,
                                  enum nn_rope_layout layout) {
    dependent_launch_begin();
    size_t pairs = HS / 2;
    size_t index = element();
    if (index >= T * heads * pairs) {
        return;
    }
    size_t i = index % pairs;
    size_t h = index / pairs % heads;
    size_t t = index / pairs / heads;
    rotate(x + t * stride + h * HS, i, pairs, layout,
           (double)(position + t) * (double)frequencies[i]);
}

enum status launch_rope_table(float *x, size_t T, size_t heads, size_t HS, size_t stride,
                              size_t position, const float *frequencies, enum nn_rope_layout layout,
                              device_stream stream, struct error *error) {
    size_t count = T * heads * (HS / 2);
    if (count == 0) {
        return STATUS_OK;
    }
    launch_dependent<rope_table>(blocks_for(count), THREADS, 0, stream, x, T, heads, HS, stride,
                                 position, frequencies, layout);
    return device_launched("rope_table", error);
}

static __global__ void embedding(float *out, const float *table, struct embedding_ids ids, size_t T,
                                 size_t C, bool accumulate) {
    dependent_launch_begin();
    size_t i = element();
    if (i < T * C) {
        float value = table[(size_t)ids.ids[i / C] * C + i % C];
        out[i] = accumulate ? out[i] + value : value;
    }
}

enum status launch_embedding(float *out, const float *table, const struct embedding_ids *ids,
                             size_t T, size_t C, bool accumulate, device_stream stream,
                             struct error *error) {
    if (T > EMBEDDING_MAX_IDS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "embedding of %zu tokens: at most %d", T,
                         (int)EMBEDDING_MAX_IDS);
    }
    if (T * C == 0) {
        return STATUS_OK;
    }
    launch_dependent<embedding>(blocks_for(T * C), THREADS, 0, stream, out, table, *ids, T, C,
                                accumulate);
    return device_launched("embedding", error);
}
