/**
 * @file bpe_vocabulary.h
 * @brief The contents of a struct bpe; private to the BPE tokenizer.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_VOCABULARY_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_VOCABULARY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/tokenizers/bpe/bpe.h"

struct bpe_piece {
    const char *text; /**< length bytes without NUL, then a NUL */
    uint32_t length;
    float score;
};

/** A rule: two tokens merge into one. Rules of lower rank are applied first. */
struct bpe_rule {
    int32_t left, right; /**< left -1: an empty slot */
    int32_t merged;
    uint32_t rank; /**< below BPE_MOST_RULES, so that a float holds it exactly */
};

enum { BPE_MOST_RULES = 1 << 24 };

/** Whether a blank is put before a text; never before the empty text. */
enum bpe_prefix { BPE_PREFIX_ALWAYS, BPE_PREFIX_UNLESS_BLANK, BPE_PREFIX_NEVER };

/** A token of "added_tokens". */
struct bpe_added {
    const char *text; /**< one of bpe->pieces' */
    size_t length;    /**< at least 1 */
    int32_t id;
    bool always; /**< recognised also in text that is not marked: GPT-NeoX's runs of blanks */
};

struct bpe {
    size_t count;
    size_t longest;           /**< bytes of the longest piece */
    struct bpe_piece *pieces; /**< (count), by id: spelling for encoding */
    struct bpe_piece *shown;  /**< (count), by id: spelling for decoding; may be `pieces` */
    int32_t *index;           /**< (index_slots) ids by hash of their text; -1: an empty slot */
    size_t index_slots;       /**< a power of two, more than there are pieces */
    char *text;               /**< all pieces, each followed by a NUL */
    char bytes[2 * 256];      /**< byte 0, NUL, byte 1, NUL, ... */
    struct bpe_rule *rules; /**< (rule_slots) by hash; NULL: any pair that spells a piece merges */
    size_t rule_slots;      /**< a power of two, more than there are rules */
    const char *blank;      /**< how pieces spell a blank: " ", or U+2581, which then is a piece */
    enum bpe_prefix prefix;
    bool prefix_first; /**< the prefix goes only before the beginning, not behind added tokens */
    bool split_words;  /**< a merge never joins two words */
    int32_t bos, eos;  /**< -1: none */
    struct bpe_added *added; /**< (added_count), the longest first */
    size_t added_count;
    bool adds_always; /**< one of them is recognised in all text */

    /* Byte-level BPE; NULL and false otherwise. Pieces are bytes, NUL too. */
    struct pretokenizer *pretokenizer;
    bool compose;       /**< the text is brought to Unicode's form NFC */
    bool prefix_space;  /**< a blank is put before each text that does not begin with one */
    bool ignore_merges; /**< a piece of the text that is a token is that token */
};

/**
 * @brief Allocates a vocabulary that spells blanks as " " and has no rules.
 * @param text_bytes of all pieces, NULs included
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_create(struct bpe **bpe, size_t count, size_t text_bytes,
                                  struct error *error);

/** @brief Allocates an empty index for bpe->count pieces. @return STATUS_OK or
 *         STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status bpe_index_create(struct bpe *bpe);

/** Adds a piece to the index; of pieces with the same text, bpe_find() finds the first added. */
void bpe_index_add(struct bpe *bpe, int32_t id);

/**
 * @brief Checks a number of tokens.
 * @param expected the model's vocabulary size, or 0 to accept any
 * @return STATUS_OK; STATUS_MISMATCH, with both numbers, if the model expects another count;
 *         STATUS_BAD_FORMAT if there are too few for <unk>, <s> and </s>
 */
MUST_CHECK enum status bpe_check_count(size_t count, size_t expected, struct error *error);

/** Token ids, growing. */
struct bpe_tokens {
    int32_t *ids; /**< (count), in memory for `capacity` */
    size_t count, capacity;
};

/** @brief Makes room for @p more ids. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status bpe_tokens_reserve(struct bpe_tokens *tokens, size_t more,
                                          struct error *error);

/** @return the id of the piece with exactly these bytes, or -1. */
int32_t bpe_find(const struct bpe *bpe, const char *text, size_t length);

/** @brief Allocates an empty table for @p count rules. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status bpe_rules_create(struct bpe *bpe, size_t count);

/** Adds a rule, or replaces the rule for the same two tokens. */
void bpe_rules_add(struct bpe *bpe, const struct bpe_rule *rule);

/** @return the rule for two tokens, or NULL. */
const struct bpe_rule *bpe_rules_find(const struct bpe *bpe, int32_t left, int32_t right);

/**
 * @brief Merges adjacent pairs until no pair can be merged. Without merge rules, the next pair is
 *        the one whose joined text has the best score above -1e10 in the vocabulary; with rules,
 *        the one whose rule has the lowest rank. Of equal pairs the leftmost is merged.
 * @param tokens (*count) ids in [0, bpe_size); replaced by the merged ids
 * @param count  receives the number of merged ids
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bpe_merge(const struct bpe *bpe, int32_t *tokens, size_t *count);

#endif
