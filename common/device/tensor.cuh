/**
 * @file tensor.cuh
 * @brief What kernels for tensor cores are made of: mma.sync, ldmatrix, cp.async; and elements from
 *        storage to arithmetic and back.
 *
 * Instructions of compute capability 8.0. Code for older GPUs compiles to copies by plain loads and
 * to products that do nothing: a launcher asks for the capability first.
 */
#ifndef WARPBOOK_COMMON_DEVICE_TENSOR_CUH_
#define WARPBOOK_COMMON_DEVICE_TENSOR_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ __forceinline__ float to_float(float x) {
    return x;
}

static __device__ __forceinline__ float to_float(__half x) {
    return __half2float(x);
}

static __device__ __forceinline__ float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}

template <typename E> static __device__ __forceinline__ E from_float(float x);

template <> __device__ __forceinline__ float from_float<float>(float x) {
    return x;
}

template <> __device__ __forceinline__ __half from_float<__half>(float x) {
    return __float2half_rn(x);
}

template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

/* 2^x, to 2 units in the last place; 0 for -infinity. */
static __device__ __forceinline__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Starts a copy of 16 bytes, or of 4, from global to shared memory, or of zeros. Before compute
   capability 8.0: copies. */
template <int BYTES>
static __device__ __forceinline__ void copy(void *to, const void *from, bool inside) {
    static_assert(BYTES == 4 || BYTES == 16, "what cp.async takes here");
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? BYTES : 0;
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                     "r"(bytes)
                     : "memory");
    }
#else
    for (int i = 0; i < BYTES / 4; i++) {
        ((unsigned *)to)[i] = inside ? ((const unsigned *)from)[i] : 0;
    }
#endif
}

/* Closes a group of this thread's copies. */
static __device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's groups but for the PENDING youngest. */
template <int PENDING> static __device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* What tensor cores sum into: 16 x 8 of a warp. Of a thread: rows lane / 4 and that + 8, columns
   lane % 4 * 2 and that + 1. */
struct accumulator {
    float x[4];
};

/* What it multiplies: 16 x 16 of A, two of 16 x 8 of B. */
struct fragment {
    unsigned x[4];
};

static __device__ __forceinline__ unsigned pack(float low, float high, __half) {
    __half2 both = __floats2half2_rn(low, high);
    return *(unsigned *)&both;
}

static __device__ __forceinline__ unsigned pack(float low, float high, __nv_bfloat16) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(unsigned *)&both;
}

/* Four 8 x 8 matrices, rows at the addresses of eight lanes each. */
template <bool TRANSPOSED>
static __device__ __forceinline__ struct fragment load_matrices(const void *row) {
    struct fragment f = {};
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(row);
    if (TRANSPOSED) {
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

/* c (16 x 8) += a (16 x 16) * b (16 x 8) */
static __device__ __forceinline__ void multiply(struct accumulator &c, const struct fragment &a,
                                                unsigned b0, unsigned b1, __half) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ __forceinline__ void multiply(struct accumulator &c, const struct fragment &a,
                                                unsigned b0, unsigned b1, __nv_bfloat16) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
        : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0), "r"(b1));
#endif
}

#endif
