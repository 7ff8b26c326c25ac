#include "grader/watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/testing.h"

static void touch_nothing(void) {
    volatile int *volatile nowhere = NULL; /* the compiler must neither know nor skip it */
    *nowhere = 1;
}

static void wait_for_ever(void) {
    for (;;) {
        pause();
    }
}

/* Runs body under a watch in a child; text receives what it prints. @return its exit status */
static int watched(void (*body)(void), char *text, size_t size) {
    int ends[2];
    if (pipe(ends) != 0) {
        return -1;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        grader_watch("shape M=1 N=2 K=3", 1);
        body();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, size - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    close(ends[0]);
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

C_TEST(watch, names_what_crashed) {
    char text[512];
    int status = watched(touch_nothing, text, sizeof text);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT_STR_EQ("Your code crashed (SIGSEGV: it touched memory that is not there) in: shape "
                  "M=1 N=2 K=3\n",
                  text);
}

C_TEST(watch, names_what_was_stopped) {
    char text[512];
    int status = watched(abort, text, sizeof text);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    EXPECT_TRUE(strstr(text, "SIGABRT") != NULL && strstr(text, "in: shape M=1 N=2 K=3\n") != NULL);
}

C_TEST(watch, names_what_does_not_end) {
    char text[512];
    int status = watched(wait_for_ever, text, sizeof text);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    EXPECT_STR_EQ("Your code did not come to an end in: shape M=1 N=2 K=3\n", text);
}

static void end_watch(void) {
    grader_watch("", 0);
    usleep(1200000);
}

C_TEST(watch, ends) {
    char text[512];
    int status = watched(end_watch, text, sizeof text);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_STR_EQ("", text);
}
