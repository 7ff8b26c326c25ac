#include "common/base/arena.h"

#include <stdint.h>

#include "common/base/checked.h"
#include "common/testing/testing.h"

C_TEST(arena, memory_is_aligned_zero_and_disjoint) {
    struct arena arena;
    ASSERT_OK(arena_create(&arena, 3 * ARENA_ALIGNMENT));
    EXPECT_INT_EQ(3 * ARENA_ALIGNMENT, arena.size);
    unsigned char *first = arena_alloc(&arena, 1, 1);
    unsigned char *second = arena_alloc(&arena, 16, 4);
    ASSERT_TRUE(first != NULL && second != NULL);
    EXPECT_INT_EQ(0, (uintptr_t)first % ARENA_ALIGNMENT);
    EXPECT_INT_EQ(ARENA_ALIGNMENT, second - first);
    EXPECT_INT_EQ(2 * ARENA_ALIGNMENT, arena.used);
    for (size_t i = 0; i < arena.size; i++) {
        EXPECT_INT_EQ(0, arena.base[i]);
    }
    arena_free(&arena);
}

C_TEST(arena, what_does_not_fit_is_refused_and_changes_nothing) {
    struct arena arena;
    ASSERT_OK(arena_create(&arena, 2 * ARENA_ALIGNMENT));
    EXPECT_TRUE(arena_alloc(&arena, 2 * ARENA_ALIGNMENT + 1, 1) == NULL);
    EXPECT_INT_EQ(0, arena.used);
    EXPECT_TRUE(arena_alloc(&arena, 2 * ARENA_ALIGNMENT, 1) != NULL);
    EXPECT_TRUE(arena_alloc(&arena, 1, 1) == NULL);
    EXPECT_INT_EQ(arena.size, arena.used);
    arena_free(&arena);
}

C_TEST(arena, sizes_that_overflow_are_refused) {
    struct arena arena;
    ASSERT_OK(arena_create(&arena, ARENA_ALIGNMENT));
    EXPECT_TRUE(arena_alloc(&arena, SIZE_MAX / 2 + 2, 2) == NULL); /* would wrap to 2 */
    EXPECT_TRUE(arena_alloc(&arena, SIZE_MAX, 1) == NULL);         /* padding would wrap */
    EXPECT_INT_EQ(0, arena.used);
    arena_free(&arena);
    EXPECT_STATUS(STATUS_OVERFLOW, arena_create(&arena, SIZE_MAX - 1));
    EXPECT_TRUE(arena.base == NULL);
    arena_free(&arena);
}

C_TEST(arena, footprints_add_up_to_what_is_needed) {
    EXPECT_INT_EQ(0, arena_footprint(0, 4));
    EXPECT_INT_EQ(ARENA_ALIGNMENT, arena_footprint(1, 1));
    EXPECT_INT_EQ(ARENA_ALIGNMENT, arena_footprint(16, 4));
    EXPECT_INT_EQ(2 * ARENA_ALIGNMENT, arena_footprint(17, 4));
    EXPECT_TRUE(arena_footprint(SIZE_MAX / 4 + 1, 4) == SIZE_MAX);

    struct arena arena;
    ASSERT_OK(arena_create(&arena, arena_footprint(17, 4) + arena_footprint(3, 8)));
    EXPECT_TRUE(arena_alloc(&arena, 17, 4) != NULL);
    EXPECT_TRUE(arena_alloc(&arena, 3, 8) != NULL);
    EXPECT_INT_EQ(arena.size, arena.used);
    arena_free(&arena);
}

C_TEST(arena, an_empty_one_works_and_may_be_freed_twice) {
    struct arena arena;
    ASSERT_OK(arena_create(&arena, 0));
    EXPECT_TRUE(arena_alloc(&arena, 1, 1) == NULL);
    arena_free(&arena);
    arena_free(&arena);
    EXPECT_TRUE(arena.base == NULL);
}

C_TEST(checked, sums_and_products_report_overflow) {
    size_t out = 0;
    EXPECT_TRUE(checked_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    EXPECT_TRUE(!checked_add(SIZE_MAX, 1, &out));
    EXPECT_TRUE(checked_multiply(SIZE_MAX / 2, 2, &out) && out == SIZE_MAX - 1);
    EXPECT_TRUE(!checked_multiply(SIZE_MAX / 2 + 1, 2, &out));
    EXPECT_TRUE(checked_multiply(0, SIZE_MAX, &out) && out == 0);
}

C_TEST(checked, ceil_div_rounds_up_without_overflow) {
    EXPECT_INT_EQ(0, ceil_div(0, 8));
    EXPECT_INT_EQ(1, ceil_div(8, 8));
    EXPECT_INT_EQ(2, ceil_div(9, 8));
    EXPECT_TRUE(ceil_div(SIZE_MAX, 2) == SIZE_MAX / 2 + 1);
}
