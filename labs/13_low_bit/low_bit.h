/**
 * @file low_bit.h
 * @brief Contract of lab 13: the product of a few rows with a matrix of 8-bit or 4-bit weights.
 *
 * Weights come as common/nn/low_bit.h stores them. low_bit_prepare() may put them into another
 * order, once, when a model is loaded; low_bit_linear() multiplies, token after token.
 */
#ifndef WARPBOOK_LABS_13_LOW_BIT_LOW_BIT_H_
#define WARPBOOK_LABS_13_LOW_BIT_LOW_BIT_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/nn/low_bit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest M: rows that are multiplied at once, a token of as many texts. */
#define LOW_BIT_MAX_ROWS ((size_t)16)

/** Scratch memory of every call: 1 MiB, 256-byte aligned, contents undefined before and after. */
#define LOW_BIT_WORKSPACE_BYTES ((size_t)1 << 20)

/**
 * @brief Bytes of a prepared matrix. Given.
 *
 * Room for the values of rows rounded up to 32 and columns rounded up to 128; for 4 bytes a group
 * and row, both rounded up in the same way; and 4 KiB.
 */
size_t low_bit_prepared_bytes(const struct low_bit_layout *layout);

/**
 * @brief Which matrices the lab asks for. Given.
 *
 * INT8 and FP8: by row (group = columns) with scales in fp32. INT4: groups of 32 or of 128 columns
 * with scales in bf16 or fp16, with or without zero points; the last group of a row may be shorter.
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for what low_bit_check() refuses, STATUS_UNSUPPORTED
 *         for other groups and scales, with a line that says so
 */
MUST_CHECK enum status low_bit_check_layout(const struct low_bit_layout *layout,
                                            struct error *error);

/**
 * @brief Puts a matrix into the order in which low_bit_linear() reads it. Starts the work on a
 * stream; does not wait for it.
 *
 * Rounding happens nowhere: what low_bit_linear() multiplies with are the weights as stored.
 * @param matrix   device memory in the plain order, values, scales and zeros aligned to 16 bytes
 * @param prepared device memory of low_bit_prepared_bytes(), 256-byte aligned
 * @return STATUS_OK; what low_bit_check_layout() says; STATUS_DEVICE when a launch failed
 */
MUST_CHECK enum status low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                       device_stream stream, struct error *error);

/**
 * @brief out (M, N) = in (M, K) * W^T, W (N, K) = scale * (stored - zero).
 *
 * N = rows and K = columns of the layout. Device memory, row-major, without gaps. in is bf16,
 * aligned to 2 bytes; 16 bytes and a K that is a multiple of 8 make it fast. Sums are fp32, the
 * result is rounded once. Nothing overlaps. With M = 0 nothing happens.
 */
struct low_bit_linear {
    struct low_bit_layout layout;
    /** What low_bit_prepare() made of the matrix with this layout. That work is done: no kernel of
     * the stream writes it while calls are under way, so that a kernel may read it before the one
     * in front of it is done. */
    const void *prepared;
    size_t M;                /**< 0 .. LOW_BIT_MAX_ROWS */
    const void *in;          /**< (M, K) bf16 */
    enum nn_dtype out_dtype; /**< NN_BF16 or NN_F32 */
    void *out;               /**< (M, N) of out_dtype */
};

/**
 * @brief Starts the work on a stream; does not wait for it. The same call gives the same bits.
 * @param workspace device memory of LOW_BIT_WORKSPACE_BYTES; calls of one stream may share it
 * @return as low_bit_prepare(); STATUS_INVALID_ARGUMENT for M and out_dtype, too
 */
MUST_CHECK enum status low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                      device_stream stream, struct error *error);

/** Given: may a call be so? @return STATUS_OK, or as low_bit_linear() */
MUST_CHECK enum status low_bit_linear_check(const struct low_bit_linear *linear,
                                            struct error *error);

/** One version of both functions, for the bench's table. */
struct low_bit_step {
    const char *name; /**< "v2_magic" */
    enum status (*prepare)(const struct low_bit_matrix *matrix, void *prepared,
                           device_stream stream, struct error *error);
    enum status (*linear)(const struct low_bit_linear *linear, void *workspace,
                          device_stream stream, struct error *error);
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one is what low_bit_linear() calls
 */
const struct low_bit_step *low_bit_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
