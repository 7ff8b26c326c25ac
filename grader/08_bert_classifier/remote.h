/**
 * @file remote.h
 * @brief Encoders in the worker in use: the functions of encoder.h, called there.
 */
#ifndef WARPBOOK_GRADER_08_BERT_CLASSIFIER_REMOTE_H_
#define WARPBOOK_GRADER_08_BERT_CLASSIFIER_REMOTE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "labs/08_bert_classifier/encoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As encoder_create(), with a copy of @p model that the worker keeps. */
MUST_CHECK enum status remote_encoder_create(struct encoder **encoder,
                                             const struct encoder_model *model, size_t max_tokens,
                                             device_stream stream, struct error *error);

/**
 * @brief Hands the worker a batch, its lists in page-locked memory there.
 * @param batch host memory
 * @param there receives the argument of the functions below
 */
MUST_CHECK enum status remote_encoder_batch(const struct encoder_batch **there,
                                            const struct encoder_batch *batch, struct error *error);

/** As encoder_run(): starts a batch, and does not wait for it. */
MUST_CHECK enum status remote_encoder_run(struct encoder *encoder,
                                          const struct encoder_batch *there, struct error *error);

/** Runs a batch and times it, as remote_call_timed() does. */
MUST_CHECK enum status remote_encoder_time(struct encoder *encoder,
                                           const struct encoder_batch *there, double *ms,
                                           struct error *error);

/** Counts a batch's launches and copies; @p stream is the encoder's. */
MUST_CHECK enum status remote_encoder_launches(struct encoder *encoder,
                                               const struct encoder_batch *there,
                                               device_stream stream, size_t *launches,
                                               struct error *error);

/** As encoder_free(); nothing when the worker has ended. */
void remote_encoder_free(struct encoder *encoder);

#ifdef __cplusplus
}
#endif

#endif
