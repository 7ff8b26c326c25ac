#include "common/tokenizers/wordpiece/wordpiece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"

/* Ids: 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK], 5 the, 6 ##se, 7 cafe, 8 !, 9 中, 10 a,
 * 11 ##a, 12 ##aa, 13 ##s */
static const char SMALL[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##se\ncafe\n!\n中\na\n##a\n"
                            "##aa\n##s\n";
enum { PAD, UNK, CLS, SEP, MASK, THE, SE, CAFE, MARK, CHINA, A, MORE_A, MORE_AA, S, SMALL_COUNT };

static struct wordpiece *parse(const char *text, size_t size) {
    struct wordpiece *wordpiece = NULL;
    struct error error = {0};
    EXPECT_OK(wordpiece_parse(&wordpiece, text, size, &error));
    EXPECT_STR_EQ("", error.message);
    return wordpiece;
}

static void expect_ids(const char *text, size_t length, size_t max_length, const int32_t *want,
                       size_t want_count) {
    struct wordpiece *wordpiece = parse(SMALL, strlen(SMALL));
    ASSERT_TRUE(wordpiece != NULL);
    int32_t *ids;
    size_t count;
    ASSERT_OK(wordpiece_encode(wordpiece, text, length, max_length, &ids, &count, NULL));
    EXPECT_INT_EQ(want_count, count);
    for (size_t i = 0; i < count && i < want_count; i++) {
        if (want[i] != ids[i]) {
            TEST_FAIL("id %zu of '%s' is %d, not %d", i, text, ids[i], want[i]);
        }
    }
    free(ids);
    wordpiece_free(wordpiece);
}

#define EXPECT_IDS(text, max_length, ...)                                          \
    expect_ids(text, sizeof(text) - 1, max_length, (const int32_t[]){__VA_ARGS__}, \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

C_TEST(wordpiece, splits_words_into_pieces) {
    EXPECT_IDS("", 0, CLS, SEP);
    EXPECT_IDS(" \t\r\n", 0, CLS, SEP);
    EXPECT_IDS("the these", 0, CLS, THE, THE, SE, SEP);
    EXPECT_IDS("THE!these!", 0, CLS, THE, MARK, THE, SE, MARK, SEP);
    EXPECT_IDS("Caf\xc3\xa9 cafe\xcc\x81", 0, CLS, CAFE, CAFE, SEP);
    EXPECT_IDS("the\xe4\xb8\xadthe", 0, CLS, THE, CHINA, THE, SEP);
    EXPECT_IDS("thex cafe x", 0, CLS, UNK, CAFE, UNK, SEP);
    EXPECT_IDS("th\0e", 0, CLS, THE, SEP);
    EXPECT_IDS("aaaas", 0, CLS, A, MORE_AA, MORE_A, S, SEP); /* longest first */
}

C_TEST(wordpiece, special_pieces_in_the_text) {
    EXPECT_IDS("the[SEP]se", 0, CLS, THE, SEP, UNK, SEP);
    EXPECT_IDS("[CLS][MASK] [PAD]", 0, CLS, CLS, MASK, PAD, SEP);
    EXPECT_IDS("[sep]", 0, CLS, UNK, UNK, UNK, SEP);
    EXPECT_IDS("[[SEP]]", 0, CLS, UNK, SEP, UNK, SEP);
    EXPECT_IDS("[SEP", 0, CLS, UNK, UNK, SEP);
}

C_TEST(wordpiece, truncates_before_sep) {
    EXPECT_IDS("the these the", 2, CLS, SEP);
    EXPECT_IDS("the these the", 3, CLS, THE, SEP);
    EXPECT_IDS("the these the", 4, CLS, THE, THE, SEP); /* within a word */
    EXPECT_IDS("the these the", 6, CLS, THE, THE, SE, THE, SEP);
    EXPECT_IDS("the these the", 512, CLS, THE, THE, SE, THE, SEP);
    EXPECT_IDS("the[MASK][MASK]", 4, CLS, THE, MASK, SEP);
}

C_TEST(wordpiece, words_of_a_hundred_code_points) {
    char text[512] = "";
    int32_t want[52] = {CLS, A};
    for (int i = 0; i < 100; i++) {
        strcat(text, "\xc3\xa0"); /* a with grave: 200 bytes of text, 100 code points */
    }
    for (int i = 2; i < 51; i++) {
        want[i] = MORE_AA;
    }
    want[51] = MORE_A;
    int32_t all[53];
    memcpy(all, want, sizeof want);
    all[52] = SEP;
    expect_ids(text, strlen(text), 0, all, 53);
    strcat(text, "a");
    expect_ids(text, strlen(text), 0, (const int32_t[]){CLS, UNK, SEP}, 3);
}

C_TEST(wordpiece, knows_its_pieces) {
    struct wordpiece *wordpiece = parse(SMALL, strlen(SMALL));
    ASSERT_TRUE(wordpiece != NULL);
    EXPECT_INT_EQ(SMALL_COUNT, wordpiece_size(wordpiece));
    EXPECT_STR_EQ("[PAD]", wordpiece_piece(wordpiece, 0));
    EXPECT_STR_EQ("##s", wordpiece_piece(wordpiece, S));
    EXPECT_TRUE(wordpiece_piece(wordpiece, SMALL_COUNT) == NULL);
    EXPECT_TRUE(wordpiece_piece(wordpiece, -1) == NULL);
    EXPECT_INT_EQ(CAFE, wordpiece_find(wordpiece, "cafe"));
    EXPECT_INT_EQ(-1, wordpiece_find(wordpiece, "caf"));
    EXPECT_INT_EQ(-1, wordpiece_find(wordpiece, "cafes"));
    EXPECT_INT_EQ(-1, wordpiece_find(wordpiece, ""));
    struct wordpiece_special special = wordpiece_special(wordpiece);
    EXPECT_INT_EQ(UNK, special.unk);
    EXPECT_INT_EQ(CLS, special.cls);
    EXPECT_INT_EQ(SEP, special.sep);
    EXPECT_INT_EQ(PAD, special.pad);
    wordpiece_free(wordpiece);
    wordpiece_free(NULL);
}

C_TEST(wordpiece, line_ends) {
    static const char *const texts[] = {"[UNK]\r\n[CLS]\r\n[SEP]\r\n[PAD]\r\nx\r\n",
                                        "[UNK]\n[CLS]\n[SEP]\n[PAD]\nx",
                                        "[UNK]\r\n[CLS]\n[SEP]\n[PAD]\nx\r"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wordpiece *wordpiece = parse(texts[i], strlen(texts[i]));
        ASSERT_TRUE(wordpiece != NULL);
        EXPECT_INT_EQ(5, wordpiece_size(wordpiece));
        EXPECT_STR_EQ("x", wordpiece_piece(wordpiece, 4));
        EXPECT_INT_EQ(3, wordpiece_find(wordpiece, "[PAD]"));
        wordpiece_free(wordpiece);
    }
}

/* ---- bad input ---- */

static enum status parse_bad(const void *text, size_t size, struct error *error) {
    struct wordpiece *wordpiece = NULL;
    enum status status = wordpiece_parse(&wordpiece, text, size, error);
    EXPECT_TRUE(wordpiece == NULL);
    return status;
}

#define SPECIAL "[UNK]\n[CLS]\n[SEP]\n[PAD]\n"

C_TEST(wordpiece_bad_file, lines) {
    static const struct refusal cases[] = {
        {"", STATUS_BAD_FORMAT, "vocabulary of 0 pieces has no [UNK]"},
        {"[CLS]\n[SEP]\n[PAD]\n", STATUS_BAD_FORMAT, "vocabulary of 3 pieces has no [UNK]"},
        {"[UNK]\n[SEP]\n[PAD]\n", STATUS_BAD_FORMAT, "has no [CLS]"},
        {"[UNK]\n[CLS]\n[PAD]\n", STATUS_BAD_FORMAT, "has no [SEP]"},
        {"[UNK]\n[CLS]\n[SEP]\n", STATUS_BAD_FORMAT, "has no [PAD]"},
        {SPECIAL "a\nb\na\n", STATUS_BAD_FORMAT, "line 7 of the vocabulary repeats line 5: 'a'"},
        {SPECIAL "a\nb\r\na\r\n", STATUS_BAD_FORMAT, "line 7 of the vocabulary repeats line 5"},
        {SPECIAL "[PAD]\n", STATUS_BAD_FORMAT, "line 5 of the vocabulary repeats line 4"},
        {SPECIAL "\na\n", STATUS_BAD_FORMAT, "line 5 of the vocabulary is empty"},
        {SPECIAL "\n", STATUS_BAD_FORMAT, "line 5 of the vocabulary is empty"},
        {SPECIAL "a\n\r\n", STATUS_BAD_FORMAT, "line 6 of the vocabulary is empty"},
        {SPECIAL "a\n\xff\n", STATUS_BAD_UTF8, "line 6 of the vocabulary: not valid UTF-8 at"},
        {SPECIAL "a\nxy\xc0\xaf", STATUS_BAD_UTF8,
         "line 6 of the vocabulary: not valid UTF-8 at "
         "byte 2 (0xC0)"},
        {SPECIAL "\xe4\xb8\n\xad\n", STATUS_BAD_UTF8, "line 5 of the vocabulary"},
        {SPECIAL "\xed\xa0\x80\n", STATUS_BAD_UTF8, "line 5 of the vocabulary"},
    };
    expect_refusals(parse_bad, cases, sizeof cases / sizeof *cases);
    static const char nul[] = SPECIAL "a\0b\n";
    expect_refusal(parse_bad, nul, sizeof nul - 1, STATUS_BAD_FORMAT,
                   "line 5 of the vocabulary has a NUL byte");
}

C_TEST(wordpiece_bad_file, every_prefix_without_the_special_pieces) {
    size_t whole = strlen(SPECIAL) - 1; /* the last line feed may be missing */
    expect_prefixes_refused(parse_bad, SPECIAL, whole, STATUS_BAD_FORMAT, "has no [");
    wordpiece_free(parse(SPECIAL, whole));
}

static enum status open_bad(const char *path, struct error *error) {
    struct wordpiece *wordpiece;
    enum status status = wordpiece_open(&wordpiece, path, error);
    EXPECT_TRUE(wordpiece == NULL);
    return status;
}

C_TEST(wordpiece_bad_file, missing_folder_empty) {
    expect_bad_files_named(open_bad, STATUS_BAD_FORMAT, "vocabulary of 0 pieces has no [UNK]");
    struct wordpiece *wordpiece;
    char path[512];
    test_temporary_path("small.txt", path, sizeof path);
    ASSERT_OK(file_write(path, SMALL, strlen(SMALL), NULL));
    ASSERT_OK(wordpiece_open(&wordpiece, path, NULL));
    EXPECT_INT_EQ(SMALL_COUNT, wordpiece_size(wordpiece));
    wordpiece_free(wordpiece);
}

static void expect_bad_text(const struct wordpiece *wordpiece, const struct refusal *bad) {
    int32_t *ids;
    size_t count = 99, length = strlen(bad->text);
    char *copy = exact_copy(bad->text, length);
    EXPECT_ERROR_CONTAINS(bad->status, bad->message,
                          wordpiece_encode(wordpiece, copy, length, 3, &ids, &count, &error));
    EXPECT_TRUE(ids == NULL && count == 0);
    free(copy);
}

C_TEST(wordpiece_bad_text, not_utf8) {
    static const struct refusal among_pieces[] = {
        {"the the the \xf0", STATUS_BAD_UTF8, "byte 12 (0xF0)"}, /* behind what max_length keeps */
        {"\xe4\xb8[SEP]", STATUS_BAD_UTF8, "byte 0 (0xE4)"},
        {"the[SEP]\xbf", STATUS_BAD_UTF8, "byte 8 (0xBF)"},
    };
    struct wordpiece *wordpiece = parse(SMALL, strlen(SMALL));
    ASSERT_TRUE(wordpiece != NULL);
    for (size_t i = 0; i < NOT_UTF8_COUNT; i++) {
        expect_bad_text(wordpiece, &not_utf8[i]);
    }
    for (size_t i = 0; i < sizeof among_pieces / sizeof *among_pieces; i++) {
        expect_bad_text(wordpiece, &among_pieces[i]);
    }
    wordpiece_free(wordpiece);
}

C_TEST(wordpiece_bad_text, no_room_for_cls_and_sep) {
    struct wordpiece *wordpiece = parse(SMALL, strlen(SMALL));
    ASSERT_TRUE(wordpiece != NULL);
    int32_t *ids;
    size_t count;
    EXPECT_ERROR_CONTAINS(STATUS_INVALID_ARGUMENT, "max_length 1 has no room for [CLS] and [SEP]",
                          wordpiece_encode(wordpiece, "the", 3, 1, &ids, &count, &error));
    EXPECT_TRUE(ids == NULL && count == 0);
    wordpiece_free(wordpiece);
}
