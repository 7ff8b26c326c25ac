/*
 * Input: a vocabulary's text, then a byte with the most ids and a text to encode, each of the two
 * as fuzz_take() takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

static void encode(const struct wordpiece *wordpiece, const uint8_t *data, size_t size) {
    if (size == 0) {
        return;
    }
    size_t max_length = data[0];
    int32_t *ids;
    size_t count;
    struct error error = {0};
    if (!fuzz_accepted(wordpiece_encode(wordpiece, (const char *)data + 1, size - 1, max_length,
                                        &ids, &count, &error),
                       &error)) {
        fuzz_require(ids == NULL); /* a refusal leaves nothing behind */
        return;
    }
    fuzz_require(count >= 2 && (max_length == 0 || count <= max_length));
    for (size_t i = 0; i < count; i++) {
        fuzz_require(wordpiece_piece(wordpiece, ids[i]) != NULL);
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {data, size}, file, text;
    struct wordpiece *wordpiece;
    struct error error = {0};
    if (!fuzz_take(&input, &file) || !fuzz_take(&input, &text)) {
        return 0;
    }
    if (!fuzz_accepted(wordpiece_parse(&wordpiece, (const char *)file.data, file.size, &error),
                       &error)) {
        fuzz_require(wordpiece == NULL);
        return 0;
    }
    for (size_t i = 0; i < wordpiece_size(wordpiece); i++) {
        const char *piece = wordpiece_piece(wordpiece, (int32_t)i);
        fuzz_require(wordpiece_find(wordpiece, piece) == (int32_t)i);
    }
    encode(wordpiece, text.data, text.size);
    wordpiece_free(wordpiece);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n##b\nab\n!\n中\n"
                                     "the\n##se\n";
    static const struct {
        const char *text; /* after the byte */
        size_t length;
    } texts[] = {
#define TEXT(most, text) {most text, sizeof(most text) - 1}
        TEXT("\0", "these ab! aab"),
        TEXT("\5", "Ab\u00e0\u0301\u302e\U0001d165中a [SEP]the[MASK]"),
        TEXT("\2", "\uac01 \u0130\u1e9b\u0323\u00df\t\u200b\ufffd\u00a0x"),
    };
    if (index >= sizeof texts / sizeof texts[0]) {
        return false;
    }
    *seed = NULL;
    *size = 0;
    fuzz_append(seed, size, vocabulary, strlen(vocabulary));
    fuzz_append(seed, size, texts[index].text, texts[index].length);
    return true;
}
