/**
 * @file lesser.h
 * @brief Operands of products that are cheaper than those that were asked for.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_LESSER_H_
#define WARPBOOK_GRADER_SELFTEST_LESSER_H_

#include <stddef.h>

#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lesser {
    LESSER_BITS,    /**< rounded to 11 bits, as TF32's and fp16's units take them */
    LESSER_COLUMNS, /**< each 64th column is zero, as if sums had left it out */
    LESSER_BF16,    /**< as bf16 has it: 8 bits */
    LESSER_FP16,    /**< as fp16 has it: 11 bits, and less than 65,520 */
    LESSER_FP8,     /**< as an fp8 of 4 bits (e4m3) has it, if it had any exponent */
    LESSER_INT8,    /**< 127ths of the largest of 32 neighbours */
    LESSER_PRUNED,  /**< zero below a 64th, where a few larger values decide most of a sum */
    LESSER_FLUSHED, /**< denormals are zeros, and zeros are negative */
    LESSER_LOUDER   /**< larger by 0.81% */
};

enum { LESSER_COPIES = 8 };

/**
 * @brief Makes a lesser copy of a matrix, behind what was started on @p stream.
 * @param which   0 to LESSER_COPIES - 1: the copy that was made before with the same number ends
 * @param x       (count / columns, columns), device
 * @param columns at least 1
 * @return the copy, device; a self-test without memory is at fault: it aborts
 */
const float *lesser_copy(int which, enum lesser lesser, const float *x, size_t count,
                         size_t columns, device_stream stream);

/** The same of a matrix of bf16. */
const void *lesser_copy_16(int which, enum lesser lesser, const void *x, size_t count,
                           size_t columns, device_stream stream);

/** x += a lesser copy of @p addend, which it makes; both (count), device, count at least 1. */
void lesser_add(int which, enum lesser lesser, float *x, const float *addend, size_t count,
                device_stream stream);

#ifdef __cplusplus
}
#endif

#endif
