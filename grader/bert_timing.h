/**
 * @file bert_timing.h
 * @brief What a batch of BERT takes on an engine.
 */
#ifndef WARPBOOK_GRADER_BERT_TIMING_H_
#define WARPBOOK_GRADER_BERT_TIMING_H_

#include "common/base/status.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "common/model/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Runs a batch several times on @p engine.
 * @param input  B texts of at most T tokens of the model
 * @param calls  at least 1; on simt one is as good as many
 * @param logits receives those of the last batch, (B, labels)
 * @param ms     receives the fastest batch's milliseconds
 * @return STATUS_OK or what the model says
 */
MUST_CHECK enum status bert_timing_run(const struct bert_random *random,
                                       const struct engine *engine, const struct bert_input *input,
                                       int calls, float *logits, double *ms, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
