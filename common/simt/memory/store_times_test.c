#include "common/simt/memory/store_times.h"

#include "common/testing/fixture.h"
#include "common/testing/testing.h"

enum { ME = 7, OTHER = 8, THIRD = 9, PAGE = 1024 };

static const uint64_t BASE = (uint64_t)0x7000 << 20;

#define TIMES_TEST(name)                                          \
    FIXTURE_TEST(store_times, name, struct simt_store_times *, t, \
                 (*(t) = simt_store_times_create()) != NULL, simt_store_times_free(*(t)))

static void store(struct simt_store_times *t, uint64_t address, size_t bytes, uint64_t cycles,
                  uint64_t block) {
    simt_store_times_note(t, address, bytes,
                          &(struct simt_store_time){.cycles = cycles, .block = block});
}

static uint64_t latest(struct simt_store_times *t, uint64_t address, size_t bytes) {
    return simt_store_times_latest(t, address, bytes, ME);
}

TIMES_TEST(words_have_times_of_their_own) {
    store(*t, BASE + 8, 4, 100, OTHER);
    EXPECT_INT_EQ(100, latest(*t, BASE + 8, 4));
    EXPECT_INT_EQ(0, latest(*t, BASE + 4, 4));
    EXPECT_INT_EQ(0, latest(*t, BASE + 12, 4));
    EXPECT_INT_EQ(0, latest(*t, BASE + 8 + ((uint64_t)1 << 32), 4));
    EXPECT_INT_EQ(100, latest(*t, BASE, 16));
    EXPECT_INT_EQ(100, latest(*t, BASE + 11, 1));
}

/* A store once more does not make it look older, whoever makes it. */
TIMES_TEST(the_latest_store_counts) {
    store(*t, BASE, 4, 100, OTHER);
    store(*t, BASE, 4, 50, THIRD);
    EXPECT_INT_EQ(100, latest(*t, BASE, 4));
    store(*t, BASE, 4, 300, THIRD);
    EXPECT_INT_EQ(300, latest(*t, BASE, 4));
}

TIMES_TEST(nobody_waits_for_himself) {
    store(*t, BASE, 4, 100, ME);
    EXPECT_INT_EQ(0, latest(*t, BASE, 4));
    store(*t, BASE + 4, 4, 60, OTHER);
    EXPECT_INT_EQ(60, latest(*t, BASE, 8));
}

TIMES_TEST(ranges_cross_pages) {
    store(*t, BASE + PAGE - 8, 3 * PAGE, 100, OTHER);
    EXPECT_INT_EQ(0, latest(*t, BASE + PAGE - 12, 4));
    EXPECT_INT_EQ(100, latest(*t, BASE + PAGE - 8, 4));
    EXPECT_INT_EQ(100, latest(*t, BASE + 2 * PAGE, 4));
    EXPECT_INT_EQ(100, latest(*t, BASE + 4 * PAGE - 12, 4));
    EXPECT_INT_EQ(0, latest(*t, BASE + 4 * PAGE - 8, PAGE));
}

TIMES_TEST(all_is_forgotten) {
    for (int n = 0; n < 100; n++) {
        store(*t, BASE + (uint64_t)n * PAGE, 4, 100, OTHER);
    }
    simt_store_times_clear(*t);
    for (int n = 0; n < 100; n++) {
        EXPECT_INT_EQ(0, latest(*t, BASE + (uint64_t)n * PAGE, 4));
    }
}

/* With more words than there is room for, a time may be too late: no word is free of charge. */
TIMES_TEST(memory_is_bounded) {
    enum { PAGES = 40000 };
    for (int n = 0; n < PAGES; n++) {
        store(*t, BASE + (uint64_t)n * PAGE, 4, 100 + (uint64_t)n, OTHER);
    }
    for (int n = 0; n < PAGES; n++) {
        uint64_t found = latest(*t, BASE + (uint64_t)n * PAGE, 4);
        if (found < 100 + (uint64_t)n) {
            TEST_FAIL("word %d was stored at %d, not at %llu", n, 100 + n,
                      (unsigned long long)found);
            return;
        }
    }
}
