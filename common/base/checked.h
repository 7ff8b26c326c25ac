/**
 * @file checked.h
 * @brief Size arithmetic that reports overflow instead of wrapping.
 *
 * Sizes that come from a file go through these functions before anything is
 * allocated or read.
 */
#ifndef WARPBOOK_COMMON_BASE_CHECKED_H_
#define WARPBOOK_COMMON_BASE_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>

/** @return true and *out = a + b, or false when the sum does not fit. */
static inline bool checked_add(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/** @return true and *out = a * b, or false when the product does not fit. */
static inline bool checked_multiply(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/** @return a / b rounded up; b > 0. */
static inline size_t ceil_div(size_t a, size_t b) {
    return a / b + (a % b != 0);
}

#endif
