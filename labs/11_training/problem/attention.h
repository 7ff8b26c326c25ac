/**
 * @file attention.h
 * @brief Attention's gradient with random values and its check: for lab 11's cases, timings and
 *        bench.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_PROBLEM_ATTENTION_H_
#define WARPBOOK_LABS_11_TRAINING_PROBLEM_ATTENTION_H_

#include "labs/11_training/problem/tensor.h"
#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTENTION_GRADIENT_MOST_TEXTS = 64 };

/** Unused elements behind q, k and v of a row where the three lie side by side, unless packed. */
enum { ATTENTION_GRADIENT_GAP = 8 };

struct attention_gradient_spec {
    enum nn_dtype dtype;
    size_t NH, KVH, HS;
    bool causal;
    bool joined; /**< q, k and v side by side in one matrix, gradients in another */
    bool packed; /**< joined, and no gap behind a row */
    size_t B;
    int32_t lengths[ATTENTION_GRADIENT_MOST_TEXTS]; /**< (B) */
    double loudness; /**< standard deviation of q's elements; 1 gives scores of about 1 */
    double share;    /**< of the largest element, by which a gradient may be off at most, see
                        tensor_tighten(); 0: no such bound, nor the next one */
    double norm;     /**< the norm-relative error that a gradient may have at most */
};

/** q, k, v, dout, out as the functions read them; dq, dk, dv as they write them. */
struct attention_gradient_case {
    struct attention_gradient_spec spec;
    int32_t starts[ATTENTION_GRADIENT_MOST_TEXTS + 1];
    size_t rows, longest, q_stride, kv_stride;
    struct tensor qkv[3];    /**< q, k, v; joined: the first alone */
    struct tensor dqkv[3];   /**< likewise */
    struct tensor out, dout; /**< (rows, NH, HS) */
    struct tensor lse;       /**< (rows, NH) */
    struct tensor d_starts;  /**< (B + 1) of int32_t, in the place of floats */
    double *want[3];         /**< host, contiguous: dq (rows, NH, HS), dk, dv (rows, KVH, HS) */
    void *scratch;           /**< device */
    char name[200];
};

/** Makes memory, draws inputs, and computes the results in double; see attention_gradient_renew().
 */
MUST_CHECK enum status attention_gradient_create(struct attention_gradient_case *c,
                                                 const struct attention_gradient_spec *spec,
                                                 struct rng *rng, bool guarded,
                                                 struct error *error);
void attention_gradient_free(struct attention_gradient_case *c);

/** Gives a copy of a case memory of its own on the device in use; host memory is shared. */
MUST_CHECK enum status attention_gradient_place(struct attention_gradient_case *copy,
                                                struct error *error);
/** Frees a copy's device memory. */
void attention_gradient_unplace(struct attention_gradient_case *copy);

/**
 * @brief Other inputs, and their result, without computing it anew.
 *
 * Columns of q and k change their signs together, which leaves scores and probabilities as they
 * are; so do those of v, out and dout. Gradients' columns change theirs with them.
 */
void attention_gradient_renew(struct attention_gradient_case *c, struct rng *rng);

/** Puts the inputs on the device in use, and poisons the outputs. */
MUST_CHECK enum status attention_gradient_send(struct attention_gradient_case *c,
                                               struct error *error);

/** @return the problem; its pointers are the device's but host_starts. */
struct attention_backward_problem
attention_gradient_problem(const struct attention_gradient_case *c);

/** @return the tensors that the function writes. */
struct tensor_outputs attention_gradient_outputs(const struct attention_gradient_case *c);

/** Waits, reads the results, and compares them. @param text receives the first error, or "" */
MUST_CHECK enum status attention_gradient_check(struct attention_gradient_case *c, char *text,
                                                size_t size, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
