/**
 * @file tokenizer_testing.h
 * @brief Makes tokenizer.json files in memory and a file of llama2.c, for tests of their readers.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_TESTING_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_TESTING_H_

#include <stdbool.h>

#include "common/tokenizers/bpe/bpe.h"

/** Llama2's own settings: Prepend and Replace. */
#define TOKENIZER_TESTING_LLAMA2                                                            \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["                               \
    "{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},"                                  \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]}," \
    "\"pre_tokenizer\":null,"                                                               \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["                                     \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"   \
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"                                      \
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"

/** The members of Llama2's "model" except "vocab" and "merges". */
#define TOKENIZER_TESTING_MODEL                                                    \
    "\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\",\"fuse_unk\":true," \
    "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"              \
    "\"byte_fallback\":true,\"ignore_merges\":false"

/**
 * @brief Makes a tokenizer.json of the 259 tokens that each begins with, and of @p pieces.
 * @param settings members of the object: normalizer, pre_tokenizer, decoder
 * @param model    members of "model"
 * @param pieces   more members of "vocab", from id 259: "\"a\":259,\"b\":260"; or ""
 * @param merges   elements of "merges"
 * @param added    elements of "added_tokens"
 * @return text that the caller frees; NULL if memory runs out
 */
char *tokenizer_testing_json(const char *settings, const char *model, const char *pieces,
                             const char *merges, const char *added);

/** The expression, decoder and BOS of a tokenizer as Llama 3 has it; added token 259 is BOS. */
#define TOKENIZER_TESTING_BYTE_LEVEL                                                               \
    "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\","                  \
    "\"pretokenizers\":["                                                                          \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t)|\\\\p{L}+|\\\\s+|[^\\\\s\\\\p{L}]\"}" \
    ","                                                                                            \
    "\"behavior\":\"Isolated\",\"invert\":false},"                                                 \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"                   \
    "\"decoder\":{\"type\":\"ByteLevel\"},"                                                        \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"   \
    "\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\","        \
    "\"ids\":"                                                                                     \
    "[259]}}}"

/**
 * @brief Makes a tokenizer.json of byte-level BPE: token 0 to 255 are the bytes.
 * @param settings members of the object, as TOKENIZER_TESTING_BYTE_LEVEL
 * @param pieces   more members of "vocab", from id 256, as byte_level.h spells them
 * @return text that the caller frees; NULL if memory runs out
 */
char *tokenizer_testing_byte_level(const char *settings, const char *pieces, const char *merges,
                                   const char *added);

/**
 * @brief Converts a vocabulary with scores to a tokenizer.json, as Llama2's was made: every split
 *        of a piece into two pieces is a merge, best score first, then by the ids of the two.
 * @param bpe   of a file of llama2.c, at least 259 tokens, no two with the same text
 * @param pairs merges as ["a", "b"], else as "a b"
 * @return text that the caller frees; NULL if memory runs out
 */
char *tokenizer_testing_convert(const struct bpe *bpe, const char *settings, bool pairs);

/** Writes a file of llama2.c: <unk>, <s>, </s> and a token for each byte. */
MUST_CHECK enum status tokenizer_testing_write_bytes(const char *path);

#endif
