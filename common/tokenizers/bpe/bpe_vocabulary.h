/**
 * @file bpe_vocabulary.h
 * @brief What a struct bpe holds; for the files of the BPE tokenizer alone.
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

/** Two tokens that may become one; lower ranks first. */
struct bpe_rule {
    int32_t left, right; /**< left -1: an empty slot */
    int32_t merged;
    uint32_t rank; /**< below BPE_MOST_RULES, so that a float holds it exactly */
};

enum { BPE_MOST_RULES = 1 << 24 };

/** Which texts get a blank before them; the empty text never does. */
enum bpe_prefix { BPE_PREFIX_ALWAYS, BPE_PREFIX_UNLESS_BLANK, BPE_PREFIX_NEVER };

struct bpe {
    size_t count;
    size_t longest;           /**< bytes of the longest piece there is */
    struct bpe_piece *pieces; /**< (count), by id, as text is looked up */
    struct bpe_piece *shown;  /**< (count), by id, as they are decoded; may be `pieces` */
    int32_t *index;           /**< (index_slots) ids by hash of their text; -1: an empty slot */
    size_t index_slots;       /**< a power of two, more than there are pieces */
    char *text;               /**< all pieces, each followed by a NUL */
    char bytes[2 * 256];      /**< byte 0, NUL, byte 1, NUL, ... */
    struct bpe_rule *rules;   /**< (rule_slots) by hash; NULL: any pair that spells a piece, by its
                                   score */
    size_t rule_slots;        /**< a power of two, more than there are rules */
    const char *blank;        /**< how pieces spell a blank; its piece exists unless it is " " */
    enum bpe_prefix prefix;
    bool split_words; /**< nothing is merged over the beginning of a word */
};

/**
 * @brief Allocates a vocabulary that spells blanks as they are and has no rules.
 * @param text_bytes of all pieces, NULs included
 */
MUST_CHECK enum status bpe_create(struct bpe **bpe, size_t count, size_t text_bytes,
                                  struct error *error);

/** @brief Takes an empty index for `count` pieces. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status bpe_index_create(struct bpe *bpe);

/** Lets bpe_find() find a piece; of equal texts the first that was added. */
void bpe_index_add(struct bpe *bpe, int32_t id);

/**
 * @brief STATUS_MISMATCH with both numbers when the model expects another count (0: any),
 *        STATUS_BAD_FORMAT when there are too few for <unk>, <s> and </s>.
 */
MUST_CHECK enum status bpe_check_count(size_t count, size_t expected, struct error *error);

/** @return the id that bpe_index_add() took for exactly these bytes, or -1. */
int32_t bpe_find(const struct bpe *bpe, const char *text, size_t length);

/** @brief Takes an empty table for @p count rules. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status bpe_rules_create(struct bpe *bpe, size_t count);

/** Adds a rule, or puts it in the place of the one for the same two tokens. */
void bpe_rules_add(struct bpe *bpe, const struct bpe_rule *rule);

/** @return the rule for two tokens, or NULL. */
const struct bpe_rule *bpe_rules_find(const struct bpe *bpe, int32_t left, int32_t right);

#endif
