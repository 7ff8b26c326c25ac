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

#include <stdbool.h>

/*
 * Sanitizers instrument the resolver, which runs before they are set up.
 * WARPBOOK_NARROW_VECTORS is for tests: code as on the oldest CPU.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                          \
    !defined(WARPBOOK_NARROW_VECTORS)
#define CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_CLONES
#endif

/** A helper that becomes part of the function that calls it, and so is cloned with it. */
#define CPU_INLINE static inline __attribute__((always_inline))

/** @return true when the AVX-512 clones run: 32 vector registers of 16 floats. */
static inline bool cpu_has_wide_vectors(void) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(WARPBOOK_NARROW_VECTORS)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
#else
    return false;
#endif
}

#endif
