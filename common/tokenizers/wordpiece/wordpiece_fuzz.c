/*
 * Input: two bytes with the length of a vocabulary, its text, one byte with the
 * most ids, then a text to encode.
 */
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

enum { PREFIX_BYTES = 2 };

static void encode(const struct wordpiece *wordpiece, const uint8_t *data, size_t size) {
    if (size == 0) {
        return;
    }
    size_t max_length = data[0];
    int32_t *ids;
    size_t count;
    struct error error = {0};
    if (wordpiece_encode(wordpiece, (const char *)data + 1, size - 1, max_length, &ids, &count,
                         &error) != STATUS_OK) {
        if (error.message[0] == '\0' || ids != NULL) {
            abort(); /* every failure has its line, and no ids */
        }
        return;
    }
    if (count < 2 || (max_length != 0 && count > max_length)) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (wordpiece_piece(wordpiece, ids[i]) == NULL) {
            abort();
        }
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < PREFIX_BYTES) {
        return 0;
    }
    size_t file_size = data[0] + 256u * data[1];
    const uint8_t *file = data + PREFIX_BYTES;
    size -= PREFIX_BYTES;
    file_size = file_size < size ? file_size : size;
    struct wordpiece *wordpiece;
    struct error error = {0};
    if (wordpiece_parse(&wordpiece, (const char *)file, file_size, &error) != STATUS_OK) {
        if (error.message[0] == '\0' || wordpiece != NULL) {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < wordpiece_size(wordpiece); i++) {
        if (wordpiece_find(wordpiece, wordpiece_piece(wordpiece, (int32_t)i)) != (int32_t)i) {
            abort();
        }
    }
    encode(wordpiece, file + file_size, size - file_size);
    wordpiece_free(wordpiece);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n##b\nab\n!\n中\n"
                                     "the\n##se\n";
    static const struct {
        const char *text;
        unsigned char max_length;
    } texts[] = {{"these ab! aab", 0},
                 {"Ab\u00e0\u0301\u302e\U0001d165中a [SEP]the[MASK]", 5},
                 {"\uac01 \u0130\u1e9b\u0323\u00df\t\u200b\ufffd\u00a0x", 2}};
    if (index >= sizeof texts / sizeof texts[0]) {
        return false;
    }
    size_t file_size = strlen(vocabulary), length = strlen(texts[index].text);
    *size = PREFIX_BYTES + file_size + 1 + length;
    *seed = malloc(*size);
    if (*seed == NULL) {
        return false;
    }
    unsigned char *out = *seed;
    *out++ = (unsigned char)(file_size & 0xff);
    *out++ = (unsigned char)(file_size >> 8);
    memcpy(out, vocabulary, file_size);
    out[file_size] = texts[index].max_length;
    memcpy(out + file_size + 1, texts[index].text, length);
    return true;
}
