#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"

#include <math.h>

/* The file's channel of a head's channel i: rotated pairs first, in both halves, then the others.
 */
static size_t file_channel(const struct gpt_neox_config *c, size_t i) {
    size_t half = c->HS / 2, pairs = c->rotary / 2;
    bool second = i >= half;
    size_t pair = second ? i - half : i;
    if (pair < pairs) {
        return second ? pairs + pair : pair;
    }
    return c->rotary + (second ? half - pairs : 0) + pair - pairs;
}

size_t gpt_neox_qkv_row(const struct gpt_neox_config *c, size_t part, size_t row) {
    size_t head = row / c->HS, i = row % c->HS;
    return (3 * head + part) * c->HS + (part < 2 ? file_channel(c, i) : i);
}

void gpt_neox_rope_frequencies(float *frequencies, const struct gpt_neox_config *c) {
    for (size_t i = 0; i < c->HS / 2; i++) {
        double exponent = -2.0 * (double)i / (double)c->rotary;
        frequencies[i] = i < c->rotary / 2 ? (float)pow((double)c->rope_theta, exponent) : 0.0f;
    }
}
