/**
 * @file mma_tile.cuh
 * @brief A block's tile by mma.sync, from stages in shared memory: what v3, v4, v5 and
 * gemm16_tile.cu share.
 *
 * A row of a stage is 64 elements, 128 bytes: all banks. Its eight 16-byte pieces are permuted by
 * the row, piece ^ (row % 8), so that both the copies (a row at a time) and ldmatrix (the same
 * piece of eight rows) meet no bank twice. The TMA's 128-byte swizzle is the same permutation.
 *
 * The epilogue moves the accumulators through shared memory, so that a thread has eight neighbours
 * of a row, to which it adds bias and residual before it stores 16 bytes.
 *
 * A factor that is transposed, (K, M) or (K, N), lies in a stage as it does in memory: 64 rows of
 * K, in groups of 64 columns, so that a row is 128 bytes again, with the same permutation.
 * ldmatrix.trans transposes its 8 x 8 matrices on the way to registers; nothing else changes.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_MMA_TILE_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_MMA_TILE_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "common/cuda/mma.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"

namespace {

constexpr int BK = 64;    /* elements of K a step */
constexpr int PIECES = 8; /* of 16 bytes, a row of a step */

/* Sizes: results of a block, warps, and steps in shared memory; which factors are transposed; and
   whether rows of both are always whole 16-byte pieces, aligned: code for others costs registers.
 */
template <typename E_, int BM_, int BN_, int WARPS_M_, int WARPS_N_, int STAGES_,
          bool IN_TRANSPOSED_ = false, bool WEIGHT_TRANSPOSED_ = false, bool WHOLE_PIECES_ = false>
struct tile {
    typedef E_ E;
    static constexpr bool WHOLE_PIECES = WHOLE_PIECES_;
    static constexpr bool IN_TRANSPOSED = IN_TRANSPOSED_, WEIGHT_TRANSPOSED = WEIGHT_TRANSPOSED_;
    static constexpr bool TRANSPOSED = IN_TRANSPOSED || WEIGHT_TRANSPOSED;
    static constexpr int BM = BM_, BN = BN_, WARPS_N = WARPS_N_, STAGES = STAGES_;
    static constexpr int THREADS = 32 * WARPS_M_ * WARPS_N_;
    static constexpr int WM = BM / WARPS_M_, WN = BN / WARPS_N_; /* of a warp */
    static constexpr int MS = WM / 16, NS = WN / 8;              /* its mmas */
    static constexpr int STAGE = (BM + BN) * BK;                 /* elements */
    static constexpr int PITCH = BN + 8; /* floats: four rows of 8 lie in different banks */
    static constexpr size_t STAGE_BYTES = (size_t)STAGES * STAGE * sizeof(E);
    static constexpr size_t SUM_BYTES = (size_t)BM * PITCH * sizeof(float);
    static constexpr size_t BYTES = STAGE_BYTES > SUM_BYTES ? STAGE_BYTES : SUM_BYTES;
    static_assert(WM % 16 == 0 && WN % 16 == 0, "ldmatrix takes whole 16 x 16");
    static_assert(!IN_TRANSPOSED || BM % BK == 0, "whole groups");
    static_assert(!WEIGHT_TRANSPOSED || BN % BK == 0, "whole groups");
};

/* Where a piece of a row lies in a stage. */
template <typename E> __device__ __forceinline__ E *piece_at(E *stage, int row, int piece) {
    return stage + row * BK + ((piece ^ (row % PIECES)) * (16 / (int)sizeof(E)));
}

/* The same as an address in shared memory. */
__device__ __forceinline__ unsigned piece_address(unsigned stage, int row, int piece) {
    return stage + row * (BK * 2) + (piece ^ row % PIECES) * 16;
}

/* Where a piece of a row of K lies in a stage of a transposed factor. */
__device__ __forceinline__ unsigned transposed_piece_address(unsigned stage, int k, int piece) {
    return piece_address(stage + piece / PIECES * (BK * BK * 2), k, piece % PIECES);
}

/* What a warp multiplies at a depth: sixteen elements of K. */
template <typename T> struct fragments { struct fragment a[T::MS], b[T::NS / 2]; };

/* 16 x 16 of `in`, as mma's left factors: elements 16 depth and up of rows m0 to m0 + WM. 16 rows
   below, a piece lies 16 rows further, and depth changes bits of its place that the lane's piece
   does not have: so the loads of all depths and rows share one register. */
template <typename T>
__device__ __forceinline__ void load_left(struct fragment *a, unsigned stage, int m0, int depth) {
    int lane = threadIdx.x % 32;
    if constexpr (T::IN_TRANSPOSED) {
        int k = depth * 16 + lane / 16 * 8 + lane % 8;
#pragma unroll
        for (int m = 0; m < T::MS; m++) {
            int piece = (m0 + m * 16) / 8 + lane / 8 % 2;
            a[m] = ldmatrix_x4<true>(transposed_piece_address(stage, k, piece));
        }
    } else {
        unsigned at = (m0 + lane % 16) * (BK * 2), piece = ((lane / 16) ^ (lane % 8)) * 16;
#pragma unroll
        for (int m = 0; m < T::MS; m++) {
            a[m] = ldmatrix_x4(stage + at + (piece ^ depth * 32) + m * 16 * (BK * 2));
        }
    }
}

/* The same of `weight`, two right factors at a time: rows n0 to n0 + WN. */
template <typename T>
__device__ __forceinline__ void load_right(struct fragment *b, unsigned stage, int n0, int depth) {
    int lane = threadIdx.x % 32;
    if constexpr (T::WEIGHT_TRANSPOSED) {
        int k = depth * 16 + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
        for (int n = 0; n < T::NS / 2; n++) {
            int piece = (n0 + n * 16) / 8 + lane / 16;
            b[n] = ldmatrix_x4<true>(transposed_piece_address(stage, k, piece));
        }
    } else {
        unsigned at = (n0 + lane / 16 * 8 + lane % 8) * (BK * 2);
        unsigned piece = ((lane / 8 % 2) ^ (lane % 8)) * 16;
#pragma unroll
        for (int n = 0; n < T::NS / 2; n++) {
            b[n] = ldmatrix_x4(stage + at + (piece ^ depth * 32) + n * 16 * (BK * 2));
        }
    }
}

/* @param stage address in shared memory */
template <typename T>
__device__ __forceinline__ void load_fragments(struct fragments<T> &f, unsigned stage, int depth) {
    int warp = threadIdx.x / 32;
    load_left<T>(f.a, stage, warp / T::WARPS_N * T::WM, depth);
    load_right<T>(f.b, stage + T::BM * BK * 2, warp % T::WARPS_N * T::WN, depth);
}

/* @param stage pointer to shared memory */
template <typename T>
__device__ __forceinline__ void load_fragments(struct fragments<T> &f, const typename T::E *stage,
                                               int depth) {
    load_fragments<T>(f, shared_address(stage), depth);
}

template <typename T>
__device__ __forceinline__ void multiply_fragments(float (*sums)[T::NS][4],
                                                   const struct fragments<T> &f) {
#pragma unroll
    for (int n = 0; n < T::NS; n++) {
#pragma unroll
        for (int i = 0; i < T::MS; i++) {
            int m = n / 2 % 2 == 0 ? i : T::MS - 1 - i; /* forwards and backwards in turn */
            mma_m16n8k16(sums[m][n], f.a[m], f.b[n / 2].x[n % 2 * 2], f.b[n / 2].x[n % 2 * 2 + 1],
                         typename T::E());
        }
    }
}

/* sums += the warp's products of one stage, of which f[0] holds the first depth. The next depth is
   loaded while one is multiplied, and during the last one, if there is a `next` stage, its first
   depth. ready() is called before `next` is read, each(depth) at every depth. */
template <typename T, typename READY, typename EACH>
__device__ __forceinline__ void multiply_stage(float (*sums)[T::NS][4], struct fragments<T> *f,
                                               unsigned stage, unsigned next, bool has_next,
                                               READY ready, EACH each) {
    constexpr int DEPTHS = BK / 16;
#pragma unroll
    for (int depth = 0; depth < DEPTHS; depth++) {
        bool last = depth + 1 == DEPTHS;
        if (last) {
            ready();
        }
        if (!last) {
            load_fragments<T>(f[(depth + 1) % 2], stage, depth + 1);
        } else if (has_next) {
            load_fragments<T>(f[0], next, 0);
        }
        each(depth);
        multiply_fragments<T>(sums, f[depth % 2]);
    }
}

/* The same by pointers. @param next or NULL */
template <typename T, typename READY, typename EACH>
__device__ __forceinline__ void multiply_stage(float (*sums)[T::NS][4], struct fragments<T> *f,
                                               const typename T::E *stage,
                                               const typename T::E *next, READY ready, EACH each) {
    multiply_stage<T>(sums, f, shared_address(stage), next != NULL ? shared_address(next) : 0,
                      next != NULL, ready, each);
}

/* Accumulators of all warps, row by row, into shared memory. */
template <typename T>
__device__ __forceinline__ void store_accumulators(float *shared, const float (*sums)[T::NS][4]) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = warp / T::WARPS_N * T::WM + lane / 4;
    int column = warp % T::WARPS_N * T::WN + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < T::MS; m++) {
#pragma unroll
        for (int n = 0; n < T::NS; n++) {
            float *to = shared + (row + m * 16) * T::PITCH + column + n * 8;
            *(float2 *)to = make_float2(sums[m][n][0], sums[m][n][1]);
            *(float2 *)(to + 8 * T::PITCH) = make_float2(sums[m][n][2], sums[m][n][3]);
        }
    }
}

/* The epilogue of a block's tile at (m0, n0). All warps have read the stages, which `shared`
   reuses. each(x, m, n) receives eight sums of a row. */
template <typename T, typename EACH>
__device__ __forceinline__ void for_each_eight(unsigned char *shared_bytes,
                                               const float (*sums)[T::NS][4], size_t m0, size_t n0,
                                               EACH each) {
    float *shared = (float *)shared_bytes;
    store_accumulators<T>(shared, sums);
    __syncthreads();
    constexpr int ROW = T::BN / 8;
    for (int i = threadIdx.x; i < T::BM * ROW; i += T::THREADS) {
        float x[8];
        read_eight(x, shared + i / ROW * T::PITCH + i % ROW * 8);
        each(x, m0 + i / ROW, n0 + i % ROW * 8);
    }
}

} // namespace

#endif
