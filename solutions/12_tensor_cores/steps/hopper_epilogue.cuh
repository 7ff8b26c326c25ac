/**
 * @file hopper_epilogue.cuh
 * @brief v10's epilogues of wgmma's accumulators: one for each kind of result, whole lines, all
 * indices known to the compiler.
 *
 * A warp has 16 rows of each 64, which leave through shared memory in parts of 128 bytes a row:
 * stmatrix writes a part, rounded, and the TMA stores it. A warp has two store tiles, one filled
 * while the other one is read.
 *
 * The residual comes by the ring, in stages behind those of the tile's steps: no memory of its own,
 * and no copies that the first steps have to wait behind. On an H100 3072 x 768 x 8192 that adds to
 * fp32 takes 65 us instead of 70, 2048 x 2048 x 5632 with a residual 64 instead of 71. Gradients of
 * weights are added to it there, and leave from there. (Where the
 * blocks of a cluster split K, their sums take the ring: there the TMA brings the residual into the
 * store tiles while the first step is multiplied, and so it does for the rarer activations.) Of the
 * bias each lane loads two columns of 64 into registers, early, and shuffles pass them on; where
 * sums leave few registers a warpgroup has the bias of its tile in shared memory, as fp32: the
 * epilogue of 128 x 192 takes 5500 to 6800 cycles with a bias instead of 7300 to 8000, 11700 with
 * exact GELU instead of 13000 (H100; the mainloop beside it 9800, and only what is longer counts).
 * Attempts to make this cheaper, on an H100: where sums began with the bias, the same tiles
 * took 1.3 to 1.5 times as long, probably because accumulators that other instructions have written
 * keep wgmma from running ahead. GELU of eight or sixteen results at a time, so that none waits for
 * the special function unit, gained 0 to 2%; one loop instead of each part's code, 5% at one tile a
 * block, and lost 10% at eight.
 *
 * Sums are registers, so no index may be computed: a loop over parts that was not unrolled kept
 * them in local memory, and bias cost as much as the product (H200, 8192 x 2304 x 768: 107 us
 * instead of 49). All parts' code at once is short for a bias, 5 KiB. With an activation it is not,
 * and a block reads it once, from device memory: there the loop stays, and moves the sums one part
 * down.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_EPILOGUE_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_EPILOGUE_CUH_

#include "solutions/12_tensor_cores/steps/direct_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/hopper_tile.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#include "common/cuda/mma.cuh"

namespace {

/* A lane's two columns of the bias of a part, 2 lane and the one after, as they lie in memory: a
   pair of 16-bit elements, or two floats. (In a part of 32 columns lanes 16 and up repeat those
   before.) */
struct bias_pair {
    unsigned low, high;
};

template <typename T>
__device__ __forceinline__ struct bias_pair load_bias(const struct gemm16_epilogue &f, int n) {
    size_t at = (size_t)n + threadIdx.x % T::EACH * 2;
    struct bias_pair pair = {0, 0};
    if (f.bias != NULL && at < f.N && f.bias_is_float) {
        uint2 both = *(const uint2 *)((const float *)f.bias + at);
        pair.low = both.x, pair.high = both.y;
    } else if (f.bias != NULL && at < f.N) {
        pair.low = *(const unsigned *)((const typename T::E *)f.bias + at);
    }
    return pair;
}

/* The bias of columns 8 j + lane % 4 * 2 of a part, and of the one after. */
template <typename E>
__device__ __forceinline__ float2 bias_of(const struct bias_pair &pair, bool is_float, int j, E) {
    int source = 4 * j + threadIdx.x % 4;
    unsigned low = __shfl_sync(~0u, pair.low, source);
    if (is_float) {
        return make_float2(__uint_as_float(low),
                           __uint_as_float(__shfl_sync(~0u, pair.high, source)));
    }
    return unpack(low, E());
}

__device__ __forceinline__ float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / (1 + 2^t), to 4e-7 of it. */
__device__ __forceinline__ float logistic(float t) {
    return reciprocal(1.0f + power_of_two(t));
}

/* COUNT numbers. Beside wgmma each instruction counts, a special function hardly more than another
   one: GELU (tanh) has seven here. By a power of two, as gelu() is, it had nine, and 8192 x 2304 x
   768 took 7% longer (H100); its polynomial also has an error of 5e-6. */
template <int COUNT> __device__ __forceinline__ void activate_quickly(float *x, int activation) {
    constexpr float LOG2E = 1.4426950408889634f;
    constexpr float TANH = -2.0f * 0.79788456080286536f * LOG2E; /* -2 sqrt(2 / pi) log2(e) */
    if (activation == NN_GELU_TANH) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            x[i] *= logistic(x[i] * fmaf(0.044715f * TANH, x[i] * x[i], TANH));
        }
    } else if (activation == NN_SILU) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            x[i] *= logistic(-LOG2E * x[i]);
        }
    } else {
        activate<COUNT>(x, activation);
    }
}

/* The address that this lane passes to ldmatrix and stmatrix for columns 16 q to 16 q + 15 of a
   16-bit store tile: a row of one of four 8 x 8 matrices, in the TMA's swizzle. */
template <typename T> __device__ __forceinline__ unsigned matrix_at(unsigned store_tile, int q) {
    int lane = threadIdx.x % 32, row = lane % 16, piece = 2 * q + lane / 16;
    return store_tile + (T::STORE_COLUMNS == 64   ? row * 128 + (piece ^ row % 8) * 16
                         : T::STORE_COLUMNS == 32 ? row * 64 + (piece ^ row / 2 % 4) * 16
                                                  : row * 32 + (piece ^ row / 4 % 2) * 16);
}

/* A lane's pair of columns 8 j + lane % 4 * 2, row lane / 4, of a store tile of floats; that of the
   row 8 below lies 1024 bytes further on. */
__device__ __forceinline__ float2 *pair_at(unsigned char *store_tile, int j) {
    int row = threadIdx.x % 32 / 4, piece = 2 * j + threadIdx.x % 4 / 2;
    return (float2 *)(store_tile + row * 128 + (piece ^ row) * 16 + threadIdx.x % 2 * 8);
}

/* Four floats to the same address in block `rank` of the cluster; and from this one. */
__device__ __forceinline__ void store_to_block(unsigned address, unsigned rank, const float *x) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "st.shared::cluster.v4.f32 [remote], {%2, %3, %4, %5};\n}" ::"r"(address),
                 "r"(rank), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
}

__device__ __forceinline__ float4 load_shared(unsigned address) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}

/* Row and column of part `part` of a warp, of the tile's rows from `row` on. */
template <typename T>
__device__ __forceinline__ int2 part_origin(int row, int column, int part, int warp) {
    constexpr int ROW = T::GROUP_COLUMNS / 2 / T::EACH;
    return make_int2(row + part / ROW * 64 + warp % 4 * 16,
                     (T::GATE ? column / 2 : column) + part % ROW * T::STORE_COLUMNS);
}

/* x += the bias of a part's columns, `bias` in shared memory. */
template <typename T> __device__ __forceinline__ void add_shared_bias(float *x, const float *bias) {
#pragma unroll
    for (int j = 0; j < T::EACH / 4; j++) {
        float2 both = *(const float2 *)(bias + 8 * j + threadIdx.x % 4 * 2);
        x[4 * j] += both.x, x[4 * j + 1] += both.y;
        x[4 * j + 2] += both.x, x[4 * j + 3] += both.y;
    }
}

/* The same, in registers. */
template <typename T>
__device__ __forceinline__ void add_bias(float *x, const struct bias_pair &bias, bool is_float) {
#pragma unroll
    for (int j = 0; T::HAS_BIAS && j < T::EACH / 4; j++) {
        float2 both = bias_of(bias, is_float, j, typename T::E());
        x[4 * j] += both.x, x[4 * j + 1] += both.y;
        x[4 * j + 2] += both.x, x[4 * j + 3] += both.y;
    }
}

/* A part of a SiLU gate's results, 16 bits, from a lane's sums of 64 or 32 columns, gate and value
   in turn. A lane has columns 4 j + lane % 4 of out, and stmatrix takes pairs 2 (lane % 4) of
   eight: so neighbours exchange, then the middle two of four lanes. */
template <typename T>
__device__ __forceinline__ void write_gated(const float *x, unsigned store_tile) {
    constexpr float LOG2E = 1.4426950408889634f;
    typedef typename T::E E;
    int lane = threadIdx.x % 32, from = lane % 4 == 1 || lane % 4 == 2 ? lane ^ 3 : lane;
    unsigned pairs[T::EACH / 4]; /* of columns 8 q and up of out: upper row, lower row */
#pragma unroll
    for (int i = 0; i < T::EACH / 4; i++) {
        const float *left = x + i / 2 * 8 + i % 2 * 2, *right = left + 4;
        float y[2] = {left[0] * logistic(-LOG2E * left[0]) * left[1],
                      right[0] * logistic(-LOG2E * right[0]) * right[1]};
        float other = __shfl_xor_sync(~0u, lane % 2 ? y[0] : y[1], 1);
        unsigned pair = lane % 2 ? pack(other, y[1], E()) : pack(y[0], other, E());
        pairs[i] = __shfl_sync(~0u, pair, from);
    }
#pragma unroll
    for (int q = 0; q < T::EACH / 16; q++) {
        const struct fragment four = {pairs[4 * q], pairs[4 * q + 1], pairs[4 * q + 2],
                                      pairs[4 * q + 3]};
        stmatrix_x4(matrix_at<T>(store_tile, q), four);
    }
}

/* A part of 16-bit results, from a lane's sums x, into its store tile, where the residual lies if
   there is one. */
template <typename T>
__device__ __forceinline__ void write_rounded(float *x, const struct gemm16_epilogue &f,
                                              bool adds_residual, unsigned store_tile) {
    typedef typename T::E E;
    constexpr int COUNT = T::EACH;
    if constexpr (T::FINISH == FINISH_ACTIVATION) {
        activate_quickly<COUNT>(x, f.activation);
    } else if constexpr (T::FINISH == FINISH_GELU_TANH) {
        activate_quickly<COUNT>(x, NN_GELU_TANH);
    } else if constexpr (T::FINISH == FINISH_GELU) {
        activate_quickly<COUNT>(x, NN_GELU);
    }
#pragma unroll
    for (int q = 0; q < COUNT / 8; q++) {
        float *y = x + 8 * q;
        if (adds_residual) {
            const struct fragment residual = ldmatrix_x4(matrix_at<T>(store_tile, q));
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float2 both = unpack(residual.x[i], E());
                y[2 * i] += both.x, y[2 * i + 1] += both.y;
            }
            __syncwarp(); /* all lanes' rows are read before they are written */
        }
        const struct fragment pairs = {pack(y[0], y[1], E()), pack(y[2], y[3], E()),
                                       pack(y[4], y[5], E()), pack(y[6], y[7], E())};
        stmatrix_x4(matrix_at<T>(store_tile, q), pairs);
    }
}

/* The same of fp32 results, 32 columns. */
template <typename T>
__device__ __forceinline__ void write_floats(const float *x, const unsigned char *residual_tile,
                                             unsigned char *store_tile) {
#pragma unroll
    for (int j = 0; j < T::STORE_COLUMNS / 8; j++) {
        float2 *upper = pair_at(store_tile, j), *lower = upper + 1024 / sizeof(float2);
        float2 first = make_float2(x[4 * j], x[4 * j + 1]);
        float2 second = make_float2(x[4 * j + 2], x[4 * j + 3]);
        if (T::LOADS_RESIDUAL || T::RING_RESIDUAL) {
            const float2 *above = pair_at((unsigned char *)residual_tile, j);
            const float2 *below = above + 1024 / sizeof(float2);
            first.x += above->x, first.y += above->y;
            second.x += below->x, second.y += below->y;
        }
        *upper = first;
        *lower = second;
    }
}

/* A block's share of the sums where K is split: of part `own` of K it stores parts own, own +
   SPLIT,
   ... of a tile, adds those of the other blocks to them, and sends these theirs. `from`: where its
   ring was. */
template <typename T> __device__ __forceinline__ void add_blocks(float *sums, unsigned from) {
    constexpr int EACH = T::EACH, OTHERS = T::SPLIT - 1;
    unsigned own = part_of_block<T>(), place = place_of_block<T>(),
             at = from + (threadIdx.x / 32 - 4) * (EACH * 128) + threadIdx.x % 32 * 16;
    cluster_sync(); /* all blocks have read their stages */
#pragma unroll
    for (int part = 0; part < T::PARTS; part++) {
        unsigned owner = part % T::SPLIT, slot = part / T::SPLIT * OTHERS;
        unsigned to = at + (slot + own - (own > owner)) * T::PARTIAL;
#pragma unroll
        for (int i = 0; owner != own && i < EACH; i += 4) {
            store_to_block(to + i * 128, owner * T::PLACES + place, sums + part * EACH + i);
        }
    }
    cluster_sync();
#pragma unroll
    for (int part = 0; part < T::PARTS; part++) {
        unsigned slot = part / T::SPLIT * OTHERS;
#pragma unroll
        for (int other = 0; own == part % T::SPLIT && other < OTHERS; other++) {
#pragma unroll
            for (int i = 0; i < EACH; i += 4) {
                float4 x = load_shared(at + (slot + other) * T::PARTIAL + i * 128);
                float *y = sums + part * EACH + i;
                y[0] += x.x, y[1] += x.y, y[2] += x.z, y[3] += x.w;
            }
        }
    }
}

/* A warpgroup's epilogue: what it works with, in each lane. */
template <typename T> struct hopper_epilogue {
    const struct gemm16_epilogue &f;
    const struct hopper_maps &maps;
    int warp; /* of the consumers: the same in all lanes, as the compiler knows */
    unsigned char *stages, *store_tiles; /* the block's ring; the warp's */
    unsigned ready;     /* the warp's barriers, one a slot: a part of the residual has arrived */
    unsigned parity;    /* of their phases, one bit each */
    float *shared_bias; /* SHARED_BIAS: the warpgroup's */
    /* Of the parts whose bias is loaded early: all, or the first where registers are few. */
    static constexpr int ROW = T::GROUP_COLUMNS / 2 / T::EACH; /* parts of a row of the tile */
    static constexpr int BIASES =
        T::FINISH == FINISH_ACTIVATION || T::ATOMS * T::GROUP_COLUMNS >= 384 ? 1 : ROW;
    struct bias_pair bias[BIASES];

    /* Whether there is a residual. */
    __device__ __forceinline__ bool adds_residual() const {
        return T::LOADS_RESIDUAL && (T::FINISH != FINISH_ACTIVATION || f.residual != NULL);
    }

    /* The number of a part's store tile. */
    static __device__ __forceinline__ unsigned slot_of(int part) {
        return part / T::SPLIT % (T::SLOTS > 0 ? T::SLOTS : 1);
    }

    /* The elected lane: starts loading a part of the residual into its slot. */
    __device__ __forceinline__ void load_part(int row, int column, int part) {
        int2 at = part_origin<T>(row, column, part, warp);
        unsigned slot = slot_of(part);
        mbarrier_arrive_expect_tx(ready + slot * 8, T::STORE_TILE);
        tma_load_2d(shared_address(store_tiles) + slot * T::STORE_TILE, &maps.residual, at.y, at.x,
                    ready + slot * 8);
    }

    /* The bias of part `part` of a tile. */
    __device__ __forceinline__ struct bias_pair bias_of_part(int column, int part) {
        return T::HAS_BIAS && !T::SHARED_BIAS ? load_bias<T>(f, column + part % ROW * 2 * T::EACH)
                                              : bias_pair{0, 0};
    }

    /* The tile's bias into shared memory, when all warps have read the one before. */
    __device__ __forceinline__ void share_bias(int column) {
        unsigned pair = threadIdx.x % GROUP;
        size_t at = (size_t)column + 2 * pair;
        bool is_inside = pair < T::GROUP_COLUMNS / 2 && f.bias != NULL && at < f.N;
        float2 both = make_float2(0.0f, 0.0f);
        if (is_inside && f.bias_is_float) {
            both = *(const float2 *)((const float *)f.bias + at);
        } else if (is_inside) {
            both = unpack(*(const unsigned *)((const typename T::E *)f.bias + at), typename T::E());
        }
        sync_warpgroup();
        if (pair < T::GROUP_COLUMNS / 2) {
            *(float2 *)(shared_bias + 2 * pair) = both;
        }
    }

    /* While the first step of a tile is multiplied: asks for what its epilogue needs. */
    __device__ __forceinline__ void begin(int row, int column) {
#pragma unroll
        for (int i = 0; i < BIASES; i++) {
            bias[i] = bias_of_part(column, i);
        }
        if constexpr (T::SHARED_BIAS) {
            share_bias(column);
        }
        if constexpr (T::LOADS_RESIDUAL) {
            if (elect_lane() && adds_residual()) {
                tma_store_wait_read<0>();
#pragma unroll
                for (int i = 0; i < T::OWN; i++) {
                    int part = i * T::SPLIT + (int)part_of_block<T>();
                    int2 at = part_origin<T>(row, column, part, warp);
                    if (part >= T::PARTS) {
                        break;
                    }
                    if (i < T::SLOTS) {
                        load_part(row, column, part);
                    } else {
                        tma_prefetch_2d(&maps.residual, at.y, at.x);
                    }
                }
            }
            __syncwarp();
        }
    }

    /* The address of this warp's part of the residual. */
    __device__ __forceinline__ unsigned residual_at(const struct residual_fills &fills, int part) {
        int group = part % ROW + (T::SCHEDULE == SIDE_BY_SIDE ? warp / 4 * ROW : 0);
        int row = (T::HALVES ? warp / 4 * T::GROUP_ROWS : 0) + part / ROW * 64 + warp % 4 * 16;
        return fills.at[group / T::GROUPS_A_FILL] + group % T::GROUPS_A_FILL * T::COLUMN_GROUP +
               row * (T::STORE_COLUMNS * (T::FLOATS ? 4 : 2));
    }

    /* Waits until a part's store tile may be written: the TMA has brought the residual there, or
       has read what the elected lane has started to store. */
    __device__ __forceinline__ void wait_for_slot(int part) {
        if (adds_residual()) {
            unsigned slot = slot_of(part);
            mbarrier_wait(ready + slot * 8, parity >> slot & 1);
            parity ^= 1u << slot;
        } else if (part < T::SPLIT) {
            tma_store_wait_read<0>();
        } else {
            tma_store_wait_read<(T::SLOTS > 0 ? T::SLOTS - 1 : 0)>();
        }
        __syncwarp();
    }

    /* A part's results into shared memory; x: its sums. @return where they lie */
    __device__ __forceinline__ unsigned write_part(float *x, int part,
                                                   const struct residual_fills &fills) {
        unsigned char *store_tile = store_tiles + slot_of(part) * T::STORE_TILE;
        unsigned to = T::IN_PLACE ? residual_at(fills, part) : shared_address(store_tile);
        if constexpr (T::FLOATS) {
            const unsigned char *from =
                T::RING_RESIDUAL ? stages + (residual_at(fills, part) - shared_address(stages))
                                 : store_tile;
            write_floats<T>(x, from, store_tile);
        } else if constexpr (T::GATE) {
            write_gated<T>(x, to);
        } else {
            write_rounded<T>(x, f, T::IN_PLACE || adds_residual(), to);
        }
        return to;
    }

    /* A part of a tile: x its sums, rows from `row` on (`out_row` of out), columns from `column`
     * on. */
    __device__ __forceinline__ void store_part(float *x, const struct bias_pair &part_bias, int row,
                                               int out_row, int column, int part,
                                               const struct residual_fills &fills) {
        if constexpr (T::SHARED_BIAS) {
            add_shared_bias<T>(x, shared_bias + part % ROW * 2 * T::EACH);
        } else {
            add_bias<T>(x, part_bias, f.bias_is_float);
        }
        if constexpr (!T::IN_PLACE) {
            wait_for_slot(part);
        }
        unsigned from = write_part(x, part, fills);
        fence_proxy_async();
        __syncwarp();
        if (elect_lane()) {
            int2 at = part_origin<T>(out_row, column, part, warp);
            tma_store_2d(&maps.out, at.y, at.x, from);
            int next = part + (T::SLOTS - 1) * T::SPLIT;
            if (adds_residual() && part >= T::SPLIT && next < T::PARTS) {
                tma_store_wait_read<1>(); /* the part before has left */
                load_part(row, column, next);
            }
        }
    }

    /* Waits for a part's sums: ready() waits for those of an atom. */
    template <typename READY>
    static __device__ __forceinline__ void begin_part(int part, READY ready) {
        if (part % ROW == 0) {
            ready(part / ROW);
        }
    }

    /* Parts of fp32 results, in the ring, where the residual is if there is one: a box of all 64
       rows of a warpgroup at a time. */
    template <typename READY>
    __device__ __forceinline__ void store_from_ring(const float *sums, int row, int column,
                                                    const struct residual_fills &fills,
                                                    READY ready) {
        bool is_first = warp % 4 == 0;
#pragma unroll
        for (int part = 0; part < T::PARTS; part++) {
            begin_part(part, ready);
            unsigned to = residual_at(fills, part);
            unsigned char *tile = stages + (to - shared_address(stages));
            write_floats<T>(sums + part * T::EACH, tile, tile);
            fence_proxy_async();
            sync_warpgroup();
            if (is_first && elect_lane()) {
                tma_store_2d(&maps.out, column + part % ROW * T::STORE_COLUMNS,
                             row + part / ROW * 64, to);
            }
        }
        if (is_first) { /* before the stages are released */
            tma_store_wait_read<0>();
        }
    }

    /* The address of columns `first` and up of out, a group of 32, where results are transposed. */
    __device__ __forceinline__ unsigned group_at(const struct residual_fills &fills, int first) {
        int group = first / T::STORE_COLUMNS;
        return fills.at[group / T::GROUPS_A_FILL] + group % T::GROUPS_A_FILL * T::COLUMN_GROUP;
    }

    /* Sums of 64 rows of the tile, as 64 columns of out, two groups at `left` and `right` in the
       ring; added to the residual if there is one. */
    __device__ __forceinline__ void write_transposed(const float *sums, unsigned left,
                                                     unsigned right) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        unsigned char *group = stages + ((warp < 2 ? left : right) - shared_address(stages));
#pragma unroll
        for (int below = 0; below < 2; below++) { /* row lane / 4, and the one 8 below */
            int m = warp % 2 * 16 + below * 8 + lane / 4;
#pragma unroll
            for (int i = 0; i < T::GROUP_COLUMNS / 4; i++) {
                int n = i / 2 * 8 + lane % 4 * 2 + i % 2;
                float *to = (float *)(group + n * 128 + (m / 4 ^ n % 8) * 16) + m % 4;
                float sum = sums[i / 2 * 4 + below * 2 + i % 2];
                *to = T::RING_RESIDUAL ? *to + sum : sum;
            }
        }
    }

    /* The same as store_from_ring(), transposed: a row of the tile is a column of out, of which 32
       leave at a time, all rows of a tile. */
    template <typename READY>
    __device__ __forceinline__ void store_transposed(const float *sums, int row, int column,
                                                     const struct residual_fills &fills,
                                                     READY ready) {
        bool is_first = warp % 4 == 0;
#pragma unroll
        for (int atom = 0; atom < T::ATOMS; atom++) {
            ready(atom);
            unsigned left = group_at(fills, atom * 64), right = group_at(fills, atom * 64 + 32);
            write_transposed(sums + atom * (T::GROUP_COLUMNS / 2), left, right);
            fence_proxy_async();
            sync_warpgroup();
            if (is_first && elect_lane()) {
                tma_store_2d(&maps.out, row + atom * 64, column, left);
                tma_store_2d(&maps.out, row + atom * 64 + 32, column, right);
            }
        }
        if (is_first) { /* before the stages are released */
            tma_store_wait_read<0>();
        }
    }

    /* A tile, or a warpgroup's share of it: sums, a lane's of one part after the other. Before it
       reads those of an atom it calls ready(atom). */
    template <typename READY>
    __device__ __forceinline__ void store(float *sums, int row, int out_row, int column,
                                          const struct residual_fills &fills, READY ready) {
        constexpr int EACH = T::EACH, COUNT = T::PARTS * EACH;
        if constexpr (T::SHARED_BIAS) {
            sync_warpgroup();
        }
        if constexpr (T::EXCHANGED) {
            store_transposed(sums, out_row, column, fills, ready);
        } else if constexpr (T::RING_RESULTS) {
            store_from_ring(sums, out_row, column, fills, ready);
        } else if constexpr (T::FINISH == FINISH_ACTIVATION) {
            struct bias_pair now = bias[0];
#pragma unroll 1
            for (int part = 0; part < T::PARTS; part++) {
                const struct bias_pair next = bias_of_part(column, part + 1);
                store_part(sums, now, row, out_row, column, part, fills);
                now = next;
#pragma unroll
                for (int i = 0; i < COUNT - EACH; i++) {
                    sums[i] = sums[i + EACH];
                }
            }
        } else if constexpr (BIASES == 1) {
            struct bias_pair now = bias[0];
#pragma unroll
            for (int part = 0; part < T::PARTS; part++) {
                const struct bias_pair next = bias_of_part(column, part + 1);
                begin_part(part, ready);
                store_part(sums + part * EACH, now, row, out_row, column, part, fills);
                now = next;
            }
        } else {
#pragma unroll
            for (int part = 0; part < T::PARTS; part++) {
                begin_part(part, ready);
                if (T::SPLIT == 1 || part_of_block<T>() == part % T::SPLIT) {
                    store_part(sums + part * EACH, bias[part % BIASES], row, out_row, column, part,
                               fills);
                }
            }
        }
        if constexpr (T::IN_PLACE) { /* before the stages are released */
            tma_store_wait_read<0>();
        }
    }
};

} // namespace

#endif

#endif
