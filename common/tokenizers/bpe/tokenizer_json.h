/**
 * @file tokenizer_json.h
 * @brief Shared by the files that read tokenizer.json; private to them.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_JSON_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_JSON_H_

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "common/tokenizers/bpe/bpe_vocabulary.h"

/** U+2581, which stands for a blank. */
#define TOKENIZER_BLANK "\xe2\x96\x81"

/** The preparation of text before it is encoded. */
struct tokenizer_settings {
    bool byte_level;
    bool compose, prefix_space, ignore_merges; /**< of byte-level BPE, as in struct bpe */
    enum bpe_prefix prefix;                    /**< these three: of all others, as in struct bpe */
    bool prefix_first, split_words;
};

/**
 * @brief Reads normalizer, pre-tokenizer, decoder and the model's options.
 * @return STATUS_OK; STATUS_UNSUPPORTED for settings that give other tokens than Llama2's and
 *         byte-level BPE's; STATUS_BAD_FORMAT for values of the wrong type
 */
MUST_CHECK enum status tokenizer_settings_read(struct tokenizer_settings *settings,
                                               const cJSON *root, struct error *error);

/**
 * @brief Reads which tokens the post-processor puts before and behind a text.
 * @param bos, eos receive ids below @p count, or -1
 * @return STATUS_OK, STATUS_BAD_FORMAT or STATUS_UNSUPPORTED
 */
MUST_CHECK enum status tokenizer_template_read(int32_t *bos, int32_t *eos, const cJSON *root,
                                               size_t count, struct error *error);

#endif
