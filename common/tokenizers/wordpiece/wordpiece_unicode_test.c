/*
 * Every code point and many random texts, against recorded hashes of the
 * Hugging Face library's ids. The vocabulary has every character alone and as
 * a continuation, so the ids tell exactly what became of each.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/testing/expectation.h"
#include "common/testing/testing.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

/* As in expectations/make_wordpiece.py. */
enum { FIRST_PIECE = 0x21, SWEEP_END = 0x32000, BLOCK = 256, BLOCKS = SWEEP_END / BLOCK };
enum { RANDOM_GROUPS = 200, RANDOM_GROUP = 100, RANDOM_LENGTH = 24, MOST_RANGES = 64 };

static bool is_surrogate(int32_t code_point) {
    return code_point >= 0xD800 && code_point < 0xE000;
}

static char *append(char *out, int32_t code_point) {
    return out + utf8proc_encode_char(code_point, (utf8proc_uint8_t *)out);
}

static struct wordpiece *build_characters(void) {
    static const char special[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    enum { LINES = 4 + 1 + 2 + 4 + 1 }; /* most bytes of "c\n##c\n" */
    char *text = malloc(sizeof special + (size_t)SWEEP_END * LINES);
    struct wordpiece *wordpiece = NULL;
    if (text == NULL) {
        TEST_FAIL("out of memory");
        return NULL;
    }
    char *out = text + sprintf(text, "%s", special);
    for (int32_t code_point = FIRST_PIECE; code_point < SWEEP_END; code_point++) {
        if (!is_surrogate(code_point)) {
            out = append(out, code_point);
            out = append(out + sprintf(out, "\n##"), code_point);
            *out++ = '\n';
        }
    }
    struct error error = {0};
    EXPECT_OK(wordpiece_parse(&wordpiece, text, (size_t)(out - text), &error));
    EXPECT_STR_EQ("", error.message);
    free(text);
    return wordpiece;
}

static uint64_t hash_text(const struct wordpiece *wordpiece, const char *text, size_t length,
                          uint64_t hash) {
    int32_t *ids = NULL;
    size_t count;
    EXPECT_OK(wordpiece_encode(wordpiece, text, length, 0, &ids, &count, NULL));
    hash = expectation_hash(hash, ids, count);
    free(ids);
    return hash;
}

/* A code point by itself, between letters, and between two marks in the wrong order. */
static uint64_t hash_code_point(const struct wordpiece *wordpiece, int32_t code_point,
                                uint64_t hash) {
    static const struct {
        const char *before, *after;
    } surroundings[] = {{"", ""}, {"a", "b"}, {"a\u302e", "\U0001d165b"}};
    for (size_t i = 0; i < sizeof surroundings / sizeof surroundings[0]; i++) {
        char text[32];
        char *out = append(text + sprintf(text, "%s", surroundings[i].before), code_point);
        out += sprintf(out, "%s", surroundings[i].after);
        hash = hash_text(wordpiece, text, (size_t)(out - text), hash);
    }
    return hash;
}

static void check_sweep(const struct wordpiece *wordpiece, int32_t first, int32_t end,
                        const char *recorded) {
    uint64_t hash = expectation_hash_start();
    for (int32_t code_point = first; code_point < end; code_point++) {
        if (!is_surrogate(code_point)) {
            hash = hash_code_point(wordpiece, code_point, hash);
        }
    }
    char what[64];
    snprintf(what, sizeof what, "U+%04X to U+%04X", (unsigned)first, (unsigned)end - 1);
    expectation_check_hash(recorded, hash, what);
}

C_TEST(wordpiece_unicode, every_code_point_equals_the_library) {
    struct wordpiece *wordpiece = build_characters();
    struct cJSON *json =
        expectation_load("common/tokenizers/wordpiece/expectations/wordpiece_unicode.json");
    ASSERT_TRUE(wordpiece != NULL && json != NULL);
    const struct cJSON *one, *blocks = cJSON_GetObjectItemCaseSensitive(json, "blocks");
    EXPECT_INT_EQ(BLOCKS, cJSON_GetArraySize(blocks));
    int32_t first = 0;
    cJSON_ArrayForEach(one, blocks) {
        check_sweep(wordpiece, first, first + BLOCK, cJSON_GetStringValue(one));
        first += BLOCK;
    }
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(json, "planes")) {
        const struct cJSON *end = cJSON_GetObjectItemCaseSensitive(one, "end");
        int32_t next = (int32_t)cJSON_GetNumberValue(end);
        check_sweep(wordpiece, first, next, expectation_string(one, "hash"));
        first = next;
    }
    EXPECT_INT_EQ(0x110000, first);
    cJSON_Delete(json);
    wordpiece_free(wordpiece);
}

/* Sebastiano Vigna's splitmix64, as the script has it. */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

struct ranges {
    int32_t first[MOST_RANGES], end[MOST_RANGES];
    size_t count;
};

static struct ranges read_ranges(const struct cJSON *json) {
    struct ranges ranges = {.count = 0};
    const struct cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(json, "ranges")) {
        if (ranges.count < MOST_RANGES) {
            ranges.first[ranges.count] = (int32_t)cJSON_GetNumberValue(cJSON_GetArrayItem(one, 0));
            ranges.end[ranges.count] = (int32_t)cJSON_GetNumberValue(cJSON_GetArrayItem(one, 1));
            ranges.count++;
        }
    }
    return ranges;
}

static uint64_t hash_random_text(const struct wordpiece *wordpiece, const struct ranges *ranges,
                                 uint64_t *state, uint64_t hash) {
    char text[4 * RANDOM_LENGTH], *out = text;
    for (uint64_t left = 1 + next_random(state) % RANDOM_LENGTH; left > 0; left--) {
        size_t range = next_random(state) % ranges->count;
        uint64_t size = (uint64_t)(ranges->end[range] - ranges->first[range]);
        out = append(out, ranges->first[range] + (int32_t)(next_random(state) % size));
    }
    return hash_text(wordpiece, text, (size_t)(out - text), hash);
}

C_TEST(wordpiece_unicode, random_texts_equal_the_library) {
    struct wordpiece *wordpiece = build_characters();
    struct cJSON *json =
        expectation_load("common/tokenizers/wordpiece/expectations/wordpiece_unicode.json");
    ASSERT_TRUE(wordpiece != NULL && json != NULL);
    struct ranges ranges = read_ranges(json);
    ASSERT_TRUE(ranges.count > 0);
    const struct cJSON *one, *groups = cJSON_GetObjectItemCaseSensitive(json, "random");
    EXPECT_INT_EQ(RANDOM_GROUPS, cJSON_GetArraySize(groups));
    uint64_t state = 2;
    size_t group = 0;
    cJSON_ArrayForEach(one, groups) {
        uint64_t hash = expectation_hash_start();
        for (int i = 0; i < RANDOM_GROUP; i++) {
            hash = hash_random_text(wordpiece, &ranges, &state, hash);
        }
        char what[64];
        snprintf(what, sizeof what, "random texts, group %zu", group++);
        expectation_check_hash(cJSON_GetStringValue(one), hash, what);
    }
    cJSON_Delete(json);
    wordpiece_free(wordpiece);
}
