#include "common/base/rng.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

struct rng rng_create(uint64_t seed) {
    struct rng rng;
    for (int i = 0; i < 4; i++) {
        rng.state[i] = splitmix64(&seed);
    }
    return rng;
}

uint64_t rng_u64(struct rng *rng) {
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *rng, uint64_t bound) {
    if (bound == 0) {
        return 0;
    }
    uint64_t rejected = (uint64_t)-bound % bound; /* 2^64 mod bound: the biased low values */
    uint64_t value;
    do {
        value = rng_u64(rng);
    } while (value < rejected);
    return value % bound;
}

float rng_uniform(struct rng *rng) {
    return (float)(rng_u64(rng) >> 40) * 0x1p-24f;
}

float rng_normal(struct rng *rng) {
    double u = ((double)(rng_u64(rng) >> 11) + 1.0) * 0x1p-53; /* (0, 1]: log is finite */
    double v = (double)(rng_u64(rng) >> 11) * 0x1p-53;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

void rng_fill_normal(struct rng *rng, float *out, size_t count, float scale) {
    for (size_t i = 0; i < count; i++) {
        out[i] = rng_normal(rng) * scale;
    }
}

void rng_fill_rows(struct rng *rng, float *out, size_t rows, size_t columns) {
    for (size_t r = 0; r < rows; r++) {
        float offset = 0.25f * rng_normal(rng);
        float scale = 0.5f + rng_uniform(rng);
        for (size_t c = 0; c < columns; c++) {
            out[r * columns + c] = offset + scale * rng_normal(rng);
        }
    }
}

uint64_t rng_secret_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)now.tv_sec;
    }
    return seed;
}
