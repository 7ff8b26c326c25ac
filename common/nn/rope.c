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

void nn_rope(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
             float theta, enum nn_rope_layout layout) {
    size_t pairs = HS / 2;
    for (size_t i = 0; i < pairs; i++) {
        double frequency = pow(theta, -2.0 * (double)i / (double)HS);
        size_t first = layout == NN_ROPE_INTERLEAVED ? 2 * i : i;
        size_t second = layout == NN_ROPE_INTERLEAVED ? 1 : pairs;
        for (size_t t = 0; t < T; t++) {
            double angle = (double)(position + t) * frequency;
            rotate(x + t * stride + first, second, heads, HS, angle);
        }
    }
}
