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
 * @brief The same for models of a few layers that store bf16, against one that rounds where they
 * do: 0.01 of the largest. Sums in another order have some activations round to the neighbour, and
 *        attention rounds inside. Products of signed bytes are off by 0.02, of an fp8 by 0.09.
 */
void grader_check_16_bit_logits(const float *got, const float *want, size_t count,
                                const char *what);

#ifdef __cplusplus
}
#endif

#endif
