/* The parts of a bench's command line. */
#include "common/bench/bench_program.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/testing/testing.h"

C_TEST(bench_program, reads_sizes) {
    size_t M = 0, N = 0, K = 0;
    size_t *const sizes[] = {&M, &N, &K};
    EXPECT_TRUE(bench_parse_sizes("64,48,18446744073709551615", sizes, 3));
    EXPECT_TRUE(M == 64 && N == 48 && K == SIZE_MAX);
    EXPECT_TRUE(bench_parse_sizes("7", sizes, 1));
    EXPECT_TRUE(M == 7);
}

C_TEST(bench_program, refuses_what_is_not_so_many_sizes) {
    size_t M, N;
    size_t *const sizes[] = {&M, &N};
    static const char *const bad[] = {
        "",         "64",    "64,",    ",48",    "64,48,",
        "64,48,32", "64x48", "64, 48", " 64,48", "-64,48",
        "64,+48",   "0,48",  "64,0",   "64,4.5", "64,18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_TRUE(!bench_parse_sizes(bad[i], sizes, 2));
    }
}

static const char *name_of(size_t i) {
    static const char *const names[] = {"v1_naive", "v2_tile"};
    return i < 2 ? names[i] : NULL;
}

C_TEST(bench_program, names_the_steps_there_are) {
    struct error error = {0};
    ASSERT_OK(bench_program_check_step("v2_tile", name_of, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bench_program_check_step("v2", name_of, &error));
    EXPECT_STR_EQ("--step 'v2': unknown step; choose one of v1_naive v2_tile", error.message);
}

C_TEST(bench_program, wants_from_1_to_1024_threads) {
    struct error error = {0};
    EXPECT_OK(bench_program_check_threads(1, &error));
    EXPECT_OK(bench_program_check_threads(1024, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bench_program_check_threads(0, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bench_program_check_threads(1025, &error));
    EXPECT_STR_EQ("--threads 1025: from 1 to 1024", error.message);
}

static enum status count_check(void *setup, struct error *error) {
    int *calls = setup;
    (void)error;
    return ++calls[0] == 0 ? STATUS_IO : STATUS_OK;
}

static enum status count_run(void *setup, struct error *error) {
    int *calls = setup;
    calls[1]++;
    return calls[0] > 1 ? error_set(error, STATUS_IO, "the second run fails") : STATUS_OK;
}

C_TEST(bench_program, checks_then_runs) {
    int calls[2] = {0};
    char bench[] = "bench", more[] = "more", help[] = "--help", xray[] = "--xray=page.html";
    char *alone[] = {bench, NULL}, *strange[] = {bench, more, NULL},
         *asking[] = {bench, help, NULL}, *not_on_simt[] = {bench, xray, NULL};
    const struct flags flags = {.program = "bench", .positional = "", .summary = "counts"};
    const struct bench_program program = {.flags = &flags, .check = count_check, .run = count_run};
    setenv("PATH", "/no/such/folder", 1); /* no simt and no ncu: no page */
    setenv("CUDA_HOME", "/no/such/folder", 1);
    EXPECT_TRUE(bench_program_main(&program, 2, strange, calls) == 1);
    EXPECT_TRUE(bench_program_main(&program, 2, asking, calls) == 0);
    EXPECT_TRUE(bench_program_main(&program, 2, not_on_simt, calls) == 1);
    EXPECT_TRUE(calls[0] == 0 && calls[1] == 0);
    EXPECT_TRUE(bench_program_main(&program, 1, alone, calls) == 0);
    EXPECT_TRUE(calls[0] == 1 && calls[1] == 1);
    EXPECT_TRUE(bench_program_main(&program, 1, alone, calls) == 1);
    calls[0] = -1; /* the check fails */
    EXPECT_TRUE(bench_program_main(&program, 1, alone, calls) == 1);
    EXPECT_TRUE(calls[1] == 2);
}
