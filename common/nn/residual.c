/**
 * @file residual.c
 * @brief The residual connection around every sublayer (He et al. 2016).
 */
#include "common/nn/nn.h"

void nn_residual(float *out, const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)((double)a[i] + (double)b[i]);
    }
}
