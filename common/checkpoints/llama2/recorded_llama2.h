/**
 * @file recorded_llama2.h
 * @brief For tests: the checkpoints in expectations/llama2.json, which transformers has saved, and
 *        a check that an engine computes transformers' logits of them.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_RECORDED_LLAMA2_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_RECORDED_LLAMA2_H_

#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/models/engine.h"

struct cJSON;

/** A checkpoint, open, and its text. */
struct recorded_llama2 {
    const char *name; /**< of the case */
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    const struct cJSON *tokens, *logits; /**< (T) and (T, V) */
    double tolerance;                    /**< of a logit, absolute */
};

/** Called for each case. */
typedef void recorded_llama2_visitor(void *context, const struct recorded_llama2 *recorded);

/** Opens each recorded checkpoint in turn. @return their number */
int recorded_llama2_visit(recorded_llama2_visitor *visit, void *context);

/**
 * @brief Feeds the text in calls of @p batch tokens and notes a failure of the running test for
 *        each of a call's last logits that differs from the recorded one by more than 1e-4.
 */
void recorded_llama2_check(const struct recorded_llama2 *recorded, const struct engine *engine,
                           size_t batch);

/** The same for a model of the weights as they are stored, on an engine with a decoder for it. */
void recorded_llama2_check_stored(const struct recorded_llama2 *recorded,
                                  const struct engine *engine, size_t batch);

#endif
