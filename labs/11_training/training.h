/**
 * @file training.h
 * @brief Contract of lab 11: the backward pass of LayerNorm and of attention, and AdamW, on the
 *        GPU.
 *
 * All else that training needs is given. Three rules hold for each function. It starts its work on
 * a stream and does not wait. Sums are fp32, whatever the storage. And it gives the same bits each
 * time that it is given the same: a run that was interrupted must go on as if it had not been, so
 * no floating-point atomics, whose order changes from run to run.
 *
 * Device memory, row-major, 16-byte aligned, unless it says otherwise. Elements of `void` tensors
 * are `dtype`: NN_F32 or NN_BF16.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_TRAINING_H_
#define WARPBOOK_LABS_11_TRAINING_TRAINING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Largest C of a norm, largest head, largest number of rows. */
#define TRAINING_MAX_C ((size_t)16384)
#define TRAINING_MAX_HS ((size_t)128)
#define TRAINING_MAX_ROWS ((size_t)1 << 24)

/** Scratch memory of layernorm_backward(), 256-byte aligned, contents undefined. */
#define TRAINING_WORKSPACE_BYTES ((size_t)32 << 20)

/**
 * @brief LayerNorm's gradient. With xhat = (in - mean) * rstd and g = dout * weight, per row:
 *        din = rstd * (g - mean(g) - xhat * mean(g * xhat)),
 *        and, over all rows, dweight += sum(dout * xhat), dbias += sum(dout).
 */
struct layernorm_backward_problem {
    enum nn_dtype dtype;
    size_t rows, C;      /**< C at least 1 */
    const void *dout;    /**< (rows, C) */
    const void *in;      /**< (rows, C): what the norm was given */
    const float *stats;  /**< (rows, 2): mean, and rstd = 1 / sqrt(variance + eps) */
    const float *weight; /**< (C) */
    void *din;           /**< (rows, C); may be dout */
    float *dweight;      /**< (C) */
    float *dbias;        /**< (C) */
};

/**
 * @param workspace TRAINING_WORKSPACE_BYTES; calls of one stream may share it
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for a type or sizes that it does not take;
 *         STATUS_DEVICE when a launch failed
 */
MUST_CHECK enum status layernorm_backward(const struct layernorm_backward_problem *problem,
                                          void *workspace, device_stream stream,
                                          struct error *error);

/**
 * @brief Attention's gradient, for sequences that lie one after the other: sequence b is the rows
 *        starts[b] .. starts[b + 1] - 1, at least one, and sees only itself.
 *
 * The forward pass computed, for each query t of each head, s = scale * q[t] . k[u] over the keys u
 * that t sees, lse[t] = log(sum of exp(s)), p = exp(s - lse[t]) and out[t] = sum of p * v[u]. Then
 * dv[u] = sum over t of p * dout[t]; dp = dout[t] . v[u]; ds = p * (dp - dout[t] . out[t]);
 * dq[t] = scale * sum of ds * k[u]; dk[u] = scale * sum of ds * q[t]. Key heads that several query
 * heads share get the sum of their gradients.
 */
struct attention_backward_problem {
    enum nn_dtype dtype;
    const void *q;              /**< (rows, NH, HS), rows q_stride apart */
    const void *k, *v;          /**< (rows, KVH, HS), rows kv_stride apart */
    const void *out, *dout;     /**< (rows, NH, HS), contiguous */
    const float *lse;           /**< (rows, NH) */
    void *dq;                   /**< laid out as q; what lies between rows is not written */
    void *dk, *dv;              /**< laid out as k and v */
    const int32_t *starts;      /**< (B + 1) */
    const int32_t *host_starts; /**< (B + 1), HOST memory: the same numbers */
    size_t B, rows, longest;    /**< sequences, tokens of all, of the longest */
    size_t NH, KVH, HS;         /**< NH a multiple of KVH: head h reads key head h / (NH / KVH); HS
                                   a multiple of 8 */
    size_t q_stride, kv_stride; /**< elements, multiples of 8 */
    bool causal;                /**< token t of a sequence sees 0 .. t only */
    float scale;
};

/**
 * @brief Bytes of scratch that attention_backward() is given: enough to store the matrices of p and
 *        of ds in fp32, and more. (Given, in training_check.c.)
 */
size_t attention_backward_scratch(const struct attention_backward_problem *problem);

/**
 * @param scratch attention_backward_scratch() bytes, 256-byte aligned, contents undefined
 * @return as layernorm_backward()
 */
MUST_CHECK enum status attention_backward(const struct attention_backward_problem *problem,
                                          void *scratch, device_stream stream, struct error *error);

/**
 * @brief One step of AdamW (Loshchilov and Hutter 2019) for all parameters of a model. For each:
 *        g = scale * gradient; weights *= 1 - rate * decay (the first `decayed` ones);
 *        m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g * g;
 *        weights -= rate * (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps);
 *        and copy = weights, rounded to bf16.
 */
struct adamw_problem {
    float *weights;        /**< (count) */
    void *copy;            /**< (count), bf16; NULL: not wanted */
    const float *gradient; /**< (count) */
    float *m, *v;          /**< (count) */
    size_t count, decayed;
    const float *scale; /**< one number, of the gradients' clipping */
    float rate, beta1, beta2, eps, decay;
    uint64_t step; /**< from 1 on */
};

/** @return as layernorm_backward() */
MUST_CHECK enum status adamw(const struct adamw_problem *problem, device_stream stream,
                             struct error *error);

/** The three, or three like them. */
struct training_functions {
    enum status (*layernorm_backward)(const struct layernorm_backward_problem *problem,
                                      void *workspace, device_stream stream, struct error *error);
    enum status (*attention_backward)(const struct attention_backward_problem *problem,
                                      void *scratch, device_stream stream, struct error *error);
    enum status (*adamw)(const struct adamw_problem *problem, device_stream stream,
                         struct error *error);
};

/** One version of the three, for the bench's table. */
struct training_step {
    const char *name; /**< "v2_flash" */
    struct training_functions functions;
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one's functions are the three above
 */
const struct training_step *training_ladder(size_t *count);

/** @name What every version checks first: given, in training_check.c.
 * @return STATUS_OK or STATUS_INVALID_ARGUMENT, with a line that names what is wrong
 * @{ */
MUST_CHECK enum status layernorm_backward_check(const struct layernorm_backward_problem *problem,
                                                struct error *error);
MUST_CHECK enum status attention_backward_check(const struct attention_backward_problem *problem,
                                                struct error *error);
MUST_CHECK enum status adamw_check(const struct adamw_problem *problem, struct error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
