/**
 * @file encoder16_kernels.cu
 * @brief Rounding, embedding and LayerNorm of rows, for the 16-bit encoder.
 *
 * A warp has a row: up to 768 or 1024 channels in registers, eight neighbours a lane, so that a row
 * is read once and mean and variance take two passes over registers. Rows that are longer, or no
 * multiple of 16 bytes, are read three times, one channel a lane. The kernels start while the one
 * before still runs (common/cuda/dependent_launch.cuh). Two rows a warp, which share the loads of
 * the norm's parameters, gained nothing (BERT-base, 16 texts of 512: 2.99 ms with one and with two;
 * H100).
 */
#include <limits.h>

#include "common/cuda/convert.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/warp.cuh"
#include "labs/08_bert_classifier/given/encoder16_kernels.h"

namespace {

constexpr int WARPS = 4, THREADS = 32 * WARPS;

struct __align__(16) eight {
    unsigned x[4];
};

__device__ __forceinline__ void load_eight(float *x, const float *from) {
    float4 low = ((const float4 *)from)[0], high = ((const float4 *)from)[1];
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

template <typename E> __device__ __forceinline__ void store_eight(E *to, const float *x) {
    struct eight v;
    E *e = (E *)&v;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        store_rounded(&e[i], x[i]);
    }
    *(struct eight *)to = v;
}

template <> __device__ __forceinline__ void store_eight(float *to, const float *x) {
    ((float4 *)to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    ((float4 *)to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}

/* Rows in memory. A lane keeps them as they lie there, half as many registers as floats. */
template <typename E> struct stored_rows {
    typedef struct eight piece;
    const E *in;

    __device__ __forceinline__ piece take(size_t row, size_t C, size_t i) const {
        return *(const struct eight *)(in + row * C + i);
    }

    static __device__ __forceinline__ void values(float *x, const piece &p) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 both = unpack(p.x[i], E());
            x[2 * i] = both.x, x[2 * i + 1] = both.y;
        }
    }

    __device__ __forceinline__ float take_one(size_t row, size_t C, size_t i) const {
        return to_float(in[row * C + i]);
    }
};

struct eight_floats {
    float x[8];
};

/* Rows that are sums of three tables' rows. */
struct embedded_rows {
    typedef struct eight_floats piece;
    struct encoder16_tokens t;

    __device__ __forceinline__ piece take(size_t row, size_t C, size_t i) const {
        piece p;
        float position[8], type[8];
        load_eight(p.x, t.word + (size_t)t.ids[row] * C + i);
        load_eight(position, t.position + (size_t)t.positions[row] * C + i);
        load_eight(type, t.type + (size_t)t.types[row] * C + i);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            p.x[j] = p.x[j] + position[j] + type[j];
        }
        return p;
    }

    static __device__ __forceinline__ void values(float *x, const piece &p) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x[i] = p.x[i];
        }
    }

    __device__ __forceinline__ float take_one(size_t row, size_t C, size_t i) const {
        return t.word[(size_t)t.ids[row] * C + i] + t.position[(size_t)t.positions[row] * C + i] +
               t.type[(size_t)t.types[row] * C + i];
    }
};

/* A row's mean and 1 / standard deviation. */
struct statistics {
    float mean, rstd;
};

/* Of a row whose pieces the warp's lanes have, `count` of them in this one. */
template <int PIECES, typename ROWS>
__device__ __forceinline__ struct statistics statistics_of(const typename ROWS::piece *pieces,
                                                           int count, size_t C, float eps) {
    float sum = 0.0f, squares = 0.0f, x[8];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        ROWS::values(x, pieces[p]);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            sum += p < count ? x[i] : 0.0f;
        }
    }
    float mean = warp_sum(sum) / (float)C;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        ROWS::values(x, pieces[p]);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float d = x[i] - mean;
            squares += p < count ? d * d : 0.0f;
        }
    }
    return {mean, rsqrtf(warp_sum(squares) / (float)C + eps)};
}

/* A row that is a multiple of 16 bytes, at most PIECES of these a lane. The norm's parameters are
   constant: they are loaded while the kernel before still runs. */
template <int PIECES, typename ROWS, typename OUT>
__device__ __forceinline__ void
norm_in_registers(const ROWS &source, OUT *out, const struct nn_norm &norm, size_t row, size_t C) {
    typename ROWS::piece pieces[PIECES] = {};
    struct eight_floats weight[PIECES] = {}, bias[PIECES] = {};
    size_t first = threadIdx.x % 32 * 8;
    int count = first < C ? (int)((C - first + 255) / 256) : 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p < count) {
            load_eight(weight[p].x, norm.weight + first + p * 256);
            load_eight(bias[p].x, norm.bias + first + p * 256);
        }
    }
    wait_on_dependent_grids();
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (p < count) {
            pieces[p] = source.take(row, C, first + p * 256);
        }
    }
    const struct statistics s = statistics_of<PIECES, ROWS>(pieces, count, C, norm.eps);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        float x[8];
        ROWS::values(x, pieces[p]);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            x[j] = (x[j] - s.mean) * s.rstd * weight[p].x[j] + bias[p].x[j];
        }
        if (p < count) {
            store_eight(out + row * C + first + p * 256, x);
        }
    }
}

/* Any row. */
template <typename ROWS, typename OUT>
__device__ __forceinline__ void norm_in_passes(const ROWS &rows, OUT *out,
                                               const struct nn_norm &norm, size_t row, size_t C) {
    float sum = 0.0f, squares = 0.0f;
    size_t lane = threadIdx.x % 32;
    for (size_t i = lane; i < C; i += 32) {
        sum += rows.take_one(row, C, i);
    }
    float mean = warp_sum(sum) / (float)C;
    for (size_t i = lane; i < C; i += 32) {
        float d = rows.take_one(row, C, i) - mean;
        squares += d * d;
    }
    float scale = rsqrtf(warp_sum(squares) / (float)C + norm.eps);
    for (size_t i = lane; i < C; i += 32) {
        float x = (rows.take_one(row, C, i) - mean) * scale;
        store_rounded(&out[row * C + i], x * norm.weight[i] + norm.bias[i]);
    }
}

/* PIECES 0: any C and alignment. */
template <int PIECES, typename ROWS, typename OUT>
__global__ void __launch_bounds__(THREADS)
    encoder16_norm_rows(const ROWS source, OUT *out, const struct nn_norm norm, size_t rows,
                        size_t C) {
    launch_dependent_grids();
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) {
        wait_on_dependent_grids();
        return;
    }
    if constexpr (PIECES > 0) {
        norm_in_registers<PIECES>(source, out, norm, row, C);
    } else {
        wait_on_dependent_grids();
        norm_in_passes(source, out, norm, row, C);
    }
}

template <typename E>
__global__ void __launch_bounds__(THREADS)
    encoder16_round_all(E *to, const float *from, size_t count) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        store_rounded(&to[i], from[i]);
    }
}

/* A block for each row of each matrix. */
template <typename E>
__global__ void __launch_bounds__(THREADS)
    encoder16_gather_rows(const struct encoder16_rows first, const struct encoder16_rows second,
                          const int32_t *starts, size_t C) {
    dependent_launch_begin();
    E *out = (E *)(blockIdx.y == 0 ? first.out : second.out);
    const E *in = (const E *)(blockIdx.y == 0 ? first.in : second.in);
    for (size_t i = threadIdx.x; i < C; i += THREADS) {
        out[blockIdx.x * C + i] = in[(size_t)starts[blockIdx.x] * C + i];
    }
}

enum status count_blocks(size_t count, size_t each, unsigned *blocks, struct error *error) {
    size_t wanted = (count + each - 1) / each;
    if (wanted > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the encoder: %zu are more than one launch has blocks for", count);
    }
    *blocks = (unsigned)wanted;
    return STATUS_OK;
}

/* The most rows that products of few rows take. Kernels are then so short that a graph of them is
   slower with early launches: one text of 128 tokens took 0.42 ms instead of 0.40 (H100). */
constexpr size_t FEW = 128;

template <int PIECES, typename ROWS, typename OUT>
enum status launch_rows(const ROWS &source, OUT *out, const struct nn_norm *norm, size_t rows,
                        size_t C, device_stream stream, struct error *error) {
    unsigned blocks = 0;
    enum status status = count_blocks(rows, WARPS, &blocks, error);
    if (status != STATUS_OK || rows == 0) {
        return status;
    }
    if (rows <= FEW) {
        encoder16_norm_rows<PIECES, ROWS, OUT>
            <<<blocks, THREADS, 0, stream>>>(source, out, *norm, rows, C);
    } else {
        launch_dependent<encoder16_norm_rows<PIECES, ROWS, OUT>>(blocks, THREADS, 0, stream, source,
                                                                 out, *norm, rows, C);
    }
    return device_launched("encoder16_norm_rows", error);
}

template <typename ROWS, typename OUT>
enum status launch_norm(const ROWS &source, OUT *out, const struct nn_norm *norm, size_t rows,
                        size_t C, bool aligned, device_stream stream, struct error *error) {
    uintptr_t addresses = (uintptr_t)out | (uintptr_t)norm->weight | (uintptr_t)norm->bias;
    bool pieces = aligned && addresses % 16 == 0 && C % 8 == 0;
    if (pieces && C <= 768) {
        return launch_rows<3>(source, out, norm, rows, C, stream, error);
    }
    if (pieces && C <= 1024) {
        return launch_rows<4>(source, out, norm, rows, C, stream, error);
    }
    return launch_rows<0>(source, out, norm, rows, C, stream, error);
}

bool aligned(const void *p) {
    return (uintptr_t)p % 16 == 0;
}

template <typename IN>
enum status norm_of(void *out, enum nn_dtype out_type, const void *in, const struct nn_norm *norm,
                    size_t rows, size_t C, device_stream stream, struct error *error) {
    const struct stored_rows<IN> source = { (const IN *)in };
    switch (out_type) {
    case NN_F16:
        return launch_norm(source, (__half *)out, norm, rows, C, aligned(in), stream, error);
    case NN_BF16:
        return launch_norm(source, (__nv_bfloat16 *)out, norm, rows, C, aligned(in), stream, error);
    default:
        return launch_norm(source, (float *)out, norm, rows, C, aligned(in), stream, error);
    }
}

} // namespace

enum status encoder16_send(int32_t *to, const int32_t *host, size_t count, device_stream stream,
                           struct error *error) {
    cudaError_t code =
        cudaMemcpyAsync(to, host, count * sizeof *to, cudaMemcpyHostToDevice, stream);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "copying %zu numbers of a batch to the GPU: %s",
                           count, cudaGetErrorString(code));
}

enum status encoder16_round(void *to, const float *from, size_t count, enum nn_dtype dtype,
                            device_stream stream, struct error *error) {
    unsigned blocks = 0;
    enum status status = count_blocks(count, THREADS, &blocks, error);
    if (status != STATUS_OK || count == 0) {
        return status;
    }
    if (dtype == NN_F16) {
        encoder16_round_all<<<blocks, THREADS, 0, stream>>>((__half *)to, from, count);
    } else {
        encoder16_round_all<<<blocks, THREADS, 0, stream>>>((__nv_bfloat16 *)to, from, count);
    }
    return device_launched("encoder16_round_all", error);
}

enum status encoder16_embed(void *out, const struct encoder16_tokens *tokens,
                            const struct nn_norm *norm, size_t rows, size_t C, enum nn_dtype dtype,
                            device_stream stream, struct error *error) {
    const struct embedded_rows source = {*tokens};
    bool tables = aligned(tokens->word) && aligned(tokens->position) && aligned(tokens->type);
    return dtype == NN_F16
               ? launch_norm(source, (__half *)out, norm, rows, C, tables, stream, error)
               : launch_norm(source, (__nv_bfloat16 *)out, norm, rows, C, tables, stream, error);
}

enum status encoder16_norm(void *out, enum nn_dtype out_type, const void *in, enum nn_dtype type,
                           const struct nn_norm *norm, size_t rows, size_t C, device_stream stream,
                           struct error *error) {
    switch (type) {
    case NN_F16:
        return norm_of<__half>(out, out_type, in, norm, rows, C, stream, error);
    case NN_BF16:
        return norm_of<__nv_bfloat16>(out, out_type, in, norm, rows, C, stream, error);
    default:
        return error_set(error, STATUS_INVALID_ARGUMENT, "the encoder: rows of %s to normalise",
                         nn_dtype_name(type));
    }
}

enum status encoder16_gather(const struct encoder16_rows *matrices, unsigned count,
                             const int32_t *starts, size_t B, size_t C, size_t element,
                             device_stream stream, struct error *error) {
    unsigned blocks = 0;
    enum status status = count_blocks(B, 1, &blocks, error);
    if (status != STATUS_OK || B == 0) {
        return status;
    }
    const struct encoder16_rows first = matrices[0], second = matrices[count - 1];
    const dim3 grid(blocks, count);
    if (element == 4) {
        launch_dependent<encoder16_gather_rows<uint32_t>>(grid, THREADS, 0, stream, first, second,
                                                          starts, C);
    } else {
        launch_dependent<encoder16_gather_rows<uint16_t>>(grid, THREADS, 0, stream, first, second,
                                                          starts, C);
    }
    return device_launched("encoder16_gather_rows", error);
}
