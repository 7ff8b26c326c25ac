/**
 * @file tokenizer_json.h
 * @brief What the files of the tokenizer.json reader share; for them alone.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_JSON_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_JSON_H_

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "common/tokenizers/bpe/bpe_vocabulary.h"

/** U+2581, which stands for a blank. */
#define TOKENIZER_BLANK "\xe2\x96\x81"

/** What is done to text before it is looked up. */
struct tokenizer_settings {
    enum bpe_prefix prefix;
    bool split_words;
};

/**
 * @brief Reads normalizer, pre-tokenizer, decoder and the model's options.
 * @return STATUS_OK; STATUS_UNSUPPORTED for those that give other tokens than Llama2's;
 *         STATUS_BAD_FORMAT for values of another type
 */
MUST_CHECK enum status tokenizer_settings_read(struct tokenizer_settings *settings,
                                               const cJSON *root, struct error *error);

#endif
