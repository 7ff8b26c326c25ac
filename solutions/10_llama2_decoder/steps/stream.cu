/**
 * @file stream.cu
 * @brief Launches of the streaming product. Shapes that it does not support use lab 09's product,
 * or a warp for each row of gate and up.
 */
#include "labs/09_kv_cache/kv_cache.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"
#include "solutions/10_llama2_decoder/steps/stream.cuh"

/* Static shared memory of a block; x is dynamic. */
static constexpr size_t STREAM_STATIC_BYTES = STREAM_WARPS * sizeof(float);

/* Blocks of a launch per multiprocessor: twice as many as are resident, so that a block that ends
 * early makes room for another. */
static constexpr size_t STREAM_BLOCKS = 4;

static bool aligned(const void *p) {
    return (uintptr_t)p % 16 == 0;
}

/* Whether rows can be read 16 bytes at a time, and a block has shared memory for x. */
static bool can_stream(const struct decoder *d, const struct stream *s, size_t K) {
    size_t element = nn_dtype_bytes(d->model->dtype);
    size_t shared = STREAM_STATIC_BYTES + K * sizeof(float);
    return K > 0 && K * element % 16 == 0 && aligned(s->weight) && aligned(s->in) &&
           aligned(s->norm) && shared <= d->shared_bytes && s->rows > 0 && s->rows < 1u << 30;
}

template <typename E, bool GATE>
static enum status launch_stream(const struct decoder *d, struct stream s, struct error *error) {
    size_t bytes = s.vectors * VECTOR_ELEMENTS<E> * sizeof(float);
    size_t wanted = ceil_div(s.rows, STREAM_WARPS);
    size_t most = STREAM_BLOCKS * d->multiprocessors;
    /* The limit is one for all launches of the kernel, recorded ones included. */
    cudaError_t code = cudaFuncSetAttribute((const void *)stream_kernel<E, GATE>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int)(d->shared_bytes - STREAM_STATIC_BYTES));
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "stream: %zu bytes of shared memory: %s", bytes,
                         cudaGetErrorString(code));
    }
    unsigned blocks = (unsigned)(wanted < most ? wanted : most);
    launch_dependent<stream_kernel<E, GATE>>(blocks, STREAM_THREADS, bytes, d->stream, s);
    return device_launched("stream", error);
}

static struct stream stream_of(const struct decoder *d, const void *weight, const float *in,
                               const float *norm, float *out, size_t K) {
    struct stream s = {};
    s.weight = (const uint4 *)weight;
    s.vectors = (unsigned)(K * nn_dtype_bytes(d->model->dtype) / 16);
    s.in = in;
    s.norm = norm;
    s.out = out;
    s.eps = d->model->eps;
    return s;
}

/* ---- Any shape: a warp has a row of gate and the same row of up, element by element ---- */

template <typename E>
static __global__ void __launch_bounds__(256)
    gate_up_any(float *out, const E *weight, const float *in, const float *norm, size_t hidden,
                size_t K, float eps) {
    dependent_launch_begin();
    size_t n = (size_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (n >= hidden) {
        return;
    }
    const E *gate = weight + n * K, *up = gate + hidden * K;
    float first = 0.0f, second = 0.0f, squares = 0.0f;
    for (size_t k = threadIdx.x % 32; k < K; k += 32) {
        float x = in[k];
        squares += x * x;
        x *= norm[k];
        first += to_float(gate[k]) * x;
        second += to_float(up[k]) * x;
    }
    float rstd = 1.0f / sqrtf(warp_sum(squares) / (float)K + eps);
    first = rstd * warp_sum(first);
    second = rstd * warp_sum(second);
    if (threadIdx.x % 32 == 0) {
        out[n] = silu_of(first) * second;
    }
}

template <typename E>
static enum status gate_up(const struct decoder *d, const struct stream &s, size_t K,
                           struct error *error) {
    size_t hidden = d->model->hidden;
    if (can_stream(d, &s, K)) {
        return launch_stream<E, true>(d, s, error);
    }
    launch_dependent<gate_up_any<E>>((unsigned)ceil_div(hidden, 8), 256, 0, d->stream, s.out,
                                     (const E *)s.weight, s.in, s.norm, hidden, K, s.eps);
    return device_launched("gate_up_any", error);
}

/* ---- Launches ---- */

enum status decoder_stream_gate_up(const struct decoder *d, size_t l, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    if (m->hidden == 0) {
        return STATUS_OK;
    }
    struct stream s = stream_of(d, w->gate_up, d->x, w->ffn_norm, d->gate_up, m->C);
    s.rows = (unsigned)m->hidden;
    s.up_offset = m->hidden * s.vectors;
    FOR_ELEMENT_TYPE(m->dtype, return gate_up<E>(d, s, m->C, error));
}

enum status decoder_stream_multiply(const struct decoder *d, float *out, const void *weight,
                                    const float *in, size_t N, size_t K, const float *norm,
                                    const float *residual, struct error *error) {
    struct stream s = stream_of(d, weight, in, norm, out, K);
    s.rows = (unsigned)N;
    s.residual = residual;
    if (!can_stream(d, &s, K)) {
        return decoder_multiply(d, out, weight, in, N, K, norm, residual, error);
    }
    FOR_ELEMENT_TYPE(d->model->dtype, return (launch_stream<E, false>(d, s, error)));
}
