/**
 * @file flagged_mailbox.cuh
 * @brief A flag-with-data exchange between the blocks of a kernel, for values that all blocks read.
 *
 * One thread publishes a value as 4 bytes whose lowest bit is the flag that says whether it has
 * arrived; readers poll. So an exchange needs no memory fence, and no counter to wait for before
 * the values. One bit is enough where a mailbox holds a value of this exchange or of the one
 * before: a value is published again only when everybody has read it, and flags alternate. A value
 * loses its lowest bit. Every compute capability; each thread for itself.
 */
#ifndef WARPBOOK_COMMON_CUDA_FLAGGED_MAILBOX_CUH_
#define WARPBOOK_COMMON_CUDA_FLAGGED_MAILBOX_CUH_

#include <stddef.h>

/* Device memory, aligned to 16 bytes. */
struct flagged_mailbox {
    unsigned *values;
};

/* The value as it is published, which others compute with. @param flag 0 or 1 */
static __device__ __forceinline__ float with_flag(float value, unsigned flag) {
    return __uint_as_float((__float_as_uint(value) & ~1u) | flag);
}

static __device__ __forceinline__ void publish(struct flagged_mailbox box, size_t i, float value,
                                               unsigned flag) {
    unsigned bits = __float_as_uint(with_flag(value, flag));
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(box.values + i), "r"(bits) : "memory");
}

/* Value i. */
static __device__ __forceinline__ unsigned read_value(struct flagged_mailbox box, size_t i) {
    unsigned x;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(box.values + i) : "memory");
    return x;
}

/* Values 4i to 4i + 3. */
static __device__ __forceinline__ uint4 read_four(struct flagged_mailbox box, size_t i) {
    uint4 x;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"((uint4 *)box.values + i)
                 : "memory");
    return x;
}

static __device__ __forceinline__ bool has_flag(unsigned x, unsigned flag) {
    return (x & 1) == flag;
}

static __device__ __forceinline__ bool has_flag(uint4 x, unsigned flag) {
    return (((x.x ^ flag) | (x.y ^ flag) | (x.z ^ flag) | (x.w ^ flag)) & 1) == 0;
}

static __device__ __forceinline__ float4 values_of(uint4 x) {
    return make_float4(__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z),
                       __uint_as_float(x.w));
}

#endif
