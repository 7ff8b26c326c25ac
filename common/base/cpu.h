/**
 * @file cpu.h
 * @brief Vector code that fits the CPU it runs on, without building for one CPU only.
 *
 * A program travels: it is built on one machine and runs on another. So vector
 * code is not built with -march=native. A function marked CPU_CLONES is
 * compiled several times, for AVX-512, for AVX2 with FMA, and for any x86-64;
 * the loader picks the best one that the CPU can run, once, at start.
 *
 *     CPU_CLONES
 *     static void scale(float *x, size_t count, float factor) {
 *         for (size_t i = 0; i < count; i++) {
 *             x[i] *= factor;
 *         }
 *     }
 *
 * What such a function calls is not cloned with it, unless it is inlined: mark
 * helpers CPU_INLINE. The body of an OpenMP parallel region is a function of
 * its own for the compiler, and is not cloned either: put `#pragma omp
 * parallel` around the call of a cloned function, not into it.
 */
#ifndef WARPBOOK_COMMON_BASE_CPU_H_
#define WARPBOOK_COMMON_BASE_CPU_H_

#include <stddef.h>

/*
 * Sanitizers instrument the resolver, which runs before they are set up.
 * WARPBOOK_VECTOR_FLOATS is for tests: code as on a CPU with shorter vectors.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                          \
    !defined(WARPBOOK_VECTOR_FLOATS)
#define CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_CLONES
#endif

/** A helper that becomes part of the function that calls it, and so is cloned with it. */
#define CPU_INLINE static inline __attribute__((always_inline))

/**
 * @return floats of a vector register in the clone that runs: 16, 8 or 4.
 *
 * GCC accepts vector types of any length. One that is longer than a register
 * it takes apart, often through memory, and that can cost a factor of ten: use
 * the length that this function names.
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
