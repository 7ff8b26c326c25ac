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
    LESSER_BITS,   /**< rounded to 11 bits, as TF32's and fp16's units take them */
    LESSER_COLUMNS /**< each 64th column is zero, as if sums had left it out */
};

enum { LESSER_COPIES = 3 };

/**
 * @brief Makes a lesser copy of a matrix, behind what was started on @p stream.
 * @param which   0 to LESSER_COPIES - 1: the copy that was made before with the same number ends
 * @param x       (count / columns, columns), device
 * @param columns at least 1
 * @return the copy, device; a self-test without memory is at fault: it aborts
 */
const float *lesser_copy(int which, enum lesser lesser, const float *x, size_t count,
                         size_t columns, device_stream stream);

#ifdef __cplusplus
}
#endif

#endif
