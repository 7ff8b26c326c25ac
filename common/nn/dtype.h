/**
 * @file dtype.h
 * @brief Storage types of operators' inputs and outputs: fp32, fp16 or bf16. Arithmetic is fp32.
 *
 * Sources: IEEE 754 binary16; bf16 is the upper half of an fp32 number.
 */
#ifndef WARPBOOK_COMMON_NN_DTYPE_H_
#define WARPBOOK_COMMON_NN_DTYPE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum nn_dtype {
    NN_F32,
    NN_F16, /**< 11 significant bits, up to 65504 */
    NN_BF16 /**< 8 significant bits, the range of fp32 */
};

/** @return bytes of an element: 4 or 2. */
size_t nn_dtype_bytes(enum nn_dtype dtype);

/** @return "fp32", "fp16", "bf16". */
const char *nn_dtype_name(enum nn_dtype dtype);

/** @return largest relative rounding error of a number within the type's normal range. */
double nn_dtype_rounding(enum nn_dtype dtype);

/**
 * @brief Stores fp32 values, rounded to nearest even; beyond fp16's range they become infinite.
 * @param to   host, (count) elements of @p dtype
 * @param from host, (count)
 */
void nn_dtype_store(void *to, const float *from, size_t count, enum nn_dtype dtype);

/** Loads elements as fp32, exactly. @param to (count) @param from (count) of @p dtype; both host */
void nn_dtype_load(float *to, const void *from, size_t count, enum nn_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
