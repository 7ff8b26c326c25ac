/**
 * @file gemm16_wgmma.cuh
 * @brief wgmma: 64 x N sums += (64, 16) * (N, 16)^T by four warps, both operands in shared memory.
 *
 * Both lie as the TMA brings them with 128-byte swizzle: rows of 64 elements, 128 bytes; of K, or
 * where a factor is TURNED, of M or N. Of a thread: rows 16 * warp + lane / 4 and that + 8, of each
 * eight columns lane % 4 * 2 and that + 1: sums 4 j .. 4 j + 3 are those of columns 8 j and up,
 * first of the upper row.
 */
#ifndef WARPBOOK_COMMON_GEMM16_GEMM16_WGMMA_CUH_
#define WARPBOOK_COMMON_GEMM16_GEMM16_WGMMA_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)

/* d: (N / 2) of the thread; in, weight: descriptors; add 0: what was in d does not count. */
template <int N> struct wgmma;

#define WGMMA(TYPE)                                                                          \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"                               \
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE " "            \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "                       \
                 " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "             \
                 " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "             \
                 " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
                 " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "             \
                 " %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "             \
                 " %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "             \
                 " %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
                 " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "     \
                 " %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
                 " %120, %121, %122, %123, %124, %125, %126, %127}, "                        \
                 "%128, %129, p, 1, 1, %131, %132;\n}"                                       \
                 : R16(0), R16(16), R16(32), R16(48), R16(64), R16(80), R16(96), R16(112)    \
                 : "l"(in), "l"(weight), "r"(add), "n"(IN_TURNED), "n"(WEIGHT_TURNED))

template <> struct wgmma<256> {
    template <int IN_TURNED, int WEIGHT_TURNED>
    static __device__ __forceinline__ void run(float *d, uint64_t in, uint64_t weight, int add,
                                               __half) {
        WGMMA("f16");
    }

    template <int IN_TURNED, int WEIGHT_TURNED>
    static __device__ __forceinline__ void run(float *d, uint64_t in, uint64_t weight, int add,
                                               __nv_bfloat16) {
        WGMMA("bf16");
    }
};
#undef WGMMA

#define WGMMA(TYPE)                                                               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"                     \
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32." TYPE "." TYPE " " \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "            \
                 " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
                 " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "  \
                 " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "  \
                 " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "  \
                 " %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "  \
                 " %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "  \
                 " %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, " \
                 "%96, %97, p, 1, 1, %99, %100;\n}"                               \
                 : R16(0), R16(16), R16(32), R16(48), R16(64), R16(80)            \
                 : "l"(in), "l"(weight), "r"(add), "n"(IN_TURNED), "n"(WEIGHT_TURNED))

template <> struct wgmma<192> {
    template <int IN_TURNED, int WEIGHT_TURNED>
    static __device__ __forceinline__ void run(float *d, uint64_t in, uint64_t weight, int add,
                                               __half) {
        WGMMA("f16");
    }

    template <int IN_TURNED, int WEIGHT_TURNED>
    static __device__ __forceinline__ void run(float *d, uint64_t in, uint64_t weight, int add,
                                               __nv_bfloat16) {
        WGMMA("bf16");
    }
};
#undef WGMMA

#define WGMMA(TYPE)                                                               \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                     \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " " \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "            \
                 " %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
                 " %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "  \
                 " %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "  \
                 " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "  \
                 " %60, %61, %62, %63}, "                                         \
                 "%64, %65, p, 1, 1, %67, %68;\n}"                                \
                 : R16(0), R16(16), R16(32), R16(48)                              \
                 : "l"(in), "l"(weight), "r"(add), "n"(IN_TURNED), "n"(WEIGHT_TURNED))

template <> struct wgmma<128> {
    template <int IN_TURNED, int WEIGHT_TURNED>
    static __device__ __forceinline__ void run(float *d, uint64_t in, uint64_t weight, int add,
                                               __half) {
        WGMMA("f16");
    }

    template <int IN_TURNED, int WEIGHT_TURNED>
    static __device__ __forceinline__ void run(float *d, uint64_t in, uint64_t weight, int add,
                                               __nv_bfloat16) {
        WGMMA("bf16");
    }
};
#undef WGMMA

#undef R16
#undef R4

/*
 * Where a factor's step lies, 1024-byte aligned, as the instruction wants to be told: start,
 * leading and stride offset in 16 bytes, and a 1 for 128-byte swizzle.
 *
 * K-major, rows of 64 elements of K: the stride offset leads from eight rows to the next eight,
 * 1024 bytes; the leading one is not used (1). Sixteen elements of K further on are 32 bytes more.
 *
 * TURNED, that is M- or N-major, rows of 64 columns at one k: PTX ISA (matrix descriptor, canonical
 * layouts) has 16-bit elements at ((8, 8, m), (8, k)) : ((1, 8, leading), (64, stride)). So 64
 * columns are contiguous, a row of 128 bytes; eight k are eight rows; the stride offset leads from
 * eight k to the next eight, 1024 bytes; and the leading one from 64 columns to the next 64, which
 * is the next box of the TMA: 64 rows, 8192 bytes. Sixteen k further on are 2048 bytes more, at
 * which the pattern of swizzled pieces begins anew, so that the base offset stays 0.
 */
template <bool TURNED>
static __device__ __forceinline__ uint64_t wgmma_descriptor(unsigned shared_address) {
    constexpr uint64_t LEADING = TURNED ? 64 * 128 >> 4 : 1;
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | LEADING << 16 |
           (shared_address & 0x3ffff) >> 4;
}

/* Before the first of a group: registers and shared memory are as the program left them. */
static __device__ __forceinline__ void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Closes a group. */
static __device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all groups but the PENDING youngest. */
template <int PENDING> static __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

#endif
