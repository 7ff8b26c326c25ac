/* Input: a tokenizer.json and a text to encode, each as fuzz_take() takes it. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

#define BLANK "\xe2\x96\x81"

static void encode_and_decode(const struct bpe *bpe, const char *text, size_t length) {
    int32_t *tokens;
    size_t count, size, room = 3 * length + 3; /* NFC may make three bytes of one */
    size_t marks = (bpe_bos(bpe) >= 0 ? 1 : 0) + (bpe_eos(bpe) >= 0 ? 1 : 0);
    if (bpe_encode(bpe, text, length, true, true, &tokens, &count, NULL) != STATUS_OK) {
        return;
    }
    fuzz_require(count >= marks && count <= room);
    fuzz_require(bpe_bos(bpe) < 0 || tokens[0] == bpe_bos(bpe));
    fuzz_require(bpe_eos(bpe) < 0 || tokens[count - 1] == bpe_eos(bpe));
    for (size_t i = 0; i < count; i++) {
        fuzz_require(tokens[i] >= 0 && (size_t)tokens[i] < bpe_size(bpe));
        const char *piece = bpe_decode(bpe, i > 0 ? tokens[i - 1] : -1, tokens[i], &size);
        fuzz_require(piece[size] == '\0');
    }
    free(tokens);
}

/* Encodes a text in two parts, with added tokens. */
static void encode_marked(const struct bpe *bpe, const char *text, size_t length) {
    const struct bpe_part parts[] = {{text, length / 2, true},
                                     {text + length / 2, length - length / 2, false}};
    int32_t *tokens;
    size_t count;
    if (bpe_encode_parts(bpe, parts, 2, false, &tokens, &count, NULL) == STATUS_OK) {
        for (size_t i = 0; i < count; i++) {
            fuzz_require(tokens[i] >= 0 && (size_t)tokens[i] < bpe_size(bpe));
        }
        free(tokens);
    }
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
    encode_marked(bpe, (const char *)text.data, text.size);
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
    if (index >= 3) {
        return false;
    }
    char *json =
        index == 2
            ? tokenizer_testing_byte_level(
                  TOKENIZER_TESTING_BYTE_LEVEL, "\"ab\":256,\"\xc4\xa0\x61\":257,\"abab\":258",
                  "\"a b\",\"\xc4\xa0 a\",\"ab ab\"",
                  "{\"id\":259,\"content\":\"<s>\"},{\"id\":260,\"content\":\"ba\"}")
            : tokenizer_testing_json(settings[index], TOKENIZER_TESTING_MODEL, pieces,
                                     merges[index], added);
    fuzz_require(json != NULL);
    *seed = NULL;
    *size = 0;
    fuzz_append(seed, size, json, strlen(json));
    fuzz_append(seed, size, text, sizeof text - 1);
    free(json);
    return true;
}
