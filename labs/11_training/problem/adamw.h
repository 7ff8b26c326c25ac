/**
 * @file adamw.h
 * @brief A step of AdamW with random values and its check: for lab 11's cases, timings and bench.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_PROBLEM_ADAMW_H_
#define WARPBOOK_LABS_11_TRAINING_PROBLEM_ADAMW_H_

#include "labs/11_training/problem/tensor.h"
#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

struct adamw_spec {
    size_t count, decayed;
    bool copy; /**< whether a bf16 copy is wanted */
    float rate, beta1, beta2, eps, decay;
    uint64_t step;
    double scale; /**< the gradients' factor */
};

struct adamw_case {
    struct adamw_spec spec;
    struct tensor weights, copy, gradient, m, v, scale;
    char name[160];
};

/** @return BERT's rates, step 10, a copy, and gradients as they are. */
struct adamw_spec adamw_spec_usual(size_t count, size_t decayed);

/** Makes host and device memory, without values. */
MUST_CHECK enum status adamw_case_create(struct adamw_case *c, const struct adamw_spec *spec,
                                         bool guarded, struct error *error);
void adamw_case_free(struct adamw_case *c);

/** Gives a copy of a case device memory of its own on the device in use; host memory is shared. */
MUST_CHECK enum status adamw_case_place(struct adamw_case *copy, struct error *error);

/** Frees a copy's device memory. */
void adamw_case_unplace(struct adamw_case *copy);

/** Draws all inputs, on the host alone; with step 1, m and v are 0. */
void adamw_case_renew(struct adamw_case *c, struct rng *rng);

/** adamw_case_renew() and adamw_case_send(). */
MUST_CHECK enum status adamw_case_draw(struct adamw_case *c, struct rng *rng, struct error *error);

/** Copies the drawn values to the device again, and poisons the copy. */
MUST_CHECK enum status adamw_case_send(struct adamw_case *c, struct error *error);

/** @return the problem; its pointers are the device's. */
struct adamw_problem adamw_case_problem(const struct adamw_case *c);

/** @return the tensors that the function writes. */
struct tensor_outputs adamw_case_outputs(const struct adamw_case *c);

/**
 * @brief Waits, reads the results, and compares them with the formula in double.
 *
 * spec.count may have been lowered; only the first spec.count elements are compared.
 */
MUST_CHECK enum status adamw_case_check(struct adamw_case *c, char *text, size_t size,
                                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
