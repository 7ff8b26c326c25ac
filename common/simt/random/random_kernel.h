/**
 * @file random_kernel.h
 * @brief Small random CUDA kernels, the same text for the same seed.
 *
 *     extern "C" __global__ void k_SEED(unsigned long long *out, const unsigned *in)
 *
 * A kernel is made of integer arithmetic of all widths, IEEE operations in fp32, fp64, fp16 and
 * bf16, branches, bounded loops, device functions, local arrays, exchanges through shared memory,
 * warp operations and atomics. It has no undefined behaviour and no race, and its results depend
 * neither on the order of threads nor on the bits of a NaN: every conforming machine computes the
 * same. The one exception are approximate instructions (ex2, sin, ...). Their arguments are
 * exact, each result is stored by itself, and nothing depends on it.
 *
 * Layout of `out` (RANDOM_OUT_WORDS words, zero before the launch):
 *
 *     out[s * 128 + thread]        hash of what section s left in the variables, s < 4
 *     out[(4 + a) * 128 + thread]  bits of approximate fp32 result a, a < 4
 *     out[8 * 128 ...]             16 words for atomics of all blocks
 *
 * `in` (RANDOM_IN_WORDS words) is what random_kernel_input() fills.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_KERNEL_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_KERNEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

enum {
    RANDOM_BLOCKS = 2,
    RANDOM_THREADS = 64, /**< a block */
    RANDOM_ALL_THREADS = RANDOM_BLOCKS * RANDOM_THREADS,
    RANDOM_SECTIONS = 4,
    RANDOM_APPROXIMATES = 4, /**< at most, in one kernel */
    RANDOM_ATOMICS = 16,
    RANDOM_ATOMICS_AT = (RANDOM_SECTIONS + RANDOM_APPROXIMATES) * RANDOM_ALL_THREADS,
    RANDOM_OUT_WORDS = RANDOM_ATOMICS_AT + RANDOM_ATOMICS,
    RANDOM_IN_WORDS = 1024,
    RANDOM_RECORDED_THREADS = 8, /**< whose approximate results a recording holds */
};

/** An approximate function and how far two conforming results of it may be apart. */
struct random_approximate {
    const char *name;
    const char *text; /**< template of the expression, see random_expression.h */
    double ulps;      /**< |got - want| <= max(ulps of want, absolute) */
    double absolute;
};

struct random_kernel {
    char *text; /**< constants, device functions and the kernel, NUL-terminated */
    size_t size;
    bool half; /**< has half or bfloat16 values: needs the second prelude */
    size_t approximate_count;
    const struct random_approximate *approximates[RANDOM_APPROXIMATES];
};

/** Writes the kernel of @p seed. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status random_kernel_create(uint64_t seed, struct random_kernel *kernel);

/** Frees the text; a zero-initialised kernel is allowed. */
void random_kernel_free(struct random_kernel *kernel);

/** Fills @p in (RANDOM_IN_WORDS words), the same for all kernels: random and special values. */
void random_kernel_input(uint32_t *in);

/** @return 64-bit FNV-1a hash of @p count words, lowest byte first. */
uint64_t random_kernel_hash(const uint64_t *words, size_t count);

/** @return 64-bit FNV-1a hash of @p size bytes. */
uint64_t random_kernel_text_hash(const char *text, size_t size);

/* The approximate functions that random kernels call. */

extern const struct random_approximate random_approximates[];
extern const size_t random_approximate_count;

/* CUDA C text that every file of random kernels begins with. */

/** Types, folds of floats, and instructions that CUDA C has no intrinsic for. */
extern const char *const random_prelude;

/** What kernels with half and bfloat16 values need beside it. */
extern const char *const random_prelude_half;

#endif
