/**
 * @file norm.cu
 * @brief LayerNorm with the dropout and residual before it; RMSNorm forward and backward.
 *
 * Forward and short rows: a warp a row, four rows a block, all of a row in registers: it is read
 * once, and mean and variance take two passes over registers. Rows longer than eight vectors for
 * each of 32 lanes, or not made of whole 16-byte vectors: a block a row, three passes over memory,
 * the last two from cache. Bytes: each tensor once. FLOPs: about 8 an element.
 *
 * RMSNorm's gradient, short rows: a warp loops over rows and keeps its partial sums of dweight in
 * registers; a block's warps add theirs up in shared memory, and a second kernel adds the blocks'.
 * Both orders depend on the sizes alone.
 */
#include "common/cuda/dependent_launch.cuh"
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int WARPS = 4, BLOCK = 256;
constexpr int BACKWARD_WARPS = 8;       /* of a block of the gradient's kernel */
constexpr size_t BACKWARD_BLOCKS = 264; /* at most: two for each multiprocessor of an H200 */
constexpr int COLUMNS = 32, GROUPS = 8; /* of the second kernel: columns, threads a column */

template <typename E> struct norm_rows {
    E *out;
    float *stats;
    E *sum;       /* NULL: not written */
    const E *add; /* NULL: none */
    const E *in;
    const float *weight, *bias;
    struct drop d;
    size_t rows, C;
    float eps;
};

/* Mean (RMSNorm: 0) and 1 / sqrt(var + eps) of a row, to stats. */
template <bool RMS>
__device__ __forceinline__ void keep_stats(float *stats, size_t row, float mean, float rstd) {
    if (RMS) {
        stats[row] = rstd;
    } else {
        stats[2 * row] = mean;
        stats[2 * row + 1] = rstd;
    }
}

/* A lane's vectors of in and of add, packed: all loads are issued before the first is used and
   before `sum` is stored, which may be in or add. */
template <int V> struct raw_row { uint4 in[V], add[V]; };

template <typename E, int V>
__device__ __forceinline__ struct raw_row<V> load_raw(const struct norm_rows<E> &p, size_t begin,
                                                      int vectors) {
    struct raw_row<V> raw = {};
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (v * 32 + lane < vectors) {
            raw.in[v] = ((const uint4 *)(p.in + begin))[v * 32 + lane];
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (p.add != NULL && v * 32 + lane < vectors) {
            raw.add[v] = ((const uint4 *)(p.add + begin))[v * 32 + lane];
        }
    }
    return raw;
}

/* A vector of the norm's input: in, or add + dropout(in), rounded as the backward pass will read
   it, and stored to sum. */
template <bool RMS, typename E, int L>
__device__ __forceinline__ void load_and_add(float (&x)[L], uint4 in, uint4 add,
                                             const struct norm_rows<E> &p, size_t at) {
    unpack_whole(x, in);
    if (RMS) {
        return;
    }
    drop_some(x, p.d, at);
    float y[L];
    unpack_whole(y, add);
#pragma unroll
    for (int i = 0; i < L; i++) {
        x[i] = rounded(x[i] + y[i], E());
    }
    if (p.sum != NULL) {
        store_whole(p.sum + at, x);
    }
}

template <bool RMS, typename E, int L>
__device__ __forceinline__ void normalise_vector(float (&x)[L], const struct norm_rows<E> &p,
                                                 size_t begin, size_t column, float mean,
                                                 float rstd) {
    float w[L], b[L] = {};
    load_whole(w, p.weight + column);
    if (!RMS) {
        load_whole(b, p.bias + column);
    }
#pragma unroll
    for (int i = 0; i < L; i++) {
        x[i] = (x[i] - mean) * rstd * w[i] + b[i];
    }
    store_whole(p.out + begin + column, x);
}

/* A row in a warp's registers, up to V vectors a lane. */
template <typename E, int V, bool RMS>
__global__ void __launch_bounds__(32 * WARPS) norm_in_warps(const struct norm_rows<E> p) {
    dependent_launch_begin();
    constexpr int L = VECTOR_ELEMENTS<E>;
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / 32, begin = row * p.C;
    if (row >= p.rows) {
        return;
    }
    int lane = threadIdx.x % 32, vectors = (int)(p.C / L);
    float x[V][L], total = 0.0f, squares = 0.0f;
    const struct raw_row<V> raw = load_raw<E, V>(p, begin, vectors);
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (v * 32 + lane < vectors) {
            load_and_add<RMS>(x[v], raw.in[v], raw.add[v], p, begin + (size_t)(v * 32 + lane) * L);
#pragma unroll
            for (int i = 0; i < L; i++) {
                total += x[v][i];
            }
        }
    }
    float mean = RMS ? 0.0f : warp_sum(total) / (float)p.C;
#pragma unroll
    for (int v = 0; v < V; v++) {
#pragma unroll
        for (int i = 0; i < L && v * 32 + lane < vectors; i++) {
            squares += (x[v][i] - mean) * (x[v][i] - mean);
        }
    }
    float rstd = 1.0f / sqrtf(warp_sum(squares) / (float)p.C + p.eps);
    if (lane == 0) {
        keep_stats<RMS>(p.stats, row, mean, rstd);
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (v * 32 + lane < vectors) {
            normalise_vector<RMS>(x[v], p, begin, (size_t)(v * 32 + lane) * L, mean, rstd);
        }
    }
}

/* One element of the norm's input, also stored to sum. */
template <typename E, bool RMS>
__device__ __forceinline__ float load_element(const struct norm_rows<E> &p, size_t at) {
    float x[1] = {to_float(p.in[at])};
    if (!RMS) {
        drop_some(x, p.d, at);
        x[0] += p.add != NULL ? to_float(p.add[at]) : 0.0f;
        if (p.sum != NULL) {
            store_rounded(p.sum + at, x[0]);
        }
    }
    return rounded(x[0], E());
}

/* A block a row; a thread meets the same elements in each pass. */
template <typename E, bool RMS>
__global__ void __launch_bounds__(BLOCK) norm_in_blocks(const struct norm_rows<E> p) {
    dependent_launch_begin();
    size_t begin = (size_t)blockIdx.x * p.C;
    const E *kept = RMS || p.sum == NULL ? p.in : p.sum;
    float total = 0.0f, squares = 0.0f;
    for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
        total += load_element<E, RMS>(p, begin + c);
    }
    float mean = RMS ? 0.0f : block_sum<BLOCK>(total) / (float)p.C;
    for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
        float x = to_float(kept[begin + c]) - mean;
        squares += x * x;
    }
    float rstd = 1.0f / sqrtf(block_sum<BLOCK>(squares) / (float)p.C + p.eps);
    if (threadIdx.x == 0) {
        keep_stats<RMS>(p.stats, blockIdx.x, mean, rstd);
    }
    for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
        float x = (to_float(kept[begin + c]) - mean) * rstd * p.weight[c];
        store_rounded(p.out + begin + c, RMS ? x : x + p.bias[c]);
    }
}

/* Vectors a lane has of a row, as there are kernels; 0: the row is too long, or not of whole
   pieces. 768 and 1024 channels have kernels of their own: 3, 4, 6 and 8 vectors. */
template <typename E> int vectors_of_lane(size_t C, bool vector) {
    size_t each = ceil_div(C, (size_t)32 * VECTOR_ELEMENTS<E>);
    return !vector || each > 8 ? 0 : each > 6 ? 8 : each > 4 ? 6 : (int)each;
}

template <int V> struct vectors { static constexpr int COUNT = V; };

/* run(vectors<V>()), or otherwise(). */
template <typename RUN, typename OTHERWISE>
void by_vectors(int count, RUN run, OTHERWISE otherwise) {
    switch (count) {
    case 1:
        return run(vectors<1>());
    case 2:
        return run(vectors<2>());
    case 3:
        return run(vectors<3>());
    case 4:
        return run(vectors<4>());
    case 6:
        return run(vectors<6>());
    case 8:
        return run(vectors<8>());
    default:
        return otherwise();
    }
}

template <typename E, bool RMS>
enum status run_norm(const struct given_call *call, const struct norm_rows<E> &p, bool vector) {
    unsigned blocks = (unsigned)ceil_div(p.rows, (size_t)WARPS);
    if (p.rows * p.C == 0) {
        return STATUS_OK;
    }
    by_vectors(
        vectors_of_lane<E>(p.C, vector),
        [&](auto v) {
            launch_dependent<norm_in_warps<E, decltype(v)::COUNT, RMS>>(blocks, 32 * WARPS, 0,
                                                                        call->stream, p);
        },
        [&]() {
            launch_dependent<norm_in_blocks<E, RMS>>((unsigned)p.rows, BLOCK, 0, call->stream, p);
        });
    return device_launched(RMS ? "rmsnorm" : "layernorm", call->error);
}

/* ---- RMSNorm's gradient ---- */

template <typename E> struct rms_gradient {
    E *din;
    const E *add, *dout, *in;
    const float *stats, *weight;
    float *partial; /* (blocks, C) of dweight */
    size_t rows, C;
};

/* One row: with xhat = in * rstd and g = dout * weight, din = rstd * (g - xhat * mean(g * xhat)) +
   add, and dweight += dout * xhat. */
template <typename E, int V>
__device__ __forceinline__ void rms_row(float (&dweight)[V][VECTOR_ELEMENTS<E>],
                                        const struct rms_gradient<E> &p, size_t row) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    int lane = threadIdx.x % 32, vectors = (int)(p.C / L);
    float xhat[V][L], g[V][L], dot = 0.0f, rstd = p.stats[row];
#pragma unroll
    for (int v = 0; v < V; v++) { /* all on their way before the first is used */
        size_t at = row * p.C + (size_t)(v * 32 + lane) * L;
        if (v * 32 + lane < vectors) {
            load_whole(xhat[v], p.in + at);
            load_whole(g[v], p.dout + at);
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (v * 32 + lane < vectors) {
            float w[L];
            load_whole(w, p.weight + (size_t)(v * 32 + lane) * L);
#pragma unroll
            for (int i = 0; i < L; i++) {
                xhat[v][i] *= rstd;
                dweight[v][i] += g[v][i] * xhat[v][i];
                g[v][i] *= w[i];
                dot += g[v][i] * xhat[v][i];
            }
        }
    }
    dot = warp_sum(dot) / (float)p.C;
#pragma unroll
    for (int v = 0; v < V; v++) {
        size_t at = row * p.C + (size_t)(v * 32 + lane) * L;
        if (v * 32 + lane < vectors) {
            float y[L] = {};
            if (p.add != NULL) {
                load_whole(y, p.add + at);
            }
#pragma unroll
            for (int i = 0; i < L; i++) {
                y[i] += rstd * (g[v][i] - xhat[v][i] * dot);
            }
            store_whole(p.din + at, y);
        }
    }
}

/* Adds up x over the warps, lane by lane, first warp first; the last warp receives the sums. */
template <int L> __device__ __forceinline__ void add_up_warps(float (&x)[L]) {
    __shared__ float shared[32 * L];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int source = 0; source < BACKWARD_WARPS; source++) {
        __syncthreads();
        if (source == warp) {
#pragma unroll
            for (int i = 0; i < L; i++) {
                float *at = shared + i * 32 + lane;
                x[i] += source == 0 ? 0.0f : *at;
                *at = x[i];
            }
        }
    }
}

/* Eight warps a block; warp w of all takes the rows w, w + all, ... */
template <typename E, int V>
__global__ void __launch_bounds__(32 * BACKWARD_WARPS)
    rms_backward_in_warps(const struct rms_gradient<E> p) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, vectors = (int)(p.C / L);
    float dweight[V][L] = {};
    for (size_t row = (size_t)blockIdx.x * BACKWARD_WARPS + warp; row < p.rows;
         row += (size_t)gridDim.x * BACKWARD_WARPS) {
        rms_row<E, V>(dweight, p, row);
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        add_up_warps(dweight[v]);
        if (warp == BACKWARD_WARPS - 1 && v * 32 + lane < vectors) {
            store_whole(p.partial + blockIdx.x * p.C + (size_t)(v * 32 + lane) * L, dweight[v]);
        }
    }
}

/* Any row: partial sums of dweight first, as din may be dout. Blocks are (columns, rows). */
template <typename E>
__global__ void __launch_bounds__(BLOCK)
    rms_weight_partials(const struct rms_gradient<E> p, size_t rows_each) {
    size_t c = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    size_t end = min(p.rows, (blockIdx.y + 1) * rows_each);
    float sum = 0.0f;
    for (size_t row = blockIdx.y * rows_each; row < end && c < p.C; row++) {
        sum += to_float(p.dout[row * p.C + c]) * (to_float(p.in[row * p.C + c]) * p.stats[row]);
    }
    if (c < p.C) {
        p.partial[blockIdx.y * p.C + c] = sum;
    }
}

template <typename E>
__global__ void __launch_bounds__(BLOCK) rms_backward_in_blocks(const struct rms_gradient<E> p) {
    size_t row = blockIdx.x, begin = row * p.C;
    float rstd = p.stats[row], dot = 0.0f;
    for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
        dot += to_float(p.dout[begin + c]) * p.weight[c] * (to_float(p.in[begin + c]) * rstd);
    }
    dot = block_sum<BLOCK>(dot) / (float)p.C;
    for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
        float g = to_float(p.dout[begin + c]) * p.weight[c];
        float x = rstd * (g - to_float(p.in[begin + c]) * rstd * dot);
        store_rounded(p.din + begin + c, p.add != NULL ? x + to_float(p.add[begin + c]) : x);
    }
}

/* How many parts dweight comes in. */
size_t backward_partials(size_t rows) {
    size_t blocks = ceil_div(rows, (size_t)BACKWARD_WARPS);
    return blocks < BACKWARD_BLOCKS ? blocks : BACKWARD_BLOCKS;
}

template <typename E>
enum status run_rms_backward(const struct given_call *call, const struct rms_gradient<E> &p,
                             bool vector) {
    size_t partials = backward_partials(p.rows);
    unsigned blocks = (unsigned)partials, threads = 32 * BACKWARD_WARPS;
    by_vectors(
        vectors_of_lane<E>(p.C, vector),
        [&](auto v) {
            rms_backward_in_warps<E, decltype(v)::COUNT><<<blocks, threads, 0, call->stream>>>(p);
        },
        [&]() {
            dim3 grid((unsigned)ceil_div(p.C, (size_t)BLOCK), blocks);
            rms_weight_partials<E><<<grid, BLOCK, 0, call->stream>>>(p, ceil_div(p.rows, partials));
            rms_backward_in_blocks<E><<<(unsigned)p.rows, BLOCK, 0, call->stream>>>(p);
        });
    return device_launched("rmsnorm_backward", call->error);
}

/* to += parts. A block has 32 columns and adds eight runs of parts side by side, the runs' sums
   then in order. */
__global__ void __launch_bounds__(COLUMNS *GROUPS)
    add_partials(float *to, const float *from, size_t partials, size_t columns) {
    dependent_launch_begin();
    __shared__ float shared[GROUPS][COLUMNS];
    int lane = threadIdx.x % COLUMNS, group = threadIdx.x / COLUMNS;
    size_t c = (size_t)blockIdx.x * COLUMNS + lane, each = (partials + GROUPS - 1) / GROUPS;
    size_t end = min(partials, (group + 1) * each);
    float sum = 0.0f;
    if (c < columns) {
#pragma unroll 8
        for (size_t part = group * each; part < end; part++) {
            sum += from[part * columns + c];
        }
    }
    shared[group][lane] = sum;
    __syncthreads();
    if (group == 0 && c < columns) {
#pragma unroll
        for (int i = 1; i < GROUPS; i++) {
            sum += shared[i][lane];
        }
        to[c] += sum;
    }
}

} // namespace

enum status given_layernorm(const struct given_call *call, void *out, float *stats, void *sum,
                            const void *add, const void *in, const struct train_dropout *dropout,
                            const struct train_norm *norm, size_t rows, size_t C) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        struct norm_rows<E> p = {
            (E *)out, stats, (E *)sum, (const E *)add, (const E *)in, (const float *)norm->weight,
                (const float *)norm->bias, drop_of(dropout), rows, C, norm->eps
        };
        if (p.sum == p.in && p.add == NULL && p.d.limit == 0) {
            p.sum = NULL; /* it is there */
        }
        bool vector = whole(C * sizeof(E), out, sum, add, in) &&
                      whole(C * sizeof(E), norm->weight, norm->bias);
        return run_norm<E, false>(call, p, vector);
    });
}

enum status given_rmsnorm(const struct given_call *call, void *out, float *stats, const void *in,
                          const struct train_norm *norm, size_t rows, size_t C) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        const struct norm_rows<E> p = {
            (E *)out, stats, NULL, NULL, (const E *)in, (const float *)norm->weight, NULL,
                drop_of(NULL), rows, C, norm->eps
        };
        return run_norm<E, true>(call, p, whole(C * sizeof(E), out, in, norm->weight));
    });
}

size_t given_rmsnorm_backward_bytes(size_t rows, size_t C) {
    return backward_partials(rows) * C * sizeof(float);
}

enum status given_rmsnorm_backward(const struct given_call *call,
                                   const struct given_rmsnorm_gradient *g, void *workspace) {
    if (g->rows * g->C == 0) {
        return STATUS_OK;
    }
    enum status status = by_type(call, [&](auto e) {
        typedef decltype(e) E;
        const struct rms_gradient<E> p = {
            (E *)g->din, (const E *)g->add, (const E *)g->dout,
                (const E *)g->in, g->stats, g->weight, (float *)workspace, g->rows, g->C
        };
        bool vector =
            whole(g->C * sizeof(E), g->din, g->add, g->dout, g->in) && whole(0, g->weight);
        return run_rms_backward<E>(call, p, vector);
    });
    TRY(status);
    return given_add_partials(call, g->dweight, (const float *)workspace,
                              backward_partials(g->rows), g->C);
}

enum status given_add_partials(const struct given_call *call, float *to, const float *from,
                               size_t partials, size_t columns) {
    if (columns == 0) {
        return STATUS_OK;
    }
    unsigned blocks = (unsigned)ceil_div(columns, (size_t)COLUMNS);
    launch_dependent<add_partials>(blocks, COLUMNS * GROUPS, 0, call->stream, to, from, partials,
                                   columns);
    return device_launched("add_partials", call->error);
}
