/**
 * @file integer_mma.cuh
 * @brief mma.sync.m16n8k32 of signed bytes, with int32 accumulators.
 *
 * Compute capability 8.0; in older code it does nothing. All 32 lanes of a warp execute it
 * together.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_INTEGER_MMA_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_INTEGER_MMA_CUH_

/* c (16 x 8) += a (16 x 32) * b (32 x 8). A register has four neighbouring k. @param c as in struct
   accumulator (mma.cuh) @param a row lane / 4 of k 4 (lane % 4) .., the same of row lane / 4 + 8,
   then both of k + 16; its bytes have a sign, or UNSIGNED none @param b0, b1 column lane / 4 of the
   same k, and of k + 16 */
template <bool UNSIGNED = false>
static __device__ __forceinline__ void mma_m16n8k32(int *c, const uint4 &a, unsigned b0,
                                                    unsigned b1) {
#if __CUDA_ARCH__ >= 800
    if constexpr (UNSIGNED) {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
    }
#endif
}

#endif
