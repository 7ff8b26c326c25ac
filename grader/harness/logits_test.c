/* What logits differ by, where one of them is no number. */
#include "grader/harness/logits.h"

#include <math.h>

#include "common/testing/testing.h"

#define COUNT 3

static bool is_close(const float *got, const float *want) {
    struct logits_difference d = logits_difference(got, want, COUNT);
    return d.worst <= 1e-4 * d.largest;
}

C_TEST(logits, the_largest_of_each) {
    const float got[COUNT] = {1.0f, -8.0f, 0.5f}, want[COUNT] = {1.0f, -8.25f, 0.25f};
    struct logits_difference d = logits_difference(got, want, COUNT);
    EXPECT_TRUE(d.worst == 0.25 && d.largest == 8.25);
    EXPECT_TRUE(is_close(want, want) && !is_close(got, want));
}

/* In either side and in both, at each place, nothing but numbers is close. */
C_TEST(logits, no_number_is_close_to_nothing) {
    const float strange[] = {NAN, -NAN, INFINITY, -INFINITY};
    const float numbers[COUNT] = {1.0f, -8.0f, 0.5f};
    for (size_t i = 0; i < 4 * COUNT; i++) {
        float with[COUNT] = {1.0f, -8.0f, 0.5f};
        with[i % COUNT] = strange[i / COUNT];
        EXPECT_TRUE(!is_close(with, numbers));
        EXPECT_TRUE(!is_close(numbers, with));
        EXPECT_TRUE(!is_close(with, with));
    }
}
