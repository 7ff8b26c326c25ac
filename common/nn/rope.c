/**
 * @file rope.c
 * @brief Rotary position embedding: Llama2 rotates queries and keys by their position.
 *
 * Channels a and b of a pair are a complex number a + ib, multiplied by
 * e^(i angle). The dot product of a query and a key then depends on the
 * difference of their positions only.
 */
#include <math.h>

#include "common/nn/nn.h"

/* Rotates the pair (x[0], x[second]) of every head by one angle. */
static void rotate(float *x, size_t second, size_t heads, size_t HS, double angle) {
    double cosine = cos(angle);
    double sine = sin(angle);
    for (size_t h = 0; h < heads; h++) {
        double a = x[h * HS];
        double b = x[h * HS + second];
        x[h * HS] = (float)(a * cosine - b * sine);
        x[h * HS + second] = (float)(a * sine + b * cosine);
    }
}

/* Rotates pair i of every head of all rows. */
static void rotate_rows(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
                        size_t i, double frequency, enum nn_rope_layout layout) {
    size_t pairs = HS / 2;
    size_t first = layout == NN_ROPE_INTERLEAVED ? 2 * i : i;
    size_t second = layout == NN_ROPE_INTERLEAVED ? 1 : pairs;
    for (size_t t = 0; t < T; t++) {
        double angle = (double)(position + t) * frequency;
        rotate(x + t * stride + first, second, heads, HS, angle);
    }
}

void nn_rope(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
             float theta, enum nn_rope_layout layout) {
    for (size_t i = 0; i < HS / 2; i++) {
        double frequency = pow(theta, -2.0 * (double)i / (double)HS);
        rotate_rows(x, T, heads, HS, stride, position, i, frequency, layout);
    }
}

void nn_rope_table(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
                   const float *frequencies, enum nn_rope_layout layout) {
    for (size_t i = 0; i < HS / 2; i++) {
        rotate_rows(x, T, heads, HS, stride, position, i, (double)frequencies[i], layout);
    }
}
