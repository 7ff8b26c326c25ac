#include "common/tokenizers/bpe/bpe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/bpe_testing.h"
#include "common/tokenizers/bpe/bpe_vocabulary.h"

enum { BYTES = 256, FIRST_TEXT = BPE_FIRST_BYTE + BYTES, MOST_PIECES = 1024 };

/* A growing vocabulary: first the 259 tokens that each begins with. */
struct vocabulary {
    char text[MOST_PIECES][32];
    const char *pieces[MOST_PIECES];
    float scores[MOST_PIECES];
    size_t count;
};

static void add(struct vocabulary *vocabulary, const char *piece, float score) {
    size_t i = vocabulary->count++;
    snprintf(vocabulary->text[i], sizeof vocabulary->text[i], "%s", piece);
    vocabulary->pieces[i] = vocabulary->text[i];
    vocabulary->scores[i] = score;
}

static void add_standard(struct vocabulary *vocabulary) {
    vocabulary->count = 0;
    add(vocabulary, "<unk>", 0);
    add(vocabulary, "\n<s>\n", 0);
    add(vocabulary, "\n</s>\n", 0);
    for (int byte = 0; byte < BYTES; byte++) {
        char piece[8];
        snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)byte);
        add(vocabulary, piece, 0);
    }
}

static struct bpe *build(const struct vocabulary *vocabulary) {
    unsigned char *data;
    size_t size;
    struct bpe *bpe = NULL;
    struct error error = {0};
    EXPECT_OK(
        bpe_serialize(vocabulary->pieces, vocabulary->scores, vocabulary->count, &data, &size));
    EXPECT_OK(bpe_parse(&bpe, data, size, vocabulary->count, &error));
    EXPECT_STR_EQ("", error.message);
    free(data);
    return bpe;
}

static void add_small(struct vocabulary *vocabulary) {
    add_standard(vocabulary);
    add(vocabulary, " ", -9);   /* 259 */
    add(vocabulary, "a", -9);   /* 260 */
    add(vocabulary, "b", -9);   /* 261 */
    add(vocabulary, "ab", -1);  /* 262 */
    add(vocabulary, " a", -2);  /* 263 */
    add(vocabulary, "aa", -3);  /* 264 */
    add(vocabulary, "é", -9);   /* 265 */
    add(vocabulary, " ab", -4); /* 266 */
    add(vocabulary, "ba", -1);  /* 267 */
}

C_TEST(bpe, encodes_by_hand) {
    static struct vocabulary vocabulary;
    add_small(&vocabulary);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_INT_EQ(268, bpe_size(bpe));
    EXPECT_ENCODING(bpe, "ab", true, true, BPE_BOS, 266, BPE_EOS);
    EXPECT_ENCODING(bpe, "aa", false, false, 263, 260);
    EXPECT_ENCODING(bpe, "aba", false, false, 266, 260); /* "ab" and "ba" score the same */
    EXPECT_ENCODING(bpe, "bab", false, false, 259, 267, 261);
    EXPECT_ENCODING(bpe, "\xc3\xa9", false, false, 259, 265);
    EXPECT_ENCODING(bpe, "\xc3\xa8", false, false, 259, 3 + 0xc3, 3 + 0xa8);
    EXPECT_ENCODING(bpe, "\xf0\x9f\x98\x80", false, false, 259, 3 + 0xf0, 3 + 0x9f, 3 + 0x98,
                    3 + 0x80);
    EXPECT_ENCODING(bpe, "a\0b", false, false, 263, 3, 261);
    EXPECT_ENCODING(bpe, "", true, true, BPE_BOS, BPE_EOS);
    EXPECT_ENCODING(bpe, "", true, false, BPE_BOS);
    expect_encoding(bpe, "", 0, false, false, NULL, 0);
    bpe_free(bpe);
}

C_TEST(bpe, missing_space_becomes_its_byte) {
    static struct vocabulary vocabulary;
    add_standard(&vocabulary);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_ENCODING(bpe, "a", false, false, 3 + ' ', 3 + 'a');
    bpe_free(bpe);
}

C_TEST(bpe, same_text_twice_means_the_lower_id) {
    static struct vocabulary vocabulary;
    add_small(&vocabulary);
    add(&vocabulary, "ab", 100);
    add(&vocabulary, "ab", -100);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_ENCODING(bpe, "bab", false, false, 259, 267, 261);
    EXPECT_INT_EQ(262, bpe_find(bpe, "ab", 2));
    bpe_free(bpe);
}

C_TEST(bpe, scores_at_the_limit_do_not_merge) {
    static struct vocabulary vocabulary;
    add_standard(&vocabulary);
    add(&vocabulary, "ab", -1e10f);
    add(&vocabulary, "a", 0);
    add(&vocabulary, "b", 0);
    add(&vocabulary, "bb", -INFINITY);
    add(&vocabulary, "ba", INFINITY);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_ENCODING(bpe, "abb", false, false, 35, 260, 261, 261);
    EXPECT_ENCODING(bpe, "ba", false, false, 35, 263);
    bpe_free(bpe);
}

C_TEST(bpe, decodes) {
    static struct vocabulary vocabulary;
    add_small(&vocabulary);
    add(&vocabulary, "<0x4g>", 0); /* 268 */
    add(&vocabulary, "<0x41", 0);
    add(&vocabulary, "<0x41>x", 0);
    add(&vocabulary, "", 0);
    add(&vocabulary, "<0xaf>", 0); /* 272 */
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    expect_piece(bpe, -1, 266, " ab", 3);
    expect_piece(bpe, BPE_BOS, 266, "ab", 2);
    expect_piece(bpe, BPE_BOS, 260, "a", 1);
    expect_piece(bpe, BPE_EOS, 259, " ", 1);
    expect_piece(bpe, BPE_BOS, 259, "", 0);
    expect_piece(bpe, -1, 3, "\0", 1);
    expect_piece(bpe, -1, 3 + 0xff, "\xff", 1);
    expect_piece(bpe, -1, 268, "<0x4g>", 6);
    expect_piece(bpe, -1, 269, "<0x41", 5);
    expect_piece(bpe, -1, 270, "<0x41>x", 7);
    expect_piece(bpe, BPE_BOS, 271, "", 0);
    expect_piece(bpe, -1, 272, "\xaf", 1);
    expect_piece(bpe, -1, -1, "", 0);
    expect_piece(bpe, -1, 273, "", 0);
    expect_piece(bpe, -1, INT32_MIN, "", 0);
    expect_piece(bpe, -1, INT32_MAX, "", 0);
    bpe_free(bpe);
}

/*
 * The plain form of the algorithm, as an independent check: look through all
 * pairs, merge the best, again. Pieces are found by looking at each of them.
 */
static int32_t slow_find(const struct vocabulary *vocabulary, const char *text) {
    for (size_t i = 0; i < vocabulary->count; i++) {
        if (strcmp(text, vocabulary->pieces[i]) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool slow_merge_once(const struct vocabulary *vocabulary, int32_t *tokens, size_t *count) {
    float best_score = -1e10f;
    int32_t best_token = -1;
    size_t best = 0;
    for (size_t i = 0; i + 1 < *count; i++) {
        char joined[64];
        snprintf(joined, sizeof joined, "%s%s", vocabulary->pieces[tokens[i]],
                 vocabulary->pieces[tokens[i + 1]]);
        int32_t token = slow_find(vocabulary, joined);
        if (token >= 0 && vocabulary->scores[token] > best_score) {
            best_score = vocabulary->scores[token];
            best_token = token;
            best = i;
        }
    }
    if (best_token < 0) {
        return false;
    }
    tokens[best] = best_token;
    for (size_t i = best + 1; i + 1 < *count; i++) {
        tokens[i] = tokens[i + 1];
    }
    (*count)--;
    return true;
}

static size_t slow_encode(const struct vocabulary *vocabulary, const char *const *characters,
                          size_t length, int32_t *tokens) {
    size_t count = 0;
    tokens[count++] = BPE_BOS;
    for (size_t i = 0; i < length + 1 && length > 0; i++) {
        const char *character = i == 0 ? " " : characters[i - 1];
        int32_t token = slow_find(vocabulary, character);
        for (size_t byte = 0; token < 0 && character[byte] != '\0'; byte++) {
            tokens[count++] = BPE_FIRST_BYTE + (unsigned char)character[byte];
        }
        if (token >= 0) {
            tokens[count++] = token;
        }
    }
    while (slow_merge_once(vocabulary, tokens, &count)) {
    }
    return count;
}

static const char *const LETTERS[] = {"a", "b", " ", "é", "中"};
enum { LETTER_COUNT = sizeof LETTERS / sizeof LETTERS[0], MOST_LETTERS = 40 };

/* Short random pieces over few letters, with few different scores, so that many are equal. */
static void add_random(struct vocabulary *vocabulary, struct rng *rng) {
    add_standard(vocabulary);
    for (size_t n = 20 + rng_below(rng, 60); n > 0; n--) {
        char piece[32] = "";
        for (size_t length = 1 + rng_below(rng, 5); length > 0; length--) {
            strcat(piece, LETTERS[rng_below(rng, LETTER_COUNT)]);
        }
        add(vocabulary, piece, rng_below(rng, 20) == 0 ? -1e11f : -(float)rng_below(rng, 8));
    }
    if (rng_below(rng, 4) == 0) { /* a BOS that can merge, as in llama2.c */
        snprintf(vocabulary->text[BPE_BOS], sizeof vocabulary->text[BPE_BOS], "a");
    }
}

static void check_random_text(const struct vocabulary *vocabulary, const struct bpe *bpe,
                              struct rng *rng) {
    const char *characters[MOST_LETTERS];
    int32_t want[4 * MOST_LETTERS];
    char text[4 * MOST_LETTERS] = "";
    size_t length = rng_below(rng, MOST_LETTERS);
    for (size_t i = 0; i < length; i++) {
        characters[i] = LETTERS[rng_below(rng, LETTER_COUNT)];
        strcat(text, characters[i]);
    }
    size_t count = slow_encode(vocabulary, characters, length, want);
    expect_encoding(bpe, text, strlen(text), true, false, want, count);
}

C_TEST(bpe, equals_the_quadratic_form_on_random_texts) {
    static struct vocabulary vocabulary;
    struct rng rng = rng_create(20);
    for (int round = 0; round < 60 && !test_has_failed(); round++) {
        add_random(&vocabulary, &rng);
        struct bpe *bpe = build(&vocabulary);
        ASSERT_TRUE(bpe != NULL);
        for (int i = 0; i < 20 && !test_has_failed(); i++) {
            check_random_text(&vocabulary, bpe, &rng);
        }
        bpe_free(bpe);
    }
}

C_TEST(bpe, long_text_merges_in_reasonable_time) {
    static struct vocabulary vocabulary;
    add_standard(&vocabulary);
    add(&vocabulary, "a", 0);
    add(&vocabulary, "aa", -1);
    add(&vocabulary, "aaaa", -2);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    size_t length = 1 << 20; /* the quadratic form would look at 10^11 pairs and more */
    char *text = malloc(length);
    ASSERT_TRUE(text != NULL);
    memset(text, 'a', length);
    int32_t *tokens;
    size_t count;
    ASSERT_OK(bpe_encode(bpe, text, length, false, false, &tokens, &count, NULL));
    EXPECT_INT_EQ(1 + length / 4, count);
    EXPECT_INT_EQ(261, tokens[count - 1]);
    free(tokens);
    free(text);
    bpe_free(bpe);
}

/* ---- bad input ---- */

static enum status parse(const void *data, size_t size, struct error *error) {
    struct bpe *bpe = NULL;
    enum status status = bpe_parse(&bpe, data, size, 0, error);
    EXPECT_TRUE(status == STATUS_OK || bpe == NULL);
    bpe_free(bpe);
    return status;
}

/* For a model of four tokens. */
static enum status parse_four(const void *data, size_t size, struct error *error) {
    struct bpe *bpe = NULL;
    enum status status = bpe_parse(&bpe, data, size, 4, error);
    EXPECT_TRUE(status == STATUS_OK || bpe == NULL);
    bpe_free(bpe);
    return status;
}

/* A file of four tokens: "<unk>", "a", "b", "ab". */
static unsigned char *small_file(size_t *size) {
    const char *pieces[] = {"<unk>", "a", "b", "ab"};
    const float scores[] = {0, -1, -2, -3};
    unsigned char *data;
    EXPECT_OK(bpe_serialize(pieces, scores, 4, &data, size));
    return data;
}

enum {
    SECOND_SCORE = 4 + 8 + 5,
    SECOND_LENGTH = SECOND_SCORE + 4,
    SECOND_TEXT = SECOND_LENGTH + 4
};

static void expect_patched(size_t offset, uint32_t value, enum status want, const char *part) {
    size_t size;
    unsigned char *data = small_file(&size);
    ASSERT_TRUE(data != NULL);
    memcpy(data + offset, &value, sizeof value);
    expect_refusal(parse, data, size, want, part);
    free(data);
}

C_TEST(bpe_bad_file, sizes_and_scores) {
    expect_patched(0, 0, STATUS_BAD_FORMAT, "longest piece of the tokenizer is 0 bytes");
    expect_patched(0, 0x80000000u, STATUS_BAD_FORMAT, "is -2147483648 bytes");
    expect_patched(0, 4, STATUS_BAD_FORMAT, "length of token 0 is 5, outside 0..4");
    expect_patched(SECOND_LENGTH, 0xffffffffu, STATUS_BAD_FORMAT, "length of token 1 is -1");
    expect_patched(SECOND_LENGTH, 0x80000000u, STATUS_BAD_FORMAT, "token 1 is -2147483648");
    expect_patched(SECOND_LENGTH, 0x7fffffffu, STATUS_BAD_FORMAT,
                   "length of token 1 is 2147483647");
    expect_patched(SECOND_SCORE, 0x7fc00000u, STATUS_BAD_FORMAT,
                   "score of token 1 is not a number");
    expect_patched(SECOND_SCORE, 0xff800001u, STATUS_BAD_FORMAT,
                   "score of token 1 is not a number");
}

C_TEST(bpe_bad_file, length_beyond_the_file) {
    size_t size;
    unsigned char *data = small_file(&size);
    ASSERT_TRUE(data != NULL);
    int32_t huge = INT32_MAX;
    memcpy(data, &huge, sizeof huge);
    memcpy(data + SECOND_LENGTH, &huge, sizeof huge);
    expect_refusal(parse, data, size, STATUS_TRUNCATED,
                   "token 1 has 2147483647 bytes, but only 20 are left");
    free(data);
}

C_TEST(bpe_bad_file, nul_in_a_piece) {
    size_t size;
    unsigned char *data = small_file(&size);
    ASSERT_TRUE(data != NULL);
    data[SECOND_TEXT] = '\0';
    expect_refusal(parse, data, size, STATUS_BAD_FORMAT, "token 1 has a NUL byte");
    free(data);
}

C_TEST(bpe_bad_file, count_of_tokens) {
    size_t size;
    unsigned char *data = small_file(&size);
    ASSERT_TRUE(data != NULL);
    struct bpe *bpe;
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "tokenizer has 4 tokens, the model 5",
                          bpe_parse(&bpe, data, size, 5, &error));
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "tokenizer has 4 tokens, the model 3",
                          bpe_parse(&bpe, data, size, 3, &error));
    EXPECT_TRUE(bpe == NULL);
    expect_refusal(parse, data, SECOND_TEXT + 1, STATUS_BAD_FORMAT, "tokenizer has 2 tokens");
    free(data);
}

C_TEST(bpe_bad_file, every_prefix) {
    size_t size;
    unsigned char *data = small_file(&size);
    ASSERT_TRUE(data != NULL);
    size_t ends[] = {4, SECOND_SCORE, SECOND_TEXT + 1, SECOND_TEXT + 10};
    for (size_t length = 0; length < size; length++) {
        bool at_end = false; /* of a token: only the count can tell that more are missing */
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            at_end = at_end || length == ends[i];
        }
        expect_refusal(parse_four, data, length, at_end ? STATUS_MISMATCH : STATUS_TRUNCATED,
                       at_end       ? "the model 4"
                       : length < 4 ? "header"
                                    : "token ");
    }
    free(data);
}

static enum status open_file(const char *path, struct error *error) {
    struct bpe *bpe;
    enum status status = bpe_open(&bpe, path, 0, error);
    EXPECT_TRUE(status == STATUS_OK || bpe == NULL);
    return status;
}

C_TEST(bpe_bad_file, missing_folder_empty_garbage) {
    expect_bad_files_named(open_file, STATUS_TRUNCATED, "tokenizer ends after 0 bytes");
    char path[512];
    test_temporary_path("text.bin", path, sizeof path);
    ASSERT_OK(file_write(path, "This is a text, no tokenizer.", 29, NULL));
    expect_open_fails(open_file, path, "", STATUS_TRUNCATED,
                      "token 0 has 1702109281 bytes, but only 17 are left");
}

static void expect_bad_text(const struct bpe *bpe, const char *text, size_t length,
                            enum status want, const char *part) {
    int32_t *tokens;
    size_t count = 99;
    char *copy = exact_copy(text, length);
    EXPECT_ERROR_CONTAINS(want, part,
                          bpe_encode(bpe, copy, length, true, true, &tokens, &count, &error));
    EXPECT_TRUE(tokens == NULL && count == 0);
    free(copy);
}

C_TEST(bpe_bad_text, not_utf8) {
    static struct vocabulary vocabulary;
    add_small(&vocabulary);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    for (size_t i = 0; i < NOT_UTF8_COUNT; i++) {
        const struct refusal *bad = &not_utf8[i];
        expect_bad_text(bpe, bad->text, strlen(bad->text), bad->status, bad->message);
    }
    bpe_free(bpe);
}

C_TEST(bpe_bad_text, no_room_for_bytes) {
    size_t size;
    unsigned char *data = small_file(&size);
    struct bpe *bpe = NULL;
    ASSERT_OK(bpe_parse(&bpe, data, size, 0, NULL));
    expect_bad_text(bpe, "a", 1, STATUS_UNSUPPORTED, "U+0020 at byte 0");
    bpe_free(bpe);
    free(data);
    const char *pieces[] = {"<unk>", "<s>", "</s>", " ", "a"};
    const float scores[5] = {0};
    ASSERT_OK(bpe_serialize(pieces, scores, 5, &data, &size));
    ASSERT_OK(bpe_parse(&bpe, data, size, 5, NULL));
    EXPECT_ENCODING(bpe, "a", true, true, 1, 3, 4, 2);
    expect_bad_text(bpe, "aa\xe4\xb8\xad", 5, STATUS_UNSUPPORTED, "U+4E2D at byte 2");
    bpe_free(bpe);
    free(data);
}

C_TEST(bpe_bad_text, too_long) {
    static struct vocabulary vocabulary;
    add_small(&vocabulary);
    struct bpe *bpe = build(&vocabulary);
    ASSERT_TRUE(bpe != NULL);
    int32_t *tokens;
    size_t count;
    struct error error = {0};
    EXPECT_ERROR_CONTAINS(STATUS_OVERFLOW, "too long",
                          bpe_encode(bpe, "a", SIZE_MAX, false, false, &tokens, &count, &error));
    EXPECT_STATUS(STATUS_OVERFLOW,
                  bpe_encode(bpe, "a", SIZE_MAX / 2, false, false, &tokens, &count, &error));
    bpe_free(bpe);
}
