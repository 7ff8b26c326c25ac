/**
 * @file embedding.cu
 * @brief Rows of tables: looked up, gathered, scattered, and their gradient without atomics.
 *
 * Looking up, gathering and scattering: a warp a row, eight rows a block, a lane every 32nd vector
 * of 16 bytes. Bytes: each row once in, once out (twice in where it is added to). No FLOPs to speak
 * of.
 *
 * The gradient of a table: a token's rows are those where it occurs, and they are to be summed up
 * in the same order each time. They come cut into pieces of at most TRAIN_PIECE rows. A warp has 32
 * vectors of a piece; where the piece is all that its id has, as with most ids, the sum goes to the
 * table at once, else to `partial`, from where a second kernel adds up the ids of several pieces.
 */
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int WARPS = 8, THREADS = 32 * WARPS;

enum rows_kind { LOOK_UP, ADD_LOOKED_UP, GATHER, SCATTER };

/* out[i] = table[index[i]], or +=; scatter: out[index[i]] += table[i]. F: the table's elements. */
template <enum rows_kind KIND, typename E, typename F>
__global__ void __launch_bounds__(THREADS)
    move_rows(E *out, const F *table, const int32_t *index, size_t rows, size_t C, bool vector) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= rows) {
        return;
    }
    size_t other = (size_t)index[row];
    const F *from = table + (KIND == SCATTER ? row : other) * C;
    E *to = out + (KIND == SCATTER ? other : row) * C;
#pragma unroll 4
    for (size_t c = threadIdx.x % 32 * L; c < C; c += 32 * L) {
        float x[L];
        load_some(x, from, c, C, vector);
        if (KIND == ADD_LOOKED_UP || KIND == SCATTER) {
            float y[L];
            load_some(y, (const E *)to, c, C, vector);
#pragma unroll
            for (int i = 0; i < L; i++) {
                x[i] += y[i];
            }
        }
        store_some(to, x, c, C, vector);
    }
}

template <enum rows_kind KIND, typename E, typename F>
enum status run_move(const struct given_call *call, void *out, const void *table,
                     const int32_t *index, size_t rows, size_t C, const char *name) {
    if (rows * C == 0) {
        return STATUS_OK;
    }
    bool vector = whole(C * sizeof(E), out, table);
    move_rows<KIND, E, F><<<(unsigned)ceil_div(rows, (size_t)WARPS), THREADS, 0, call->stream>>>(
        (E *)out, (const F *)table, index, rows, C, vector);
    return device_launched(name, call->error);
}

/* ---- The gradient of a table ---- */

struct table_gradient {
    float *dtable, *partial;
    struct train_occurrences o;
    size_t C;
    unsigned chunks; /* of 32 vectors, a row */
    bool vector;
};

/* The last id whose first piece is not behind `piece`. */
__device__ __forceinline__ size_t id_of(const struct train_occurrences &o, int32_t piece) {
    size_t low = 0, high = o.id_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (o.firsts[middle] <= piece) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* sum += columns c .. of the rows row(first) .. row(end - 1) of `from`, in this order; vectors of
   eight rows are on their way at once, as no branch lies between the loads. */
template <typename E, int L, typename ROW>
__device__ __forceinline__ void sum_rows(float (&sum)[L], const E *from, size_t c, size_t first,
                                         size_t end, const struct table_gradient &g, ROW row) {
    constexpr int TOGETHER = 8;
    float x[L];
    size_t i = first;
    for (; g.vector && i + TOGETHER <= end; i += TOGETHER) {
        uint4 raw[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            raw[k] = *(const uint4 *)(from + row(i + k) * g.C + c);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            unpack_whole(x, raw[k]);
#pragma unroll
            for (int j = 0; j < L; j++) {
                sum[j] += x[j];
            }
        }
    }
    for (; i < end; i++) {
        load_some(x, from + row(i) * g.C, c, g.C, g.vector);
#pragma unroll
        for (int j = 0; j < L; j++) {
            sum[j] += x[j];
        }
    }
}

/* to[c ..] += x, of a row of C. */
template <int L>
__device__ __forceinline__ void add_to_row(float *to, float (&x)[L], size_t c,
                                           const struct table_gradient &g) {
    float y[L];
    load_some(y, (const float *)to, c, g.C, g.vector);
#pragma unroll
    for (int i = 0; i < L; i++) {
        x[i] += y[i];
    }
    store_some(to, x, c, g.C, g.vector);
}

/* Warps are (piece, chunk), chunks innermost. */
template <typename E>
__global__ void __launch_bounds__(THREADS)
    sum_pieces(const struct table_gradient g, const E *dout) {
    constexpr int L = VECTOR_ELEMENTS<E>;
    size_t warp = (size_t)blockIdx.x * WARPS + threadIdx.x / 32, piece = warp / g.chunks;
    size_t c = (warp % g.chunks * 32 + threadIdx.x % 32) * L;
    if (piece >= g.o.piece_count || c >= g.C) {
        return;
    }
    float sum[L] = {};
    sum_rows(sum, dout, c, (size_t)g.o.pieces[piece], (size_t)g.o.pieces[piece + 1], g,
             [&](size_t i) { return (size_t)g.o.rows[i]; });
    size_t id = id_of(g.o, (int32_t)piece);
    if (g.o.firsts[id + 1] - g.o.firsts[id] == 1) {
        add_to_row(g.dtable + (size_t)g.o.ids[id] * g.C, sum, c, g);
    } else {
        store_some(g.partial + piece * g.C, sum, c, g.C, g.vector);
    }
}

/* Ids of several pieces. Warps are (id, chunk), chunks innermost, of four floats a lane. */
__global__ void __launch_bounds__(THREADS) add_pieces(const struct table_gradient g) {
    constexpr int L = 4;
    size_t warp = (size_t)blockIdx.x * WARPS + threadIdx.x / 32, id = warp / g.chunks;
    size_t c = (warp % g.chunks * 32 + threadIdx.x % 32) * L;
    if (id >= g.o.id_count || c >= g.C) {
        return;
    }
    size_t first = (size_t)g.o.firsts[id], end = (size_t)g.o.firsts[id + 1];
    if (end - first == 1) {
        return;
    }
    float sum[L] = {};
    sum_rows(sum, (const float *)g.partial, c, first, end, g, [](size_t i) { return i; });
    add_to_row(g.dtable + (size_t)g.o.ids[id] * g.C, sum, c, g);
}

} // namespace

enum status given_embedding(const struct given_call *call, void *out, const float *table,
                            const int32_t *ids, size_t rows, size_t C, bool accumulate) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        return accumulate
                   ? run_move<ADD_LOOKED_UP, E, float>(call, out, table, ids, rows, C, "embedding")
                   : run_move<LOOK_UP, E, float>(call, out, table, ids, rows, C, "embedding");
    });
}

enum status given_gather(const struct given_call *call, void *out, const void *in,
                         const int32_t *index, size_t count, size_t C) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        return run_move<GATHER, E, E>(call, out, in, index, count, C, "gather");
    });
}

enum status given_scatter(const struct given_call *call, void *out, const void *in,
                          const int32_t *index, size_t count, size_t C) {
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        return run_move<SCATTER, E, E>(call, out, in, index, count, C, "scatter");
    });
}

enum status given_embedding_backward(const struct given_call *call, float *dtable, const void *dout,
                                     const struct train_occurrences *occurrences, size_t C,
                                     float *partial) {
    if (occurrences->piece_count * C == 0) {
        return STATUS_OK;
    }
    struct table_gradient g = {dtable, partial, *occurrences, C, 0, false};
    enum status status = by_type(call, [&](auto e) {
        typedef decltype(e) E;
        g.chunks = (unsigned)ceil_div(C, (size_t)32 * VECTOR_ELEMENTS<E>);
        g.vector = whole(C * sizeof(E), dtable, dout, partial);
        unsigned blocks = (unsigned)ceil_div(g.o.piece_count * g.chunks, (size_t)WARPS);
        sum_pieces<<<blocks, THREADS, 0, call->stream>>>(g, (const E *)dout);
        return device_launched("sum_pieces", call->error);
    });
    if (status != STATUS_OK || g.o.piece_count == g.o.id_count) {
        return status;
    }
    g.chunks = (unsigned)ceil_div(C, (size_t)32 * 4);
    unsigned blocks = (unsigned)ceil_div(g.o.id_count * g.chunks, (size_t)WARPS);
    add_pieces<<<blocks, THREADS, 0, call->stream>>>(g);
    return device_launched("add_pieces", call->error);
}
