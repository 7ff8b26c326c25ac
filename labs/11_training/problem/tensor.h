/**
 * @file tensor.h
 * @brief A tensor of a graded case: on the device as stored, on the host as the oracle reads it.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_PROBLEM_TENSOR_H_
#define WARPBOOK_LABS_11_TRAINING_PROBLEM_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/nn/dtype.h"
#include "common/testing/compare.h"
#include "common/testing/device_buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tensor {
    enum nn_dtype dtype;
    size_t count;
    struct device_buffer buffer;
    double *values; /**< host, (count): the last values put, rounded to the dtype */
    float *bytes;   /**< host, as large as the buffer */
};

/** Makes one of every byte 0xff, NaN in each type. @param guarded with canaries */
MUST_CHECK enum status tensor_create(struct tensor *t, enum nn_dtype dtype, size_t count,
                                     bool guarded, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void tensor_free(struct tensor *t);

/** Gives a copy of a tensor device memory of its own on the device in use, without canaries. */
MUST_CHECK enum status tensor_place(struct tensor *copy, struct error *error);

/** Frees a copy's device memory. */
void tensor_unplace(struct tensor *copy);

/** Sets all elements. @param values host, (count); NULL: t->values */
MUST_CHECK enum status tensor_put(struct tensor *t, const double *values, struct error *error);

/** Sets every byte to 0xff. */
MUST_CHECK enum status tensor_poison(struct tensor *t, struct error *error);

/** Draws elements around @p mean, of about a normal distribution (rng_bell.h): t->values alone. */
void tensor_fill(struct tensor *t, struct rng *rng, double mean, double deviation);

/** tensor_fill(), and puts them. */
MUST_CHECK enum status tensor_draw(struct tensor *t, struct rng *rng, double mean, double deviation,
                                   struct error *error);

/**
 * @brief Waits and reads all elements.
 * @param got     host, (count)
 * @param intact  receives whether nothing was written beside it
 * @param changed receives whether an element differs from the last put
 */
MUST_CHECK enum status tensor_get(const struct tensor *t, float *got, bool *intact, bool *changed,
                                  struct error *error);

/** @return the largest magnitude of the values put. */
double tensor_largest(const struct tensor *t);

/**
 * @brief The stricter of a tolerance and a share of the largest element: the element's error may be
 *        that share and a rounding of the dtype. Apart from that the whole tensor's norm-relative
 *        error has a bound.
 * @param share   0: neither bound
 * @param norm    what the norm-relative error may be, above 0 unless @p share is 0
 * @param largest magnitude of an element, above 0
 */
struct tolerance tensor_tighten(struct tolerance tolerance, double share, double norm,
                                double largest, enum nn_dtype dtype);

enum { TENSOR_MOST_OUTPUTS = 4 };

/** The tensors that a call writes. */
struct tensor_outputs {
    const struct tensor *tensors[TENSOR_MOST_OUTPUTS];
    size_t count;
};

/** Renews the inputs, runs a function, and waits. */
typedef enum status tensor_call(void *argument, struct error *error);

/**
 * @brief Calls a function whose outputs are on the device once more.
 * @param same receives whether it wrote the same bits
 */
MUST_CHECK enum status tensor_repeat(const struct tensor_outputs *outputs, tensor_call *call,
                                     void *argument, bool *same, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
