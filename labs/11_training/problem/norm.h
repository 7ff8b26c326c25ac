/**
 * @file norm.h
 * @brief LayerNorm's gradient with random values and its check: for lab 11's cases, timings and
 *        bench.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_PROBLEM_NORM_H_
#define WARPBOOK_LABS_11_TRAINING_PROBLEM_NORM_H_

#include "labs/11_training/problem/tensor.h"
#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

struct norm_spec {
    enum nn_dtype dtype;
    size_t rows, C;
    bool in_place; /**< din is dout */
    double mean;   /**< of the norm's input, in standard deviations */
    double share;  /**< of the largest element, by which dweight and dbias may be off at most, see
                      tensor_tighten(); 0: no such bound */
};

struct norm_case {
    struct norm_spec spec;
    struct tensor in, dout, stats, weight, din, dweight, dbias;
    char name[160];
};

/** Makes host and device memory, without values. */
MUST_CHECK enum status norm_case_create(struct norm_case *c, const struct norm_spec *spec,
                                        bool guarded, struct error *error);
void norm_case_free(struct norm_case *c);

/** Draws all inputs, and the initial gradients of weight and bias. */
MUST_CHECK enum status norm_case_draw(struct norm_case *c, struct rng *rng, struct error *error);

/** Copies the drawn values to the device again, and poisons the output. */
MUST_CHECK enum status norm_case_send(struct norm_case *c, struct error *error);

/** @return the problem; its pointers are the device's. */
struct layernorm_backward_problem norm_case_problem(const struct norm_case *c);

/** @return the tensors that the function writes. */
struct tensor_outputs norm_case_outputs(const struct norm_case *c);

/**
 * @brief Waits, reads the results, and compares them with the reference's in double.
 * @param text receives the first error, or ""
 */
MUST_CHECK enum status norm_case_check(struct norm_case *c, char *text, size_t size,
                                       struct error *error);

#ifdef __cplusplus
}
#endif

#endif
