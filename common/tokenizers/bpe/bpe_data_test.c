/* The two real vocabularies, against recorded ids of an independent BPE. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/testing/expectation.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/bpe.h"

static struct bpe *open_data(const char *name, size_t tokens) {
    char path[1024];
    struct bpe *bpe = NULL;
    struct error error = {0};
    if (test_data_path(name, path, sizeof path)) {
        EXPECT_OK(bpe_open(&bpe, path, tokens, &error));
        EXPECT_STR_EQ("", error.message);
    }
    return bpe;
}

/* Decodes what was encoded with BOS, which gives the text back. */
static void check_round_trip(const struct bpe *bpe, const char *text, size_t length) {
    int32_t *tokens;
    size_t count;
    ASSERT_OK(bpe_encode(bpe, text, length, true, true, &tokens, &count, NULL));
    ASSERT_TRUE(count >= 2 && tokens[0] == BPE_BOS && tokens[count - 1] == BPE_EOS);
    size_t offset = 0;
    for (size_t i = 1; i + 1 < count; i++) {
        size_t size;
        const char *piece = bpe_decode(bpe, tokens[i - 1], tokens[i], &size);
        ASSERT_TRUE(offset + size <= length && memcmp(text + offset, piece, size) == 0);
        offset += size;
    }
    EXPECT_INT_EQ(length, offset);
    free(tokens);
}

static void check_case(const struct bpe *bpe, const struct cJSON *recorded) {
    size_t length, count;
    char *text = expectation_text(recorded, "text", &length);
    ASSERT_TRUE(text != NULL);
    int32_t *tokens;
    ASSERT_OK(bpe_encode(bpe, text, length, false, false, &tokens, &count, NULL));
    expectation_check_ids(cJSON_GetObjectItemCaseSensitive(recorded, "ids"), tokens, count,
                          expectation_string(recorded, "text"));
    free(tokens);
    check_round_trip(bpe, text, length);
    free(text);
}

/* Hashes the ids of the first rows of a text, and decodes each again. */
static void check_rows(const struct bpe *bpe, const struct cJSON *recorded, const char *text) {
    uint64_t hash = expectation_hash_start();
    int rows = (int)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(recorded, "rows"));
    EXPECT_TRUE(rows >= 1000);
    for (int row = 0; row < rows; row++) {
        const char *end = strchr(text, '\n');
        ASSERT_TRUE(end != NULL);
        int32_t *tokens;
        size_t count, length = (size_t)(end - text);
        ASSERT_OK(bpe_encode(bpe, text, length, false, false, &tokens, &count, NULL));
        hash = expectation_hash(hash, tokens, count);
        free(tokens);
        check_round_trip(bpe, text, length);
        text = end + 1;
    }
    expectation_check_hash(expectation_string(recorded, "rows_hash"), hash, "ag_news_test.csv");
}

static void check_vocabulary(const struct bpe *bpe, const char *name) {
    struct cJSON *json = expectation_load("common/tokenizers/bpe/expectations/bpe.json");
    ASSERT_TRUE(json != NULL);
    const struct cJSON *recorded = cJSON_GetObjectItemCaseSensitive(json, name);
    const struct cJSON *cases = cJSON_GetObjectItemCaseSensitive(recorded, "cases"), *one;
    EXPECT_TRUE(cJSON_GetArraySize(cases) >= 25);
    cJSON_ArrayForEach(one, cases) {
        check_case(bpe, one);
    }
    char path[1024], *text;
    size_t size;
    if (test_data_path("ag_news_test.csv", path, sizeof path)) {
        ASSERT_OK(file_read(path, (size_t)1 << 26, &text, &size, NULL));
        check_rows(bpe, recorded, text);
        free(text);
    }
    cJSON_Delete(json);
}

C_TEST(bpe_data, stories_vocabulary) {
    struct bpe *bpe = open_data("tok512.bin", 512);
    if (bpe == NULL) {
        TEST_SKIP("needs tok512.bin in the folder that $WARPBOOK_DATA names");
    }
    check_vocabulary(bpe, "tok512.bin");
    bpe_free(bpe);
}

C_TEST(bpe_data, llama2_vocabulary) {
    struct bpe *bpe = open_data("llama2_tokenizer.bin", 32000);
    if (bpe == NULL) {
        TEST_SKIP("needs llama2_tokenizer.bin in the folder that $WARPBOOK_DATA names");
    }
    check_vocabulary(bpe, "llama2_tokenizer.bin");
    int32_t *tokens;
    size_t count;
    ASSERT_OK(bpe_encode(bpe, "Hello world", 11, true, false, &tokens, &count, NULL));
    ASSERT_TRUE(count == 3);
    EXPECT_INT_EQ(BPE_BOS, tokens[0]);
    EXPECT_INT_EQ(15043, tokens[1]);
    EXPECT_INT_EQ(3186, tokens[2]);
    free(tokens);
    bpe_free(bpe);
}

C_TEST(bpe_data, wrong_vocabulary_for_the_model) {
    char path[1024];
    if (!test_data_path("tok512.bin", path, sizeof path)) {
        TEST_SKIP("needs tok512.bin in the folder that $WARPBOOK_DATA names");
    }
    struct bpe *bpe;
    struct error error = {0};
    EXPECT_STATUS(STATUS_MISMATCH, bpe_open(&bpe, path, 32000, &error));
    EXPECT_TRUE(strstr(error.message, "tok512.bin: tokenizer has 512 tokens, the model 32000"));
}
