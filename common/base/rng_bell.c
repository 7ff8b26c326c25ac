#include "common/base/rng_bell.h"

/* A sum of four numbers of 16 bits: its middle, half a step beside the mean so that no value is 0,
   and one over its standard deviation, 65536 / sqrt(3). */
static const float MIDDLE = 131069.5f, ONE_OVER_DEVIATION = 2.6429008e-5f;

static float bell(struct rng *rng) {
    const uint64_t every_other = 0x0000ffff0000ffffu, bits = rng_u64(rng);
    uint64_t pairs = (bits & every_other) + (bits >> 16 & every_other);
    int32_t sum = (int32_t)(pairs & 0xffffffffu) + (int32_t)(pairs >> 32);
    return ((float)sum - MIDDLE) * ONE_OVER_DEVIATION;
}

/* offset + scale * value, each. */
static void fill(struct rng *own, float *out, size_t count, float offset, float scale) {
    struct rng rng = *own; /* in registers */
    for (size_t i = 0; i < count; i++) {
        out[i] = offset + scale * bell(&rng);
    }
    *own = rng;
}

void rng_fill_bell(struct rng *rng, float *out, size_t count, float scale) {
    struct rng own = rng_create(rng_u64(rng));
    fill(&own, out, count, 0.0f, scale);
}

void rng_fill_bell_rows(struct rng *rng, float *out, size_t rows, size_t columns) {
    struct rng own = rng_create(rng_u64(rng));
    for (size_t row = 0; row < rows; row++) {
        float offset = 0.25f * bell(&own);
        fill(&own, out + row * columns, columns, offset, 0.5f + rng_uniform(&own));
    }
}
