/* Input: two bytes with the length of a tokenizer file, the file, then a text to encode. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/bpe/bpe.h"

enum { PREFIX_BYTES = 2 };

static void encode_and_decode(const struct bpe *bpe, const char *text, size_t length) {
    int32_t *tokens;
    size_t count, size;
    if (bpe_encode(bpe, text, length, true, true, &tokens, &count, NULL) != STATUS_OK) {
        return;
    }
    int32_t previous = -1;
    for (size_t i = 0; i < count; i++) {
        const char *piece = bpe_decode(bpe, previous, tokens[i], &size);
        if (tokens[i] < 0 || (size_t)tokens[i] >= bpe_size(bpe) || piece[size] != '\0') {
            abort();
        }
        previous = tokens[i];
    }
    free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < PREFIX_BYTES) {
        return 0;
    }
    size_t file_size = data[0] + 256u * data[1];
    const uint8_t *file = data + PREFIX_BYTES;
    size -= PREFIX_BYTES;
    file_size = file_size < size ? file_size : size;
    struct bpe *bpe;
    struct error error = {0};
    if (bpe_parse(&bpe, file, file_size, 0, &error) != STATUS_OK) {
        if (error.message[0] == '\0') {
            abort(); /* every failure has its line */
        }
        return 0;
    }
    encode_and_decode(bpe, (const char *)file + file_size, size - file_size);
    bpe_free(bpe);
    return 0;
}

/* Puts the parts of an input together. */
static bool join(const unsigned char *file, size_t file_size, const char *text,
                 unsigned char **seed, size_t *size) {
    *size = PREFIX_BYTES + file_size + strlen(text);
    *seed = malloc(*size);
    if (*seed == NULL) {
        return false;
    }
    (*seed)[0] = (unsigned char)(file_size & 0xff);
    (*seed)[1] = (unsigned char)(file_size >> 8);
    memcpy(*seed + PREFIX_BYTES, file, file_size);
    memcpy(*seed + PREFIX_BYTES + file_size, text, strlen(text));
    return true;
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
    bool made = join(file, file_size, texts[index % 2], seed, size);
    free(file);
    return made;
}
