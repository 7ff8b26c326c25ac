/* Input: a tokenizer file and a text to encode, each as fuzz_take() takes it. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/bpe/bpe.h"

static void encode_and_decode(const struct bpe *bpe, const char *text, size_t length) {
    int32_t *tokens;
    size_t count, size;
    if (bpe_encode(bpe, text, length, true, true, &tokens, &count, NULL) != STATUS_OK) {
        return;
    }
    int32_t previous = -1;
    for (size_t i = 0; i < count; i++) {
        const char *piece = bpe_decode(bpe, previous, tokens[i], &size);
        fuzz_require(tokens[i] >= 0 && (size_t)tokens[i] < bpe_size(bpe) && piece[size] == '\0');
        previous = tokens[i];
    }
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {data, size}, file, text;
    struct bpe *bpe;
    struct error error = {0};
    if (fuzz_take(&input, &file) && fuzz_take(&input, &text) &&
        fuzz_accepted(bpe_parse(&bpe, file.data, file.size, 0, &error), &error)) {
        encode_and_decode(bpe, (const char *)text.data, text.size);
        bpe_free(bpe);
    }
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    enum { BYTE_TOKENS = 300, TOKENS = 9 };
    static const char *const last[TOKENS] = {" ", "a", "b", "ab", " a", "é", "中", "ba", "abab"};
    static const char *const texts[] = {"abab ba", "a é中 x"};
    const char *pieces[BYTE_TOKENS + TOKENS];
    float scores[BYTE_TOKENS + TOKENS];
    if (index >= 4) {
        return false;
    }
    size_t first = index < 2 ? 3 : BYTE_TOKENS; /* a small vocabulary, one with bytes */
    for (size_t i = 0; i < first + TOKENS; i++) {
        pieces[i] = i < first ? "<" : last[i - first];
        scores[i] = -(float)(i % 7);
    }
    unsigned char *file;
    size_t file_size;
    if (bpe_serialize(pieces, scores, first + TOKENS, &file, &file_size) != STATUS_OK) {
        return false;
    }
    *seed = NULL;
    *size = 0;
    fuzz_append(seed, size, file, file_size);
    fuzz_append(seed, size, texts[index % 2], strlen(texts[index % 2]));
    free(file);
    return true;
}
