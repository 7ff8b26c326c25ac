/* What record_test.sh looks at: a graded program of which each test's verdict is known. */
#include <stdio.h>

#include "common/testing/testing.h"
#include "grader/harness/record.h"
#include "grader/harness/speedup.h"

static void say_why(char *text, size_t size) {
    snprintf(text, size, "64 blocks");
}

static bool others_have_come(const struct least_time *least) {
    return least->ideal_ms > 0.0;
}

static void compare(double subject_ms, void (*why)(char *text, size_t size),
                    bool (*disturbed)(const struct least_time *least)) {
    const struct speedup speedup = {.lab = "04_sgemm",
                                    .subject = "labs",
                                    .measure = "kernel",
                                    .margin = 1.0,
                                    .clock = "made up",
                                    .modelled = true,
                                    .baseline_ms = 100.0,
                                    .subject_ms = subject_ms,
                                    .least = {1.0, 1.0, "the fp32 units' speed", false, false}};
    grade_record_device("a \"made up\" GPU", true);
    struct speedup explained = speedup;
    explained.why = why;
    explained.disturbed = disturbed;
    grade_record_limits(&(struct device_limits){.read = 4e12, .read_spread = 1.01});
    speedup_check(&explained, __FILE__, __LINE__);
}

C_TEST(example, passes) {
    EXPECT_TRUE(true);
}

C_TEST(example, is_fast) {
    compare(2.0, NULL, others_have_come);
}

C_TEST(example, is_slow) {
    compare(50.0, say_why, NULL);
}

C_TEST(example, is_wrong_and_slow) {
    TEST_FAIL("row 1:\n got 2");
    compare(50.0, NULL, NULL);
}

C_TEST(example, is_disturbed) {
    compare(50.0, NULL, others_have_come);
}

C_TEST(example, is_skipped) {
    TEST_SKIP("no data");
}
