/**
 * @file rng.h
 * @brief Seeded random numbers for weights, inputs and tests: xoshiro256**.
 *
 * Source: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number
 * generators", ACM TOMS 47 (2021); state filled by splitmix64. The same seed
 * gives the same numbers on every machine. Not for cryptography. (Llama2's
 * sampler uses llama2.c's generator instead, see common/models/sampler.h.)
 */
#ifndef WARPBOOK_COMMON_BASE_RNG_H_
#define WARPBOOK_COMMON_BASE_RNG_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rng {
    uint64_t state[4];
};

/** @return a generator started from @p seed; every seed is allowed. */
struct rng rng_create(uint64_t seed);

/** @return 64 random bits. */
uint64_t rng_u64(struct rng *rng);

/** @return uniform integer in [0, bound), unbiased; 0 when bound is 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

/** @return uniform float in [0, 1), a multiple of 2^-24. */
float rng_uniform(struct rng *rng);

/** @return normally distributed float, mean 0, standard deviation 1 (Box-Muller). */
float rng_normal(struct rng *rng);

/** Fills @p out (host, @p count floats) with normal values times @p scale. */
void rng_fill_normal(struct rng *rng, float *out, size_t count, float scale);

/**
 * @brief Fills rows with normal values. Each row has its own random offset and scale, so that no
 *        row can be computed from another and none is negligible.
 * @param out host, (rows, columns)
 */
void rng_fill_rows(struct rng *rng, float *out, size_t rows, size_t columns);

/** @return an unpredictable seed from the operating system. */
uint64_t rng_secret_seed(void);

#ifdef __cplusplus
}
#endif

#endif
