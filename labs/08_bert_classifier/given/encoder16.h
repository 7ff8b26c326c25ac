/**
 * @file encoder16.h
 * @brief BERT's encoder with fp16 or bf16 weights and activations: encoder.h's calls, given.
 *
 * Matrices are multiplied on tensor cores (lab 12), sums are fp32, and what goes from one
 * kernel to the next is 16 bits wide. The model it is made from is fp32 and stays; so do the
 * embedding tables, of which a batch reads a few rows, and the parameters of the norms.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENCODER16_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENCODER16_H_

#include "common/nn/dtype.h"
#include "labs/08_bert_classifier/encoder.h"
#include "labs/12_tensor_cores/tensor_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

struct encoder16; /**< weights in 16 bits, and buffers */

/**
 * @brief As encoder_create(); the weights are rounded, to nearest even, once: here.
 *
 * @param dtype NN_F16 or NN_BF16
 * @return as encoder_create(); STATUS_UNSUPPORTED on a GPU before compute capability 8.0
 */
MUST_CHECK enum status encoder16_create(struct encoder16 **encoder,
                                        const struct encoder_model *model, enum nn_dtype dtype,
                                        size_t max_tokens, device_stream stream,
                                        struct error *error);

/** As encoder16_create() with another function than lab 12's solution, for comparing. */
MUST_CHECK enum status encoder16_create_with(struct encoder16 **encoder,
                                             const struct encoder_model *model, enum nn_dtype dtype,
                                             gemm16_function *product, size_t max_tokens,
                                             device_stream stream, struct error *error);

/**
 * @brief As encoder_run(), and like it without waiting: first and hidden are fp32.
 *
 * Next to the reference, relative to the norm of all results: a few times nn_dtype_rounding() for
 * each layer, as each rounds its sums.
 */
MUST_CHECK enum status encoder16_run(struct encoder16 *encoder, const struct encoder_batch *batch,
                                     struct error *error);

/** As encoder_free(). */
void encoder16_free(struct encoder16 *encoder);

#ifdef __cplusplus
}
#endif

#endif
