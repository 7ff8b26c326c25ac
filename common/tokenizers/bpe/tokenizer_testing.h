/**
 * @file tokenizer_testing.h
 * @brief tokenizer.json files made in memory, for the tests of what reads them.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_TESTING_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_TOKENIZER_TESTING_H_

#include <stdbool.h>

#include "common/tokenizers/bpe/bpe.h"

/** Llama2's own: Prepend and Replace. */
#define TOKENIZER_TESTING_LLAMA2                                                            \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["                               \
    "{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},"                                  \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]}," \
    "\"pre_tokenizer\":null,"                                                               \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["                                     \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},"   \
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"                                      \
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"

/** The model's members beside "vocab" and "merges", as Llama2 has them. */
#define TOKENIZER_TESTING_MODEL                                                    \
    "\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\",\"fuse_unk\":true," \
    "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"              \
    "\"byte_fallback\":true,\"ignore_merges\":false"

/**
 * @brief A tokenizer.json of the 259 tokens that every one begins with, and others.
 * @param settings members of the object: normalizer, pre_tokenizer, decoder
 * @param model    members of "model"
 * @param pieces   more members of "vocab", from id 259: "\"a\":259,\"b\":260"; or ""
 * @param merges   elements of "merges"
 * @param added    elements of "added_tokens"
 * @return memory that the caller frees; NULL when there is none
 */
char *tokenizer_testing_json(const char *settings, const char *model, const char *pieces,
                             const char *merges, const char *added);

/**
 * @brief The tokenizer.json of a vocabulary with scores: every split of a piece into two pieces is
 *        a merge, best score first, then by the ids of the two, as Llama2's was made.
 * @param bpe   of a file of llama2.c, at least 259 tokens, no two with the same text
 * @param pairs merges as ["a", "b"], else as "a b"
 * @return as above
 */
char *tokenizer_testing_convert(const struct bpe *bpe, const char *settings, bool pairs);

#endif
