/**
 * @file hopper_epilogue.cuh
 * @brief v10's epilogue of wgmma's accumulators: whole lines, and little code.
 *
 * A warp has 16 rows, which go through shared memory 64 columns at a time (32 where a tile is no
 * multiple of 64 wide), a part.
 *
 * 16-bit products as they are: stmatrix writes a part, rounded, and the TMA stores it. Each warp
 * has two such store tiles, one filled while the other one is read.
 *
 * All else: a part is written as fp32; then each lane reads eight neighbours of a row, and adds,
 * rounds and stores these, 128 bytes of a row at once or more. The loop over a tile's parts is not
 * unrolled. With straight code for all parts the first tile's epilogue took 20000 cycles, as long
 * as 20 steps of K, plain, and 50000 with GELU: each line of code came from device memory, once.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_EPILOGUE_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_EPILOGUE_CUH_

#include "solutions/12_tensor_cores/steps/hopper_tile.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#include "common/cuda/mma.cuh"

namespace {

/* Asks L2 for a step's share of the lines of the tile's residual. All lanes of the producer's warp.
 */
template <typename T>
__device__ __forceinline__ void prefetch_residual(const struct gemm16_epilogue &f, int2 at,
                                                  unsigned step, unsigned steps) {
    size_t row_bytes = f.residual_is_float ? f.N * 4 : f.N * 2;
    unsigned lines =
        T::BN * (f.residual_is_float ? 4 : 2) / 64; /* 64 bytes: also of unaligned rows */
    unsigned each = (T::BM * lines + steps - 1) / steps,
             end = min((step + 1) * each, T::BM * lines);
    for (unsigned i = step * each + threadIdx.x; i < end; i += 32) {
        size_t row = at.x + i / lines;
        size_t byte = (size_t)at.y * (f.residual_is_float ? 4 : 2) + i % lines * 64;
        if (row < f.M && byte < row_bytes) {
            prefetch_l2((const char *)f.residual + row * row_bytes + byte);
        }
    }
}

/* The address that this lane passes to stmatrix for columns 16 q to 16 q + 15 of a store tile: a
   row of one of four 8 x 8 matrices, in the TMA's swizzle. */
template <typename T> __device__ __forceinline__ unsigned matrix_at(unsigned store_tile, int q) {
    int lane = threadIdx.x % 32, row = lane % 16, piece = 2 * q + lane / 16;
    return store_tile + (T::STORE_COLUMNS == 64 ? row * 128 + (piece ^ row % 8) * 16
                                                : row * 64 + (piece ^ row / 2 % 4) * 16);
}

/* 16 rows from m on, BN columns from n on, rounded, by the TMA; it clips what is outside the
 * matrix. */
template <typename T>
__device__ __forceinline__ void store_rounded_rows(const float *sums, const CUtensorMap *map,
                                                   size_t m, size_t n, unsigned store_tiles) {
    typedef typename T::E E;
#pragma unroll
    for (int part = 0; part < T::BN / T::STORE_COLUMNS; part++) {
        unsigned store_tile = store_tiles + part % 2 * T::STORE_TILE;
        if (part == 0) { /* lane 0: the TMA has read this store tile */
            tma_store_wait_read<0>();
        } else {
            tma_store_wait_read<1>();
        }
        __syncwarp();
#pragma unroll
        for (int q = 0; q < T::STORE_COLUMNS / 16; q++) {
            const float *x = sums + part * (T::STORE_COLUMNS / 2) + 8 * q;
            const struct fragment pairs = {pack(x[0], x[1], E()), pack(x[2], x[3], E()),
                                           pack(x[4], x[5], E()), pack(x[6], x[7], E())};
            stmatrix_x4(matrix_at<T>(store_tile, q), pairs);
        }
        fence_proxy_async();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            tma_store_2d(map, (int)(n + part * T::STORE_COLUMNS), (int)m, store_tile);
        }
    }
}

/* Where eight floats of a part's row lie: groups of eight are permuted by the row, so that neither
   writing pairs of four rows nor reading a row meets a bank twice. */
template <typename T>
__device__ __forceinline__ float *group_at(float *staging, int row, int group) {
    return staging + row * T::STORE_COLUMNS + (group ^ row % (T::STORE_COLUMNS / 8)) * 8;
}

/* A part of a lane's sums as fp32 into shared memory. */
template <typename T> __device__ __forceinline__ void write_part(float *staging, const float *x) {
    int row = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < T::STORE_COLUMNS / 8; j++) {
        *(float2 *)(group_at<T>(staging, row, j) + pair) = make_float2(x[4 * j], x[4 * j + 1]);
        *(float2 *)(group_at<T>(staging, row + 8, j) + pair) =
            make_float2(x[4 * j + 2], x[4 * j + 3]);
    }
}

/* Part `chosen` of the sums. The comments in the code keep the compiler from making one copy of the
   parts' stores, with an index: the sums would be an array in local memory. */
template <typename T, int PART>
__device__ __forceinline__ void write_chosen(float *staging, const float *sums, int chosen) {
    if (chosen == PART) {
        asm volatile("// part %0" ::"n"(PART));
        write_part<T>(staging, sums + PART * (T::STORE_COLUMNS / 2));
        asm volatile("// end of part %0" ::"n"(PART));
    } else if constexpr (PART + 1 < T::BN / T::STORE_COLUMNS) {
        write_chosen<T, PART + 1>(staging, sums, chosen);
    }
}

/* 16 rows from m on, BN columns from n on, with the epilogue f into `out`. sums NULL: only fetches
   the code, where m is outside. */
template <typename T>
__device__ __forceinline__ void finish_rows(const float *sums, const struct gemm16_epilogue &f,
                                            void *out, size_t m, size_t n, float *staging,
                                            bool only_code) {
    typedef typename T::E E;
    constexpr int ROW = T::STORE_COLUMNS / 8, EACH = 16 * ROW / 32; /* pieces: of a row, a lane's */
    constexpr int PARTS = T::BN / T::STORE_COLUMNS;
    int lane = threadIdx.x % 32;
    size_t row = m + lane / ROW, column = n + lane % ROW * 8;
    struct raw_eight next = load_residual<E>(f, row, column);
    int count = only_code ? 1 : PARTS * EACH;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        if (i % EACH == 0 && !only_code) {
            __syncwarp();
            write_chosen<T, 0>(staging, sums, i / EACH);
            __syncwarp();
        }
        const struct raw_eight residual = next;
        int after = i + 1;
        if (after < count) {
            next = load_residual<E>(f, row + after % EACH * (32 / ROW),
                                    column + after / EACH * T::STORE_COLUMNS);
        }
        float x[8];
        read_eight(x, group_at<T>(staging, lane / ROW + i % EACH * (32 / ROW), lane % ROW));
        epilogue_eight<E>(f, out, residual, x, row + i % EACH * (32 / ROW),
                          column + i / EACH * T::STORE_COLUMNS);
    }
}

} // namespace

#endif

#endif
