/**
 * @file recorded_gpt_neox.h
 * @brief For tests: the checkpoints in expectations/gpt_neox.json, and checks that an engine
 *        computes transformers' logits of them and draws its tokens.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_RECORDED_GPT_NEOX_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GPT_NEOX_RECORDED_GPT_NEOX_H_

#include <stdbool.h>

#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"
#include "common/models/engine.h"

struct cJSON;

/** A checkpoint, open, its text and how transformers continues it. */
struct recorded_gpt_neox {
    const char *name; /**< of the case */
    bool large;       /**< of Pythia-70M's sizes */
    struct gpt_neox_checkpoint checkpoint;
    struct gpt_neox_fp32 fp32;
    const struct cJSON *tokens; /**< the prompt */
    const struct cJSON *logits; /**< (rows, V): after its last tokens */
    const struct cJSON *greedy; /**< the tokens that follow, by the largest logit */
};

/** Called for each case. */
typedef void recorded_gpt_neox_visitor(void *context, const struct recorded_gpt_neox *recorded);

/** Opens each recorded checkpoint in turn. @param large also the large one @return their number */
int recorded_gpt_neox_visit(recorded_gpt_neox_visitor *visit, void *context, bool large);

/**
 * @brief Feeds the prompt in calls of @p batch tokens, then @p greedy tokens by the largest logit.
 *
 * Notes a failure of the running test for each of a call's last logits that differs from the
 * recorded one by more than 1e-4 of the largest, and for the first token that differs.
 */
void recorded_gpt_neox_check(const struct recorded_gpt_neox *recorded, const struct engine *engine,
                             size_t batch, size_t greedy);

#endif
