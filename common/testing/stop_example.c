/* The program for stop_test.sh: of these four tests one passes, one stops, two are not run. */
#include "common/testing/testing.h"

C_TEST(first, runs) {
    EXPECT_TRUE(true);
}

C_TEST(first, stops) {
    TEST_STOP("nothing works without %d legs", 2);
}

C_TEST(first, is_not_run) {
    TEST_FAIL("a test ran after TEST_STOP");
}

C_TEST(second, is_not_run) {
    TEST_FAIL("a suite ran after TEST_STOP");
}
