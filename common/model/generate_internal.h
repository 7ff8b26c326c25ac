/**
 * @file generate_internal.h
 * @brief What the two modes of the program share.
 */
#ifndef WARPBOOK_COMMON_MODEL_GENERATE_INTERNAL_H_
#define WARPBOOK_COMMON_MODEL_GENERATE_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/formats/bpe.h"
#include "common/model/llama2.h"
#include "common/model/sampler.h"
#include "common/model/text_stream.h"

/** A model that is writing. */
struct generation {
    struct llama2 *model;
    struct bpe *tokenizer;
    struct sampler sampler;
    struct text_stream stream;
    float *logits;  /**< (V), those after the last token fed */
    size_t batch;   /**< most tokens of one forward call */
    size_t context; /**< positions that may be used: --steps, at most the model's context */
    size_t position;
};

/** Feeds tokens at the current position, in batches, and moves on; logits are those of the last. */
MUST_CHECK enum status generation_feed(struct generation *generation, const int32_t *tokens,
                                       size_t count, struct error *error);

/** Prints one token as it reads after @p previous. */
void generation_print(struct generation *generation, int32_t previous, int32_t token);

/**
 * @brief Chat as llama2.c formats it, until standard input or the context ends.
 * @param system_prompt NULL: ask for it
 * @param first_prompt  the first thing the user says; NULL: ask for it
 */
MUST_CHECK enum status generation_chat(struct generation *generation, const char *system_prompt,
                                       const char *first_prompt, struct error *error);

#endif
