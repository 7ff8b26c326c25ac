/**
 * @file given.h
 * @brief The kernels that lab 11's engine is given: all of training but the learner's three
 *        functions and the products.
 *
 * Device memory, row-major, without overlap unless it says so. `void` tensors are of the call's
 * `type`, NN_F32 or NN_BF16; arithmetic and sums are fp32. Each function starts its work on the
 * stream and does not wait; each gives the same bits each time: what is summed up is summed in an
 * order that sizes alone decide. They return STATUS_OK, or STATUS_DEVICE when a launch failed.
 *
 * Tensors that are 16-byte aligned, with rows of whole 16-byte vectors, are loaded and stored 16
 * bytes at a time, all others element by element.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_GIVEN_GIVEN_H_
#define WARPBOOK_LABS_11_TRAINING_GIVEN_GIVEN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/nn/nn.h"
#include "common/train/dropout.h"
#include "common/train/train_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The stream that a call's work goes to, and the type of its tensors. */
struct given_call {
    enum nn_dtype type;
    device_stream stream;
    struct error *error;
};

/** @name Elementwise (elementwise.cu)
 * @{ */

/** out = f(in), f is NN_GELU or NN_TANH; out may be in. */
MUST_CHECK enum status given_activation(const struct given_call *call, void *out, const void *in,
                                        size_t count, enum nn_activation f);
/** din = dout * f'(in); din may be dout. */
MUST_CHECK enum status given_activation_backward(const struct given_call *call, void *din,
                                                 const void *dout, const void *in, size_t count,
                                                 enum nn_activation f);
/** out = add + dropout(in); add NULL: none; dropout NULL: none; out may be either. */
MUST_CHECK enum status given_dropout(const struct given_call *call, void *out, const void *add,
                                     const void *in, size_t count,
                                     const struct train_dropout *dropout);
/** As train_engine.h's. @param partials (given_column_partials(rows), C), scratch */
MUST_CHECK enum status given_activation_bias_backward(const struct given_call *call, void *din,
                                                      float *dbias, const void *dout,
                                                      const void *in, size_t rows, size_t C,
                                                      enum nn_activation f, float *partials);
MUST_CHECK enum status given_dropout_bias_backward(const struct given_call *call, void *din,
                                                   float *dbias, const void *dout, size_t rows,
                                                   size_t C, const struct train_dropout *dropout,
                                                   float *partials);
/** out (rows, hidden) = silu(gate) * up, where gate_up (rows, 2 hidden) has both in a row. */
MUST_CHECK enum status given_silu_gate(const struct given_call *call, void *out,
                                       const void *gate_up, size_t rows, size_t hidden);
MUST_CHECK enum status given_silu_gate_backward(const struct given_call *call, void *dgate_up,
                                                const void *dout, const void *gate_up, size_t rows,
                                                size_t hidden);
/** out = in, rounded to the call's type. */
MUST_CHECK enum status given_convert(const struct given_call *call, void *out, const float *in,
                                     size_t count);
/** @} */

/** @name Norms (norm.cu)
 * @{ */

/** As train_engine.h's layernorm; dropout NULL: none. */
MUST_CHECK enum status given_layernorm(const struct given_call *call, void *out, float *stats,
                                       void *sum, const void *add, const void *in,
                                       const struct train_dropout *dropout,
                                       const struct train_norm *norm, size_t rows, size_t C);
/** As train_engine.h's rmsnorm. */
MUST_CHECK enum status given_rmsnorm(const struct given_call *call, void *out, float *stats,
                                     const void *in, const struct train_norm *norm, size_t rows,
                                     size_t C);

/** The arguments of given_rmsnorm_backward(). */
struct given_rmsnorm_gradient {
    void *din;           /**< (rows, C); may be add or dout */
    const void *add;     /**< (rows, C), or NULL */
    float *dweight;      /**< (C) += */
    const void *dout;    /**< (rows, C) */
    const void *in;      /**< (rows, C) */
    const float *stats;  /**< (rows) */
    const float *weight; /**< (C) */
    size_t rows, C;
};

/** @return bytes of given_rmsnorm_backward()'s workspace. */
size_t given_rmsnorm_backward_bytes(size_t rows, size_t C);
/** @param workspace 256-byte aligned */
MUST_CHECK enum status given_rmsnorm_backward(const struct given_call *call,
                                              const struct given_rmsnorm_gradient *gradient,
                                              void *workspace);
/** @} */

/** @name Beside the matrix products (products.cu)
 * @{ */

/** @return partial sums of a column of @p rows rows. */
size_t given_column_partials(size_t rows);
/** to (columns), fp32, += sum over the rows of in (rows, columns).
 *  @param partials (given_column_partials(rows), columns), scratch */
MUST_CHECK enum status given_sum_columns(const struct given_call *call, float *to, const void *in,
                                         size_t rows, size_t columns, float *partials);
/** out (columns, rows) = in (rows, columns), transposed; fp32, whatever the call's type. */
MUST_CHECK enum status given_transpose(const struct given_call *call, float *out, const float *in,
                                       size_t rows, size_t columns);
/** to (columns) += sums over the rows of from (partials, columns), fp32, the first row first. */
MUST_CHECK enum status given_add_partials(const struct given_call *call, float *to,
                                          const float *from, size_t partials, size_t columns);
/** @} */

/** @name Rows (rows.cu)
 * @{ */

/** out (rows, C) = table (V, C)[ids], table fp32; += with accumulate. */
MUST_CHECK enum status given_embedding(const struct given_call *call, void *out, const float *table,
                                       const int32_t *ids, size_t rows, size_t C, bool accumulate);
/** dtable (V, C), fp32, += rows of dout. @param partial (occurrences->piece_count, C), scratch */
MUST_CHECK enum status given_embedding_backward(const struct given_call *call, float *dtable,
                                                const void *dout,
                                                const struct train_occurrences *occurrences,
                                                size_t C, float *partial);
/** out (count, C) = in[index]. */
MUST_CHECK enum status given_gather(const struct given_call *call, void *out, const void *in,
                                    const int32_t *index, size_t count, size_t C);
/** out[index] += in (count, C); no index comes twice. */
MUST_CHECK enum status given_scatter(const struct given_call *call, void *out, const void *in,
                                     const int32_t *index, size_t count, size_t C);
/** As train_engine.h's rope; positions: device memory, (rows). */
struct given_rope {
    void *x;
    const int32_t *positions;
    size_t rows, heads, HS, stride;
    float theta;
    enum nn_rope_layout layout;
    bool back;
};
MUST_CHECK enum status given_rope(const struct given_call *call, const struct given_rope *rope);
/** @} */

/** @name Loss and norm of the gradient (loss.cu, clip.cu)
 * @{ */

/** As train_engine.h's cross_entropy. @param losses (M), fp32, scratch */
MUST_CHECK enum status given_cross_entropy(const struct given_call *call, void *logits, float *loss,
                                           const int32_t *labels, float scale, size_t M, size_t V,
                                           float *losses);

/** Partial sums that given_clip() keeps between its two kernels. */
enum { GIVEN_CLIP_PARTIALS = 1024 };

/** As train_engine.h's clip, fp32. @param partials (GIVEN_CLIP_PARTIALS), scratch */
MUST_CHECK enum status given_clip(const struct given_call *call, float *scale, float *norm,
                                  const float *gradient, size_t count, float most, float *partials);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
