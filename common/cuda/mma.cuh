/**
 * @file mma.cuh
 * @brief Tensor cores of a warp: ldmatrix, stmatrix and mma.sync.m16n8k16 of fp16 or bf16 with fp32
 *        accumulators.
 *
 * Compute capability 8.0 (stmatrix: 9.0); in older code products do nothing and matrices are zeros,
 * so a launcher asks for the capability first. All 32 lanes of a warp execute each of these
 * together.
 */
#ifndef WARPBOOK_COMMON_CUDA_MMA_CUH_
#define WARPBOOK_COMMON_CUDA_MMA_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/cuda/memory.cuh"

/* 16 x 8 of C, distributed over a warp. A thread has rows lane / 4 (x[0], x[1]) and lane / 4 + 8
   (x[2], x[3]), columns lane % 4 * 2 and the one after. */
struct accumulator {
    float x[4];
};

/* 16 x 16 of A, or two times 16 x 8 of B (x[0], x[1] and x[2], x[3]): pairs of elements. */
struct fragment {
    unsigned x[4];
};

/* Four 8 x 8 matrices of 16-bit elements: matrix i has its rows at the addresses that lanes 8 i to
   8 i + 7 pass. TRANSPOSED: columns become rows on the way. */
template <bool TRANSPOSED = false>
static __device__ __forceinline__ struct fragment ldmatrix_x4(unsigned address) {
    struct fragment f = {};
#if __CUDA_ARCH__ >= 800
    if constexpr (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])
                     : "r"(address)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.x[0]), "=r"(f.x[1]), "=r"(f.x[2]), "=r"(f.x[3])
                     : "r"(address)
                     : "memory");
    }
#endif
    return f;
}

template <bool TRANSPOSED = false>
static __device__ __forceinline__ struct fragment ldmatrix_x4(const void *row) {
    return ldmatrix_x4<TRANSPOSED>(shared_address(row));
}

/* Stores four 8 x 8 matrices; addresses as for ldmatrix_x4(). Compute capability 9.0. */
static __device__ __forceinline__ void stmatrix_x4(unsigned address, const struct fragment &f) {
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(f.x[0]), "r"(f.x[1]), "r"(f.x[2]), "r"(f.x[3])
                 : "memory");
#endif
}

#if __CUDA_ARCH__ >= 800
#define MMA_M16N8K16(TYPE)                                                \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 "    \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                  \
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1))
#else
#define MMA_M16N8K16(TYPE) (void)0
#endif

/* c (16 x 8) += a (16 x 16) * b (16 x 8). @param c the thread's four, as in struct accumulator
   @param b0 b's upper eight rows, b1: the lower ones */
static __device__ __forceinline__ void mma_m16n8k16(float *c, const struct fragment &a, unsigned b0,
                                                    unsigned b1, __half) {
    MMA_M16N8K16("f16");
}

static __device__ __forceinline__ void mma_m16n8k16(float *c, const struct fragment &a, unsigned b0,
                                                    unsigned b1, __nv_bfloat16) {
    MMA_M16N8K16("bf16");
}
#undef MMA_M16N8K16

#endif
