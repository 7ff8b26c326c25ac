/* Byte-level tokenizer.json files made for the test: what they mean, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/refusals.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/bpe_testing.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

#define SETTINGS TOKENIZER_TESTING_BYTE_LEVEL
#define PIECES "\"ab\":256,\"\u0120a\":257,\"bab\":258"
#define MERGES "\"a b\",\"\u0120 a\"" /* none makes "bab" */
#define ADDED "{\"id\":259,\"content\":\"<s>\",\"special\":true},{\"id\":260,\"content\":\"<s>>\"}"

enum { TOKENS = 261 };

static struct bpe *parse(const char *settings) {
    char *json = tokenizer_testing_byte_level(settings, PIECES, MERGES, ADDED);
    struct bpe *bpe = NULL;
    struct error error = {0};
    if (json != NULL) {
        EXPECT_OK(tokenizer_json_parse(&bpe, json, strlen(json), TOKENS, &error));
        EXPECT_STR_EQ("", error.message);
    }
    free(json);
    return bpe;
}

C_TEST(byte_level, pieces_merge_within_splits) {
    struct bpe *bpe = parse(SETTINGS);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_INT_EQ(259, bpe_bos(bpe));
    EXPECT_INT_EQ(-1, bpe_eos(bpe));
    EXPECT_ENCODING(bpe, "ab", true, true, 259, 256);
    EXPECT_ENCODING(bpe, "", true, false, 259);
    EXPECT_ENCODING(bpe, "bab", false, false, 258); /* is a piece as a whole: merges are ignored */
    EXPECT_ENCODING(bpe, "babb", false, false, 'b', 256, 'b');
    EXPECT_ENCODING(bpe, "a ab", false, false, 'a', ' ', 256); /* " a" is split */
    EXPECT_ENCODING(bpe, "\xc3\xa9", false, false, 0xc3, 0xa9);
    EXPECT_ENCODING(bpe, "e\xcc\x81", false, false, 0xc3, 0xa9); /* NFC */
    EXPECT_ENCODING(bpe, "<s>", false, false, '<', 's', '>');
    bpe_free(bpe);
}

C_TEST(byte_level, added_tokens_are_taken_where_a_part_is_marked) {
    struct bpe *bpe = parse(SETTINGS);
    ASSERT_TRUE(bpe != NULL);
    EXPECT_INT_EQ(260, bpe_added(bpe, "<s>>"));
    EXPECT_INT_EQ(-1, bpe_added(bpe, "ab"));
    /* The first part's "a" and the second's "b" merge; the marked one's token is the longest. */
    const struct bpe_part parts[] = {
        {"<s>a", 4, true}, {"b<s>", 4, false}, {"<s>>", 4, true}, {"", 0, false}};
    const int32_t want[] = {259, 256, '<', 's', '>', 260};
    int32_t *tokens;
    size_t count;
    ASSERT_OK(bpe_encode_parts(bpe, parts, 4, false, &tokens, &count, NULL));
    EXPECT_INT_EQ(6, count);
    EXPECT_TRUE(count == 6 && memcmp(tokens, want, sizeof want) == 0);
    free(tokens);
    bpe_free(bpe);
}

C_TEST(byte_level, the_model_may_have_more_tokens) {
    char *json = tokenizer_testing_byte_level(SETTINGS, PIECES, MERGES, ADDED);
    struct bpe *bpe;
    ASSERT_TRUE(json != NULL);
    ASSERT_OK(tokenizer_json_parse(&bpe, json, strlen(json), 300, NULL));
    expect_piece(bpe, -1, 299, "", 0); /* padding */
    expect_piece(bpe, BPE_BOS, ' ', " ", 1);
    expect_piece(bpe, -1, 0, "\0", 1);
    bpe_free(bpe);
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "tokenizer has 261 tokens, the model 260",
                          tokenizer_json_parse(&bpe, json, strlen(json), 260, &error));
    free(json);
}

C_TEST(byte_level, bad_texts_are_refused) {
    struct bpe *bpe = parse(SETTINGS);
    int32_t *tokens;
    size_t count;
    ASSERT_TRUE(bpe != NULL);
    EXPECT_ERROR_CONTAINS(STATUS_BAD_UTF8, "",
                          bpe_encode(bpe, "a\xff", 2, true, false, &tokens, &count, &error));
    bpe_free(bpe);
}

/* ---- Expressions ---- */

#define SPLIT(expression)                                                                    \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","       \
    "\"pattern\":{\"Regex\":\"" expression "\"},\"behavior\":\"Isolated\",\"invert\":false}" \
    ",{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}"

/* An expression that backtracks for 2^60 steps ends with one line, and soon. */
C_TEST(byte_level, hostile_expressions_end_with_a_line) {
    static const char *const hostile[] = {SPLIT("(?:a|a)+$"), SPLIT("(a*)*(a*)*(a*)*$"),
                                          SPLIT("^(?:a?){60}a{60}$"),
                                          SPLIT("(?=(a+))\\\\1*b|a(?R)b")};
    char text[62];
    memset(text, 'a', 60);
    strcpy(text + 60, "b");
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct bpe *bpe = parse(hostile[i]);
        int32_t *tokens = NULL;
        size_t count;
        struct error error = {0};
        ASSERT_TRUE(bpe != NULL);
        enum status status = bpe_encode(bpe, text, 61, false, false, &tokens, &count, &error);
        EXPECT_TRUE(status == STATUS_OK ||
                    (status == STATUS_UNSUPPORTED &&
                     strstr(error.message, "cannot split the text: match limit") != NULL));
        EXPECT_TRUE(i > 0 || status == STATUS_UNSUPPORTED);
        free(tokens);
        bpe_free(bpe);
    }
}

C_TEST(byte_level, white_space_is_that_of_unicode) {
    /* Within a class and outside: U+0085 is white space, U+180E is not. */
    static const char *const expressions[] = {SPLIT("\\\\s+"), SPLIT("[\\\\s]+"), SPLIT("\\\\S+")};
    for (size_t i = 0; i < 3; i++) {
        struct bpe *bpe = parse(expressions[i]);
        ASSERT_TRUE(bpe != NULL);
        EXPECT_ENCODING(bpe,
                        "bab\xc2\x85\xe1\xa0\x8e"
                        "bab",
                        false, false, 258, 0xc2, 0x85, 0xe1, 0xa0, 0x8e, 'b', 256);
        bpe_free(bpe);
    }
}

/* ---- Refusals ---- */

struct bad_case {
    const char *settings, *pieces, *added;
    enum status status;
    const char *message; /* part of the line */
};

#define SEQUENCE(parts) "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" parts "]}"
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define DIGITS "{\"type\":\"Digits\"}"
#define TEMPLATE(single, tokens)                                               \
    "\"pre_tokenizer\":" BYTES                                                 \
    ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[" single \
    "],\"special_tokens\":{" tokens "}}"
#define SPECIAL "{\"SpecialToken\":{\"id\":\"x\"}}"

static const struct bad_case bad_cases[] = {
    {SPLIT("("), NULL, NULL, STATUS_UNSUPPORTED,
     "pre_tokenizer: the regular expression \"(\" is not valid: missing closing parenthesis"},
    {SPLIT("\\\\C"), NULL, NULL, STATUS_UNSUPPORTED, "is not valid: using \\C is disabled"},
    {SPLIT("\\\\"), NULL, NULL, STATUS_UNSUPPORTED, "\\ at end of pattern"},
    {SEQUENCE(
         "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Isolated\"}," BYTES),
     NULL, NULL, STATUS_UNSUPPORTED, "pre_tokenizer of type \"Split\" without a \"Regex\" is not"},
    {SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\"}," BYTES),
     NULL, NULL, STATUS_UNSUPPORTED, "that is not \"Isolated\", or inverted, is not supported"},
    {SEQUENCE("{\"type\":\"Whitespace\"}," BYTES), NULL, NULL, STATUS_UNSUPPORTED,
     "pre_tokenizer of type \"Whitespace\" is not supported beside byte-level BPE"},
    {SEQUENCE(BYTES "," DIGITS), NULL, NULL, STATUS_UNSUPPORTED, "\"ByteLevel\" before others"},
    {SEQUENCE(DIGITS "," DIGITS "," DIGITS "," DIGITS "," DIGITS "," DIGITS "," DIGITS "," DIGITS
                     "," BYTES),
     NULL, NULL, STATUS_UNSUPPORTED, "pre_tokenizer: has more than 8 parts"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"}", NULL, NULL, STATUS_UNSUPPORTED,
     "without \"add_prefix_space\" is not supported"},
    {"\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":" BYTES, NULL, NULL, STATUS_UNSUPPORTED,
     "normalizer of type \"NFKC\" as given is not supported"},
    {"\"decoder\":{\"type\":\"Fuse\"},\"pre_tokenizer\":" BYTES, NULL, NULL, STATUS_UNSUPPORTED,
     "decoder of type \"Fuse\" as given"},
    {"\"post_processor\":{\"type\":\"BertProcessing\"},\"pre_tokenizer\":" BYTES, NULL, NULL,
     STATUS_UNSUPPORTED, "post_processor of type \"BertProcessing\" as given"},
    {TEMPLATE(SPECIAL, ""), NULL, NULL, STATUS_BAD_FORMAT,
     "post_processor: a special token has not one id below 261"},
    {TEMPLATE(SPECIAL, "\"x\":{\"ids\":[261]}"), NULL, NULL, STATUS_BAD_FORMAT, "has not one id"},
    {TEMPLATE(SPECIAL "," SPECIAL, "\"x\":{\"ids\":[259]}"), NULL, NULL, STATUS_UNSUPPORTED,
     "several special tokens before a text"},
    {SETTINGS, "\"\u0144\":256,\"\u0120a\":257,\"\u0120\u0120\":258", NULL, STATUS_BAD_FORMAT,
     "the vocabulary lacks both as one piece"},
    {SETTINGS, NULL, "{\"id\":259,\"content\":\"<s>\",\"lstrip\":true}", STATUS_UNSUPPORTED,
     "added token \"<s>\": \"lstrip\" is true, which is not supported"},
    {SETTINGS, NULL, "{\"id\":259,\"content\":\"<s>\",\"normalized\":true}", STATUS_UNSUPPORTED,
     "added token \"<s>\": \"normalized\" is true"},
    {SETTINGS, NULL, "{\"id\":259,\"content\":\"ab\"}", STATUS_BAD_FORMAT,
     "added token \"ab\" has id 259, in the vocabulary 256"},
};

static enum status parse_any(const void *json, size_t size, struct error *error) {
    struct bpe *bpe = NULL;
    enum status status = tokenizer_json_parse(&bpe, json, size, 0, error);
    EXPECT_TRUE(status == STATUS_OK || bpe == NULL);
    bpe_free(bpe);
    return status;
}

C_TEST(byte_level, bad_files_are_refused) {
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const struct bad_case *bad = &bad_cases[i];
        char *text =
            tokenizer_testing_byte_level(bad->settings, bad->pieces != NULL ? bad->pieces : PIECES,
                                         MERGES, bad->added != NULL ? bad->added : ADDED);
        ASSERT_TRUE(text != NULL);
        expect_refusal(parse_any, text, strlen(text), bad->status, bad->message);
        free(text);
    }
}

C_TEST(byte_level, each_byte_is_a_token) {
    static const char json[] = "{\"added_tokens\":[],\"pre_tokenizer\":" BYTES
                               ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2},"
                               "\"merges\":[]}}";
    EXPECT_ERROR_CONTAINS(STATUS_UNSUPPORTED, "has no token for the byte 0x00",
                          parse_any(json, strlen(json), &error));
}
