/**
 * @file byte_level.h
 * @brief Byte-level BPE (Radford et al. 2019, GPT-2): pieces are bytes, which files spell with
 *        printable characters; private to the BPE tokenizer.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_BYTE_LEVEL_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_BYTE_LEVEL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/tokenizers/bpe/bpe_vocabulary.h"

/**
 * @brief Decodes a piece as files spell it: the printable characters of Latin-1 stand for
 *        themselves, U+0100, U+0101, ... for the other bytes in order.
 * @param bytes  receives at most @p length bytes; may be @p text
 * @param text   @p length bytes of valid UTF-8
 * @param count  receives the number of bytes
 * @return false if a character stands for no byte
 */
bool byte_level_decode(char *bytes, const char *text, size_t length, size_t *count);

/**
 * @brief Encodes a text without added tokens and appends its tokens.
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_OUT_OF_MEMORY or the status of pretokenizer_split()
 */
MUST_CHECK enum status byte_level_encode(const struct bpe *bpe, const char *text, size_t length,
                                         struct bpe_tokens *tokens, struct error *error);

#endif
