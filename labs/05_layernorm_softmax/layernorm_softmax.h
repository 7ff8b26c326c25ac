/**
 * @file layernorm_softmax.h
 * @brief Contract of lab 05: LayerNorm, RMSNorm and softmax of rows, on the GPU.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_LAYERNORM_SOFTMAX_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_LAYERNORM_SOFTMAX_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is done with each row x of C elements. */
enum rows_op {
    ROWS_LAYERNORM, /**< (x - mean) / sqrt(var + eps) * weight + bias; var is the mean of (x -
                       mean)^2 */
    ROWS_RMSNORM,   /**< x / sqrt(mean(x^2) + eps) * weight */
    ROWS_SOFTMAX    /**< e^(x - max) / sum; a row of which nothing is seen becomes zeros */
};
enum { ROWS_OPS = 3 };

/** Storage types, of enum nn_dtype. Arithmetic is fp32 in any case; the result is rounded once. */
enum { ROWS_TYPES = 3 };

/** Scratch memory that every call is given. */
#define ROWS_WORKSPACE_BYTES ((size_t)1 << 20)

/** Most elements, rows * C, and the longest row. */
#define ROWS_MAX_ELEMENTS ((size_t)1 << 40)
#define ROWS_MAX_C ((size_t)1 << 30)

/**
 * @brief One call.
 *
 * All pointers are device memory, contiguous, aligned to one element and no
 * more (cudaMalloc gives 256 bytes). `out` is `in` or overlaps nothing. C is at
 * least 1; with rows = 0 nothing happens. Finite inputs and, for softmax, -inf
 * are allowed; what a row with NaN or +inf becomes is not said, other rows are
 * as ever.
 */
struct rows_problem {
    enum rows_op op;
    enum nn_dtype type; /**< of in, out, weight and bias */
    size_t rows, C;
    const void *in;     /**< (rows, C) */
    void *out;          /**< (rows, C) */
    const void *weight; /**< (C), the norms only */
    const void *bias;   /**< (C), LayerNorm only */
    float eps;          /**< the norms only, > 0 */
    /**
     * Softmax only: (ceil(rows / rows_a_mask), C) bytes, 0 hides the column; NULL hides nothing.
     * Row r has mask row r / rows_a_mask. Scores (B, NH, T, S) of attention with a mask (B, S)
     * are rows = B * NH * T, C = S, rows_a_mask = NH * T.
     */
    const uint8_t *mask;
    size_t rows_a_mask; /**< at least 1 where there is a mask */
};

/**
 * @brief Starts the work on a stream; does not wait for it.
 *
 * @param workspace device memory of ROWS_WORKSPACE_BYTES, 256-byte aligned, contents undefined
 *                  before and after; calls of one stream may share it
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, with a line that names the number, for C = 0, C above
 *         ROWS_MAX_C, more than ROWS_MAX_ELEMENTS, or a mask with rows_a_mask = 0;
 *         STATUS_DEVICE when the launch failed
 */
MUST_CHECK enum status layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                         device_stream stream, struct error *error);

typedef enum status rows_function(const struct rows_problem *problem, void *workspace,
                                  device_stream stream, struct error *error);

/** One version of layernorm_softmax(), for the bench's table. */
struct rows_step {
    const char *name; /**< "v2_block_a_row" */
    rows_function *run;
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one is what layernorm_softmax() calls
 */
const struct rows_step *layernorm_softmax_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
