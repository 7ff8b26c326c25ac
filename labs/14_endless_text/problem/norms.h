/**
 * @file norms.h
 * @brief Random calls of endless_add_norms() with their results in double.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_PROBLEM_NORMS_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_PROBLEM_NORMS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/testing/device_buffer.h"
#include "labs/14_endless_text/endless_text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct endless_norms_spec {
    size_t C, count; /**< count: 1 or 2 norms */
    bool layernorm;
    bool bias;      /**< norms have one */
    int addends;    /**< 0, 1 (a), 2 (b alone) or 3 (both) */
    size_t repeats; /**< calls in a row, each on the x that the last one left; 0: one */
    float mean;     /**< added to every element of x */
    size_t skew;    /**< elements that every pointer is past a 256-byte boundary */
};

/** Arrays of a call, in device memory; those that it does not have are empty. */
enum endless_norms_array {
    NORMS_X,
    NORMS_A,
    NORMS_B,
    NORMS_WEIGHT, /* two */
    NORMS_BIAS = NORMS_WEIGHT + 2,
    NORMS_OUT = NORMS_BIAS + 2,
    NORMS_ARRAYS = NORMS_OUT + 2
};

struct endless_norms {
    struct endless_norms_spec spec;
    struct endless_add_norms call;
    struct device_buffer blocks[NORMS_ARRAYS];
    float *host[NORMS_ARRAYS]; /**< (C) each: inputs */
    double *want;              /**< (C) */
    float *got;                /**< (C) */
    char name[160];
};

/** Creates arrays and draws inputs. */
MUST_CHECK enum status endless_norms_create(struct endless_norms *n,
                                            const struct endless_norms_spec *spec, struct rng *rng,
                                            bool guarded, struct error *error);

/** Draws other inputs, and puts NaN into the outputs. */
MUST_CHECK enum status endless_norms_draw(struct endless_norms *n, struct rng *rng,
                                          struct error *error);

/**
 * @brief Checks x, both outputs, canaries and inputs after one call.
 *
 * Tolerance. x is two additions. An output errs by the sums of a row of C, by eight roundings, and
 * by the roundings of x, which rstd multiplies.
 *
 * @param text receives the mistake, or ""
 */
MUST_CHECK enum status endless_norms_check(struct endless_norms *n, char *text, size_t size,
                                           struct error *error);

/** Frees; allowed after endless_norms_create() has failed. */
void endless_norms_free(struct endless_norms *n);

#ifdef __cplusplus
}
#endif

#endif
