/**
 * @file unpack.cuh
 * @brief Stored weights of 4 and 8 bits to pairs of bf16, without conversion instructions.
 *
 * All results are exact: integers below 256 and e4m3 have at most eight significant bits, as bf16.
 * Compute capability 8.0; in older code everything is 0.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_UNPACK_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_UNPACK_CUH_

#include "common/cuda/mma.cuh"

/* Two bf16 of 1, -1 and 2^120. */
#define PAIR_OF_ONE 0x3f803f80u
#define PAIR_OF_MINUS_ONE 0xbf80bf80u
#define PAIR_OF_2_TO_120 0x7b807b80u

/* a * b + c of two pairs of bf16, rounded once. */
static __device__ __forceinline__ unsigned fma_pair(unsigned a, unsigned b, unsigned c) {
    unsigned d = 0;
#if __CUDA_ARCH__ >= 800
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
#endif
    return d;
}

/*
 * Nibble i and nibble i + 4 of a word, less the zero point. bf16 128 is 0x4300 and its last bit is
 * worth 1, so 0x4300 | q is 128 + q: and and or are one lop3.
 * minus_128_zero: a pair of -(128 + zero)
 */
static __device__ __forceinline__ unsigned unpack_int4(unsigned word, int i,
                                                       unsigned minus_128_zero) {
    unsigned magic = (word >> (4 * i) & 0x000f000fu) | 0x43004300u;
    return fma_pair(magic, PAIR_OF_ONE, minus_128_zero);
}

/*
 * Byte i (0, 1) and byte i + 2 of a word as int8. Its lower seven bits make 128 + low; bf16 256 is
 * 0x4380, so the sign bit turns a 128 that is subtracted into 256.
 */
static __device__ __forceinline__ unsigned unpack_int8(unsigned word, int i) {
    unsigned shifted = word >> (8 * i);
    unsigned magic = (shifted & 0x007f007fu) | 0x43004300u;
    unsigned base = (shifted & 0x00800080u) | 0x43004300u;
    return fma_pair(base, PAIR_OF_MINUS_ONE, magic);
}

/*
 * Byte i (0, 1) and byte i + 2 of a word as e4m3: exponent and fraction go to bits 10 .. 4 of a
 * bf16, whose bias is 127 and not 7. Its product with 2^120 is right for denormal numbers, too.
 */
static __device__ __forceinline__ unsigned unpack_fp8(unsigned word, int i) {
    unsigned high = i == 0 ? word << 8 : word;
    unsigned bits = (high >> 4 & 0x07f007f0u) | (high & 0x80008000u);
    return fma_pair(bits, PAIR_OF_2_TO_120, 0x80008000u); /* plus -0, which keeps every sign */
}

#endif
