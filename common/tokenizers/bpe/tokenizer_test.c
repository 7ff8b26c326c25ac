#include "common/tokenizers/bpe/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/bpe_testing.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

#define BLANK "\xe2\x96\x81"
#define LLAMA2 TOKENIZER_TESTING_LLAMA2
#define MODEL TOKENIZER_TESTING_MODEL

/* "bc" is a piece, but no merge makes it: "abc" is only merged from "ab" and "c". */
static const char PIECES[] = "\"" BLANK "\":259,\"a\":260,\"b\":261,\"c\":262,\"ab\":263,"
                             "\"" BLANK "a\":264,\"bc\":265,\"abc\":266,\"\xc3\xa9\":267,"
                             "\"" BLANK BLANK "\":268,\"" BLANK "abc\":269,\"a" BLANK "\":270";
static const char MERGES[] =
    "\"a b\",\"" BLANK " a\",\"ab c\",\"" BLANK " abc\",\"" BLANK " " BLANK "\",\"a " BLANK "\"";
static const char ADDED[] = "{\"id\":1,\"content\":\"<s>\",\"special\":true},"
                            "{\"id\":271,\"content\":\"<pad>\"},{\"id\":272,\"content\":\"d\"}";
enum { TOKENS = 273 };

static struct bpe *parse(const char *settings, const char *merges) {
    char *text = tokenizer_testing_json(settings, MODEL, PIECES, merges, ADDED);
    struct bpe *bpe = NULL;
    struct error error = {0};
    if (text != NULL) {
        EXPECT_OK(tokenizer_json_parse(&bpe, text, strlen(text), TOKENS, &error));
        EXPECT_STR_EQ("", error.message);
    }
    free(text);
    return bpe;
}

#define EXPECT_TOKENS(bpe, text, ...) EXPECT_ENCODING(bpe, text, false, false, __VA_ARGS__)

C_TEST(tokenizer_json, encodes_by_hand) {
    struct bpe *bpe = parse(LLAMA2, MERGES);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_INT_EQ(TOKENS, bpe_size(bpe));
    EXPECT_TOKENS(bpe, "a", 264);
    EXPECT_TOKENS(bpe, "ab", 259, 263); /* "a b" comes before "_ a" */
    EXPECT_TOKENS(bpe, "abc", 269);
    EXPECT_TOKENS(bpe, "bc", 259, 261, 262); /* pieces, but no merge */
    EXPECT_TOKENS(bpe, "aa", 264, 260);
    EXPECT_TOKENS(bpe, "a b", 264, 259, 261);
    EXPECT_TOKENS(bpe, "a" BLANK "b", 264, 259, 261);
    EXPECT_TOKENS(bpe, "ca b", 259, 262, 270, 261);
    EXPECT_TOKENS(bpe, " a", 259, 264);
    EXPECT_TOKENS(bpe, "  ", 268, 259);
    EXPECT_TOKENS(bpe, "\xc3\xa9\xc3\xa8", 259, 267, 3 + 0xc3, 3 + 0xa8);
    EXPECT_TOKENS(bpe, "\xf0\x9f\x98\x80", 259, 3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80);
    EXPECT_TOKENS(bpe, "b\0\n", 259, 261, 3, 3 + '\n');
    EXPECT_TOKENS(bpe, "<s>", 259, 3 + '<', 3 + 's', 3 + '>');
    EXPECT_TOKENS(bpe, "d", 259, 3 + 'd'); /* an added token: text does not become it */
    expect_encoding(bpe, "", 0, false, false, NULL, 0);
    expect_encoding(bpe, "", 0, true, true, (const int32_t[]){BPE_BOS, BPE_EOS}, 2);
    expect_encoding(bpe, "a", 1, true, true, (const int32_t[]){BPE_BOS, 264, BPE_EOS}, 3);
    bpe_free(bpe);
}

C_TEST(tokenizer_json, decodes) {
    struct bpe *bpe = parse(LLAMA2, MERGES);
    ASSERT_TRUE(bpe != NULL);
    expect_piece(bpe, -1, 269, " abc", 4);
    expect_piece(bpe, BPE_BOS, 269, "abc", 3);
    expect_piece(bpe, -1, 268, "  ", 2);
    expect_piece(bpe, -1, 270, "a ", 2);
    expect_piece(bpe, -1, 267, "\xc3\xa9", 2);
    expect_piece(bpe, -1, 3 + 0xff, "\xff", 1);
    expect_piece(bpe, -1, 3, "\0", 1);
    expect_piece(bpe, -1, BPE_EOS, "</s>", 4);
    expect_piece(bpe, -1, 271, "<pad>", 5);
    expect_piece(bpe, -1, TOKENS, "", 0);
    bpe_free(bpe);
}

/* The order of the merges decides, not the length or the id of a piece. */
C_TEST(tokenizer_json, ranks_are_the_order_of_the_merges) {
    struct bpe *bpe = parse(LLAMA2, "\"" BLANK " a\",\"a b\",\"ab c\"");
    ASSERT_TRUE(bpe != NULL);
    EXPECT_TOKENS(bpe, "ab", 264, 261);
    EXPECT_TOKENS(bpe, "cab", 259, 262, 263);
    bpe_free(bpe);
    bpe = parse(LLAMA2, "\"a b\",\"" BLANK " a\",\"a b\""); /* the last of the same pair counts */
    ASSERT_TRUE(bpe != NULL);
    EXPECT_TOKENS(bpe, "ab", 264, 261);
    bpe_free(bpe);
    bpe = parse(LLAMA2, "[\"" BLANK "\",\"a\"],[\"a\",\"b\"]");
    ASSERT_TRUE(bpe != NULL);
    EXPECT_TOKENS(bpe, "ab", 264, 261);
    bpe_free(bpe);
    bpe = parse(LLAMA2, "");
    ASSERT_TRUE(bpe != NULL);
    EXPECT_TOKENS(bpe, "ab", 259, 260, 261);
    bpe_free(bpe);
}

#define METASPACE(members) \
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" BLANK "\"" members "}"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" BLANK "\"}"
#define PREPEND "{\"type\":\"Prepend\",\"prepend\":\"" BLANK "\"}"

struct settings_case {
    const char *settings;
    int32_t a[3], blank_a[3], a_blank_b[3]; /* of "a", " a", "ca b"; ends at 0 */
};

static void expect_ids(const struct bpe *bpe, const char *text, const int32_t want[3]) {
    size_t count = 0;
    while (count < 3 && want[count] != 0) {
        count++;
    }
    expect_encoding(bpe, text, strlen(text), false, false, want, count);
}

C_TEST(tokenizer_json, settings_of_the_kind_of_llama2) {
    static const struct settings_case cases[] = {
        {"\"normalizer\":" REPLACE, {260}, {264}, {262, 270, 261}},
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" REPLACE "," PREPEND "]}",
         {264},
         {259, 264},
         {0}},
        {METASPACE(",\"prepend_scheme\":\"never\",\"split\":false"), {260}, {264}, {262, 270, 261}},
        {METASPACE(",\"prepend_scheme\":\"first\",\"split\":false"), {264}, {264}, {0}},
        {METASPACE(",\"prepend_scheme\":\"always\",\"split\":false"), {264}, {264}, {0}},
        {METASPACE(",\"add_prefix_space\":false,\"split\":false"), {260}, {264}, {262, 270, 261}},
        {METASPACE(",\"add_prefix_space\":true"), {264}, {264}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bpe *bpe = parse(cases[i].settings, MERGES);
        ASSERT_TRUE(bpe != NULL);
        expect_ids(bpe, "a", cases[i].a);
        expect_ids(bpe, " a", cases[i].blank_a);
        if (cases[i].a_blank_b[0] != 0) {
            expect_ids(bpe, "ca b", cases[i].a_blank_b);
        }
        bpe_free(bpe);
    }
    struct bpe *bpe = parse(METASPACE(""), MERGES); /* splits: nothing ends in a blank */
    ASSERT_TRUE(bpe != NULL);
    EXPECT_TOKENS(bpe, "ca b", 259, 262, 260, 259, 261);
    EXPECT_TOKENS(bpe, "  a", 259, 264);
    bpe_free(bpe);
}

/* ---- bad input ---- */

struct bad_case {
    const char *settings, *model, *pieces, *merges, *added;
    enum status status;
    const char *message; /* part of the line */
};

/* Each changes one of the five parts; NULL: as above. */
static const struct bad_case bad_cases[] = {
    {"\"normalizer\":{\"type\":\"NFKC\"}", NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "normalizer of type \"NFKC\" as given is not supported"},
    {"\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"x\"}", NULL, NULL, NULL, NULL,
     STATUS_UNSUPPORTED, "normalizer of type \"Prepend\" as given"},
    {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" PREPEND "," PREPEND "," REPLACE "]}",
     NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED, "normalizer of type \"Prepend\" as given"},
    {"\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" \"},\"content\":\"" BLANK
     "\"}",
     NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED, "normalizer of type \"Replace\" as given"},
    {"\"normalizer\":{\"type\":\"Sequence\"}", NULL, NULL, NULL, NULL, STATUS_BAD_FORMAT,
     "\"normalizers\" of a Sequence is not an array"},
    {"\"normalizer\":3", NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED, "normalizer of type \"\""},
    {"\"normalizer\":null", NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "neither normalizer nor pre_tokenizer writes blanks as U+2581"},
    {"\"normalizer\":" PREPEND, NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "neither normalizer nor pre_tokenizer writes blanks"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", NULL, NULL, NULL,
     NULL, STATUS_UNSUPPORTED, "\"byte_fallback\" of the model is not supported"},
    {METASPACE(",\"prepend_scheme\":\"last\""), NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "pre_tokenizer of type \"Metaspace\" as given"},
    {METASPACE(",\"split\":1"), NULL, NULL, NULL, NULL, STATUS_BAD_FORMAT,
     "\"split\" is neither true nor false"},
    {"\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}", NULL, NULL, NULL, NULL,
     STATUS_UNSUPPORTED, "pre_tokenizer of type \"Metaspace\" as given"},
    {"\"normalizer\":" REPLACE "," METASPACE(""), NULL, NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "pre_tokenizer of type \"Metaspace\" as given"},
    {METASPACE("") ",\"decoder\":{\"type\":\"ByteLevel\"}", NULL, NULL, NULL, NULL,
     STATUS_UNSUPPORTED, "decoder of type \"ByteLevel\" as given"},
    {NULL, "\"type\":\"Unigram\"", NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "model of type \"Unigram\" is not supported, only \"BPE\""},
    {NULL, "\"byte_fallback\":true", NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "model of type \"\" is not supported"},
    {NULL, "\"type\":\"BPE\"", NULL, NULL, NULL, STATUS_UNSUPPORTED,
     "\"byte_fallback\" of the model is not true, and the pre_tokenizer is not \"ByteLevel\""},
    {NULL, "\"type\":\"BPE\",\"byte_fallback\":\"yes\"", NULL, NULL, NULL, STATUS_BAD_FORMAT,
     "\"byte_fallback\" is neither true nor false"},
    {NULL, "\"type\":\"BPE\",\"byte_fallback\":true,\"dropout\":0.1", NULL, NULL, NULL,
     STATUS_UNSUPPORTED, "\"dropout\" of the model is not supported"},
    {NULL, "\"type\":\"BPE\",\"byte_fallback\":true,\"ignore_merges\":true", NULL, NULL, NULL,
     STATUS_UNSUPPORTED, "\"ignore_merges\" of the model is not supported"},
    {NULL, "\"type\":\"BPE\",\"byte_fallback\":true,\"end_of_word_suffix\":\"</w>\"", NULL, NULL,
     NULL, STATUS_UNSUPPORTED, "\"end_of_word_suffix\" of the model is not supported"},
    {NULL, NULL, "\"" BLANK "\":259,\"a\":261", "", "", STATUS_BAD_FORMAT,
     "the largest id is 261, but there are only 261 tokens"},
    {NULL, NULL, "\"" BLANK "\":259,\"a\":259", "", "{\"id\":260,\"content\":\"b\"}",
     STATUS_BAD_FORMAT, "id 259 belongs to \"" BLANK "\" and to \"a\""},
    {NULL, NULL, "\"" BLANK "\":259,\"a\":-1", "", "", STATUS_BAD_FORMAT,
     "id of the token \"a\" is not a whole number below 2147483647"},
    {NULL, NULL, "\"" BLANK "\":259,\"a\":1e300", "", "", STATUS_BAD_FORMAT,
     "id of the token \"a\" is not a whole number"},
    {NULL, NULL, "\"" BLANK "\":259,\"a\":\"260\"", "", "", STATUS_BAD_FORMAT,
     "id of the token \"a\" is not a whole number"},
    {NULL, NULL, "\"" BLANK "\":259,\"" BLANK "\":260", "", "", STATUS_BAD_FORMAT, "twice"},
    {NULL, NULL, "\"x\":259", "", "", STATUS_UNSUPPORTED, "has no piece for a blank"},
    {NULL, NULL, NULL, "\"ab\"", NULL, STATUS_BAD_FORMAT, "merge 0 is neither \"a b\" nor"},
    {NULL, NULL, NULL, "\"a b\",\"a b c\"", NULL, STATUS_BAD_FORMAT, "merge 1 is neither"},
    {NULL, NULL, NULL, "3", NULL, STATUS_BAD_FORMAT, "merge 0 is neither"},
    {NULL, NULL, NULL, "[\"a\"]", NULL, STATUS_BAD_FORMAT, "merge 0 is neither"},
    {NULL, NULL, NULL, "[\"a\",3]", NULL, STATUS_BAD_FORMAT, "merge 0 is neither"},
    {NULL, NULL, NULL, "\"a b\",\"x b\"", NULL, STATUS_BAD_FORMAT,
     "merge 1, \"x b\" and \"b\": the vocabulary lacks the first"},
    {NULL, NULL, NULL, "[\"a\",\"x\"]", NULL, STATUS_BAD_FORMAT,
     "merge 0, \"a\" and \"x\": the vocabulary lacks the second"},
    {NULL, NULL, NULL, "\"a c\"", NULL, STATUS_BAD_FORMAT,
     "the vocabulary lacks both as one piece"},
    {NULL, NULL, NULL, "\"" BLANK "abc " BLANK "abc\"", NULL, STATUS_BAD_FORMAT,
     "the vocabulary lacks both as one piece"},
    {NULL, NULL, NULL, "\"a d\"", NULL, STATUS_BAD_FORMAT, "the vocabulary lacks the second"},
    {NULL, NULL, NULL, NULL, "{\"id\":5,\"content\":\"<s>\"}", STATUS_BAD_FORMAT,
     "added token \"<s>\" has id 5, in the vocabulary 1"},
    {NULL, NULL, NULL, NULL, "{\"id\":260,\"content\":\"new\"}", STATUS_BAD_FORMAT,
     "id 260 belongs to \"a\" and to \"new\""},
    {NULL, NULL, NULL, NULL, "{\"id\":271}", STATUS_BAD_FORMAT,
     "\"content\" of an added token is missing"},
    {NULL, NULL, NULL, NULL, "{\"content\":\"new\"}", STATUS_BAD_FORMAT,
     "id of the token \"new\" is not a whole number"},
    {NULL, NULL, NULL, NULL, "3", STATUS_BAD_FORMAT, "\"content\" of an added token is missing"},
    {NULL, NULL, NULL, NULL, "{\"id\":1,\"content\":\"<s>\"},{\"id\":272,\"content\":\"new\"}",
     STATUS_BAD_FORMAT, "no token has the id 271"},
};

static enum status parse_any(const void *json, size_t size, struct error *error) {
    struct bpe *bpe = NULL;
    enum status status = tokenizer_json_parse(&bpe, json, size, 0, error);
    EXPECT_TRUE(status == STATUS_OK || bpe == NULL);
    bpe_free(bpe);
    return status;
}

C_TEST(tokenizer_json, bad_files_are_refused) {
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const struct bad_case *bad = &bad_cases[i];
        char *text = tokenizer_testing_json(
            bad->settings != NULL ? bad->settings : LLAMA2, bad->model != NULL ? bad->model : MODEL,
            bad->pieces != NULL ? bad->pieces : PIECES, bad->merges != NULL ? bad->merges : MERGES,
            bad->added != NULL ? bad->added : ADDED);
        ASSERT_TRUE(text != NULL);
        expect_refusal(parse_any, text, strlen(text), bad->status, bad->message);
        free(text);
    }
}

C_TEST(tokenizer_json, other_json_is_refused) {
#define BPE "{" LLAMA2 ",\"model\":{" MODEL
    static const struct refusal cases[] = {
        {"", STATUS_BAD_FORMAT, "not valid JSON at byte 0"},
        {"[]", STATUS_BAD_FORMAT, "JSON is not an object"},
        {"{}", STATUS_BAD_FORMAT, "\"model\" is missing or not an object"},
        {"{\"model\":[]}", STATUS_BAD_FORMAT, "\"model\" is missing or not an object"},
        {BPE "}}", STATUS_BAD_FORMAT, "\"vocab\" is missing or not an object"},
        {BPE ",\"vocab\":[]}}", STATUS_BAD_FORMAT, "\"vocab\" is missing or not an object"},
        {BPE ",\"vocab\":{}}}", STATUS_BAD_FORMAT, "\"merges\" is missing or not an array"},
        {BPE ",\"vocab\":{},\"merges\":[]},\"added_tokens\":{}}", STATUS_BAD_FORMAT,
         "\"added_tokens\" is not an array"},
        {BPE ",\"vocab\":{},\"merges\":[]}}", STATUS_BAD_FORMAT, "tokenizer has 0 tokens"},
        {BPE ",\"vocab\":{\"a\":0,\"b\":1,\"c\":2},\"merges\":[]}}", STATUS_UNSUPPORTED,
         "token 0 is \"a\", not \"<unk>\"; supported are vocabularies that begin as Llama2's"},
        {BPE ",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</s>\":2},\"merges\":[]}}", STATUS_UNSUPPORTED,
         "token 3 is \"\", not \"<0x00>\""},
    };
    expect_refusals(parse_any, cases, sizeof cases / sizeof *cases);
}

C_TEST(tokenizer_json, every_truncation_is_refused) {
    char *text = tokenizer_testing_json(LLAMA2, MODEL, PIECES, MERGES, ADDED);
    ASSERT_TRUE(text != NULL);
    struct bpe *bpe;
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "tokenizer has 273 tokens, the model 274",
                          tokenizer_json_parse(&bpe, text, strlen(text), TOKENS + 1, &error));
    EXPECT_TRUE(bpe == NULL);
    for (size_t length = strlen(text) - 1; length > 0; length--) {
        text[length] = '\0';
        struct error error = {0};
        enum status status = tokenizer_json_parse(&bpe, text, length, 0, &error);
        EXPECT_TRUE(status == STATUS_BAD_FORMAT || status == STATUS_BAD_UTF8);
        EXPECT_TRUE(bpe == NULL && error.message[0] != '\0');
    }
    free(text);
}

/* ---- which file ---- */

static void write_into(const char *folder, const char *name, const void *data, size_t size) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(file_write(path, data, size, NULL));
}

static void expect_opens(const char *folder, const char *name, size_t want) {
    char path[8192];
    snprintf(path, sizeof path, "%s%s%s", folder, name[0] != '\0' ? "/" : "", name);
    struct bpe *bpe = NULL;
    struct error error = {0};
    EXPECT_OK(tokenizer_open(&bpe, path, want, &error));
    EXPECT_STR_EQ("", error.message);
    EXPECT_INT_EQ(want, bpe != NULL ? bpe_size(bpe) : 0);
    bpe_free(bpe);
}

static enum status open_any(const char *path, struct error *error) {
    struct bpe *bpe = NULL;
    enum status status = tokenizer_open(&bpe, path, 0, error);
    EXPECT_TRUE(bpe == NULL);
    return status;
}

/* For a model of 32,000 tokens. */
static enum status open_32000(const char *path, struct error *error) {
    struct bpe *bpe = NULL;
    enum status status = tokenizer_open(&bpe, path, 32000, error);
    EXPECT_TRUE(bpe == NULL);
    return status;
}

C_TEST(tokenizer, picks_the_file) {
    const char *pieces[] = {"<unk>", "<s>", "</s>", " ", "a"};
    const float scores[5] = {0};
    unsigned char *binary;
    size_t size;
    ASSERT_OK(bpe_serialize(pieces, scores, 5, &binary, &size));
    char *json = tokenizer_testing_json(LLAMA2, MODEL, PIECES, MERGES, ADDED);
    ASSERT_TRUE(json != NULL);
    char folder[4096];
    test_temporary_path("tokenizer_files", folder, sizeof folder);
    EXPECT_INT_EQ(0, mkdir(folder, 0755));
    expect_open_fails(open_any, folder, "", STATUS_NOT_FOUND,
                      "neither tokenizer.json nor tokenizer.bin");
    write_into(folder, "tokenizer.bin", binary, size);
    expect_opens(folder, "", 5);
    expect_open_fails(open_32000, folder, "tokenizer.bin", STATUS_MISMATCH,
                      "tokenizer has 5 tokens, the model 32000");
    write_into(folder, "tokenizer.json", json, strlen(json));
    expect_opens(folder, "", TOKENS);
    expect_open_fails(open_32000, folder, "tokenizer.json", STATUS_MISMATCH,
                      "tokenizer has 273 tokens, the model 32000");
    write_into(folder, "other.txt", json, strlen(json)); /* known by content, not by name */
    expect_opens(folder, "other.txt", TOKENS);
    write_into(folder, "other.json", binary, size);
    expect_opens(folder, "other.json", 5);
    write_into(folder, "tokenizer.json", "{\"model\":3}", 11);
    expect_open_fails(open_any, folder, "tokenizer.json", STATUS_BAD_FORMAT,
                      "\"model\" is missing");
    write_into(folder, "tokenizer.json", "", 0);
    expect_open_fails(open_any, folder, "tokenizer.json", STATUS_TRUNCATED,
                      "tokenizer ends after 0 bytes");
    free(json);
    free(binary);
}

C_TEST(tokenizer, missing_and_too_long) {
    char path[8192];
    test_temporary_path("no_tokenizer_here", path, sizeof path);
    expect_open_fails(open_any, path, "", STATUS_NOT_FOUND, "cannot open: No such file");
    char folder[4096] = "/";
    for (size_t i = 1; i < sizeof folder - 2; i++) {
        folder[i] = i % 2 == 0 ? '/' : '.'; /* the root folder, in very many words */
    }
    folder[sizeof folder - 2] = '\0';
    struct bpe *bpe;
    EXPECT_ERROR(STATUS_TOO_LONG, "path of the tokenizer is longer than 4095 bytes",
                 tokenizer_open(&bpe, folder, 0, &error));
}
