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
