/**
 * @file compare.h
 * @brief Compares an fp32 result with the oracle's, within a tolerance that can be justified.
 *
 * A result passes if all of this holds:
 *  1. every element is finite (checked first; the oracle must be finite too);
 *  2. element by element, |got - want| <= absolute + relative * |want|;
 *  3. as a whole, ||got - want|| / ||want|| <= norm (Euclidean), so that zeros
 *     or a lower precision do not hide under the elementwise bound.
 *
 * This file is never compiled with fast-math.
 */
#ifndef WARPBOOK_COMMON_TESTING_COMPARE_H_
#define WARPBOOK_COMMON_TESTING_COMPARE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tolerance {
    double absolute;
    double relative;
    double norm;
};

struct comparison {
    bool pass;
    bool finite;       /**< all of got and want are finite */
    size_t worst;      /**< index of the first non-finite, else the worst element */
    double got, want;  /**< values of that element */
    double allowed;    /**< largest |got - want| allowed at that element */
    double norm_error; /**< ||got - want|| / ||want||; infinite if an element is not finite */
    double norm_allowed;
};

/**
 * @brief Tolerance of an fp32 dot product of length @p K.
 *
 * Each of K roundings has a relative error of at most u = 2^-24. In random
 * data they add up like sqrt(K), in a plain chain at most like K; vector code
 * lies between. The bounds below are 4u * K^(3/4) on the scale of the result,
 * well under the 2^-11 that fp16 or TF32 inputs would cost for any K < 10^4.
 * In a sum of few products, two unusually large ones may cancel and leave only their rounding
 * errors: so the absolute bound is never less than that of 16 products.
 *
 * @param K     number of products summed; 0 counts as 1
 * @param scale typical magnitude of one element of the result, > 0
 */
struct tolerance tolerance_dot_f32(size_t K, double scale);

/**
 * @brief Compares @p count elements.
 * @param got  host, fp32
 * @param want host, double: the oracle's result
 */
struct comparison compare_f32(const float *got, const double *want, size_t count,
                              struct tolerance tolerance);

/**
 * @brief Describes a failed comparison of a rows x columns matrix in one line:
 *        index, got, want, tolerance.
 */
void comparison_describe(const struct comparison *comparison, size_t columns, char *text,
                         size_t size);

/**
 * An output buffer in host memory, filled with NaN and with canaries on both sides: elements that
 * are not written stay NaN, and writes outside the buffer change a canary.
 */
struct guarded {
    float *data; /**< count floats, 64-byte aligned, all NaN at first */
    size_t count;
    void *block;
    size_t block_size;
};

/** @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY. */
MUST_CHECK enum status guarded_create(struct guarded *guarded, size_t count);

/** Fills the data with NaN again. */
void guarded_poison(struct guarded *guarded);

/** @return true if nothing was written before or after the data. */
bool guarded_intact(const struct guarded *guarded);

/** Frees; a zero-initialised one is allowed. */
void guarded_free(struct guarded *guarded);

#ifdef __cplusplus
}
#endif

#endif
