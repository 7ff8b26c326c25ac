/**
 * @file case.h
 * @brief A problem of lab 05 in device memory with canaries, the check of its rows, and who wrote
 *        where: for the ladder's test and the grader.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_PROBLEM_CASE_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_PROBLEM_CASE_H_

#include <stdbool.h>

#include "common/testing/device_buffer.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"

struct rows_variant {
    struct rows_flavour flavour;
    size_t skew_in, skew_out; /**< elements that inputs, and the output, are past a boundary */
    bool in_place;
};

struct rows_buffers {
    struct rows_variant variant;
    struct device_buffer in, out, weight, bias, mask;
    void *bytes; /**< host, as large as the largest; rows_buffers_get() leaves the output there */
};

/** Allocates for data of this size. @param guarded whether there are canaries */
MUST_CHECK enum status rows_buffers_create(struct rows_buffers *buffers,
                                           const struct rows_data *data,
                                           struct rows_variant variant, bool guarded,
                                           struct error *error);

/** Frees; zero-initialised ones are allowed. */
void rows_buffers_free(struct rows_buffers *buffers);

/** Copies the inputs to the device; an output that is not the input is NaN. Renews the canaries. */
MUST_CHECK enum status rows_buffers_put(struct rows_buffers *buffers, const struct rows_data *data,
                                        struct error *error);

/** @return the call on what was put; operands that the operator has not are NULL. */
struct rows_problem rows_buffers_problem(const struct rows_buffers *buffers,
                                         const struct rows_data *data);

/**
 * @brief Reads everything back; waits for the device.
 * @param outside receives whether anything was written beside the output
 * @param changed receives the name of an input that was changed, or NULL
 */
MUST_CHECK enum status rows_buffers_get(struct rows_buffers *buffers, bool *outside,
                                        const char **changed, struct error *error);

/**
 * @brief Compares every step-th row of the output, as rows_buffers_get() left it.
 * @param text receives the first wrong row and what is wrong: "row 3: index [0, 7]: got ..."
 * @return whether they are right; false, with a text, also when memory is lacking
 */
bool rows_buffers_check(const struct rows_buffers *buffers, const struct rows_data *data,
                        size_t step, char *text, size_t size);

#endif
