#include "grader/harness/baseline_times.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/testing/testing.h"

static const char clock_name[] = "modelled for a GPU by simt";

/* Writes the file; @return its path, in @p path. */
static const char *write_times(char *path, size_t size, const char *text) {
    FILE *file = fopen(test_temporary_path("times", path, size), "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        TEST_FAIL("cannot write %s", path);
    }
    return path;
}

C_TEST(baseline_times, finds_what_was_recorded) {
    char path[1024], rest[80];
    double ms = 0.0;
    const struct speedup kernel = {
        .measure = "kernel", .clock = clock_name, .baseline_ms = 0.1 + 0.2};
    const struct speedup model = {
        .measure = "model", .clock = clock_name, .baseline_ms = 7.0, .rest_ms = 3.0};
    write_times(path, sizeof path, "");
    setenv("WARPBOOK_BASELINE_TIMES", path, 1);
    EXPECT_TRUE(baseline_times_recording());
    baseline_times_record(&kernel);
    baseline_times_record(&model);
    unsetenv("WARPBOOK_BASELINE_TIMES");
    EXPECT_TRUE(!baseline_times_recording());
    EXPECT_TRUE(baseline_times_find(path, "kernel", clock_name, &ms));
    EXPECT_TRUE(ms == kernel.baseline_ms);
    EXPECT_TRUE(baseline_times_find(path, "model", clock_name, &ms));
    EXPECT_TRUE(ms == model.baseline_ms);
    EXPECT_TRUE(baseline_times_find(path, baseline_times_of_rest("model", rest, sizeof rest),
                                    clock_name, &ms));
    EXPECT_TRUE(ms == model.rest_ms);
    EXPECT_TRUE(!baseline_times_find(path, baseline_times_of_rest("kernel", rest, sizeof rest),
                                     clock_name, &ms));
}

C_TEST(baseline_times, another_gpu_or_measure_is_not_recorded) {
    char path[1024];
    double ms = -1.0;
    write_times(path, sizeof path, "kernel\tmodelled for a GPU by simt\t2.5\n");
    EXPECT_TRUE(!baseline_times_find(path, "kernel", "modelled for another by simt", &ms));
    EXPECT_TRUE(!baseline_times_find(path, "kernel", "measured on a GPU", &ms));
    EXPECT_TRUE(!baseline_times_find(path, "kern", clock_name, &ms));
    EXPECT_TRUE(!baseline_times_find(path, "kernel_bf16", clock_name, &ms));
    EXPECT_TRUE(ms == -1.0);
}

C_TEST(baseline_times, damaged_and_missing_files_hold_nothing) {
    static const char *const damaged[] = {"",
                                          "\n",
                                          "kernel",
                                          "kernel\tmodelled for a GPU by simt",
                                          "kernel\tmodelled for a GPU by simt\t",
                                          "kernel\tmodelled for a GPU by simt\t0\n",
                                          "kernel\tmodelled for a GPU by simt\t-1\n",
                                          "kernel\tmodelled for a GPU by simt\tnan\n",
                                          "kernel\tmodelled for a GPU by simt\tinf\n",
                                          "kernel\tmodelled for a GPU by simt\tfast\n"};
    char path[1024];
    double ms = -1.0;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        write_times(path, sizeof path, damaged[i]);
        if (baseline_times_find(path, "kernel", clock_name, &ms)) {
            TEST_FAIL("case %zu holds a time: %g ms", i, ms);
        }
    }
    EXPECT_TRUE(remove(path) == 0);
    EXPECT_TRUE(!baseline_times_find(path, "kernel", clock_name, &ms));
    EXPECT_TRUE(ms == -1.0);
}
