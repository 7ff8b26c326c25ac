#include "common/testing/compare.h"

#include <math.h>
#include <string.h>

#include "common/testing/testing.h"

static const struct tolerance tight = {.absolute = 1e-6, .relative = 1e-6, .norm = 1e-6};

C_TEST(compare, equal_values_pass) {
    const float got[] = {1.0f, -2.0f, 0.0f};
    const double want[] = {1.0, -2.0, 0.0};
    EXPECT_TRUE(compare_f32(got, want, 3, tight).pass);
}

C_TEST(compare, names_the_worst_element) {
    const float got[] = {1.0f, 2.5f, 3.001f};
    const double want[] = {1.0, 2.0, 3.0};
    struct comparison result = compare_f32(got, want, 3, tight);
    EXPECT_TRUE(!result.pass);
    EXPECT_INT_EQ(1, result.worst);
    EXPECT_NEAR(2.5, result.got, 0.0);
    EXPECT_NEAR(2.0, result.want, 0.0);
    char text[256];
    comparison_describe(&result, 2, text, sizeof text);
    EXPECT_TRUE(strstr(text, "index [0, 1]: got 2.5, want 2,") != NULL);
}

C_TEST(compare, nan_and_infinity_fail_on_either_side) {
    const double want[] = {1.0, 1.0};
    const float nan_got[] = {1.0f, NAN};
    const float infinite_got[] = {INFINITY, 1.0f};
    const struct tolerance loose = {.absolute = INFINITY, .relative = INFINITY, .norm = INFINITY};
    EXPECT_TRUE(!compare_f32(nan_got, want, 2, loose).pass);
    EXPECT_TRUE(!compare_f32(infinite_got, want, 2, loose).pass);
    const float fine[] = {1.0f, 1.0f};
    const double nan_want[] = {NAN, 1.0};
    EXPECT_TRUE(!compare_f32(fine, nan_want, 2, loose).pass);
}

C_TEST(compare, zeros_do_not_pass_under_a_loose_absolute_bound) {
    const float got[] = {0.0f, 0.0f};
    const double want[] = {1e-3, 1e-3};
    const struct tolerance loose = {.absolute = 1e-3, .relative = 1e-5, .norm = 1e-5};
    EXPECT_TRUE(!compare_f32(got, want, 2, loose).pass);
}

C_TEST(compare, dot_tolerance_rejects_half_precision) {
    /* One fp16 rounding of the result alone is 2^-12 on average: far outside. */
    struct tolerance tolerance = tolerance_dot_f32(4096, 1.0);
    EXPECT_TRUE(tolerance.norm < 0x1p-12);
    const float got[] = {1.0f + 0x1p-11f};
    const double want[] = {1.0};
    EXPECT_TRUE(!compare_f32(got, want, 1, tolerance).pass);
}

C_TEST(compare, dot_tolerance_takes_what_two_large_products_leave) {
    /* Of rows with a deviation of 1, two products of 8.55 that cancel: off by 16 u. */
    const float a[] = {2.86f, -2.85f}, b[] = {2.99f, 3.0f};
    volatile float first = a[0] * b[0], second = a[1] * b[1];
    const float got[] = {first + second};
    const double want[] = {(double)a[0] * b[0] + (double)a[1] * b[1]};
    EXPECT_TRUE(fabs((double)got[0] - want[0]) > 15.0 * 0x1p-24);
    EXPECT_TRUE(compare_f32(got, want, 1, tolerance_dot_f32(2, sqrt(2.0))).pass);
}

C_TEST(guarded, sees_a_write_on_either_side) {
    struct guarded buffer;
    ASSERT_OK(guarded_create(&buffer, 5));
    EXPECT_TRUE(isnan(buffer.data[0]) && isnan(buffer.data[4]));
    buffer.data[4] = 1.0f;
    EXPECT_TRUE(guarded_intact(&buffer));
    float *volatile data = buffer.data;
    data[5] = 0.0f;
    EXPECT_TRUE(!guarded_intact(&buffer));
    guarded_free(&buffer);
    ASSERT_OK(guarded_create(&buffer, 0));
    data = buffer.data;
    data[-1] = 0.0f;
    EXPECT_TRUE(!guarded_intact(&buffer));
    guarded_free(&buffer);
    EXPECT_STATUS(STATUS_OVERFLOW, guarded_create(&buffer, (size_t)-1));
}
