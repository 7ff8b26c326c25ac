/**
 * @file engine.h
 * @brief Stage 08 of the course: the stage before it with lab 08's encoder in place of BERT's
 * layers, operator by operator.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/08_bert_classifier/encoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An encoder: encoder_create(), encoder_run() and encoder_free(), or three like them. */
struct encoder_functions {
    enum status (*create)(const void *context, struct encoder **encoder,
                          const struct encoder_model *model, size_t max_tokens,
                          device_stream stream, struct error *error);
    enum status (*run)(struct encoder *encoder, const struct encoder_batch *batch,
                       struct error *error);
    void (*free)(struct encoder *encoder);
    const void *context; /**< passed to create; must outlive the engine */
};

/**
 * @brief Makes the engine.
 *
 * Models with heads above 128 channels, which lab 07's kernel does not take, run operator by
 * operator, as on the stage below; so do batches with padding before a token. Padding behind texts
 * never reaches the encoder: bert_forward() packs the batch.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_encoder_create(struct engine *engine, struct error *error);

/** As engine_encoder_create() with another encoder, for comparing. @param functions copied */
MUST_CHECK enum status engine_encoder_create_with(struct engine *engine,
                                                  const struct encoder_functions *functions,
                                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
