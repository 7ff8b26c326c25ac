/**
 * @file kv_cache_v3_in_flight.cu
 * @brief Step 3: a block has several rows, and loads all of its weights before it needs any.
 *
 * Changes since v2: a block's threads share 2 to 8 rows. A thread loads its pieces of all rows,
 * usually 8 of 16 bytes, into registers, then x, once for all rows; sums are reduced in shared
 * memory. (The code is in gemv.cuh.)
 *
 * Why: memory answers after 0.6 microseconds or more. To move 4.4 TB/s, 2.6 MB must be in flight,
 * 20 KB a multiprocessor; a warp a row with one load of 16 bytes a lane at a time reaches that only
 * if most warps always have one in flight. And x, twice the size of a row in bf16, is loaded once
 * for 4 rows.
 *
 * What is left: with a norm, the block first reads x for its squares and waits at a barrier.
 */
#include "solutions/09_kv_cache/steps/gemv.cuh"
#include "solutions/09_kv_cache/steps/ladder.h"

template <typename E, int PASSES, int ROWS>
static __global__ void __launch_bounds__(PRODUCT_THREADS) linear_v3_kernel(struct product p) {
    const struct kv_linear &l = p.l;
    __shared__ float shared[32];
    size_t row = (size_t)blockIdx.x * ROWS, pieces = l.K / VECTOR_ELEMENTS<E>;
    int valid_rows = l.N - row < ROWS ? (int)(l.N - row) : ROWS;
    float sums[ROWS] = {}, squares = 0.0f, unused = 0.0f;
    for (size_t k = threadIdx.x; l.norm != NULL && k < l.K; k += blockDim.x) {
        squares += l.in[k] * l.in[k];
    }
    squares = block_sum(squares, shared);
    uint4 w[ROWS][PASSES];
    for (size_t first = 0; first < pieces; first += (size_t)blockDim.x * PASSES) {
        load_pieces<PASSES, ROWS>(w, (const uint4 *)l.weight + row * pieces, pieces, first,
                                  valid_rows);
        add_products<E, PASSES, ROWS>(sums, &unused, w, p, pieces, first);
    }
    bool adds = l.residual != NULL && (int)threadIdx.x < valid_rows;
    float residual = adds ? l.residual[row + threadIdx.x] : 0.0f;
    product_epilogue<ROWS>(sums, threadIdx.x == 0 ? squares : 0.0f, p, l.out + row, residual,
                           valid_rows);
}

/* About 8 pieces a thread. */
template <typename E> static void launch_v3(const struct kv_linear &l, device_stream stream) {
    size_t pieces = l.K / VECTOR_ELEMENTS<E>, N = l.N;
    struct product p = {};
    p.l = l;
    int passes = pieces <= 256 ? 1 : 2;
    size_t threads = ceil_div(ceil_div(pieces, passes), 32) * 32;
    unsigned block = (unsigned)(threads < PRODUCT_THREADS ? threads : PRODUCT_THREADS);
    if (passes == 2) {
        linear_v3_kernel<E, 2, 4><<<(unsigned)ceil_div(N, 4), block, 0, stream>>>(p);
    } else if (N >= 8 * 264) { /* enough blocks for every multiprocessor's two */
        linear_v3_kernel<E, 1, 8><<<(unsigned)ceil_div(N, 8), block, 0, stream>>>(p);
    } else {
        linear_v3_kernel<E, 1, 2><<<(unsigned)ceil_div(N, 2), block, 0, stream>>>(p);
    }
}

enum status kv_linear_v3_in_flight(const struct kv_linear *linear, device_stream stream,
                                   struct error *error) {
    TRY(kv_linear_check(linear, error));
    if (linear->N == 0 || !linear_aligned(linear)) {
        return kv_linear_v2_warp_rows(linear, stream, error);
    }
    FOR_ELEMENT_TYPE(linear->dtype, (launch_v3<E>(*linear, stream)));
    return device_launched("linear_v3", error);
}

enum status kv_attention_v3_in_flight(const struct kv_attention *attention, void *workspace,
                                      device_stream stream, struct error *error) {
    TRY(kv_attention_check(attention, error));
    struct kv_linear product = qkv_product(attention, (float *)workspace);
    TRY(kv_linear_v3_in_flight(&product, stream, error));
    return kv_attend_heads(attention, (float *)workspace, stream, error);
}
