/* Byte-level tokenizers as of Llama 3, Qwen2, GPT-NeoX and relatives of GPT-2, against recorded ids
 * of the Hugging Face library. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/expectation.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/tokenizer.h"

/* As make_byte_level.py has them. */
enum { TEXTS = 2000, GROUP = 20, PIECES = 10, MOST_SNIPPETS = 256, MOST_TEXT = 4096 };

static const char path[] = "common/tokenizers/bpe/expectations/byte_level.json";

/* The recording, and its snippets. */
struct recording {
    struct cJSON *json;
    char *snippets[MOST_SNIPPETS];
    size_t lengths[MOST_SNIPPETS], count;
};

static const struct cJSON *member(const struct cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static void open_recording(struct recording *r) {
    *r = (struct recording){.json = expectation_load(path)};
    const struct cJSON *one;
    cJSON_ArrayForEach(one, member(r->json, "snippets")) {
        /* a member of its own for expectation_text() */
        struct cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "text", one->valuestring);
        ASSERT_TRUE(r->count < MOST_SNIPPETS);
        r->snippets[r->count] = expectation_text(object, "text", &r->lengths[r->count]);
        r->count++;
        cJSON_Delete(object);
    }
    EXPECT_TRUE(r->count > 100);
}

static void close_recording(struct recording *r) {
    for (size_t i = 0; i < r->count; i++) {
        free(r->snippets[i]);
    }
    cJSON_Delete(r->json);
}

static struct bpe *open_tokenizer(const struct cJSON *kind) {
    const char *json = expectation_string(kind, "tokenizer");
    struct error error = {0};
    struct bpe *bpe;
    EXPECT_OK(tokenizer_json_parse(&bpe, json, strlen(json), 0, &error));
    EXPECT_STR_EQ("", error.message);
    return bpe;
}

static size_t next_text(const struct recording *r, uint64_t *state, char *text) {
    size_t length = 0;
    for (int i = 0; i < PIECES; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        size_t chosen = (size_t)(*state >> 33) % r->count;
        memcpy(text + length, r->snippets[chosen], r->lengths[chosen]);
        length += r->lengths[chosen];
    }
    return length;
}

static void check_hashes(const struct recording *r, const struct bpe *bpe,
                         const struct cJSON *hashes, bool marked) {
    static char text[MOST_TEXT];
    uint64_t state = 1;
    EXPECT_INT_EQ(TEXTS / GROUP, (size_t)cJSON_GetArraySize(hashes));
    const struct cJSON *want;
    cJSON_ArrayForEach(want, hashes) {
        uint64_t hash = expectation_hash_start();
        for (int i = 0; i < GROUP; i++) {
            const struct bpe_part part = {text, next_text(r, &state, text), marked};
            int32_t *tokens;
            size_t count;
            ASSERT_OK(bpe_encode_parts(bpe, &part, 1, false, &tokens, &count, NULL));
            hash = expectation_hash(expectation_hash(hash, tokens, count), &(int32_t){-1}, 1);
            free(tokens);
        }
        expectation_check_hash(want->valuestring, hash, marked ? "marked" : "plain");
    }
}

C_TEST(byte_level_data, two_thousand_texts) {
    struct recording r;
    open_recording(&r);
    const struct cJSON *kind;
    cJSON_ArrayForEach(kind, member(r.json, "kinds")) {
        struct bpe *bpe = open_tokenizer(kind);
        ASSERT_TRUE(bpe != NULL);
        check_hashes(&r, bpe, member(kind, "hashes"), true);
        check_hashes(&r, bpe, member(kind, "plain_hashes"), false);
        bpe_free(bpe);
    }
    close_recording(&r);
}

static void check_ids(const struct bpe *bpe, const struct cJSON *one, const char *key, bool marked,
                      bool bos) {
    struct bpe_part part = {.marked = marked};
    char *text = expectation_text(one, "text", &part.length);
    int32_t *tokens;
    size_t count;
    part.text = text;
    ASSERT_TRUE(text != NULL);
    ASSERT_OK(bpe_encode_parts(bpe, &part, 1, bos, &tokens, &count, NULL));
    expectation_check_ids(member(one, key), tokens, count, expectation_string(one, "text"));
    free(tokens);
    free(text);
}

/* The pieces of the tokens together are the text, but for composed characters. */
static void check_decoding(const struct bpe *bpe, const struct cJSON *one) {
    size_t length, at = 0;
    char *text = expectation_text(one, "text", &length);
    const struct cJSON *id;
    cJSON_ArrayForEach(id, member(one, "plain")) {
        size_t size;
        const char *piece = bpe_decode(bpe, -1, id->valueint, &size);
        ASSERT_TRUE(size <= length - at && memcmp(text + at, piece, size) == 0);
        at += size;
    }
    EXPECT_INT_EQ(length, at);
    free(text);
}

/* The pieces of tokens together are what the library decodes them to. */
static void check_decoded(const struct bpe *bpe, const struct cJSON *one) {
    size_t length, at = 0;
    char *text = expectation_text(one, "decoded", &length);
    const struct cJSON *id;
    ASSERT_TRUE(text != NULL);
    cJSON_ArrayForEach(id, member(one, "ids")) {
        size_t size;
        const char *piece = bpe_decode(bpe, -1, id->valueint, &size);
        ASSERT_TRUE(size <= length - at && memcmp(text + at, piece, size) == 0);
        at += size;
    }
    EXPECT_INT_EQ(length, at);
    free(text);
}

/* Whether the text stays as it is: it is neither composed nor gets a blank. */
static bool keeps_text(const struct cJSON *kind) {
    const char *name = expectation_string(kind, "name");
    return strcmp(name, "llama 3") == 0 || strcmp(name, "digits") == 0;
}

C_TEST(byte_level_data, hard_cases) {
    struct recording r;
    open_recording(&r);
    const struct cJSON *kind, *one;
    int count = 0;
    cJSON_ArrayForEach(kind, member(r.json, "kinds")) {
        struct bpe *bpe = open_tokenizer(kind);
        ASSERT_TRUE(bpe != NULL);
        cJSON_ArrayForEach(one, member(kind, "cases")) {
            check_ids(bpe, one, "ids", true, false);
            check_ids(bpe, one, "plain", false, false);
            check_ids(bpe, one, "whole", true, true);
            check_decoded(bpe, one);
            if (keeps_text(kind)) {
                check_decoding(bpe, one);
            }
            count++;
        }
        bpe_free(bpe);
    }
    EXPECT_TRUE(count >= 5 * 30);
    close_recording(&r);
}
