/* Input: two bytes with the length of a tokenizer.json, the file, then a text to encode. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

enum { PREFIX_BYTES = 2 };

#define BLANK "\xe2\x96\x81"

static void encode_and_decode(const struct bpe *bpe, const char *text, size_t length) {
    int32_t *tokens;
    size_t count, size;
    if (bpe_encode(bpe, text, length, true, true, &tokens, &count, NULL) != STATUS_OK) {
        return;
    }
    if (count < 2 || count > length + 3 || tokens[0] != BPE_BOS || tokens[count - 1] != BPE_EOS) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || (size_t)tokens[i] >= bpe_size(bpe)) {
            abort();
        }
        const char *piece = bpe_decode(bpe, i > 0 ? tokens[i - 1] : -1, tokens[i], &size);
        if (piece[size] != '\0') {
            abort();
        }
    }
    free(tokens);
}

/* Decodes every piece, also those that no text encodes to. */
static void decode_all(const struct bpe *bpe) {
    for (size_t id = 0; id < bpe_size(bpe); id++) {
        size_t size;
        const char *piece = bpe_decode(bpe, BPE_BOS, (int32_t)id, &size);
        if (piece[size] != '\0') {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < PREFIX_BYTES) {
        return 0;
    }
    size_t file_size = data[0] + 256u * data[1];
    const char *file = (const char *)data + PREFIX_BYTES;
    size -= PREFIX_BYTES;
    file_size = file_size < size ? file_size : size;
    struct bpe *bpe;
    struct error error = {0};
    if (tokenizer_json_parse(&bpe, file, file_size, 0, &error) != STATUS_OK) {
        if (error.message[0] == '\0' || bpe != NULL) {
            abort(); /* a refusal says why and leaves nothing behind */
        }
        return 0;
    }
    decode_all(bpe);
    encode_and_decode(bpe, file + file_size, size - file_size);
    bpe_free(bpe);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char *const settings[] = {
        TOKENIZER_TESTING_LLAMA2,
        "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" BLANK "\",\"split\":true}"};
    static const char *const merges[] = {"\"a b\",\"" BLANK " a\",\"ab ab\"",
                                         "[\"a\",\"b\"],[\"" BLANK "\",\"a\"],[\"a\",\"" BLANK
                                         "\"]"};
    static const char pieces[] = "\"" BLANK "\":259,\"a\":260,\"b\":261,\"ab\":262,"
                                 "\"" BLANK "a\":263,\"abab\":264,\"a" BLANK "\":265";
    static const char added[] = "{\"id\":2,\"content\":\"</s>\"},{\"id\":266,\"content\":\"<p>\"}";
    static const char text[] = "abab ba\xc3\xa9 a";
    if (index >= 2) {
        return false;
    }
    char *json = tokenizer_testing_json(settings[index], TOKENIZER_TESTING_MODEL, pieces,
                                        merges[index], added);
    size_t length = json != NULL ? strlen(json) : 0;
    *size = PREFIX_BYTES + length + sizeof text - 1;
    *seed = malloc(*size);
    if (json == NULL || *seed == NULL || length > UINT16_MAX) {
        abort();
    }
    (*seed)[0] = (unsigned char)(length & 0xff);
    (*seed)[1] = (unsigned char)(length >> 8);
    memcpy(*seed + PREFIX_BYTES, json, length);
    memcpy(*seed + PREFIX_BYTES + length, text, sizeof text - 1);
    free(json);
    return true;
}
