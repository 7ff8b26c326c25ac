/**
 * @file gradient_check.h
 * @brief For tests: gradients against central differences, and tensors in double to do it with.
 */
#ifndef WARPBOOK_COMMON_TRAIN_REFERENCE_GRADIENT_CHECK_H_
#define WARPBOOK_COMMON_TRAIN_REFERENCE_GRADIENT_CHECK_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/train/train_engine.h"

/** Largest error of a gradient that passes, as a share of the tensor's largest element. */
#define GRADIENT_MOST_ERROR 1e-6

/** @return a loss, computed from the tensors' current values. @param arguments the caller's */
typedef double gradient_loss(void *arguments);

/**
 * @brief Notes a failure of the running test unless @p got is the gradient of @p loss by @p x.
 *
 * Each element is moved by about 1e-5 to both sides: the difference's own error is then near 1e-10
 * of the loss and its third derivative.
 *
 * @param what  names the tensor in the failure's line
 * @param x     (count), as before when it returns
 * @param got   (count)
 * @param added (count): what got was before the gradient was added; NULL: zeros
 */
void gradient_check(const char *what, double *x, const double *got, const double *added,
                    size_t count, gradient_loss *loss, void *arguments);

/** Notes a failure unless both hold the same bits. */
void gradient_same(const char *what, const double *want, const double *got, size_t count);

/** @return sum of a[i] * b[i] */
double gradient_dot(const double *a, const double *b, size_t count);

/** Tensors of one test, and the reference engine. */
struct gradient_tensors {
    struct train_engine engine;
    struct rng rng;
    void *blocks[64];
    size_t count;
};

/** @return no tensors yet. */
struct gradient_tensors gradient_tensors_create(uint64_t seed);

/** Frees the tensors and the engine. */
void gradient_tensors_free(struct gradient_tensors *tensors);

/** @return (count) normally distributed numbers, each exact in fp32. */
double *gradient_random(struct gradient_tensors *tensors, size_t count);

/** @return (count) NaN, for a buffer that an operator must overwrite. */
double *gradient_unwritten(struct gradient_tensors *tensors, size_t count);

/** @return a copy of x (count). */
double *gradient_copy(struct gradient_tensors *tensors, const double *x, size_t count);

/** @return x (count) in fp32. */
float *gradient_narrow(struct gradient_tensors *tensors, const double *x, size_t count);

/** @return (count) integers in [0, bound). */
int32_t *gradient_integers(struct gradient_tensors *tensors, size_t count, size_t bound);

#endif
