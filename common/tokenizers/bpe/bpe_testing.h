/** What the tests of both kinds of vocabulary ask: encodings and pieces. */
#ifndef WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_TESTING_H_
#define WARPBOOK_COMMON_TOKENIZERS_BPE_BPE_TESTING_H_

#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/tokenizers/bpe/bpe.h"

static void expect_encoding(const struct bpe *bpe, const char *text, size_t length, bool bos,
                            bool eos, const int32_t *want, size_t want_count) {
    int32_t *tokens;
    size_t count;
    struct error error = {0};
    ASSERT_OK(bpe_encode(bpe, text, length, bos, eos, &tokens, &count, &error));
    EXPECT_INT_EQ(want_count, count);
    for (size_t i = 0; i < count && i < want_count; i++) {
        if (want[i] != tokens[i]) {
            TEST_FAIL("token %zu of '%s' is %d, not %d", i, text, tokens[i], want[i]);
            break;
        }
    }
    free(tokens);
}

#define EXPECT_ENCODING(bpe, text, bos, eos, ...)                                          \
    expect_encoding(bpe, text, sizeof(text) - 1, bos, eos, (const int32_t[]){__VA_ARGS__}, \
                    sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void expect_piece(const struct bpe *bpe, int32_t previous, int32_t token, const char *want,
                         size_t want_length) {
    size_t length = 99;
    const char *piece = bpe_decode(bpe, previous, token, &length);
    EXPECT_INT_EQ(want_length, length);
    EXPECT_TRUE(memcmp(want, piece, want_length + 1) == 0); /* the NUL too */
}

#endif
