/**
 * @file products.cu
 * @brief Kernels beside the matrix products: sums of columns, which are a bias's gradient, also of
 *        a matrix that is made on the way; and for fp32, whose sgemm() takes no transposed left
 *        operand, a copy that is transposed.
 */
#include "common/cuda/dependent_launch.cuh"
#include "labs/11_training/given/functions.cuh"
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int THREADS = 256;

/* Sums of columns over SUM_ROWS rows a block. A lane has a vector of columns, a warp every eighth
   row; then the warps' sums are added in order. Bytes: the matrix once, and
   1/64 of it in fp32. FLOPs: one an element. */
constexpr int SUM_ROWS = 64, WARPS = THREADS / 32, AT_ONCE = 2; /* rows that a lane loads */

/* Sums what f makes of `in` (and of `more`, if there is any), and stores it in `out`, likewise.
   Blocks are (rows, columns), columns innermost. */
template <typename E, typename F>
__global__ void __launch_bounds__(THREADS)
    sum_columns(float *sums, E *out, const E *in, const E *more, size_t rows, size_t columns,
                unsigned column_blocks, bool vector, F f) {
    dependent_launch_begin();
    constexpr int L = VECTOR_ELEMENTS<E>, WIDTH = 32 * L;
    __shared__ float shared[WARPS][WIDTH];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    size_t part = blockIdx.x / column_blocks, first = (size_t)(blockIdx.x % column_blocks) * WIDTH;
    size_t column = first + lane * L;
    float sum[L] = {};
#pragma unroll
    for (int i = 0; i < SUM_ROWS / WARPS; i += AT_ONCE) {
        float x[AT_ONCE][L] = {}, y[AT_ONCE][L] = {};
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            size_t row = part * SUM_ROWS + (i + j) * WARPS + warp;
            if (row < rows) {
                load_some(x[j], in + row * columns, column, columns, vector);
            }
            if (row < rows && more != NULL) {
                load_some(y[j], more + row * columns, column, columns, vector);
            }
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            size_t row = part * SUM_ROWS + (i + j) * WARPS + warp;
            if (row < rows && column < columns) {
                /* Of whole vectors the compiler knows which draws of dropout they share. */
                size_t at = row * columns + column;
                if (vector) {
                    f(x[j], y[j], at / L * L);
                } else {
                    f(x[j], y[j], at);
                }
            }
            if (row < rows && out != NULL) {
                store_some(out + row * columns, x[j], column, columns, vector);
            }
#pragma unroll
            for (int k = 0; k < L; k++) {
                sum[k] += x[j][k];
            }
        }
    }
#pragma unroll
    for (int j = 0; j < L; j++) {
        shared[warp][j * 32 + lane] = sum[j]; /* lanes side by side: no bank twice */
    }
    __syncthreads();
    for (int c = threadIdx.x; c < WIDTH && first + c < columns; c += THREADS) {
        float all = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            all += shared[w][c % L * 32 + c / L];
        }
        sums[part * columns + first + c] = all;
    }
}

struct unchanged {
    template <int L>
    __device__ __forceinline__ void operator()(float (&)[L], const float (&)[L], size_t) const {
    }
};

/* Transposes fp32: a block has a tile of 64 x 64, reads rows and writes columns, 16 bytes a thread,
   so that loads and stores are both coalesced.

   Banks: rows of the tile are 65 words apart, those from 32 on shifted by two more words, so that
   the threads of a warp, each of which gathers words from rows four apart, have no bank conflict.
 */
constexpr int TILE = 64, PIECES = TILE / 4, LEADS = THREADS / PIECES, PITCH = TILE + 1, SHIFT = 2;

__device__ __forceinline__ float *row_of(float *tile, int row) {
    return tile + row * PITCH + row / 32 * SHIFT;
}

/* Vectors of the second half of a row start with their third word: a warp stores two rows, whose
   halves would else be in the same banks. */
__device__ __forceinline__ void store_words(float *to, const float (&x)[4], int piece) {
    bool second = piece >= PIECES / 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[second ? i ^ 2 : i] = second ? x[i ^ 2] : x[i];
    }
}

/* Blocks are (columns, rows), tiles of rows innermost. */
__global__ void __launch_bounds__(THREADS)
    transpose(float *out, const float *in, size_t rows, size_t columns, unsigned row_tiles,
              bool vector_in, bool vector_out) {
    __shared__ float tile[TILE * PITCH + SHIFT];
    size_t first_row = (size_t)(blockIdx.x % row_tiles) * TILE;
    size_t first_column = (size_t)(blockIdx.x / row_tiles) * TILE;
    int piece = threadIdx.x % PIECES, lead = threadIdx.x / PIECES;
    float x[TILE / LEADS][4] = {};
#pragma unroll
    for (int i = 0; i < TILE / LEADS; i++) {
        size_t row = first_row + lead + i * LEADS;
        if (row < rows) {
            load_some(x[i], in + row * columns, first_column + piece * 4, columns, vector_in);
        }
    }
#pragma unroll
    for (int i = 0; i < TILE / LEADS; i++) {
        store_words(row_of(tile, lead + i * LEADS) + piece * 4, x[i], piece);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE / LEADS; i++) {
        size_t column = first_column + lead + i * LEADS;
        float y[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            y[j] = row_of(tile, piece * 4 + j)[lead + i * LEADS];
        }
        if (column < columns) {
            store_some(out + column * rows, y, first_row + piece * 4, rows, vector_out);
        }
    }
}

} // namespace

size_t given_column_partials(size_t rows) {
    return ceil_div(rows, (size_t)SUM_ROWS);
}

/* What a sum of columns reads, and where it stores what f makes of it. */
struct summed {
    void *out;
    const void *in, *more;
    size_t rows, columns;
};

template <typename F>
static enum status sum_all(const struct given_call *call, float *to, const struct summed &m,
                           float *partials, const char *name, F f) {
    if (m.rows * m.columns == 0) {
        return STATUS_OK;
    }
    enum status status = by_type(call, [&](auto e) {
        typedef decltype(e) E;
        unsigned column_blocks = (unsigned)ceil_div(m.columns, (size_t)32 * VECTOR_ELEMENTS<E>);
        unsigned blocks = (unsigned)given_column_partials(m.rows) * column_blocks;
        launch_dependent<sum_columns<E, F>>(blocks, THREADS, 0, call->stream, partials, (E *)m.out,
                                            (const E *)m.in, (const E *)m.more, m.rows, m.columns,
                                            column_blocks,
                                            whole(m.columns * sizeof(E), m.out, m.in, m.more), f);
        return device_launched(name, call->error);
    });
    TRY(status);
    return given_add_partials(call, to, partials, given_column_partials(m.rows), m.columns);
}

enum status given_sum_columns(const struct given_call *call, float *to, const void *in, size_t rows,
                              size_t columns, float *partials) {
    const struct summed m = {NULL, in, NULL, rows, columns};
    return sum_all(call, to, m, partials, "sum_columns", unchanged());
}

enum status given_activation_bias_backward(const struct given_call *call, void *din, float *dbias,
                                           const void *dout, const void *in, size_t rows, size_t C,
                                           enum nn_activation f, float *partials) {
    const struct summed m = {din, in, dout, rows, C};
    return f == NN_GELU ? sum_all(call, dbias, m, partials, "gelu_bias_backward",
                                  vectorwise<gelu_gradient>())
                        : sum_all(call, dbias, m, partials, "tanh_bias_backward",
                                  vectorwise<tangent_gradient>());
}

enum status given_dropout_bias_backward(const struct given_call *call, void *din, float *dbias,
                                        const void *dout, size_t rows, size_t C,
                                        const struct train_dropout *dropout, float *partials) {
    const struct dropped f = {drop_of(dropout)};
    const struct summed m = {din, dout, NULL, rows, C};
    return sum_all(call, dbias, m, partials, "dropout_bias_backward", f);
}

enum status given_transpose(const struct given_call *call, float *out, const float *in, size_t rows,
                            size_t columns) {
    if (rows * columns == 0) {
        return STATUS_OK;
    }
    unsigned row_tiles = (unsigned)ceil_div(rows, (size_t)TILE);
    unsigned blocks = row_tiles * (unsigned)ceil_div(columns, (size_t)TILE);
    transpose<<<blocks, THREADS, 0, call->stream>>>(out, in, rows, columns, row_tiles,
                                                    whole(columns * sizeof(float), in),
                                                    whole(rows * sizeof(float), out));
    return device_launched("transpose", call->error);
}
