#include "grader/harness/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t grader_seed(void) {
    const char *fixed = getenv("WARPBOOK_SEED");
    uint64_t seed =
        fixed != NULL && fixed[0] != '\0' ? strtoull(fixed, NULL, 10) : rng_secret_seed();
    printf("seed %" PRIu64 "; --test_env=WARPBOOK_SEED=%" PRIu64 " repeats this run\n", seed, seed);
    return seed;
}

/* rng_create() fills the state from the seed by an invertible function, and the first numbers show
   words of that state. */
enum { LEFT_OUT = 16 };

struct rng grader_rng(void) {
    struct rng rng = rng_create(grader_seed());
    for (int i = 0; i < LEFT_OUT; i++) {
        (void)rng_u64(&rng);
    }
    return rng;
}

/* Multiplied and folded: for each result there are 2^64 pairs. */
uint64_t grader_secret(struct rng *rng) {
    unsigned __int128 a = rng_u64(rng) | 1, b = rng_u64(rng) | 1;
    unsigned __int128 product = a * b;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

struct rng grader_text_rng(struct rng *rng) {
    return rng_create(grader_secret(rng));
}
