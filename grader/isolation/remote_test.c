/* The grader's side of the channel, with a worker that behaves well or badly on request. */
#include "grader/isolation/remote.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/testing/testing.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/message.h"
#include "grader/isolation/test_calls.h"

const struct remote_program remote_program = {
    {"remote_test_worker", "remote_test_baseline"}, REMOTE_NO_GPU, NULL};

/* Calls a function with a number. */
static enum status call(const char *name, int *number, struct error *error) {
    struct test_call c = {.number = *number};
    enum status status = remote_call(name, &c, sizeof c, error);
    *number = c.number;
    return status;
}

/* The call must fail with a line in which TEXT stands. */
static void expect_line(const char *name, int number, enum status want, const char *text) {
    struct error error = {0};
    EXPECT_STATUS(want, call(name, &number, &error));
    if (strstr(error.message, text) == NULL) {
        TEST_FAIL("%s: '%s' is not in '%s'", name, text, error.message);
    }
}

static int step(void) {
    int number = 5;
    EXPECT_OK(call("add", &number, NULL));
    return number - 5;
}

C_TEST(remote, arguments_go_and_come_back) {
    remote_close();
    EXPECT_TRUE(!remote_alive());
    EXPECT_INT_EQ(1, step());
    EXPECT_TRUE(remote_alive());
}

C_TEST(remote, a_status_comes_with_its_line) {
    remote_close();
    expect_line("refuse", 7, STATUS_OVERFLOW, "7 is too large");
    EXPECT_INT_EQ(1, step());
}

C_TEST(remote, names_and_sizes_are_checked) {
    unsigned char many[MESSAGE_BYTES + 1] = {0};
    struct error error = {0};
    remote_close();
    expect_line("missing", 0, STATUS_MISMATCH, "the worker has no missing that takes 16 bytes");
    EXPECT_STATUS(STATUS_MISMATCH, remote_call("add", many, 8, &error));
    EXPECT_STR_EQ("the worker has no add that takes 8 bytes", error.message);
    EXPECT_STATUS(STATUS_MISMATCH, remote_call("add", many, MESSAGE_BYTES, &error));
    EXPECT_STATUS(STATUS_TOO_LONG, remote_call("add", many, sizeof many, &error));
    EXPECT_STR_EQ("add: arguments of 3073 bytes do not fit", error.message);
    EXPECT_INT_EQ(1, step());
}

C_TEST(remote, each_side_has_its_process) {
    int number = 0;
    remote_close();
    EXPECT_OK(call("count", &number, NULL));
    EXPECT_OK(call("count", &number, NULL));
    EXPECT_INT_EQ(2, number);
    remote_use(REMOTE_BASELINE);
    EXPECT_INT_EQ(100, step());
    EXPECT_OK(call("count", &number, NULL));
    EXPECT_INT_EQ(1, number);
    expect_line("crash", 0, STATUS_INTERRUPTED, "the baseline crashed (SIGSEGV");
    remote_use(REMOTE_SUBJECT);
    EXPECT_INT_EQ(1, step());
    EXPECT_OK(call("count", &number, NULL));
    EXPECT_INT_EQ(3, number);
}

C_TEST(remote, a_fresh_process_has_no_state) {
    int number = 0;
    for (int i = 0; i < 2; i++) {
        remote_close();
        EXPECT_OK(call("count", &number, NULL));
        EXPECT_INT_EQ(1, number);
    }
}

C_TEST(remote, a_crash_is_described_and_stays) {
    remote_close();
    grader_watch("shape M=1", 20);
    expect_line("crash", 0, STATUS_INTERRUPTED,
                "your code crashed (SIGSEGV: it touched memory that is not there, or its stack was "
                "full), in: shape M=1");
    grader_watch("", 0);
    EXPECT_TRUE(!remote_alive());
    expect_line("add", 0, STATUS_INTERRUPTED, "your code crashed (SIGSEGV");
    remote_close();
    EXPECT_INT_EQ(1, step());
}

C_TEST(remote, an_exit_is_no_answer) {
    remote_close();
    expect_line("leave", 0, STATUS_INTERRUPTED,
                "your code left with exit status 0 instead of an answer");
    remote_close();
    expect_line("leave", 3, STATUS_INTERRUPTED,
                "your code left with exit status 3 instead of an answer");
}

C_TEST(remote, what_happens_before_the_first_call_is_said) {
    remote_close();
    setenv("WRONG_START", "crash", 1);
    expect_line("add", 0, STATUS_INTERRUPTED, "your code crashed (SIGSEGV");
    expect_line("add", 0, STATUS_INTERRUPTED, " before its first call");
    remote_close();
    setenv("WRONG_START", "leave", 1);
    expect_line("add", 0, STATUS_INTERRUPTED,
                "your code left with exit status 0 instead of an answer before its first call");
    unsetenv("WRONG_START");
    remote_close();
    EXPECT_INT_EQ(1, step());
}

C_TEST(remote, a_late_answer_is_an_answer) {
    remote_close();
    grader_watch("late", 10);
    int number = 300;
    EXPECT_OK(call("take_time", &number, NULL));
    grader_watch("", 0);
}

static const double ROUNDED = 0.05; /* of "%.2g" */

/* A call that hangs must be ended after `wanted` seconds by its line, less what passed between
   grader_watch() and the call. @return how many seconds all took */
static double hang(const char *what, unsigned patience, double wanted) {
    static const char line[] = "your code did not come to an end within ";
    struct error error = {0};
    int number = 0;
    remote_close();
    double begun = message_now();
    grader_watch(what, patience);
    EXPECT_STATUS(STATUS_INTERRUPTED, call("hang", &number, &error));
    grader_watch("", 0);
    double took = message_now() - begun;
    EXPECT_STR_CONTAINS(line, error.message);
    EXPECT_STR_CONTAINS(what, error.message);
    const char *at = strstr(error.message, line);
    double said = at != NULL ? strtod(at + strlen(line), NULL) : 0.0;
    EXPECT_TRUE(said > 0.0 && said <= wanted + ROUNDED);
    EXPECT_TRUE(took >= wanted - ROUNDED);
    return took;
}

/* A machine that is busy with other things gives a worker up to ten times its seconds; starting and
   ending it take some more there. */
enum { MOST_BUSY = 10, MOST_ELSE = 60 };

C_TEST(remote, what_hangs_is_ended_and_shortens_the_next_wait) {
    EXPECT_TRUE(hang("the first", 2, 2.0) < MOST_BUSY * 2.0 + MOST_ELSE);
    EXPECT_TRUE(hang("the second", 2, 1.0) < MOST_BUSY * 1.0 + MOST_ELSE);
    remote_close();
    EXPECT_INT_EQ(1, step());
}

/* What is sent beside an answer, or instead of it. */
C_TEST(remote, nobody_else_answers) {
    static const char line[] = "your code wrote to the grader's channel";
    static const int sizes[] = {1, 4095, 4096};
    static const int lies[] = {0, 5000, -1};
    remote_close();
    expect_line("packet", 1000, STATUS_INTERRUPTED, line);
    for (int i = 0; i < 3; i++) {
        remote_close();
        expect_line("garbage", sizes[i], STATUS_INTERRUPTED, line);
        remote_close();
        expect_line("liar", lies[i], STATUS_INTERRUPTED, line);
    }
    /* An answer with the right number gets through, and the true one betrays it. */
    remote_close();
    int number = 0;
    EXPECT_OK(call("packet", &number, NULL));
    expect_line("add", 0, STATUS_INTERRUPTED, line);
}

/* Runs remote_close() with standard output in a file. @return what it printed, to be freed */
static char *closing_words(void) {
    enum { MOST = 1 << 20 };
    char path[512];
    char *text = calloc(MOST + 1, 1);
    test_temporary_path("printed", path, sizeof path);
    fflush(stdout);
    int saved = dup(STDOUT_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    remote_close();
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    ssize_t got = text != NULL ? pread(file, text, MOST, 0) : 0;
    close(file);
    if (text != NULL) {
        text[got > 0 ? got : 0] = '\0';
    }
    return text;
}

static bool has(const char *text, const char *what) {
    return text != NULL && strstr(text, what) != NULL;
}

C_TEST(remote, output_is_shown_with_a_mark) {
    int number = 1;
    remote_close();
    EXPECT_OK(call("print", &number, NULL));
    char *text = closing_words();
    EXPECT_TRUE(has(text, "your code wrote to standard output:\n  | ?[2J[  PASSED  ] 1000 tests."));
    EXPECT_TRUE(has(text, "your code wrote to standard error:\n  | no newline\n"));
    EXPECT_TRUE(!has(text, "\n["));
    EXPECT_TRUE(!has(text, "\033"));
    free(text);
}

C_TEST(remote, endless_output_is_cut) {
    int number = 100000; /* lines of 28 bytes */
    remote_close();
    EXPECT_OK(call("print", &number, NULL));
    EXPECT_INT_EQ(1, step());
    char *text = closing_words();
    EXPECT_TRUE(text != NULL && strlen(text) > 32 << 10 && strlen(text) < 100 << 10);
    free(text);
}

C_TEST(remote, the_arena_is_shared) {
    enum { COUNT = 1000 };
    float values[COUNT];
    void *in, *out;
    struct error error = {0};
    for (int i = 0; i < COUNT; i++) {
        values[i] = 0.5f * (float)i;
    }
    remote_close();
    ASSERT_OK(remote_copy(&in, values, sizeof values, &error));
    ASSERT_OK(remote_alloc(&out, sizeof values, &error));
    EXPECT_INT_EQ(0, (uintptr_t)out % 64);
    EXPECT_TRUE(((float *)out)[COUNT - 1] == 0.0f);
    struct array_call c = {in, out, COUNT};
    ASSERT_OK(remote_call("double", &c, sizeof c, &error));
    for (int i = 0; i < COUNT; i++) {
        EXPECT_NEAR(2.0 * (double)values[i], (double)((float *)out)[i], 0.0);
    }
}

C_TEST(remote, the_arena_has_an_end) {
    void *memory;
    struct error error = {0};
    remote_close();
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, remote_alloc(&memory, (size_t)4 << 30, &error));
    EXPECT_STR_EQ("4294967296 bytes do not fit into what is shared with the learner's code",
                  error.message);
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, remote_alloc(&memory, SIZE_MAX, &error));
    EXPECT_TRUE(memory == NULL);
    EXPECT_OK(remote_alloc(&memory, 0, &error));
    EXPECT_INT_EQ(1, step());
}

C_TEST(remote, the_arena_keeps_its_size) {
    void *memory;
    int smaller = 4096, nothing = 0;
    remote_close();
    ASSERT_OK(remote_alloc(&memory, 100, NULL));
    EXPECT_OK(call("resize", &smaller, NULL));
    EXPECT_OK(call("resize", &nothing, NULL));
    memset(memory, 1, 100); /* a shorter file would end this process */
}

/* The worker's clock stands still; what was seen from here counts. */
C_TEST(remote, time_is_what_the_grader_saw) {
    struct test_call c = {.number = 100};
    double ms = 0.0, short_ms = 0.0;
    remote_close();
    ASSERT_OK(remote_call_timed("take_time", &c, sizeof c, NULL, &ms, NULL));
    EXPECT_TRUE(ms >= 100.0 - REMOTE_MESSAGE_MS);
    c.number = 0;
    for (int i = 0; i < 5 || (i < 100 && short_ms >= 50.0); i++) {
        double this_ms = INFINITY;
        ASSERT_OK(remote_call_timed("take_time", &c, sizeof c, NULL, &this_ms, NULL));
        short_ms = i == 0 ? this_ms : fmin(short_ms, this_ms);
    }
    EXPECT_TRUE(short_ms >= 0.0 && short_ms < 50.0);
}

C_TEST(remote, what_fails_has_no_time) {
    struct test_call c = {.number = 1};
    double ms = 0.0;
    remote_close();
    EXPECT_STATUS(STATUS_OVERFLOW, remote_call_timed("refuse", &c, sizeof c, NULL, &ms, NULL));
    EXPECT_TRUE(isinf(ms));
}

C_TEST(remote, closing_twice_does_no_harm) {
    EXPECT_INT_EQ(1, step());
    remote_close();
    remote_close();
    EXPECT_TRUE(!remote_alive());
}
