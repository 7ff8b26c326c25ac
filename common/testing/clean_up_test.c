/* test_clean_up(): the function is called once after each test, also if the test returns early. */
#include "common/testing/testing.h"

/* Tests run one after the other; each checks the calls before it. */
static struct { int begun, cleaned; } count;

static void clean(void) {
    count.cleaned++;
}

__attribute__((constructor)) static void name_it(void) {
    test_clean_up(clean);
}

C_TEST(clean_up, is_called_after_a_test_that_returns_early) {
    EXPECT_INT_EQ(count.begun++, count.cleaned);
    TEST_SKIP("this test only returns early");
}

C_TEST(clean_up, is_called_after_a_test) {
    EXPECT_INT_EQ(count.begun++, count.cleaned);
}

C_TEST(clean_up, was_called_once_each_time) {
    EXPECT_INT_EQ(count.begun++, count.cleaned);
}
