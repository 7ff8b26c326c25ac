/**
 * @file fused_epilogues.h
 * @brief Contract of lab 06: matrix multiplications together with the small operators around them.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_FUSED_EPILOGUES_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_FUSED_EPILOGUES_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What one call does. `product` is in (M, K) * weight (N, K)^T; LayerNorm is each row's, over N.
 * Behind each: where a model has it, and the most launches that the grader allows.
 */
enum fused_op {
    FUSED_LINEAR,               /**< out = product + bias: q, k and v; 2 */
    FUSED_LINEAR_ACTIVATION,    /**< out = f(product + bias): BERT's first FFN layer; 2 */
    FUSED_LINEAR_ADD,           /**< out = residual + product: the lone fused add, Llama2; 2 */
    FUSED_LINEAR_ADD_NORM,      /**< out = LayerNorm(residual + product + bias): BERT's attention
                                   output layer; 2 */
    FUSED_GELU_LINEAR_ADD_NORM, /**< the same with gelu(in) in place of in, exact GELU: BERT's
                                   second FFN layer; 2 */
    FUSED_ADD_NORM,             /**< out = LayerNorm(residual + in), post-LN; 1 */
    FUSED_ADD_KEEP_NORM         /**< sum = residual + in; out = LayerNorm(sum), pre-LN as in
                                   GPT-NeoX; 1 */
};
enum { FUSED_OPS = 7 };

/** Scratch memory that every call is given. */
#define FUSED_WORKSPACE_BYTES ((size_t)192 << 20)

/**
 * Bytes at the workspace's beginning that are zeros before every call and must be zeros after it:
 * room for counters that blocks share. A block that counts up also resets the counter.
 */
#define FUSED_ZERO_BYTES ((size_t)1 << 20)

/** Largest M; largest N and K, so that the workspace holds some rows. */
#define FUSED_MAX_ROWS ((size_t)1 << 29)
#define FUSED_MAX_COLUMNS ((size_t)1 << 22)

/**
 * @brief One call.
 *
 * All pointers are device memory, fp32, row-major, contiguous, aligned to 4
 * bytes and no more (cudaMalloc gives 256). Arithmetic is fp32; the order of
 * sums is free. Every size may be 0: without M or N nothing happens, with K = 0
 * the product is zeros; an operand without elements may be NULL. Inputs are finite.
 *
 * out may be residual. With FUSED_ADD_NORM it may be in, with
 * FUSED_ADD_KEEP_NORM sum may be residual or in. Nothing else overlaps.
 */
struct fused_problem {
    enum fused_op op;
    size_t M, N, K;        /**< the last two operations have no K */
    enum nn_activation f;  /**< FUSED_LINEAR_ACTIVATION only */
    const float *in;       /**< (M, K); with the last two operations (M, N) */
    const float *weight;   /**< (N, K) */
    const float *bias;     /**< (N); not with FUSED_LINEAR_ADD */
    const float *residual; /**< (M, N); not with FUSED_LINEAR and FUSED_LINEAR_ACTIVATION */
    struct nn_norm norm;   /**< weight (N), bias (N), eps > 0: where there is a LayerNorm */
    float *sum;            /**< (M, N); FUSED_ADD_KEEP_NORM only */
    float *out;            /**< (M, N) */
};

/**
 * @brief Starts the work on a stream; does not wait for it.
 *
 * @param workspace device memory of FUSED_WORKSPACE_BYTES, 256-byte aligned, its first
 *                  FUSED_ZERO_BYTES zeros, else undefined; calls of one stream may share it
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, with a line that names it, for an unknown operation
 *         or activation, a size above FUSED_MAX_ROWS or FUSED_MAX_COLUMNS, or sizes that together
 *         need more blocks than a launch takes;
 *         STATUS_DEVICE when a launch failed
 */
MUST_CHECK enum status fused_epilogues(const struct fused_problem *problem, void *workspace,
                                       device_stream stream, struct error *error);

typedef enum status fused_function(const struct fused_problem *problem, void *workspace,
                                   device_stream stream, struct error *error);

/** One version of fused_epilogues(), for the bench's table. */
struct fused_step {
    const char *name; /**< "v2_bias" */
    fused_function *run;
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one is what fused_epilogues() calls
 */
const struct fused_step *fused_epilogues_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
