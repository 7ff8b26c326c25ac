/* test_clean_up(): what is named is called once behind each test, also when the test leaves early.
 */
#include "common/testing/testing.h"

/* Tests come one after the other; each looks at what happened before it. */
static struct { int begun, cleaned; } count;

static void clean(void) {
    count.cleaned++;
}

__attribute__((constructor)) static void name_it(void) {
    test_clean_up(clean);
}

C_TEST(clean_up, comes_behind_a_test_that_returns_early) {
    EXPECT_INT_EQ(count.begun++, count.cleaned);
    TEST_SKIP("this test is there to be left early");
}

C_TEST(clean_up, comes_behind_a_test) {
    EXPECT_INT_EQ(count.begun++, count.cleaned);
}

C_TEST(clean_up, came_once_each_time) {
    EXPECT_INT_EQ(count.begun++, count.cleaned);
}
