/* Races inside a warp: who wrote what since the lanes met. */
#include "common/simt/memory/lane_shadow.h"
#include "common/testing/testing.h"

enum { EVEN = 0x55555555 };

/* Offsets of lanes that are `step` bytes apart. */
static void spread(int32_t relative[32], int32_t step) {
    for (int32_t lane = 0; lane < 32; lane++) {
        relative[lane] = lane * step;
    }
}

C_TEST(lane_shadow, another_lane_reads_only_after_a_meeting) {
    struct simt_lane_shadow *shadow;
    int32_t own[32], next[32];
    uint32_t writer = 99;
    ASSERT_OK(simt_lane_shadow_create(&shadow, 1024, 2));
    spread(own, 4);
    spread(next, 4);
    next[7] = 32;
    simt_lane_shadow_write(shadow, 1, 128, own, UINT32_MAX, 4, true);
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 1, 128, own, UINT32_MAX, 4, &writer));
    EXPECT_INT_EQ(7, simt_lane_shadow_read(shadow, 1, 128, next, UINT32_MAX, 4, &writer));
    EXPECT_INT_EQ(8, writer);
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 1, 128, next, EVEN, 4, &writer));
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 0, 128, next, UINT32_MAX, 4, &writer));
    simt_lane_shadow_meet(shadow, 0);
    EXPECT_INT_EQ(7, simt_lane_shadow_read(shadow, 1, 128, next, UINT32_MAX, 4, &writer));
    simt_lane_shadow_meet(shadow, 1);
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 1, 128, next, UINT32_MAX, 4, &writer));
    simt_lane_shadow_write(shadow, 1, 0, own, 1, 4, true);
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 1, 128, next, UINT32_MAX, 4, &writer));
    simt_lane_shadow_free(shadow);
}

C_TEST(lane_shadow, every_word_of_a_vector_counts) {
    struct simt_lane_shadow *shadow;
    int32_t vectors[32], words[32];
    uint32_t writer = 99;
    ASSERT_OK(simt_lane_shadow_create(&shadow, 1024, 1));
    spread(vectors, 16);
    spread(words, 4);
    simt_lane_shadow_write(shadow, 0, 0, vectors, UINT32_MAX, 16, true);
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 0, 12, vectors, UINT32_MAX, 4, &writer));
    EXPECT_INT_EQ(1, simt_lane_shadow_read(shadow, 0, 0, words, UINT32_MAX, 4, &writer));
    EXPECT_INT_EQ(0, writer);
    simt_lane_shadow_meet_all(shadow);
    EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 0, 0, words, UINT32_MAX, 4, &writer));
    simt_lane_shadow_free(shadow);
}

C_TEST(lane_shadow, bytes_and_words_of_several_lanes_are_not_watched) {
    struct simt_lane_shadow *shadow;
    int32_t words[32], bytes[32], same[32] = {0};
    uint32_t writer;
    ASSERT_OK(simt_lane_shadow_create(&shadow, 256, 1));
    spread(words, 4);
    spread(bytes, 1);
    simt_lane_shadow_write(shadow, 0, 0, words, UINT32_MAX, 4, true);
    simt_lane_shadow_write(shadow, 0, 0, bytes, UINT32_MAX, 1, true);
    simt_lane_shadow_write(shadow, 0, 32, same, UINT32_MAX, 4, false);
    for (size_t offset = 0; offset < 36; offset += 4) {
        EXPECT_INT_EQ(-1, simt_lane_shadow_read(shadow, 0, offset, same, UINT32_MAX, 4, &writer));
    }
    EXPECT_INT_EQ(0, simt_lane_shadow_read(shadow, 0, 36, same, UINT32_MAX, 4, &writer));
    EXPECT_INT_EQ(9, writer);
    simt_lane_shadow_free(shadow);
}
