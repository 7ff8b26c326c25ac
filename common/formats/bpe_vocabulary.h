/**
 * @file bpe_vocabulary.h
 * @brief What a struct bpe holds; for the files of the BPE tokenizer alone.
 */
#ifndef WARPBOOK_COMMON_FORMATS_BPE_VOCABULARY_H_
#define WARPBOOK_COMMON_FORMATS_BPE_VOCABULARY_H_

#include <stddef.h>
#include <stdint.h>

#include "common/formats/bpe.h"

struct bpe_piece {
    const char *text; /**< length bytes without NUL, then a NUL */
    uint32_t length;
    float score;
};

struct bpe {
    size_t count;
    size_t longest;           /**< bytes of the longest piece there is */
    struct bpe_piece *pieces; /**< (count), by id */
    int32_t *sorted;          /**< (count) ids by text, equal texts by id */
    char *text;               /**< all pieces, each followed by a NUL */
    char bytes[2 * 256];      /**< byte 0, NUL, byte 1, NUL, ... */
};

/** @return lowest id of exactly these bytes, or -1. */
int32_t bpe_find(const struct bpe *bpe, const char *text, size_t length);

#endif
