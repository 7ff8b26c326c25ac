/**
 * @file occurrences_test.c
 * @brief Which rows have which id: a case worked by hand, and what must hold for random ids.
 */
#include "common/train/occurrences.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

static void expect_ints(const char *what, const int32_t *want, const int32_t *got, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (want[i] != got[i]) {
            TEST_FAIL("%s[%zu]: want %d, got %d", what, i, want[i], got[i]);
            return;
        }
    }
}

C_TEST(occurrences, worked_by_hand) {
    const int32_t ids[] = {3, 0, 3, 5, 0, 3};
    int32_t block[4 * 6 + 2], counts[6];
    struct train_occurrences o;
    ASSERT_OK(train_occurrences_build(&o, block, counts, ids, 6, 6, NULL));
    EXPECT_INT_EQ(6, o.count);
    EXPECT_INT_EQ(3, o.piece_count);
    EXPECT_INT_EQ(3, o.id_count);
    EXPECT_INT_EQ(6 + 4 + 4 + 3, train_occurrences_used(&o));
    expect_ints("rows", (const int32_t[]){1, 4, 0, 2, 5, 3}, o.rows, 6);
    expect_ints("pieces", (const int32_t[]){0, 2, 5, 6}, o.pieces, 4);
    expect_ints("firsts", (const int32_t[]){0, 1, 2, 3}, o.firsts, 4);
    expect_ints("ids", (const int32_t[]){0, 3, 5}, o.ids, 3);
}

C_TEST(occurrences, an_id_of_many_rows_is_cut_into_pieces) {
    enum { COUNT = 2 * TRAIN_PIECE + 2 };
    int32_t ids[COUNT], block[4 * COUNT + 2], counts[2];
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = i != 7; /* row 7 has id 0, the others 1: two whole pieces and one row */
    }
    struct train_occurrences o;
    ASSERT_OK(train_occurrences_build(&o, block, counts, ids, COUNT, 2, NULL));
    EXPECT_INT_EQ(4, o.piece_count);
    expect_ints("pieces", (const int32_t[]){0, 1, 65, 129, 130}, o.pieces, 5);
    expect_ints("firsts", (const int32_t[]){0, 1, 4}, o.firsts, 3);
    EXPECT_INT_EQ(7, o.rows[0]);
    EXPECT_INT_EQ(0, o.rows[1]);
    EXPECT_INT_EQ(8, o.rows[8]);
}

C_TEST(occurrences, no_rows) {
    int32_t block[2], counts[3];
    struct train_occurrences o;
    ASSERT_OK(train_occurrences_build(&o, block, counts, NULL, 0, 3, NULL));
    EXPECT_INT_EQ(0, o.count);
    EXPECT_INT_EQ(0, o.piece_count);
    EXPECT_INT_EQ(0, o.id_count);
    EXPECT_INT_EQ(2, train_occurrences_used(&o));
    EXPECT_INT_EQ(0, o.pieces[0]);
    EXPECT_INT_EQ(0, o.firsts[0]);
}

C_TEST(occurrences, says_which_id_is_out_of_range) {
    int32_t block[10], counts[5];
    struct train_occurrences o;
    const int32_t large[] = {1, 5}, negative[] = {-1, 7};
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "row 1 has id 5, but the table has rows 0 to below 5",
                 train_occurrences_build(&o, block, counts, large, 2, 5, &error));
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "row 0 has id -1, but the table has rows 0 to below 5",
                 train_occurrences_build(&o, block, counts, negative, 2, 5, &error));
    EXPECT_INT_EQ(0, o.count);
}

C_TEST(occurrences, sizes_that_overflow) {
    EXPECT_INT_EQ(2, train_occurrences_most(0));
    EXPECT_INT_EQ(42, train_occurrences_most(10));
    EXPECT_TRUE(train_occurrences_most(SIZE_MAX / 4 + 1) == SIZE_MAX);
    EXPECT_TRUE(train_occurrences_most(SIZE_MAX / 2) == SIZE_MAX);
}

/* One id's rows are all there are of it, rising, in pieces that are full but for the last. */
static void check_id(const struct train_occurrences *o, size_t i, const int32_t *ids) {
    for (int32_t piece = o->firsts[i]; piece < o->firsts[i + 1]; piece++) {
        int32_t length = o->pieces[piece + 1] - o->pieces[piece];
        EXPECT_TRUE(length > 0 && length <= TRAIN_PIECE);
        EXPECT_TRUE(length == TRAIN_PIECE || piece + 1 == o->firsts[i + 1]);
    }
    int32_t last = -1;
    for (int32_t at = o->pieces[o->firsts[i]]; at < o->pieces[o->firsts[i + 1]]; at++) {
        EXPECT_INT_EQ(o->ids[i], ids[o->rows[at]]);
        EXPECT_TRUE(o->rows[at] > last);
        last = o->rows[at];
    }
}

static void check_random(size_t count, size_t V, bool all_the_same) {
    struct rng rng = rng_create(count * 31 + V);
    size_t most = train_occurrences_most(count);
    int32_t *ids = calloc(count + 1, sizeof *ids), *counts = calloc(V, sizeof *counts);
    int32_t *block = calloc(most, sizeof *block), *copy = calloc(most, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        ids[i] = all_the_same ? (int32_t)V - 1 : (int32_t)rng_below(&rng, V);
    }
    struct train_occurrences built;
    ASSERT_OK(train_occurrences_build(&built, block, counts, ids, count, V, NULL));
    EXPECT_TRUE(train_occurrences_used(&built) <= most);
    memcpy(copy, block, train_occurrences_used(&built) * sizeof *copy);
    struct train_occurrences o = train_occurrences_at(&built, copy);
    EXPECT_INT_EQ(count, o.pieces[o.piece_count]);
    EXPECT_INT_EQ(o.piece_count, o.firsts[o.id_count]);
    for (size_t i = 0; i < o.id_count; i++) {
        EXPECT_TRUE(i == 0 || o.ids[i] > o.ids[i - 1]);
        check_id(&o, i, ids);
    }
    free(ids);
    free(counts);
    free(block);
    free(copy);
}

C_TEST(occurrences, random_ids) {
    check_random(1, 1, false);
    check_random(63, 9, false);
    check_random(1000, 3, false);
    check_random(257, 500, false);
    check_random(TRAIN_PIECE, 4, true);
    check_random(TRAIN_PIECE + 1, 4, true);
    check_random(20, 20, false);
}
