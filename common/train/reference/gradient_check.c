/**
 * @file gradient_check.c
 * @brief Central differences: dL/dx = (L(x + h) - L(x - h)) / 2h, with an error of order h^2.
 */
#include "common/train/reference/gradient_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* Near the cube root of double's precision: rounding and the third derivative then cost alike. */
static const double STEP = 1e-5;

double gradient_dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double central_difference(double *x, gradient_loss *loss, void *arguments) {
    double value = *x, step = STEP * fmax(1.0, fabs(value));
    double above = value + step, below = value - step;
    *x = above;
    double high = loss(arguments);
    *x = below;
    double low = loss(arguments);
    *x = value;
    return (high - low) / (above - below);
}

void gradient_check(const char *what, double *x, const double *got, const double *added,
                    size_t count, gradient_loss *loss, void *arguments) {
    double largest = 0.0, error = 0.0, worst_want = 0.0, worst_got = 0.0;
    size_t worst = 0;
    for (size_t i = 0; i < count; i++) {
        double want = central_difference(x + i, loss, arguments);
        double value = added != NULL ? got[i] - added[i] : got[i];
        largest = fmax(largest, fabs(want));
        if (!(fabs(value - want) <= error)) { /* as it stands, NaN is the worst */
            error = isnan(value - want) ? INFINITY : fabs(value - want);
            worst = i, worst_want = want, worst_got = value;
        }
    }
    if (!(largest > 0.0)) {
        TEST_FAIL("%s: all %zu differences are zero: nothing is checked", what, count);
    } else if (!(error <= GRADIENT_MOST_ERROR * largest)) {
        TEST_FAIL("%s: element %zu of %zu: got %.12g, the difference says %.12g: error %.3g of the "
                  "largest, at most %.0e",
                  what, worst, count, worst_got, worst_want, error / largest, GRADIENT_MOST_ERROR);
    }
}

void gradient_same(const char *what, const double *want, const double *got, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (memcmp(want + i, got + i, sizeof *want) != 0) {
            TEST_FAIL("%s: element %zu of %zu: got %.17g, want %.17g", what, i, count, got[i],
                      want[i]);
            return;
        }
    }
}

struct gradient_tensors gradient_tensors_create(uint64_t seed) {
    struct gradient_tensors tensors = {.rng = rng_create(seed)};
    EXPECT_OK(train_reference_create(&tensors.engine));
    return tensors;
}

void gradient_tensors_free(struct gradient_tensors *tensors) {
    for (size_t i = 0; i < tensors->count; i++) {
        free(tensors->blocks[i]);
    }
    tensors->count = 0;
    train_engine_destroy(&tensors->engine);
}

/* A test that has no memory, or more tensors than there are places, ends at once. */
static void *take(struct gradient_tensors *tensors, size_t count, size_t size) {
    void *block = malloc(count > 0 ? count * size : 1);
    if (block == NULL || tensors->count == sizeof tensors->blocks / sizeof *tensors->blocks) {
        abort();
    }
    tensors->blocks[tensors->count++] = block;
    return block;
}

double *gradient_random(struct gradient_tensors *tensors, size_t count) {
    double *x = take(tensors, count, sizeof *x);
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)rng_normal(&tensors->rng);
    }
    return x;
}

double *gradient_unwritten(struct gradient_tensors *tensors, size_t count) {
    double *x = take(tensors, count, sizeof *x);
    for (size_t i = 0; i < count; i++) {
        x[i] = NAN;
    }
    return x;
}

double *gradient_copy(struct gradient_tensors *tensors, const double *x, size_t count) {
    double *copy = take(tensors, count, sizeof *copy);
    if (count > 0) {
        memcpy(copy, x, count * sizeof *copy);
    }
    return copy;
}

float *gradient_narrow(struct gradient_tensors *tensors, const double *x, size_t count) {
    float *narrow = take(tensors, count, sizeof *narrow);
    for (size_t i = 0; i < count; i++) {
        narrow[i] = (float)x[i];
    }
    return narrow;
}

int32_t *gradient_integers(struct gradient_tensors *tensors, size_t count, size_t bound) {
    int32_t *x = take(tensors, count, sizeof *x);
    for (size_t i = 0; i < count; i++) {
        x[i] = (int32_t)rng_below(&tensors->rng, bound);
    }
    return x;
}
