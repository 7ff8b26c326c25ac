/**
 * @file wgmma.cuh
 * @brief Tensor cores of a warpgroup: wgmma.mma_async m64nNk16, fp16 or bf16 with fp32
 *        accumulators, operands in shared memory, the left one also in registers.
 *
 * Compute capability 9.0a; include it in code for that alone. The four warps (128 threads) of a
 * warpgroup execute each of these together.
 *
 * Operands lie as the TMA brings them with 128-byte swizzle: rows of 64 elements, 128 bytes; of K,
 * or where an operand is TRANSPOSED, of M or N. A thread accumulates rows 16 * warp + lane / 4 and
 * eight below, of each eight columns lane % 4 * 2 and the one after: d[4 j] to d[4 j + 3] are those
 * of columns 8 j and up, first of the upper row.
 */
#ifndef WARPBOOK_COMMON_CUDA_WGMMA_CUH_
#define WARPBOOK_COMMON_CUDA_WGMMA_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* The accumulators as operands, and their numbers in the instruction's text. */
#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R8(i) R4(i), R4(i + 4)
#define R16(i) R8(i), R8(i + 8)
#define R32(i) R16(i), R16(i + 16)
#define T4 "%0, %1, %2, %3"
#define T8 T4 ", %4, %5, %6, %7"
#define T16 T8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define T32 T16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define T48 T32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define T64 T48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define T80 T64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define T96                                                                                \
    T64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
        ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define T128                                                                               \
    T96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109" \
        ", %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122"   \
        ", %123, %124, %125, %126, %127"

/* run(): d (N / 2 of the thread) += a (64, 16) * b (N, 16)^T, or = where `accumulate` is 0. a and b
   are descriptors. Asynchronous: d is not to be touched before wgmma_wait(). */
template <int N> struct wgmma;

/* A, B, P: the numbers of the operands behind the accumulators, then of both majors. */
#define WGMMA_RUN(N, TEXT, A, B, P, MAJOR_A, MAJOR_B, E, TYPE, ...)                              \
    template <int A_TRANSPOSED, int B_TRANSPOSED>                                                \
    static __device__ __forceinline__ void run(float *d, uint64_t a, uint64_t b, int accumulate, \
                                               E) {                                              \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                              \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" TEXT   \
                     "}, " A ", " B ", p, 1, 1, " MAJOR_A ", " MAJOR_B ";\n}"                    \
                     : __VA_ARGS__                                                               \
                     : "l"(a), "l"(b), "r"(accumulate), "n"(A_TRANSPOSED), "n"(B_TRANSPOSED));   \
    }
#define WGMMA(N, TEXT, A, B, P, MAJOR_A, MAJOR_B, ...)                                    \
    template <> struct wgmma<N> {                                                         \
        WGMMA_RUN(N, TEXT, A, B, P, MAJOR_A, MAJOR_B, __half, "f16", __VA_ARGS__)         \
        WGMMA_RUN(N, TEXT, A, B, P, MAJOR_A, MAJOR_B, __nv_bfloat16, "bf16", __VA_ARGS__) \
    };

WGMMA(8, T4, "%4", "%5", "%6", "%7", "%8", R4(0))
WGMMA(16, T8, "%8", "%9", "%10", "%11", "%12", R8(0))
WGMMA(32, T16, "%16", "%17", "%18", "%19", "%20", R16(0))
WGMMA(64, T32, "%32", "%33", "%34", "%35", "%36", R32(0))
WGMMA(96, T48, "%48", "%49", "%50", "%51", "%52", R32(0), R16(32))
WGMMA(128, T64, "%64", "%65", "%66", "%67", "%68", R32(0), R32(32))
WGMMA(160, T80, "%80", "%81", "%82", "%83", "%84", R32(0), R32(32), R16(64))
WGMMA(192, T96, "%96", "%97", "%98", "%99", "%100", R32(0), R32(32), R32(64))
WGMMA(256, T128, "%128", "%129", "%130", "%131", "%132", R32(0), R32(32), R32(64), R32(96))

/* d (N / 2 of the thread) += a (64, 16) of registers * b (16, N) of shared memory. a: four pairs of
   a thread, as mma's fragment of 16 rows a warp. Asynchronous: a is not to be changed before
   wgmma_wait(), either. */
template <int N> struct wgmma_registers;

#define WGMMA_REGISTERS_RUN(N, TEXT, A, B, MAJOR_B, E, TYPE, ...)                              \
    template <int B_TRANSPOSED>                                                                \
    static __device__ __forceinline__ void run(float *d, const unsigned *a, uint64_t b, E) {   \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" TEXT \
                     "}, " A ", " B ", 1, 1, 1, " MAJOR_B ";"                                  \
                     : __VA_ARGS__                                                             \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(B_TRANSPOSED)); \
    }
#define WGMMA_REGISTERS(N, TEXT, A, B, MAJOR_B, ...)                                    \
    template <> struct wgmma_registers<N> {                                             \
        WGMMA_REGISTERS_RUN(N, TEXT, A, B, MAJOR_B, __half, "f16", __VA_ARGS__)         \
        WGMMA_REGISTERS_RUN(N, TEXT, A, B, MAJOR_B, __nv_bfloat16, "bf16", __VA_ARGS__) \
    };

WGMMA_REGISTERS(64, T32, "{%32, %33, %34, %35}", "%36", "%37", R32(0))
WGMMA_REGISTERS(128, T64, "{%64, %65, %66, %67}", "%68", "%69", R32(0), R32(32))

#undef WGMMA_REGISTERS
#undef WGMMA_REGISTERS_RUN
#undef WGMMA
#undef WGMMA_RUN
#undef R4
#undef R8
#undef R16
#undef R32
#undef T4
#undef T8
#undef T16
#undef T32
#undef T48
#undef T64
#undef T80
#undef T96
#undef T128

/*
 * The matrix descriptor of an operand's 64 x 16 or N x 16 at a 1024-byte aligned address of shared
 * memory: start, leading and stride byte offset in units of 16 bytes, and a 1 for 128-byte swizzle.
 *
 * K-major, rows of 64 elements of K: the stride offset leads from eight rows to the next eight,
 * 1024 bytes; the leading one is not used (1). Sixteen elements of K further on are 32 bytes more.
 *
 * TRANSPOSED, that is M- or N-major, rows of 64 columns at one k: PTX ISA (matrix descriptor,
 * canonical layouts) has 16-bit elements at ((8, 8, m), (8, k)) : ((1, 8, leading), (64, stride)).
 * So 64 columns are contiguous, a row of 128 bytes; eight k are eight rows; the stride offset leads
 * from eight k to the next eight, 1024 bytes; and the leading one from 64 columns to the next 64:
 * LEADING bytes, 8192 where a box of the TMA is 64 rows. Sixteen k further on are 2048 bytes more,
 * where the swizzle's pattern begins again, so that the base offset stays 0.
 *
 * ROW 64: with 64-byte swizzle, a 2 instead of the 1: rows of 32 columns, eight of them 512 bytes.
 */
template <bool TRANSPOSED, unsigned ROW = 128, unsigned LEADING = 64 * ROW>
static __device__ __forceinline__ uint64_t wgmma_descriptor(unsigned shared_address) {
    static_assert(ROW == 128 || ROW == 64, "the swizzles of 128 and of 64 bytes");
    return (uint64_t)(128 / ROW) << 62 | (uint64_t)(8 * ROW >> 4) << 32 |
           (uint64_t)(TRANSPOSED ? LEADING >> 4 : 1) << 16 | (shared_address & 0x3ffff) >> 4;
}

/* Orders the warpgroup's accesses to registers before the wgmma that follow (wgmma.fence): before
   the first wgmma, and after each change of an accumulator by other instructions. */
static __device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Closes a group of wgmma. */
static __device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most the PENDING youngest groups are in flight. */
template <int PENDING> static __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving reads of COUNT accumulators before the wait that came last. */
template <int COUNT> static __device__ __forceinline__ void wgmma_keep_order(float *d) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}

/* Registers a thread of this warpgroup may have from now on (setmaxnreg): a producer gives some
   back, consumers then take more. COUNT is a multiple of 8. */
template <int COUNT> static __device__ __forceinline__ void warpgroup_reg_dealloc() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> static __device__ __forceinline__ void warpgroup_reg_alloc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

#endif
