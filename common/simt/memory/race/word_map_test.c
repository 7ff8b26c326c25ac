/* Runs of words against a table of all words. */
#include "common/simt/memory/race/word_map.h"

#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

enum { BYTES = 16384, NOBODY = 255 };

/* The lane of each word by the plain way. @return false when a word is covered in part */
static bool plain_lanes(const struct simt_footprint *f, int32_t start, uint8_t lanes[BYTES / 4]) {
    uint8_t bytes[BYTES];
    bool whole = true;
    memset(bytes, NOBODY, sizeof bytes);
    memset(lanes, NOBODY, BYTES / 4);
    for (int lane = 0; lane < 32; lane++) {
        for (uint32_t b = 0; b < f->bytes && (f->mask >> lane & 1) != 0; b++) {
            int32_t at = start + f->relative[lane] + (int32_t)b;
            uint8_t *word = &lanes[at / 4];
            bool same = *word == NOBODY || *word == lane;
            *word = same ? (uint8_t)lane : SIMT_SEVERAL_LANES;
            bytes[at] = (uint8_t)lane;
        }
    }
    for (int at = 0; at < BYTES; at++) {
        whole = whole && (lanes[at / 4] == NOBODY || bytes[at] != NOBODY);
    }
    return whole;
}

/* @return false when the map has nothing to say about the footprint */
static bool check_map(const struct simt_footprint *f, int32_t start) {
    struct simt_word_map map;
    uint8_t want[BYTES / 4];
    uint32_t words = 0, wanted = 0;
    bool whole = plain_lanes(f, start, want);
    simt_word_map_set(&map, f);
    simt_word_map_build(&map);
    for (int n = 0; n < BYTES / 4; n++) {
        wanted += want[n] != NOBODY;
    }
    if (map.run_count == 0) {
        EXPECT_TRUE(!map.whole);
        EXPECT_TRUE(!whole || wanted > SIMT_MAP_WORDS);
        return false;
    }
    EXPECT_TRUE(whole);
    for (uint32_t n = 0; n < map.run_count; n++) {
        for (uint32_t w = 0; w < map.runs[n].words; w++, words++) {
            EXPECT_INT_EQ(want[(start + map.runs[n].offset) / 4 + (int32_t)w],
                          map.lanes[SIMT_MAP_SPARE + words]);
        }
    }
    EXPECT_INT_EQ(wanted, words);
    return true;
}

C_TEST(word_map, random_footprints) {
    struct rng rng = rng_create(3);
    size_t mapped = 0, refused = 0;
    for (int round = 0; round < 20000 && !test_has_failed(); round++) {
        int32_t relative[32] = {0};
        uint32_t size = 1u << rng_below(&rng, 6);
        struct simt_footprint f = {.relative = relative, .bytes = size};
        int32_t start = (int32_t)(size * rng_below(&rng, 64)) + BYTES / 2;
        int32_t stride = (int32_t)rng_below(&rng, 4) - 1;
        bool random = rng_below(&rng, 4) == 0;
        f.mask = rng_below(&rng, 2) == 0 ? UINT32_MAX : (uint32_t)rng_u64(&rng) | 1;
        f.phase = (uint32_t)start % 4;
        for (int n = 0; n < 32; n++) {
            int32_t slot = random ? (int32_t)rng_below(&rng, 24) : n * stride;
            relative[n] = (f.mask >> n & 1) != 0 ? slot * (int32_t)size : 0;
        }
        relative[__builtin_ctz(f.mask)] = 0;
        bool is_mapped = check_map(&f, start);
        mapped += is_mapped;
        refused += !is_mapped;
    }
    EXPECT_TRUE(mapped > 5000 && refused > 2000);
}

C_TEST(word_map, lanes_that_share_an_address_are_crowded) {
    int32_t relative[32] = {0};
    struct simt_word_map map;
    struct simt_footprint f = {.relative = relative, .mask = 0x8000000f, .bytes = 4};
    relative[2] = 8;
    relative[3] = 8;
    relative[31] = 4;
    simt_word_map_set(&map, &f);
    simt_word_map_build(&map);
    EXPECT_INT_EQ(0xf, map.crowded);
    EXPECT_INT_EQ(1, map.run_count);
    EXPECT_INT_EQ(3, map.runs[0].words);
    EXPECT_INT_EQ(SIMT_SEVERAL_LANES, map.lanes[SIMT_MAP_SPARE + 0]);
    EXPECT_INT_EQ(31, map.lanes[SIMT_MAP_SPARE + 1]);
    EXPECT_INT_EQ(SIMT_SEVERAL_LANES, map.lanes[SIMT_MAP_SPARE + 2]);
}
