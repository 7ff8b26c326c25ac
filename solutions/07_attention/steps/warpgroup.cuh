/**
 * @file warpgroup.cuh
 * @brief wgmma.m64n64k16, as v6's kernel uses it: 64 x 16 by 16 x 64 for a warpgroup; and
 * m64n128k16 with its left operand in registers, for v7.
 *
 * Written out here, where wgmma is new; the toolbox has other shapes of it, its fence, commit and
 * wait: common/cuda/wgmma.cuh.
 *
 * Shared memory: panels of 64 channels, 128 bytes a row; of row r, piece p of 16
 * bytes lies at place p ^ r % 8. That is the layout that wgmma calls 128-byte
 * swizzle: neither copies nor products meet a bank twice, and no byte is padding.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_WARPGROUP_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_WARPGROUP_CUH_

#include "solutions/07_attention/steps/fragments.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#endif

/* Where element (row, channel) lies in panels of 64 rows. */
template <typename E>
static __device__ __forceinline__ E *swizzled(E *panels, int row, int channel) {
    return panels + (channel / 64 * 64 + row) * 64 + (channel / 8 % 8 ^ row % 8) * 8 + channel % 8;
}

/* The low half of wgmma's descriptor of a panel: its address, in 16 bytes. The high half says for
   all of them: 1024 bytes from eight rows to the next eight, 128-byte swizzle. Panels begin at
   multiples of 1024 bytes. */
static __device__ __forceinline__ unsigned describe(const void *panel) {
    return (unsigned)__cvta_generic_to_shared(panel) >> 4 | 1u << 16;
}

/* The same of two panels of 16-bit elements side by side, the second one `next` elements behind:
   128 columns of an operand whose rows are the sums' depth. */
static __device__ __forceinline__ unsigned describe(const void *panel, int next) {
    return (unsigned)__cvta_generic_to_shared(panel) >> 4 | (unsigned)(next * 2 >> 4) << 16;
}

/* 32 operands: the share of a thread in 64 x 64 sums. */
#define SUMS_OF_8(c, n)                                                                      \
    "+f"(c[n].x[0]), "+f"(c[n].x[1]), "+f"(c[n].x[2]), "+f"(c[n].x[3]), "+f"(c[n + 1].x[0]), \
        "+f"(c[n + 1].x[1]), "+f"(c[n + 1].x[2]), "+f"(c[n + 1].x[3])
#define SUMS_OF_64(c) SUMS_OF_8(c, 0), SUMS_OF_8(c, 2), SUMS_OF_8(c, 4), SUMS_OF_8(c, 6)
#define SUM_NAMES                                                                                 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

/* c += a * b: 64 rows from registers, by 64 columns of shared memory, 16 deep. And c = a * b, or c
   += a * b: 64 rows by 64 rows, both of shared memory. Asynchronous: see wait_products(). */
#define DEFINE_BEGIN_PRODUCT(TYPE, NAME)                                                       \
    static __device__ __forceinline__ void begin_product(                                      \
        struct accumulator *c, const struct fragment &a, unsigned b, TYPE) {                   \
        asm volatile("{\n.reg .b64 b;\nmov.b64 b, {%36, 0x40000040};\n"                        \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." NAME "." NAME " " SUM_NAMES \
                     ", {%32, %33, %34, %35}, b, 1, 1, 1, 1;\n}"                               \
                     : SUMS_OF_64(c)                                                           \
                     : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b));            \
    }                                                                                          \
    static __device__ __forceinline__ void begin_product(struct accumulator *c, unsigned a,    \
                                                         unsigned b, bool add, TYPE) {         \
        asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %34, 0;\n"             \
                     "mov.b64 a, {%32, 0x40000040};\nmov.b64 b, {%33, 0x40000040};\n"          \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." NAME "." NAME " " SUM_NAMES \
                     ", a, b, p, 1, 1, 0, 0;\n}"                                               \
                     : SUMS_OF_64(c)                                                           \
                     : "r"(a), "r"(b), "r"((int)add));                                         \
    }

/* 64 operands: the share of a thread in 64 x 128 sums. */
#define SUMS_OF_128(c) \
    SUMS_OF_64(c), SUMS_OF_8(c, 8), SUMS_OF_8(c, 10), SUMS_OF_8(c, 12), SUMS_OF_8(c, 14)
#define SUM_NAMES_OF_128                                                                          \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "  \
    "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "  \
    "%56, %57, %58, %59, %60, %61, %62, %63}"

/* c += a * b: 64 rows from registers, by 128 columns of shared memory, 16 deep. */
#define DEFINE_BEGIN_WIDE_PRODUCT(TYPE, NAME)                                         \
    static __device__ __forceinline__ void begin_wide_product(                        \
        struct accumulator *c, const struct fragment &a, unsigned b, TYPE) {          \
        asm volatile("{\n.reg .b64 b;\nmov.b64 b, {%68, 0x40000040};\n"               \
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32." NAME "." NAME     \
                     " " SUM_NAMES_OF_128 ", {%64, %65, %66, %67}, b, 1, 1, 1, 1;\n}" \
                     : SUMS_OF_128(c)                                                 \
                     : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b));   \
    }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

DEFINE_BEGIN_PRODUCT(__half, "f16")
DEFINE_BEGIN_PRODUCT(__nv_bfloat16, "bf16")
DEFINE_BEGIN_WIDE_PRODUCT(__half, "f16")
DEFINE_BEGIN_WIDE_PRODUCT(__nv_bfloat16, "bf16")

/* Waits until at most PENDING wgmma groups are in flight, and keeps the compiler from reading the
   accumulators of `panels` panels earlier. */
template <int PENDING>
static __device__ __forceinline__ void wait_products(struct accumulator *sums, int panels) {
    wgmma_wait<PENDING>();
#pragma unroll
    for (int panel = 0; panel < panels; panel++) {
        struct accumulator *c = sums + 8 * panel;
        asm volatile("" : SUMS_OF_64(c)::"memory");
    }
}

/* Waits for this thread's copies; after the barrier wgmma may read all threads' copies. */
template <int PENDING> static __device__ __forceinline__ void wait_for_tiles() {
    cp_async_wait<PENDING>();
    fence_proxy_async();
    __syncthreads();
}

#endif

/* Whether the code at hand was compiled for sm_90a: only then this kernel, which is never launched,
   has shared memory. */
static __global__ void hopper_code(int *to) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ int there[4];
    there[threadIdx.x % 4] = *to;
    __syncthreads();
    *to = there[(threadIdx.x + 1) % 4];
#endif
}

static inline bool has_hopper_code() {
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, hopper_code) == cudaSuccess &&
           attributes.sharedSizeBytes > 0;
}

#endif
