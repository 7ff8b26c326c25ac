/**
 * @file logits.h
 * @brief Compares the logits that two engines compute for a model.
 */
#ifndef WARPBOOK_GRADER_HARNESS_LOGITS_H_
#define WARPBOOK_GRADER_HARNESS_LOGITS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Largest difference of two sets of logits. */
struct logits_difference {
    double
        worst; /**< largest difference; infinite when a value, also a wanted one, is not finite */
    double
        largest; /**< largest of the wanted values, in size; then 0, so that no share allows it */
};

/** Compares @p count logits of host memory. */
struct logits_difference logits_difference(const float *got, const float *want, size_t count);

/**
 * @brief Fails the running test unless logits are equal but for fp32 sums in another order:
 *        2e-5 of the largest.
 * @param what the message begins so: "Llama2 with your matmul"
 */
void grader_check_close_logits(const float *got, const float *want, size_t count, const char *what);

/**
 * @brief The same for models whose time is compared: 1e-4 of the largest.
 * @param what the message begins so: "BERT with your sgemm"
 */
void grader_check_timed_logits(const float *got, const float *want, size_t count, const char *what);

/**
 * @brief Fails the running test unless the logits of two models that store bf16 agree as far as
 *        roundings allow: all together, 0.007 of their norm times the square root of the layers.
 *
 * A layer rounds each of its activations six times. The errors do not know of each other, so many
 * logits together are off by always about the same: right ones by 0.003 to 0.0055 with one layer or
 * two, products of signed bytes beside scales by 0.012 to 0.018 with two, of an fp8 by 0.057. A
 * single logit says less: it is off by anything between nothing and three times as much.
 * @param count 100 or more
 */
void grader_check_16_bit_logits(const float *got, const float *want, size_t count, size_t layers,
                                const char *what);

#ifdef __cplusplus
}
#endif

#endif
