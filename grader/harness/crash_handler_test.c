/* Children of this test crash, and what they say is read. */
#include "grader/harness/crash_handler.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/testing.h"

typedef void crash_function(void *closed);

/* Memory that nobody may touch, at an address that the line can be compared with. */
static void *closed_page(void) {
    return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Runs a function in a child with its standard error in a pipe. @return how it ended */
static int run(crash_function *function, void *closed, char *said, size_t size) {
    int ends[2], how = 0;
    size_t length = 0;
    ssize_t got;
    if (pipe(ends) != 0) {
        TEST_FAIL("no pipe");
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        crash_handler_install();
        (void)crash_handler_phase("a made-up case");
        function(closed);
        _exit(0);
    }
    close(ends[1]);
    while (length + 1 < size && (got = read(ends[0], said + length, size - 1 - length)) > 0) {
        length += (size_t)got;
    }
    said[length] = '\0';
    close(ends[0]);
    waitpid(child, &how, 0);
    return how;
}

/* The crash must end the child by that signal, with these words. */
static void expect_crash(crash_function *function, int number, const char *words) {
    char said[4096], line[200];
    void *closed = closed_page();
    int how = run(function, closed, said, sizeof said);
    EXPECT_TRUE(WIFSIGNALED(how));
    EXPECT_INT_EQ(number, WTERMSIG(how));
    snprintf(line, sizeof line, words, (size_t)(uintptr_t)closed);
    EXPECT_STR_CONTAINS(line, said);
    EXPECT_STR_CONTAINS("in: a made-up case; this is no fault of your code", said);
    EXPECT_STR_CONTAINS("  addresses of code on the stack: +0x", said);
    munmap(closed, 4096);
}

static void write_to(void *closed) {
    *(volatile char *)closed = 1;
}

static void jump_to(void *closed) {
    void (*function)(void);
    memcpy(&function, &closed, sizeof function);
    function();
}

static void be_sent(void *closed) {
    (void)closed;
    raise(SIGBUS);
}

/* Each call has room on the stack that the compiler cannot share. */
static int overflow(volatile char *before, int depth) {
    volatile char room[4096];
    room[0] = before[0];
    return depth > 0 ? overflow(room, depth - 1) + room[0] : 0;
}

static void fill_stack(void *closed) {
    volatile char first[1] = {1};
    (void)closed;
    (void)overflow(first, 1 << 30);
}

C_TEST(crash_handler, an_access_is_told_with_its_address) {
    expect_crash(write_to, SIGSEGV, "the grader itself crashed (SIGSEGV at address 0x%zx)");
}

/* No frame is left of who jumped but its return address. */
C_TEST(crash_handler, a_jump_to_nowhere_is_told_with_its_callers) {
    expect_crash(jump_to, SIGSEGV, "instruction 0x%zx, stack");
}

C_TEST(crash_handler, a_signal_is_told_with_its_sender) {
    expect_crash(be_sent, SIGBUS, "the grader itself crashed (SIGBUS sent by process ");
}

C_TEST(crash_handler, a_full_stack_is_told) {
    expect_crash(fill_stack, SIGSEGV, "the grader itself crashed (SIGSEGV at address 0x");
}

static void crash_in_child(void *closed) {
    pid_t child = fork();
    if (child == 0) {
        write_to(closed);
    }
    waitpid(child, NULL, 0);
    raise(SIGBUS);
}

C_TEST(crash_handler, a_process_of_the_graders_is_told_as_that) {
    expect_crash(crash_in_child, SIGBUS, "a process that the grader started crashed (SIGSEGV at");
}
