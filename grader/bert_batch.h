/**
 * @file bert_batch.h
 * @brief A batch through BERT on an engine: its logits, and what it takes.
 */
#ifndef WARPBOOK_GRADER_BERT_BATCH_H_
#define WARPBOOK_GRADER_BERT_BATCH_H_

#include "common/base/status.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "common/model/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Runs a batch.
 * @param input  B texts of at most T tokens of the model
 * @param logits receives (B, labels)
 * @return STATUS_OK or what the model says
 */
MUST_CHECK enum status bert_batch_run(const struct bert_random *random, const struct engine *engine,
                                      const struct bert_input *input, float *logits,
                                      struct error *error);

/**
 * @brief Runs a batch several times; device_open() must have succeeded.
 * @param calls at least 1; on simt one is as good as many
 * @param ms    receives the fastest batch's milliseconds, infinite when there is none
 */
MUST_CHECK enum status bert_batch_time(const struct bert_random *random,
                                       const struct engine *engine, const struct bert_input *input,
                                       int calls, float *logits, double *ms, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
