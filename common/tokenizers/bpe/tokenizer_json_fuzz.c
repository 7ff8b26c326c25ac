/* Input: a tokenizer.json and a text to encode, each as fuzz_take() takes it. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

#define BLANK "\xe2\x96\x81"

static void encode_and_decode(const struct bpe *bpe, const char *text, size_t length) {
    int32_t *tokens;
    size_t count, size;
    if (bpe_encode(bpe, text, length, true, true, &tokens, &count, NULL) != STATUS_OK) {
        return;
    }
    fuzz_require(count >= 2 && count <= length + 3 && tokens[0] == BPE_BOS &&
                 tokens[count - 1] == BPE_EOS);
    for (size_t i = 0; i < count; i++) {
        fuzz_require(tokens[i] >= 0 && (size_t)tokens[i] < bpe_size(bpe));
        const char *piece = bpe_decode(bpe, i > 0 ? tokens[i - 1] : -1, tokens[i], &size);
        fuzz_require(piece[size] == '\0');
    }
    free(tokens);
}

/* Decodes every piece, also those that no text encodes to. */
static void decode_all(const struct bpe *bpe) {
    for (size_t id = 0; id < bpe_size(bpe); id++) {
        size_t size;
        const char *piece = bpe_decode(bpe, BPE_BOS, (int32_t)id, &size);
        fuzz_require(piece[size] == '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {data, size}, file, text;
    struct bpe *bpe;
    struct error error = {0};
    if (!fuzz_take(&input, &file) || !fuzz_take(&input, &text)) {
        return 0;
    }
    if (!fuzz_accepted(tokenizer_json_parse(&bpe, (const char *)file.data, file.size, 0, &error),
                       &error)) {
        fuzz_require(bpe == NULL); /* a refusal leaves nothing behind */
        return 0;
    }
    decode_all(bpe);
    encode_and_decode(bpe, (const char *)text.data, text.size);
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
    fuzz_require(json != NULL);
    *seed = NULL;
    *size = 0;
    fuzz_append(seed, size, json, strlen(json));
    fuzz_append(seed, size, text, sizeof text - 1);
    free(json);
    return true;
}
