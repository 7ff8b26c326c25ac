/**
 * @file engine16.h
 * @brief Stage 08 of the course with products of 16-bit numbers.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENGINE16_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENGINE16_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief As engine_encoder_create(), with encoder16.h's encoder. What is not BERT's encoder
 *        (the pooler, the classifier, batches with padding before a token) stays fp32.
 *
 * @param dtype NN_F16 or NN_BF16
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY; STATUS_INVALID_ARGUMENT for another type; what
 *         device_open() says
 */
MUST_CHECK enum status engine_encoder16_create(struct engine *engine, enum nn_dtype dtype,
                                               struct error *error);

#ifdef __cplusplus
}
#endif

#endif
