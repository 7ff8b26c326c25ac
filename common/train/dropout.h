/**
 * @file dropout.h
 * @brief Chooses the elements that dropout keeps, with a counter-based generator: the backward pass
 *        draws the same numbers as the forward pass, so no mask is stored.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
 * 2011): four 32-bit numbers from a 128-bit counter and a 64-bit key. This is plain C, which nvcc
 * also compiles for the GPU, so the host, the reference and the kernels keep the same elements.
 */
#ifndef WARPBOOK_COMMON_TRAIN_DROPOUT_H_
#define WARPBOOK_COMMON_TRAIN_DROPOUT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TRAIN_BOTH __host__ __device__ static inline
#else
#define TRAIN_BOTH static inline
#endif

/** One dropout of one training step. */
struct train_dropout {
    float p;       /**< share of elements set to 0, below 1; 0: no dropout */
    uint64_t seed; /**< of the run */
    uint32_t site; /**< number of this dropout in the model */
    uint32_t step; /**< number of the forward pass in the run */
};

/** Four numbers of 32 bits. */
struct train_random4 {
    uint32_t at[4];
};

/** @return the four numbers of a counter. */
TRAIN_BOTH struct train_random4 train_philox(uint64_t key, uint64_t low, uint32_t third,
                                             uint32_t fourth) {
    struct train_random4 x = {{(uint32_t)low, (uint32_t)(low >> 32), third, fourth}};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x.at[0];
        uint64_t b = (uint64_t)0xCD9E8D57u * x.at[2];
        struct train_random4 y = {{(uint32_t)(b >> 32) ^ x.at[1] ^ k0, (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ x.at[3] ^ k1, (uint32_t)a}};
        x = y;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return x;
}

/** @return p * 2^32: elements whose number is below it are dropped. */
TRAIN_BOTH uint32_t train_dropout_limit(float p) {
    return (uint32_t)((double)p * 4294967296.0);
}

/** @return the numbers that decide about elements 4 * group .. 4 * group + 3. */
TRAIN_BOTH struct train_random4 train_dropout_draw(const struct train_dropout *d, uint64_t group) {
    return train_philox(d->seed, group, d->site, d->step);
}

/** @return 0 for an element that is dropped, else 1 / (1 - p). @param i row-major index */
TRAIN_BOTH float train_dropout_factor(const struct train_dropout *d, uint64_t i) {
    struct train_random4 numbers = train_dropout_draw(d, i / 4);
    return numbers.at[i % 4] < train_dropout_limit(d->p) ? 0.0f : 1.0f / (1.0f - d->p);
}

#endif
