/**
 * @file cpu.h
 * @brief Vector code that uses the CPU's widest registers in a program built for any x86-64.
 *
 * A program may be built on one machine and run on another, so vector code is
 * not built with -march=native. A function marked CPU_CLONES is compiled three
 * times: for AVX-512, for AVX2 with FMA, and for any x86-64. When the program
 * starts, the loader picks the best clone that the CPU can run.
 *
 *     CPU_CLONES
 *     static void scale(float *x, size_t count, float factor) {
 *         for (size_t i = 0; i < count; i++) {
 *             x[i] *= factor;
 *         }
 *     }
 *
 * Helpers of such a function are cloned only if they are inlined: mark them
 * CPU_INLINE. The compiler turns the body of an OpenMP parallel region into a
 * function of its own, which is not cloned: put `#pragma omp parallel` around
 * the call of a cloned function, not into it.
 */
#ifndef WARPBOOK_COMMON_BASE_CPU_H_
#define WARPBOOK_COMMON_BASE_CPU_H_

#include <stddef.h>

/*
 * No clones under sanitizers: they would instrument the resolver, which runs before they are set
 * up. Tests define WARPBOOK_VECTOR_FLOATS to get the code of a CPU with shorter vectors.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                          \
    !defined(WARPBOOK_VECTOR_FLOATS)
#define CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_CLONES
#endif

/** A helper that is always inlined, and so is cloned with the function that calls it. */
#define CPU_INLINE static inline __attribute__((always_inline))

/**
 * @return number of floats in a vector register of the clone that runs: 16, 8 or 4.
 *
 * GCC accepts vector types of any length. It splits a vector that is longer than
 * a register, often through memory, which can cost a factor of ten: use the
 * length that this function returns.
 */
static inline size_t cpu_vector_floats(void) {
#if defined(WARPBOOK_VECTOR_FLOATS)
    return WARPBOOK_VECTOR_FLOATS;
#elif defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd")) {
        return 16;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 4;
#else
    return 4;
#endif
}

#endif
