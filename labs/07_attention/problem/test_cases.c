#include "labs/07_attention/problem/test_cases.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct attention_spec empty[] = {
    {.B = 0, .T = 3, .S = 3, .NH = 1, .KVH = 1, .HS = 8},
    {.B = 1, .T = 0, .S = 3, .NH = 1, .KVH = 1, .HS = 8},
    {.B = 2, .T = 9, .S = 0, .NH = 2, .KVH = 1, .HS = 8},
    {.B = 1, .T = 3, .S = 3, .NH = 0, .KVH = 0, .HS = 8},
    {.B = 1, .T = 3, .S = 3, .NH = 1, .KVH = 1, .HS = 0},
};

static const struct attention_spec causal[] = {
    {.B = 1, .T = 2, .S = 2, .NH = 1, .KVH = 1, .HS = 8, .causal = true},
    {.B = 1, .T = 5, .S = 5, .NH = 1, .KVH = 1, .HS = 16, .causal = true},
    {.B = 2, .T = 70, .S = 70, .NH = 1, .KVH = 1, .HS = 64, .causal = true},
    {.B = 1, .T = 37, .S = 140, .NH = 1, .KVH = 1, .HS = 40, .causal = true},
    {.B = 1, .T = 133, .S = 197, .NH = 1, .KVH = 1, .HS = 24, .causal = true},
    {.B = 1, .T = 1, .S = 77, .NH = 2, .KVH = 1, .HS = 96, .causal = true},
};

static const struct attention_spec grouped_heads[] = {
    {.B = 2, .T = 9, .S = 11, .NH = 6, .KVH = 2, .HS = 16},
    {.B = 1, .T = 33, .S = 33, .NH = 4, .KVH = 1, .HS = 32, .causal = true},
};

static const struct attention_spec masks[] = {
    {.B = 3, .T = 20, .S = 90, .NH = 1, .KVH = 1, .HS = 64, .mask = MASK_PADDING},
    {.B = 2, .T = 66, .S = 130, .NH = 1, .KVH = 1, .HS = 32, .mask = MASK_RANDOM},
    {.B = 2, .T = 19, .S = 300, .NH = 1, .KVH = 1, .HS = 16, .mask = MASK_BLOCKS},
    {.B = 2, .T = 19, .S = 70, .NH = 2, .KVH = 1, .HS = 80, .mask = MASK_ALL},
    {.B = 2, .T = 3, .S = 70, .NH = 1, .KVH = 1, .HS = 64, .mask = MASK_RANDOM},
    {.B = 2, .T = 70, .S = 70, .NH = 1, .KVH = 1, .HS = 24, .mask = MASK_RANDOM, .causal = true},
};

static const int32_t texts_of_one[] = {0, 1, 2, 3}, mixed[] = {0, 40, 41, 175, 175, 240};
static const int32_t single[] = {0, 67}, none[] = {0, 0, 0};

static const struct attention_spec packed[] = {
    {.B = 3, .NH = 2, .KVH = 2, .HS = 16, .starts = texts_of_one},
    {.B = 5, .NH = 2, .KVH = 2, .HS = 64, .starts = mixed, .layout = LAYOUT_JOINED},
    {.B = 5, .NH = 2, .KVH = 1, .HS = 32, .starts = mixed, .causal = true},
    {.B = 1, .NH = 1, .KVH = 1, .HS = 64, .starts = single, .layout = LAYOUT_ODD},
    {.B = 2, .NH = 1, .KVH = 1, .HS = 8, .starts = none},
};

static const struct attention_spec layouts[] = {
    {.B = 2, .T = 21, .S = 21, .NH = 2, .KVH = 2, .HS = 32, .layout = LAYOUT_JOINED},
    {.B = 2, .T = 18, .S = 29, .NH = 2, .KVH = 2, .HS = 64, .layout = LAYOUT_ODD},
    {.B = 2, .T = 9, .S = 9, .NH = 2, .KVH = 2, .HS = 13, .layout = LAYOUT_JOINED},
    {.B = 1, .T = 9, .S = 29, .NH = 1, .KVH = 1, .HS = 128, .layout = LAYOUT_ODD},
};

static const struct attention_spec large_scores[] = {
    {.B = 1, .T = 20, .S = 80, .NH = 1, .KVH = 1, .HS = 64, .loudness = 300.0f},
    {.B = 1, .T = 20, .S = 80, .NH = 1, .KVH = 1, .HS = 16, .loudness = 300.0f, .causal = true},
};

static const int32_t long_texts[] = {0, 512, 513, 700, 1211, 1211, 1300};

static const struct attention_spec large_sizes[] = {
    {.B = 4, .T = 509, .S = 521, .NH = 12, .KVH = 4, .HS = 64, .mask = MASK_RANDOM},
    {.B = 3, .T = 700, .S = 1031, .NH = 16, .KVH = 2, .HS = 128, .causal = true},
    {.B = 6, .NH = 24, .KVH = 24, .HS = 64, .starts = long_texts, .layout = LAYOUT_JOINED},
    {.B = 6, .NH = 24, .KVH = 6, .HS = 128, .starts = long_texts, .causal = true},
};

const struct attention_spec *attention_list(enum attention_topic topic, size_t *count) {
    static const struct {
        const struct attention_spec *list;
        size_t count;
    } lists[TOPICS] = {
        [TOPIC_EMPTY] = {empty, COUNT(empty)},
        [TOPIC_CAUSAL] = {causal, COUNT(causal)},
        [TOPIC_GROUPED_HEADS] = {grouped_heads, COUNT(grouped_heads)},
        [TOPIC_MASKS] = {masks, COUNT(masks)},
        [TOPIC_PACKED] = {packed, COUNT(packed)},
        [TOPIC_LAYOUTS] = {layouts, COUNT(layouts)},
        [TOPIC_LARGE_SCORES] = {large_scores, COUNT(large_scores)},
        [TOPIC_LARGE_SIZES] = {large_sizes, COUNT(large_sizes)},
    };
    *count = lists[topic].count;
    return lists[topic].list;
}
