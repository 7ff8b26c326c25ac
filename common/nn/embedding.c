/**
 * @file embedding.c
 * @brief Gathers rows of a table: token, position and type embeddings, and [CLS] rows.
 */
#include "common/nn/nn.h"

void nn_embedding(float *out, const float *table, const int32_t *ids, size_t T, size_t C,
                  bool accumulate) {
    for (size_t t = 0; t < T; t++) {
        const float *row = table + (size_t)ids[t] * C;
        for (size_t c = 0; c < C; c++) {
            out[t * C + c] = accumulate ? out[t * C + c] + row[c] : row[c];
        }
    }
}
