/* One summary of a failed run, and faults of simt that are told once. */
#include "grader/harness/summary.h"

#include <string.h>

#include "common/testing/testing.h"

static const char FAULT[] = "out of bounds: thread (1,0,0) of block (0,0,0) reads 4 bytes at 0x20\n"
                            "  in kernel f(int*) at a.cu:3\n"
                            "  called at a.cu:9\n"
                            "  hint: check the index\n";

static bool find(const char *output, struct grade_fault *fault) {
    return grade_summary_fault(output, strlen(output), fault);
}

C_TEST(summary, tells_a_fault_once) {
    char output[1000];
    struct grade_fault fault;
    EXPECT_TRUE(!find("", &fault));
    EXPECT_TRUE(!find("a note\n  in kernels\n", &fault));
    snprintf(output, sizeof output, "a note\n%san illegal memory access\n", FAULT);
    EXPECT_TRUE(find(output, &fault));
    EXPECT_INT_EQ(strlen(FAULT), fault.size);
    EXPECT_TRUE(memcmp(FAULT, fault.text, fault.size) == 0);
    EXPECT_TRUE(!fault.again);
    EXPECT_TRUE(!fault.endless);
    memcpy(strstr(output, "(1,0,0)"), "(7,0,0)", 7); /* another thread at the same line */
    EXPECT_TRUE(find(output, &fault));
    EXPECT_TRUE(fault.again);
    strcpy(strstr(output, "a.cu:3"), "a.cu:5");
    EXPECT_TRUE(find(output, &fault));
    EXPECT_TRUE(!fault.again);
    EXPECT_TRUE(find("endless loop: thread\n  in kernel f at a.cu:3", &fault));
    EXPECT_TRUE(fault.endless && !fault.again);
}

C_TEST(summary, last_case_that_passed_and_first_that_failed) {
    char text[4096];
    FILE *stream = fmemopen(text, sizeof text, "w");
    grade_summary_print(stream);
    EXPECT_INT_EQ(0, ftell(stream));
    grade_summary_case("shape 1", false);
    grade_summary_case("", false);
    grade_summary_test("small", NULL);
    grade_summary_case("shape 2", false);
    grade_summary_case("shape 3", false);
    grade_summary_case("", false);
    grade_summary_case("shape 3", false); /* a second call of the same case */
    grade_summary_test("large", "shape 3: \033[2J wrong");
    grade_summary_case("shape 4", false);
    grade_summary_test("odd", "shape 4: wrong, too");
    grade_summary_print(stream);
    fclose(stream);
    EXPECT_STR_CONTAINS("summary: 2 of 3 tests failed, the first of them is large\n", text);
    EXPECT_STR_CONTAINS("passed before it:\n    shape 2\n", text);
    EXPECT_STR_CONTAINS("first case that failed:\n    shape 3\n", text);
    EXPECT_STR_CONTAINS("first message:\n    shape 3: ?[2J wrong\n", text);
    EXPECT_TRUE(strstr(text, "shape 4") == NULL);
}
