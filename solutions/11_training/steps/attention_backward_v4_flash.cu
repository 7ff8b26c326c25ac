/**
 * @file attention_backward_v4_flash.cu
 * @brief Attention: tiles of p and ds in shared memory, computed again where they are needed.
 *
 * Changes since v3 (attention as in v1): no matrix goes to memory. A block owns rows whose
 * gradients it accumulates in registers, and loops over tiles of the other rows
 * (tile_coordinates.cuh): a kernel for dk and dv, in which blocks own keys, and one for dq, in
 * which they own queries. p is recomputed from the forward pass's lse, without another softmax.
 * (Dao et al. 2022, section 3 and appendix B; two kernels instead of atomic sums of dq.)
 *
 * Why: the matrices are 8 NH rows longest bytes, written once and read twice; and v1's every FMA
 * reads two operands from a cache. Here a thread has 4 x 4 of a tile: two loads of 16 bytes from
 * shared memory serve 16 FMAs.
 *
 * Launch: 256 threads for each sequence, head and 64 own rows (heads above 64 channels: 32), in
 * tiles of 64 (32) others; 103 KiB of shared memory (75), two blocks a multiprocessor. A kernel
 * before them computes delta, with a lane for each vector of a row and head, and stores lse by
 * heads. Bytes: q, k, v and dout once for each tile of the other operands, mostly from the L2
 * cache. FLOPs: 14 HS for each pair of a query and a key that it sees.
 *
 * bf16 is converted to fp32 in shared memory. GPUs with less shared memory use smaller tiles, or
 * v1.
 */
#include "solutions/11_training/steps/flash_tile.cuh"

enum { THREADS = 256 };

/* delta and lse of a row and head: 2^shift lanes, a vector each. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    compute_query_stats(const struct attention_backward_problem p, struct query_stats stats,
                        int shift) {
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x, index = thread >> shift;
    size_t first = (thread & ((1u << shift) - 1)) * VECTOR_ELEMENTS<E>;
    bool there = index < p.rows * p.NH;
    float sum = 0.0f;
    if (there && first < p.HS) {
        float a[VECTOR_ELEMENTS<E>], b[VECTOR_ELEMENTS<E>];
        unpack_vector(*(const uint4 *)((const E *)p.dout + index * p.HS + first), a);
        unpack_vector(*(const uint4 *)((const E *)p.out + index * p.HS + first), b);
#pragma unroll
        for (int e = 0; e < VECTOR_ELEMENTS<E>; e++) {
            sum += a[e] * b[e];
        }
    }
    for (int offset = 1 << shift >> 1; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(~0u, sum, offset);
    }
    if (there && first == 0) {
        unsigned heads = (unsigned)p.NH; /* a division of 64 bits is 100 instructions */
        unsigned row = index >> 32 == 0 ? (unsigned)index / heads : (unsigned)(index / heads);
        size_t to = (index - row * p.NH) * p.rows + row;
        stats.delta[to] = sum;
        stats.lse[to] = p.lse[index] * LOG2_E;
    }
}

template <typename E>
static enum status launch_query_stats(const struct attention_backward_problem *p, void *scratch,
                                      device_stream stream, struct error *error) {
    unsigned blocks = 0;
    int shift = 0;
    while (((size_t)VECTOR_ELEMENTS<E> << shift) < p->HS) {
        shift++;
    }
    size_t threads = p->rows * p->NH << shift;
    TRY(count_blocks("attention_backward", (threads + THREADS - 1) / THREADS, &blocks, error));
    const struct query_stats stats = query_stats_in(*p, scratch);
    compute_query_stats<E><<<blocks, THREADS, 0, stream>>>(*p, stats, shift);
    return device_launched("compute_query_stats", error);
}

enum status attention_query_stats(const struct attention_backward_problem *p, void *scratch,
                                  device_stream stream, struct error *error) {
    return p->dtype == NN_F32 ? launch_query_stats<float>(p, scratch, stream, error)
                              : launch_query_stats<__nv_bfloat16>(p, scratch, stream, error);
}

/* Loads rows first .. of a head as fp32; rows and channels beyond the end become 0. */
template <int ROWS, typename TILE, typename E>
static __device__ __forceinline__ void load_tile(float (*to)[TILE::PITCH], const E *from,
                                                 size_t stride, int first, int T, int channels) {
    constexpr int L = VECTOR_ELEMENTS<E>, VECTORS = TILE::HS / L;
    for (int i = threadIdx.x; i < ROWS * VECTORS; i += THREADS) {
        int row = i / VECTORS, channel = i % VECTORS * L;
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (first + row < T && channel < channels) {
            bits = *(const uint4 *)(from + (size_t)(first + row) * stride + channel);
        }
        float x[L];
        unpack_vector(bits, x);
#pragma unroll
        for (int e = 0; e < L; e += 4) {
            *(float4 *)&to[row][channel + e] = make_float4(x[e], x[e + 1], x[e + 2], x[e + 3]);
        }
    }
}

/* lse and delta of a head's queries first .. */
template <int ROWS, typename TILE>
static __device__ __forceinline__ void
load_stats(typename TILE::shared &tile, const struct attention_backward_problem &p,
           const struct query_stats &stats, const struct tile_coordinates &s, unsigned head,
           int first) {
    size_t from = head * p.rows + s.start + first;
    for (int i = threadIdx.x; i < ROWS; i += THREADS) {
        tile.lse[i] = first + i < s.T ? stats.lse[from + i] : 0.0f;
        tile.delta[i] = first + i < s.T ? stats.delta[from + i] : 0.0f;
    }
}

template <typename E, typename TILE, bool KEYS_OWN>
static __global__ void __launch_bounds__(THREADS, 2)
    flash_backward(const struct attention_backward_problem p, const struct query_stats stats) {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    typename TILE::shared &tile = *(typename TILE::shared *)shared_bytes;
    const struct tile_coordinates s = locate_tile<KEYS_OWN, TILE::OWN, TILE::OTHER>(p);
    if (s.first >= s.T) {
        return;
    }
    int HS = (int)p.HS;
    const struct operands<E> own = own_operands<KEYS_OWN, E>(p, s);
    load_tile<TILE::OWN, TILE>(tile.own_x, own.x, own.x_stride, s.first, s.T, HS);
    load_tile<TILE::OWN, TILE>(tile.own_y, own.y, own.y_stride, s.first, s.T, HS);
    if (!KEYS_OWN) {
        load_stats<TILE::OWN, TILE>(tile, p, stats, s, s.head, s.first);
    }
    float first[TILE::SUM_ROWS][TILE::CHANNELS] = {}, second[TILE::SUM_ROWS][TILE::CHANNELS] = {};
    for (unsigned head = s.other; head < s.other_end; head++) {
        const struct operands<E> others = other_operands<KEYS_OWN, E>(p, s, head);
        for (int t = s.tile; t < s.tile_end; t++) {
            int other = t * TILE::OTHER;
            load_tile<TILE::OTHER, TILE>(tile.other_x, others.x, others.x_stride, other, s.T, HS);
            load_tile<TILE::OTHER, TILE>(tile.other_y, others.y, others.y_stride, other, s.T, HS);
            if (KEYS_OWN) {
                load_stats<TILE::OTHER, TILE>(tile, p, stats, s, head, other);
            }
            __syncthreads();
            compute_p_ds<TILE, KEYS_OWN>(tile, p, s, other);
            __syncthreads();
            add_products<TILE>(first, tile.ds, tile.other_x);
            if (KEYS_OWN) {
                add_products<TILE>(second, tile.p, tile.other_y);
            }
            __syncthreads(); /* the tile has been read */
        }
    }
    size_t stride = KEYS_OWN ? p.kv_stride : p.q_stride, column = s.head * p.HS;
    E *to = (E *)(KEYS_OWN ? p.dk : p.dq) + column;
    store_sums<TILE>(to, stride, first, p.scale, s, HS);
    if (KEYS_OWN) {
        store_sums<TILE>((E *)p.dv + column, stride, second, 1.0f, s, HS);
    }
}

template <typename E, typename TILE, bool KEYS_OWN>
static enum status launch_kernel(const struct attention_backward_problem *p, void *scratch,
                                 device_stream stream, struct error *error) {
    constexpr size_t BYTES = sizeof(typename TILE::shared);
    static const cudaError_t allowed = cudaFuncSetAttribute(
        flash_backward<E, TILE, KEYS_OWN>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)BYTES);
    unsigned blocks = 0;
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention_backward: %s",
                         cudaGetErrorString(allowed));
    }
    TRY(count_tiles(p, KEYS_OWN, TILE::OWN, &blocks, error));
    flash_backward<E, TILE, KEYS_OWN>
        <<<blocks, THREADS, BYTES, stream>>>(*p, query_stats_in(*p, scratch));
    return device_launched("flash_backward", error);
}

template <typename E, typename TILE>
static enum status launch(const struct attention_backward_problem *p, void *scratch, bool all,
                          device_stream stream, struct error *error) {
    if (all) {
        TRY(attention_query_stats(p, scratch, stream, error));
        TRY((launch_kernel<E, TILE, true>(p, scratch, stream, error)));
    }
    return launch_kernel<E, TILE, false>(p, scratch, stream, error);
}

/* With `all` everything; else dq alone, from query_stats that are there. */
template <typename E>
static enum status launch_sizes(const struct attention_backward_problem *p, void *scratch, bool all,
                                device_stream stream, struct error *error) {
    typedef flash_tile<64, 64, 64, THREADS, EDGE> large;
    typedef flash_tile<64, 32, 32, THREADS, EDGE> small;
    typedef flash_tile<128, 32, 32, THREADS, EDGE> wide;
    size_t room = gpu_limits().shared_bytes;
    if (p->HS <= 64 && sizeof(large::shared) <= room) {
        return launch<E, large>(p, scratch, all, stream, error);
    }
    if (p->HS <= 64 && sizeof(small::shared) <= room) {
        return launch<E, small>(p, scratch, all, stream, error);
    }
    if (p->HS > 64 && sizeof(wide::shared) <= room) {
        return launch<E, wide>(p, scratch, all, stream, error);
    }
    return starter_attention_backward(p, scratch, stream, error);
}

enum status attention_backward_v4_flash(const struct attention_backward_problem *p, void *scratch,
                                        device_stream stream, struct error *error) {
    TRY(attention_backward_check(p, error));
    if (p->rows == 0) {
        return STATUS_OK;
    }
    return p->dtype == NN_F32 ? launch_sizes<float>(p, scratch, true, stream, error)
                              : launch_sizes<__nv_bfloat16>(p, scratch, true, stream, error);
}

enum status attention_backward_queries(const struct attention_backward_problem *p, void *scratch,
                                       device_stream stream, struct error *error) {
    return launch_sizes<__nv_bfloat16>(p, scratch, false, stream, error);
}
