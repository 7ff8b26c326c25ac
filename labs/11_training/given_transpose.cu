/**
 * @file given_transpose.cu
 * @brief Copies of matrices the other way round, which products for gradients read; and biases.
 *
 * A block of 256 threads has a tile of 64 x 64, of one of up to three matrices. It reads rows, 16
 * bytes a thread, into shared memory, and writes columns, 16 bytes a thread, so that both ways are
 * whole lines of memory. The column's sum, which is a bias's gradient, falls off: the threads that
 * hold a column's pieces are neighbours in a warp. Bytes: the matrix once in, once out, and 1/64 of
 * it for the sums. FLOPs: at most one an element.
 *
 * Banks: rows of the tile are an odd number of words apart, and those from 32 on are shifted by a
 * few more, so that the threads of a warp, which gather an element each from rows a piece apart,
 * meet no bank twice. (simt counts no conflict, of reads and writes.)
 */
#include "labs/11_training/given_parts.cuh"

namespace {

constexpr int THREADS = 256, TILE = 64;

template <typename E> struct tile {
    static constexpr int L = LANES<E>, PIECES = TILE / L, ROWS = THREADS / PIECES;
    static constexpr int WORDS = TILE * (int)sizeof(E) / 4, PITCH = WORDS + 1;
    static constexpr int SHIFT = sizeof(E) == 2 ? 4 : 2;
    static constexpr int SIZE = TILE * PITCH + SHIFT;

    /* A row's first element. */
    static __device__ __forceinline__ E *row(unsigned *words, int r) {
        return (E *)(words + r * PITCH + r / 32 * SHIFT);
    }
};

/* A piece of a row. The second half of a row of fp32 begins with its third word: a warp has two
   rows, whose halves would else meet in the same banks. */
__device__ __forceinline__ void put_words(float *to, const float (&x)[4], int piece) {
    bool second = piece >= 8;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[second ? i ^ 2 : i] = second ? x[i ^ 2] : x[i];
    }
}

__device__ __forceinline__ void put_words(__nv_bfloat16 *to, const float (&x)[8], int) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        ((unsigned *)to)[i] = pair_of(x[2 * i], x[2 * i + 1]);
    }
}

/* One matrix, as the kernel takes it: it has the blocks from `first` on, tiles of rows innermost.
 */
struct turn {
    const void *in;
    void *out;
    float *sums;
    size_t rows, columns, padded;
    unsigned first, row_tiles;
    bool vector_in, vector_out;
};

struct turns {
    struct turn list[GIVEN_TRANSPOSITIONS]; /* those behind the last one begin behind all blocks */
};

/* The block's matrix. (An index would put the list into local memory.) */
__device__ __forceinline__ struct turn turn_of(const struct turns &turns) {
    struct turn t = turns.list[0];
#pragma unroll
    for (int i = 1; i < GIVEN_TRANSPOSITIONS; i++) {
        if (blockIdx.x >= turns.list[i].first) {
            t = turns.list[i];
        }
    }
    return t;
}

/* What is outside of the matrix is zeros. */
template <typename E>
__global__ void __launch_bounds__(THREADS) transpose(const struct turns turns) {
    typedef tile<E> T;
    __shared__ unsigned words[T::SIZE];
    const struct turn t = turn_of(turns);
    unsigned row_tile = (blockIdx.x - t.first) % t.row_tiles;
    size_t first_row = (size_t)row_tile * TILE;
    size_t first_column = (size_t)((blockIdx.x - t.first) / t.row_tiles) * TILE;
    int piece = threadIdx.x % T::PIECES, lead = threadIdx.x / T::PIECES;
    float x[TILE / T::ROWS][T::L] = {};
#pragma unroll
    for (int i = 0; i < TILE / T::ROWS; i++) {
        size_t row = first_row + lead + i * T::ROWS;
        if (row < t.rows) {
            load_some(x[i], (const E *)t.in + row * t.columns, first_column + piece * T::L,
                      t.columns, t.vector_in);
        }
    }
#pragma unroll
    for (int i = 0; i < TILE / T::ROWS; i++) {
        put_words(T::row(words, lead + i * T::ROWS) + piece * T::L, x[i], piece);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE / T::ROWS; i++) {
        size_t column = first_column + lead + i * T::ROWS;
        float y[T::L], sum = 0.0f;
#pragma unroll
        for (int j = 0; j < T::L; j++) {
            y[j] = to_float(T::row(words, piece * T::L + j)[lead + i * T::ROWS]);
            sum += y[j];
        }
        if (column < t.columns) {
            store_some((E *)t.out + column * t.padded, y, first_row + piece * T::L, t.padded,
                       t.vector_out);
        }
        sum = warp_sum<T::PIECES>(sum);
        if (t.sums != NULL && piece == 0 && column < t.columns) {
            t.sums[row_tile * t.columns + column] = sum;
        }
    }
}

/* Rows of `to` pieces, chunks of 256 of them a block: blocks are (row, chunk), chunks innermost. */
template <typename E>
__global__ void __launch_bounds__(THREADS)
    spread_rows(E *out, const float *bias, size_t N, unsigned chunks, bool vector) {
    constexpr int L = LANES<E>;
    size_t row = blockIdx.x / chunks;
    size_t first = (size_t)(blockIdx.x % chunks * THREADS + threadIdx.x) * L;
    float x[L];
    if (first < N) {
        load_some(x, bias, first, N, vector);
        store_some(out + row * N, x, first, N, vector);
    }
}

template <typename E>
__global__ void __launch_bounds__(THREADS)
    pad_rows(E *out, const E *in, size_t N, size_t padded, unsigned chunks) {
    constexpr int L = LANES<E>;
    size_t row = blockIdx.x / chunks;
    size_t first = (size_t)(blockIdx.x % chunks * THREADS + threadIdx.x) * L;
    float x[L];
    if (first < padded) {
        load_some(x, in + row * N, first, N, false);
        store_some(out + row * padded, x, first, padded, padded % L == 0);
    }
}

template <typename E> unsigned chunks_of(size_t columns) {
    return (unsigned)ceil_div(columns, (size_t)THREADS * LANES<E>);
}

} // namespace

size_t given_transposition_parts(size_t rows) {
    return ceil_div(rows, (size_t)TILE);
}

enum status given_transpose(const struct given_call *call, const struct given_transposition *list,
                            size_t count) {
    struct turns turns;
    size_t element = nn_dtype_bytes(call->type);
    unsigned blocks = 0;
    for (size_t i = 0; i < GIVEN_TRANSPOSITIONS; i++) {
        const struct given_transposition none = {}, *t = i < count ? &list[i] : &none;
        unsigned row_tiles = (unsigned)given_transposition_parts(t->rows);
        turns.list[i] = {t->in,
                         t->out,
                         t->sums,
                         t->rows,
                         t->columns,
                         t->padded,
                         blocks,
                         row_tiles,
                         whole(t->columns * element, t->in),
                         whole(t->padded * element, t->out)};
        blocks += row_tiles * (unsigned)ceil_div(t->columns, (size_t)TILE);
    }
    if (blocks == 0) {
        return STATUS_OK;
    }
    return by_type(call, [&](auto e) {
        transpose<decltype(e)><<<blocks, THREADS, 0, call->stream>>>(turns);
        return device_launched("transpose", call->error);
    });
}

enum status given_spread_bias(const struct given_call *call, void *out, const float *bias,
                              size_t rows, size_t N) {
    if (rows * N == 0) {
        return STATUS_OK;
    }
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        unsigned chunks = chunks_of<E>(N);
        spread_rows<<<(unsigned)(rows * chunks), THREADS, 0, call->stream>>>(
            (E *)out, bias, N, chunks, whole(N * sizeof(E), out, bias));
        return device_launched("spread_rows", call->error);
    });
}

enum status given_pad(const struct given_call *call, void *out, const void *in, size_t rows,
                      size_t N, size_t padded) {
    if (rows * padded == 0) {
        return STATUS_OK;
    }
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        unsigned chunks = chunks_of<E>(padded);
        pad_rows<<<(unsigned)(rows * chunks), THREADS, 0, call->stream>>>((E *)out, (const E *)in,
                                                                          N, padded, chunks);
        return device_launched("pad_rows", call->error);
    });
}
