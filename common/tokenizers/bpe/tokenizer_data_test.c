/* tokenizer.json files of the two real vocabularies: against recorded ids of the Hugging Face
 * library, and against llama2.c's files they are made from. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/testing/expectation.h"
#include "common/testing/testing.h"
#include "common/texts/text_dataset.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

#define BLANK "\xe2\x96\x81"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" BLANK "\"}"
#define METASPACE(scheme, split)                                         \
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" BLANK \
    "\",\"prepend_scheme\":\"" scheme "\",\"split\":" split "}"

/* As make_tokenizer_json.py has them. */
static const char *const settings[][2] = {
    {"llama2", TOKENIZER_TESTING_LLAMA2},   {"replace", "\"normalizer\":" REPLACE},
    {"first", METASPACE("first", "false")}, {"always_split", METASPACE("always", "true")},
    {"never", METASPACE("never", "false")},
};

static struct bpe *open_data(const char *name) {
    char path[1024];
    struct bpe *bpe = NULL;
    if (test_data_path(name, path, sizeof path)) {
        EXPECT_OK(tokenizer_open(&bpe, path, 0, NULL));
    }
    return bpe;
}

static struct bpe *convert(const struct bpe *bpe, const char *members, bool pairs) {
    char *json = tokenizer_testing_convert(bpe, members, pairs);
    struct bpe *converted = NULL;
    struct error error = {0};
    if (json != NULL) {
        EXPECT_OK(tokenizer_json_parse(&converted, json, strlen(json), bpe_size(bpe), &error));
        EXPECT_STR_EQ("", error.message);
    }
    free(json);
    return converted;
}

/* ---- Recorded ids ---- */

static void hash_text(const struct bpe *bpe, const char *text, size_t length, uint64_t *hash) {
    int32_t *tokens;
    size_t count;
    ASSERT_OK(bpe_encode(bpe, text, length, false, false, &tokens, &count, NULL));
    *hash = expectation_hash(*hash, tokens, count);
    free(tokens);
}

static void check_cases(const struct bpe *bpe, const struct cJSON *cases) {
    const struct cJSON *one;
    EXPECT_TRUE(cJSON_GetArraySize(cases) >= 30);
    cJSON_ArrayForEach(one, cases) {
        size_t length, count;
        int32_t *tokens;
        char *text = expectation_text(one, "text", &length);
        ASSERT_TRUE(text != NULL);
        ASSERT_OK(bpe_encode(bpe, text, length, false, false, &tokens, &count, NULL));
        expectation_check_ids(cJSON_GetObjectItemCaseSensitive(one, "ids"), tokens, count,
                              expectation_string(one, "text"));
        free(tokens);
        free(text);
    }
}

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* The texts of make_tokenizer_json.py's random_texts(). */
static void check_random(const struct bpe *bpe, const struct cJSON *recorded) {
    static const char *const letters[] = {"a",
                                          "e",
                                          "t",
                                          "h",
                                          " ",
                                          " ",
                                          "the",
                                          "in",
                                          "0",
                                          ".",
                                          "\n",
                                          "\xc3\xa9",
                                          "\xe4\xb8\xad",
                                          "\xf0\x9f\x98\x80",
                                          BLANK,
                                          "s"};
    enum { LETTERS = sizeof letters / sizeof *letters };
    int texts = (int)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(recorded, "random"));
    uint64_t state = 1, hash = expectation_hash_start();
    EXPECT_TRUE(texts >= 1000);
    for (int i = 0; i < texts; i++) {
        char text[256] = "";
        for (uint32_t count = next_random(&state) % 40; count > 0; count--) {
            strcat(text, letters[next_random(&state) % LETTERS]);
        }
        hash_text(bpe, text, strlen(text), &hash);
    }
    expectation_check_hash(expectation_string(recorded, "random_hash"), hash, "random texts");
}

static void check_rows(const struct bpe *bpe, const struct cJSON *recorded, const char *text) {
    int rows = (int)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(recorded, "rows"));
    uint64_t hash = expectation_hash_start();
    EXPECT_TRUE(rows >= 1000);
    for (int row = 0; row < rows; row++) {
        const char *end = strchr(text, '\n');
        ASSERT_TRUE(end != NULL);
        hash_text(bpe, text, (size_t)(end - text), &hash);
        text = end + 1;
    }
    expectation_check_hash(expectation_string(recorded, "rows_hash"), hash, "ag_news_test.csv");
}

static void check_setting(const struct bpe *bpe, const struct cJSON *recorded, const char *rows) {
    ASSERT_TRUE(bpe != NULL && recorded != NULL);
    check_cases(bpe, cJSON_GetObjectItemCaseSensitive(recorded, "cases"));
    check_random(bpe, recorded);
    if (rows != NULL) {
        check_rows(bpe, recorded, rows);
    }
}

/* With every kind of settings, and merges in both notations. */
static void check_recorded(const struct bpe *bpe, const char *name) {
    struct cJSON *json = expectation_load("common/tokenizers/bpe/expectations/tokenizer_json.json");
    ASSERT_TRUE(json != NULL);
    const struct cJSON *recorded = cJSON_GetObjectItemCaseSensitive(json, name);
    char path[1024], *rows = NULL;
    size_t size;
    if (test_data_path("ag_news_test.csv", path, sizeof path)) {
        EXPECT_OK(file_read(path, (size_t)1 << 26, &rows, &size, NULL));
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct bpe *converted = convert(bpe, settings[i][1], i % 2 == 1);
        check_setting(converted, cJSON_GetObjectItemCaseSensitive(recorded, settings[i][0]), rows);
        bpe_free(converted);
    }
    free(rows);
    cJSON_Delete(json);
}

/* ---- Against llama2.c's file ---- */

static void expect_same(const struct bpe *a, const struct bpe *b, const char *text, size_t length) {
    int32_t *a_tokens, *b_tokens;
    size_t a_count, b_count;
    ASSERT_OK(bpe_encode(a, text, length, true, true, &a_tokens, &a_count, NULL));
    ASSERT_OK(bpe_encode(b, text, length, true, true, &b_tokens, &b_count, NULL));
    bool same = a_count == b_count && memcmp(a_tokens, b_tokens, a_count * sizeof *a_tokens) == 0;
    for (size_t i = 1; i + 1 < a_count && same; i++) { /* what they are decoded to, too */
        size_t a_size, b_size;
        const char *a_piece = bpe_decode(a, a_tokens[i - 1], a_tokens[i], &a_size);
        const char *b_piece = bpe_decode(b, b_tokens[i - 1], b_tokens[i], &b_size);
        same = a_size == b_size && memcmp(a_piece, b_piece, a_size) == 0;
    }
    if (!same) {
        TEST_FAIL("%zu and %zu tokens of \"%.*s\" differ", a_count, b_count,
                  length < 200 ? (int)length : 200, text);
    }
    free(a_tokens);
    free(b_tokens);
}

/* Any code point but U+2581, often blanks and letters; at most 4 bytes a character. */
static size_t random_text(struct rng *rng, char *text) {
    size_t length = 0;
    for (uint64_t n = rng_below(rng, 60); n > 0; n--) {
        uint32_t c = rng_below(rng, 4) == 0   ? (uint32_t)rng_below(rng, 0x110000)
                     : rng_below(rng, 2) == 0 ? (uint32_t)rng_below(rng, 0x500)
                                              : 'a' + (uint32_t)rng_below(rng, 26);
        c = rng_below(rng, 5) == 0 || c == 0x2581 || (c >= 0xd800 && c < 0xe000) ? ' ' : c;
        if (c < 0x80) {
            text[length++] = (char)c;
        } else if (c < 0x800) {
            text[length++] = (char)(0xc0 | c >> 6);
        } else if (c < 0x10000) {
            text[length++] = (char)(0xe0 | c >> 12);
        } else {
            text[length++] = (char)(0xf0 | c >> 18);
            text[length++] = (char)(0x80 | (c >> 12 & 0x3f));
        }
        if (c >= 0x800) {
            text[length++] = (char)(0x80 | (c >> 6 & 0x3f));
        }
        if (c >= 0x80) {
            text[length++] = (char)(0x80 | (c & 0x3f));
        }
    }
    return length;
}

static void check_data_set(const struct bpe *bpe, const struct bpe *converted,
                           enum text_dataset_kind kind, const char *name) {
    const struct text_dataset_options options = {.split = "test", .limit = 500};
    char path[1024];
    struct text_dataset dataset;
    if (!test_data_path(name, path, sizeof path)) {
        return;
    }
    ASSERT_OK(text_dataset_open(&dataset, kind, path, &options, NULL));
    EXPECT_INT_EQ(500, dataset.count);
    for (size_t i = 0; i < dataset.count && !test_has_failed(); i++) {
        expect_same(bpe, converted, dataset.samples[i].text, dataset.samples[i].length);
    }
    text_dataset_close(&dataset);
}

static void check_same(const struct bpe *bpe) {
    struct bpe *converted = convert(bpe, TOKENIZER_TESTING_LLAMA2, false);
    ASSERT_TRUE(converted != NULL);
    struct rng rng = rng_create(6);
    for (int i = 0; i < 4000 && !test_has_failed(); i++) {
        char text[256];
        size_t length = random_text(&rng, text);
        expect_same(bpe, converted, text, length);
    }
#ifndef WARPBOOK_NO_LZMA
    check_data_set(bpe, converted, TEXT_DATASET_IMDB, "aclImdb_labelled.tar.xz");
#endif
    check_data_set(bpe, converted, TEXT_DATASET_AGNEWS, "ag_news_test.csv");
    bpe_free(converted);
}

C_TEST(tokenizer_data, stories_vocabulary) {
    struct bpe *bpe = open_data("tok512.bin");
    if (bpe == NULL) {
        TEST_SKIP("needs tok512.bin in the folder that $WARPBOOK_DATA names");
    }
    check_recorded(bpe, "tok512.bin");
    check_same(bpe);
    bpe_free(bpe);
}

C_TEST(tokenizer_data, llama2_vocabulary) {
    struct bpe *bpe = open_data("llama2_tokenizer.bin");
    if (bpe == NULL) {
        TEST_SKIP("needs llama2_tokenizer.bin in the folder that $WARPBOOK_DATA names");
    }
    check_recorded(bpe, "llama2_tokenizer.bin");
    check_same(bpe);
    bpe_free(bpe);
}
