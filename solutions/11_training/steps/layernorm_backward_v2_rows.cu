/**
 * @file layernorm_backward_v2_rows.cu
 * @brief LayerNorm: a warp or a block a row; the columns' sums stay in registers from row to row.
 *
 * Changes since v1: a row is read once, in vectors of 16 bytes, and kept until its two means are
 * known; shuffles add up the lanes' partial sums. A thread has the same columns of every row that
 * its block processes, so its partial sums of dweight and dbias stay in registers. A second kernel
 * adds up the blocks' partial sums, in the same order each time.
 *
 * Why: v1 reads in and dout three times, and a warp's loads of 32 rows are in 32 different places.
 *
 * Launch: persistent, as many blocks as run at once. Rows of up to 1024 columns have a warp each,
 * eight to a block of 256 threads; longer rows have a block of 256 or 512 threads. Second kernel: a
 * block of 1024 threads for 32 columns. Bytes: in, dout and din once, 3 rows C elements, and 16 C
 * bytes for each block's partial sums, which stay in the L2 cache. FLOPs: 16 an element.
 *
 * Rows that do not start at a multiple of 16 bytes (an odd C) are loaded element by element.
 */
#include "solutions/11_training/steps/ladder.h"
#include "solutions/11_training/steps/vectors.cuh"

/* GROUP_ threads a row, VECTORS_ of 16 bytes a thread. */
template <typename E_, int GROUP_, int VECTORS_, bool ALIGNED_> struct row_tile {
    typedef E_ E;
    static constexpr int GROUP = GROUP_, VECTORS = VECTORS_;
    static constexpr bool ALIGNED = ALIGNED_;
    static constexpr int THREADS = GROUP == 32 ? 256 : GROUP, ROWS = THREADS / GROUP;
    static constexpr int COUNT = VECTORS * VECTOR_ELEMENTS<E>; /* columns of a thread */
    static constexpr int BLOCKS = THREADS > 256 || COUNT > 24 ? 1 : COUNT > 8 ? 2 : 4;
    static constexpr int COLUMNS = COUNT * GROUP;
};

/* The thread's first column of its vector v. */
template <typename TILE> static __device__ __forceinline__ int column(int v) {
    return (v * TILE::GROUP + (int)threadIdx.x % TILE::GROUP) * VECTOR_ELEMENTS<typename TILE::E>;
}

/* A vector of a row from column `first` on; elements behind the row are 0. */
template <typename TILE>
static __device__ __forceinline__ uint4 load_vector(const typename TILE::E *row, int first, int C) {
    if constexpr (TILE::ALIGNED) {
        return first < C ? *(const uint4 *)(row + first) : make_uint4(0, 0, 0, 0);
    } else {
        float x[VECTOR_ELEMENTS<typename TILE::E>];
#pragma unroll
        for (int e = 0; e < VECTOR_ELEMENTS<typename TILE::E>; e++) {
            x[e] = first + e < C ? to_float(row[first + e]) : 0.0f;
        }
        return pack_vector(x);
    }
}

template <typename TILE>
static __device__ __forceinline__ void
store_vector(typename TILE::E *row, int first, int C,
             const float (&x)[VECTOR_ELEMENTS<typename TILE::E>]) {
    if (TILE::ALIGNED && first < C) {
        *(uint4 *)(row + first) = pack_vector(x);
    }
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<typename TILE::E> && !TILE::ALIGNED; e++) {
        if (first + e < C) {
            row[first + e] = from_float<typename TILE::E>(x[e]);
        }
    }
}

/* Weights are fp32: one or two vectors. */
template <typename TILE>
static __device__ __forceinline__ void load_weights(const float *weight, int first, int C,
                                                    float (&w)[VECTOR_ELEMENTS<typename TILE::E>]) {
#pragma unroll
    for (int e = 0; e < VECTOR_ELEMENTS<typename TILE::E>; e += 4) {
        float four[4] = {};
        if (TILE::ALIGNED && first < C) {
            unpack_vector(__ldg((const uint4 *)(weight + first + e)), four);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool inside = !TILE::ALIGNED && first + e + i < C;
            w[e + i] = inside ? weight[first + e + i] : four[i];
        }
    }
}

/* Of all threads of a row, in each of them. */
template <typename TILE> static __device__ __forceinline__ float2 row_sums(float a, float b) {
    a = warp_sum<32>(a);
    b = warp_sum<32>(b);
    if constexpr (TILE::GROUP == 32) {
        return make_float2(a, b);
    } else {
        __shared__ float2 warps[TILE::THREADS / 32];
        __syncthreads(); /* the row before has been read */
        if (threadIdx.x % 32 == 0) {
            warps[threadIdx.x / 32] = make_float2(a, b);
        }
        __syncthreads();
        float2 sums = warps[0];
#pragma unroll
        for (int i = 1; i < TILE::THREADS / 32; i++) {
            sums.x += warps[i].x;
            sums.y += warps[i].y;
        }
        return sums;
    }
}

/* The thread's partial sums of its columns. */
template <typename TILE> struct column_sums { float weight[TILE::COUNT], bias[TILE::COUNT]; };

/* One row of a block: computes din and adds the row to the columns' sums. */
template <typename TILE>
static __device__ __forceinline__ void process_row(const struct layernorm_backward_problem &p,
                                                   size_t row, struct column_sums<TILE> &sums) {
    typedef typename TILE::E E;
    constexpr int L = VECTOR_ELEMENTS<E>;
    const E *in_row = (const E *)p.in + row * p.C, *dout_row = (const E *)p.dout + row * p.C;
    int C = (int)p.C;
    uint4 in[TILE::VECTORS], dout[TILE::VECTORS];
#pragma unroll
    for (int v = 0; v < TILE::VECTORS; v++) {
        in[v] = load_vector<TILE>(in_row, column<TILE>(v), C);
        dout[v] = load_vector<TILE>(dout_row, column<TILE>(v), C);
    }
    float2 stats = *(const float2 *)(p.stats + 2 * row); /* mean, rstd */
    float g_sum = 0.0f, gx_sum = 0.0f;
#pragma unroll
    for (int v = 0; v < TILE::VECTORS; v++) {
        float x[L], d[L], w[L];
        unpack_vector(in[v], x);
        unpack_vector(dout[v], d);
        load_weights<TILE>(p.weight, column<TILE>(v), C, w);
#pragma unroll
        for (int e = 0; e < L; e++) {
            float xhat = (x[e] - stats.x) * stats.y, g = d[e] * w[e];
            g_sum += g;
            gx_sum += g * xhat;
            sums.weight[v * L + e] += d[e] * xhat;
            sums.bias[v * L + e] += d[e];
        }
    }
    float2 means = row_sums<TILE>(g_sum, gx_sum);
    means.x /= (float)C;
    means.y /= (float)C;
#pragma unroll
    for (int v = 0; v < TILE::VECTORS; v++) {
        float x[L], d[L], w[L];
        unpack_vector(in[v], x);
        unpack_vector(dout[v], d);
        load_weights<TILE>(p.weight, column<TILE>(v), C, w);
#pragma unroll
        for (int e = 0; e < L; e++) {
            float xhat = (x[e] - stats.x) * stats.y;
            x[e] = stats.y * (d[e] * w[e] - means.x - xhat * means.y);
        }
        store_vector<TILE>((E *)p.din + row * p.C, column<TILE>(v), C, x);
    }
}

/* The blocks' partial sums: (blocks, 2, COUNT, GROUP). A thread's columns are GROUP apart, so that
   neighbouring threads store side by side. */
struct partial_sums {
    float *values;
    int group, lanes, columns; /* GROUP, LANES, COLUMNS */
};

/* The column that an element of a block's partial sums belongs to, as column() has it. */
static __device__ __forceinline__ int column_at(const struct partial_sums &partial, int index) {
    int i = index / partial.group, thread = index % partial.group;
    return (i / partial.lanes * partial.group + thread) * partial.lanes + i % partial.lanes;
}

/* Adds up the sums of the block's groups, one after another, and stores the block's. */
template <typename TILE>
static __device__ __forceinline__ void store_partial_sums(const struct column_sums<TILE> &sums,
                                                          float *to) {
    __shared__ float of_block[TILE::ROWS > 1 ? 2 * TILE::COLUMNS : 1];
    for (int row = 0; row < TILE::ROWS; row++) {
#pragma unroll
        for (int i = 0; i < TILE::COUNT && (int)threadIdx.x / TILE::GROUP == row; i++) {
            int index = i * TILE::GROUP + (int)threadIdx.x % TILE::GROUP;
            float weight = sums.weight[i], bias = sums.bias[i];
            if (TILE::ROWS > 1 && row > 0) {
                weight += of_block[index];
                bias += of_block[TILE::COLUMNS + index];
            }
            float *next = TILE::ROWS > 1 && row < TILE::ROWS - 1 ? of_block : to;
            next[index] = weight;
            next[TILE::COLUMNS + index] = bias;
        }
        __syncthreads();
    }
}

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS)
    layernorm_rows(const struct layernorm_backward_problem p, float *partial) {
    struct column_sums<TILE> sums = {};
    size_t row = (size_t)blockIdx.x * TILE::ROWS + threadIdx.x / TILE::GROUP;
    for (; row < p.rows; row += (size_t)gridDim.x * TILE::ROWS) {
        process_row<TILE>(p, row, sums);
    }
    store_partial_sums<TILE>(sums, partial + (size_t)blockIdx.x * 2 * TILE::COLUMNS);
}

enum { SUMMED_COLUMNS = 32, SLICES = 32 };

/* dweight and dbias += the blocks' partial sums: adds up slices of the blocks, then the slices. */
static __global__ void __launch_bounds__(SUMMED_COLUMNS *SLICES)
    layernorm_columns(float *dweight, float *dbias, const struct partial_sums partial, int blocks,
                      int C) {
    __shared__ float slices[SLICES][SUMMED_COLUMNS];
    int index = blockIdx.x * SUMMED_COLUMNS + threadIdx.x; /* of 2 COLUMNS, a multiple of 32 */
    float sum = 0.0f;
    for (int b = threadIdx.y; b < blocks; b += SLICES) {
        sum += partial.values[(size_t)b * 2 * partial.columns + index];
    }
    slices[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    int c = column_at(partial, index % partial.columns);
    if (threadIdx.y > 0 || c >= C) {
        return;
    }
    for (int i = 1; i < SLICES; i++) {
        sum += slices[i][threadIdx.x];
    }
    *(index < partial.columns ? dweight + c : dbias + c) += sum;
}

template <typename TILE>
static enum status launch(const struct layernorm_backward_problem *p, float *partial,
                          device_stream stream, struct error *error) {
    size_t wanted = (p->rows + TILE::ROWS - 1) / TILE::ROWS;
    size_t most = (size_t)gpu_limits().multiprocessors * TILE::BLOCKS;
    size_t room = TRAINING_WORKSPACE_BYTES / (2 * TILE::COLUMNS * sizeof(float));
    most = most < room ? most : room;
    unsigned blocks = (unsigned)(wanted < most ? wanted : most > 0 ? most : 1);
    const struct partial_sums where = {partial, TILE::GROUP, VECTOR_ELEMENTS<typename TILE::E>,
                                       TILE::COLUMNS};
    layernorm_rows<TILE><<<blocks, TILE::THREADS, 0, stream>>>(*p, partial);
    TRY(device_launched("layernorm_rows", error));
    constexpr unsigned GROUPS = 2 * TILE::COLUMNS / SUMMED_COLUMNS;
    layernorm_columns<<<GROUPS, dim3(SUMMED_COLUMNS, SLICES), 0, stream>>>(
        p->dweight, p->dbias, where, (int)blocks, (int)p->C);
    return device_launched("layernorm_columns", error);
}

/* The narrowest of the tiles that hold a row. */
template <typename TILE, typename... WIDER>
static enum status launch_first(const struct layernorm_backward_problem *p, float *partial,
                                device_stream stream, struct error *error) {
    if constexpr (sizeof...(WIDER) > 0) {
        if (p->C > TILE::COLUMNS) {
            return launch_first<WIDER...>(p, partial, stream, error);
        }
    }
    return launch<TILE>(p, partial, stream, error);
}

static enum status launch_fp32(const struct layernorm_backward_problem *p, float *partial,
                               device_stream stream, struct error *error) {
    typedef float E;
    if (p->C % VECTOR_ELEMENTS<E> != 0) {
        return launch_first<row_tile<E, 32, 2, false>, row_tile<E, 32, 8, false>,
                            row_tile<E, 256, 8, false>, row_tile<E, 512, 8, false>>(p, partial,
                                                                                    stream, error);
    }
    return launch_first<row_tile<E, 32, 2, true>, row_tile<E, 32, 4, true>,
                        row_tile<E, 32, 6, true>, row_tile<E, 32, 8, true>,
                        row_tile<E, 256, 4, true>, row_tile<E, 256, 8, true>,
                        row_tile<E, 512, 8, true>>(p, partial, stream, error);
}

static enum status launch_bf16(const struct layernorm_backward_problem *p, float *partial,
                               device_stream stream, struct error *error) {
    typedef __nv_bfloat16 E;
    if (p->C % VECTOR_ELEMENTS<E> != 0) {
        return launch_first<row_tile<E, 32, 1, false>, row_tile<E, 32, 4, false>,
                            row_tile<E, 256, 4, false>, row_tile<E, 512, 4, false>>(p, partial,
                                                                                    stream, error);
    }
    return launch_first<row_tile<E, 32, 1, true>, row_tile<E, 32, 2, true>,
                        row_tile<E, 32, 3, true>, row_tile<E, 32, 4, true>,
                        row_tile<E, 256, 2, true>, row_tile<E, 256, 4, true>,
                        row_tile<E, 512, 4, true>>(p, partial, stream, error);
}

enum status layernorm_backward_v2_rows(const struct layernorm_backward_problem *p, void *workspace,
                                       device_stream stream, struct error *error) {
    TRY(layernorm_backward_check(p, error));
    if (p->rows == 0) {
        return STATUS_OK;
    }
    return p->dtype == NN_F32 ? launch_fp32(p, (float *)workspace, stream, error)
                              : launch_bf16(p, (float *)workspace, stream, error);
}
