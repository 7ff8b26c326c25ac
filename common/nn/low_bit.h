/**
 * @file low_bit.h
 * @brief Matrices whose weights are stored in 8 or 4 bits: plain storage order, quantizer to
 * nearest, and what the stored numbers stand for.
 *
 * A weight is scale * (stored - zero). `group` neighbouring columns of a row share a scale and a
 * zero point; group = columns is "by row". Sources: A. Dettmers et al., LLM.int8() (2022): int8 by
 * row; E. Frantar et al., GPTQ (2022): int4 in groups; P. Micikevicius et al., FP8 formats for deep
 * learning (2022): e4m3.
 *
 * Bytes a weight: int8 by row 1 + 4/columns; int4 in groups of 128 with bf16 scales and zero points
 * 0.5 + 3/128; in groups of 32 0.5 + 3/32. Rounding error of a weight: at most scale / 2 for the
 * integers (normal: sqrt(1/12) scale), 2^-4 of the weight for e4m3.
 */
#ifndef WARPBOOK_COMMON_NN_LOW_BIT_H_
#define WARPBOOK_COMMON_NN_LOW_BIT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum low_bit_type {
    LOW_BIT_INT8, /**< int8_t, -128 .. 127; a byte a weight */
    LOW_BIT_INT4, /**< 0 .. 15, two in a byte: the even column in the low nibble */
    LOW_BIT_FP8   /**< e4m3: sign, 4 bits of exponent (bias 7), 3 of fraction; largest 448; 0x7f and
                       0xff are NaN; a byte a weight */
};

/** Largest number of rows and of columns. */
#define LOW_BIT_MAX_SIZE ((size_t)1 << 28)

/** Shape and types of a matrix, without its numbers. */
struct low_bit_layout {
    enum low_bit_type type;
    size_t rows, columns;
    size_t group;              /**< columns with one scale: 1 .. columns; a row's last group may be
                                    shorter */
    enum nn_dtype scale_dtype; /**< any */
    bool has_zeros;            /**< INT4 alone: a zero point a group; without: 8 */
};

/**
 * A matrix. Rows stand one after another without a gap; a row of INT4 with odd columns ends with a
 * nibble that means nothing. Whose memory it is, host's or a device's, says the function.
 */
struct low_bit_matrix {
    struct low_bit_layout layout;
    void *values;   /**< (rows, low_bit_row_bytes()) */
    void *scales;   /**< (rows, low_bit_groups()) of scale_dtype */
    uint8_t *zeros; /**< (rows, low_bit_groups()) bytes of 0 .. 15; NULL without has_zeros */
};

/** @return "int8", "int4", "fp8". */
const char *low_bit_type_name(enum low_bit_type type);

/** @return bytes of a row's values: columns, or half of them, rounded up. */
size_t low_bit_row_bytes(const struct low_bit_layout *layout);

/** @return groups of a row: columns / group, rounded up. */
size_t low_bit_groups(const struct low_bit_layout *layout);

/** @return bytes of all values, all scales and all zero points. The layout has been checked. */
size_t low_bit_values_bytes(const struct low_bit_layout *layout);
size_t low_bit_scales_bytes(const struct low_bit_layout *layout);
size_t low_bit_zeros_bytes(const struct low_bit_layout *layout);

/**
 * @brief Is there such a matrix? Sizes 1 .. LOW_BIT_MAX_SIZE, known types, a group that fits,
 * zero points only with INT4.
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line that names the field
 */
MUST_CHECK enum status low_bit_check(const struct low_bit_layout *layout, struct error *error);

/** @return the weight that the matrix (host) stores at (row, column), exactly. */
double low_bit_weight(const struct low_bit_matrix *matrix, size_t row, size_t column);

/**
 * @brief Rows as fp32: low_bit_weight() rounded once. (Exact if scales are fp16 or bf16.)
 * @param matrix host
 * @param out    host, (rows, columns): rows first .. first + rows - 1
 */
void low_bit_dequantize(const struct low_bit_matrix *matrix, size_t first, size_t rows, float *out);

/**
 * @brief Scale and zero point for a group of weights, for rounding to nearest.
 *
 * INT8: max|w| / 127; FP8: max|w| / 448; INT4 without zero points max|w| / 7, with them
 * (max - min) / 15 where min <= 0 <= max. Rounded to scale_dtype. A group of zeros gets scale 1.
 * @param weights host, (count)
 * @param zero    out; 0 for INT8 and FP8, 8 for INT4 without zero points
 * @return the scale, a number of scale_dtype, > 0
 */
float low_bit_choose_scale(const struct low_bit_layout *layout, const float *weights, size_t count,
                           uint8_t *zero);

/**
 * @brief The stored number nearest to weight / scale + zero, ties to even, within the type's range
 * (INT8: -127 .. 127).
 * @return its bits: a byte, or a nibble 0 .. 15
 */
uint8_t low_bit_round(enum low_bit_type type, float weight, float scale, uint8_t zero);

/** @return what a byte (or nibble) stands for before it is scaled: stored - zero. */
float low_bit_stored(enum low_bit_type type, uint8_t bits, uint8_t zero);

/** Writes one stored number, or one group's scale and zero point, of a matrix on the host. */
void low_bit_set(struct low_bit_matrix *matrix, size_t row, size_t column, uint8_t bits);
void low_bit_set_group(struct low_bit_matrix *matrix, size_t row, size_t group, float scale,
                       uint8_t zero);

/** @return one stored number's bits; one group's scale and zero point. Host. */
uint8_t low_bit_get(const struct low_bit_matrix *matrix, size_t row, size_t column);
float low_bit_get_group(const struct low_bit_matrix *matrix, size_t row, size_t group,
                        uint8_t *zero);

/**
 * @brief Rounds weights to nearest: the reference that other methods are compared with.
 * @param weights host, (rows, columns), finite
 * @param matrix  host; its layout says how, its buffers are filled
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line: a layout, or a weight that is not
 * finite
 */
MUST_CHECK enum status low_bit_quantize(const float *weights, struct low_bit_matrix *matrix,
                                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
