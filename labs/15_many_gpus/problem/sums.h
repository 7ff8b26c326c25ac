/**
 * @file sums.h
 * @brief Random all-reduces, products and their right results; host memory alone.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_PROBLEM_SUMS_H_
#define WARPBOOK_LABS_15_MANY_GPUS_PROBLEM_SUMS_H_

#include "common/base/rng.h"
#include "labs/15_many_gpus/given/rig.h"

#ifdef __cplusplus
extern "C" {
#endif

/** All-reduces of random data. */
struct many_sums_problem {
    char name[120]; /**< "4 ranks, 5 x 1000 of f32" */
    int ranks;
    struct many_sums sums;
    void *in, *out; /**< (calls, ranks, count) of the type; out is NaN at first */
};

MUST_CHECK enum status many_sums_create(struct many_sums_problem *p, int ranks,
                                        const struct many_sums *sums, struct rng *rng,
                                        struct error *error);
void many_sums_free(struct many_sums_problem *p);

/**
 * @brief Compares `out` with sums in double, and the ranks' bits with each other's.
 * @param text receives the first mistake, or stays ""
 */
void many_sums_check(const struct many_sums_problem *p, char *text, size_t size);

/** A product of random numbers, cut over the ranks. */
struct many_products_problem {
    char name[120]; /**< "4 ranks, 3 x N 64, K 256 of bf16, bias" */
    int ranks;
    struct many_products products;
    void *weight; /**< what products points to */
    float *in, *add, *x, *out;
};

/** @param shape N, K, dtype, bias, calls and delays; pointers are filled in */
MUST_CHECK enum status many_products_create(struct many_products_problem *p, int ranks,
                                            const struct many_products *shape, struct rng *rng,
                                            struct error *error);
void many_products_free(struct many_products_problem *p);
/** As many_sums_check(). */
MUST_CHECK enum status many_products_check(const struct many_products_problem *p, char *text,
                                           size_t size, struct error *error);

/**
 * @brief Checks many_cut() of a model: each weight and each bias once, whole heads, parts that fit.
 * @param shared whether it must also give each rank the same share
 */
void many_cut_check(const struct many_shape *shape, int ranks,
                    void (*cut)(enum many_matrix matrix, const struct many_shape *shape, int rank,
                                int ranks, struct many_part *part),
                    bool shared, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
