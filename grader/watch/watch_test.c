/*
 * The program in a pseudo terminal: save, failure, fix, hint, resize, Ctrl-C. A shell script stands
 * in for Bazel, others for the graded programs and the bench; the source decides what they do.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

enum { PATIENCE = 60, OUTPUT = 1 << 20 }; /* seconds: only what hangs takes so long */

/* A workbook of one lab, and the program in it. */
struct session {
    char folder[600];
    int terminal; /* the master's side */
    pid_t program;
    size_t size, seen; /* bytes of the output, and of those how many were looked at */
    char *output;
};

static void path_of(const struct session *s, const char *name, char *path, size_t size) {
    snprintf(path, size, "%.600s/%.100s", s->folder, name);
}

static void put(const struct session *s, const char *name, const char *text) {
    char path[800];
    path_of(s, name, path, sizeof path);
    EXPECT_OK(file_write(path, text, strlen(text), NULL));
}

static void make_folder(const struct session *s, const char *name) {
    char path[800];
    path_of(s, name, path, sizeof path);
    EXPECT_TRUE(mkdir(path, 0777) == 0 || errno == EEXIST);
}

/* A copy of a script, to be run by that name. */
static void put_script(const struct session *s, const char *script, const char *name) {
    char from[200], path[800], *text;
    size_t size;
    snprintf(from, sizeof from, "grader/watch/testdata/%s", script);
    path_of(s, name, path, sizeof path);
    ASSERT_OK(file_read(from, 1 << 16, &text, &size, NULL));
    EXPECT_OK(file_write(path, text, size, NULL));
    EXPECT_INT_EQ(0, chmod(path, 0755));
    free(text);
}

static void save(const struct session *s, const char *text) {
    put(s, "labs/04_sgemm/sgemm.cu", text);
}

static void make_workbook(struct session *s) {
    static const char *const folders[] = {"bin",
                                          "labs",
                                          "labs/04_sgemm",
                                          "labs/04_sgemm/given",
                                          "bazel-bin",
                                          "bazel-bin/grader",
                                          "bazel-bin/labs",
                                          "bazel-bin/labs/04_sgemm"};
    test_temporary_path("workbook", s->folder, sizeof s->folder);
    snprintf(s->folder + strlen(s->folder), 20, "XXXXXX");
    ASSERT_TRUE(mkdtemp(s->folder) != NULL);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        make_folder(s, folders[i]);
    }
    put(s, "WORKSPACE", "");
    put(s, "labs/04_sgemm/given/starter.cu", "starter");
    put(s, "labs/04_sgemm/README.md",
        "<details><summary>Hint 1: look at the addresses</summary>\n\nLane by lane.\n</details>\n"
        "<details><summary>Hint 2: share the loads</summary>\n\nBy tiles.\n</details>\n");
    put_script(s, "bazel.sh", "bin/bazel");
    put_script(s, "graded.sh", "bazel-bin/grader/04_sgemm_parity");
    put_script(s, "graded.sh", "bazel-bin/grader/04_sgemm_speedup");
    put_script(s, "bench.sh", "bazel-bin/labs/04_sgemm/bench");
    save(s, "WRONG");
}

/* In the child. */
static void become(const struct session *s, char **arguments) {
    char path[1000], program[800];
    if (getcwd(program, 600) == NULL) {
        _exit(126);
    }
    snprintf(program + strlen(program), 100, "/grader/watch/watch_labs");
    snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", s->folder);
    setenv("PATH", path, 1);
    setenv("TERM", "xterm", 1);
    setenv("BUILD_WORKSPACE_DIRECTORY", s->folder, 1);
    unsetenv("NO_COLOR");
    execv(program, arguments);
    _exit(127);
}

static void begin_with(struct session *s, const char *flag, const char *value) {
    char *arguments[] = {"watch", "04", (char *)flag, (char *)value, NULL};
    struct winsize size = {.ws_row = 40, .ws_col = 100};
    *s = (struct session){.output = calloc(1, OUTPUT + 1)};
    make_workbook(s);
    s->program = forkpty(&s->terminal, NULL, NULL, &size);
    ASSERT_TRUE(s->program >= 0);
    if (s->program == 0) {
        become(s, arguments);
    }
}

static void begin(struct session *s, const char *flag) {
    begin_with(s, flag, NULL);
}

/* Reads what there is. @return false at the end */
static bool read_some(struct session *s, int milliseconds) {
    struct pollfd file = {.fd = s->terminal, .events = POLLIN};
    if (poll(&file, 1, milliseconds) <= 0) {
        return true;
    }
    if (s->size > OUTPUT / 2) { /* what was looked at is not needed any more */
        memmove(s->output, s->output + s->seen, s->size - s->seen);
        s->size -= s->seen;
        s->seen = 0;
    }
    ssize_t got = read(s->terminal, s->output + s->size, OUTPUT - s->size);
    s->size += got > 0 ? (size_t)got : 0;
    s->output[s->size] = '\0';
    return got > 0;
}

/* Waits for a text behind what was looked at. */
static void expect(struct session *s, const char *text) {
    time_t until = time(NULL) + PATIENCE;
    for (;;) {
        char *found = strstr(s->output + s->seen, text);
        if (found != NULL) {
            s->seen = (size_t)(found - s->output) + strlen(text);
            return;
        }
        if (!read_some(s, 200) || time(NULL) > until) {
            TEST_FAIL("'%s' did not come; what came: %s", text,
                      s->output + (s->size > 3000 ? s->size - 3000 : 0));
            return;
        }
    }
}

static void press(const struct session *s, const char *keys) {
    EXPECT_INT_EQ((long)strlen(keys), write(s->terminal, keys, strlen(keys)));
}

/* Waits for the program's end. */
static void expect_end(struct session *s, int code) {
    int state = 0;
    time_t until = time(NULL) + PATIENCE;
    while (waitpid(s->program, &state, WNOHANG) == 0) {
        (void)read_some(s, 50);
        if (time(NULL) > until) {
            TEST_FAIL("it does not end");
            kill(s->program, SIGKILL);
        }
    }
    while (read_some(s, 0) && s->size < OUTPUT) {
        struct pollfd file = {.fd = s->terminal, .events = POLLIN};
        if (poll(&file, 1, 0) <= 0) {
            break;
        }
    }
    EXPECT_TRUE(WIFEXITED(state));
    EXPECT_INT_EQ(code, WEXITSTATUS(state));
}

static void end(struct session *s) {
    close(s->terminal);
    free(s->output);
}

/* The build that never ends is under way. */
static void await_build(const struct session *s) {
    char path[800];
    time_t until = time(NULL) + PATIENCE;
    path_of(s, "running", path, sizeof path);
    while (access(path, F_OK) != 0 && time(NULL) <= until) {
        usleep(20000);
    }
    EXPECT_INT_EQ(0, unlink(path));
}

/* Processes of a file that end by themselves soon: nothing may be left. */
static void expect_gone(const struct session *s) {
    char path[800], *text, *rest;
    size_t size;
    path_of(s, "pid", path, sizeof path);
    ASSERT_OK(file_read(path, 1000, &text, &size, NULL));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        pid_t process = (pid_t)strtol(line, NULL, 10);
        time_t until = time(NULL) + PATIENCE;
        while (kill(process, 0) == 0 && time(NULL) <= until) {
            usleep(20000);
        }
        EXPECT_TRUE(process > 1 && kill(process, 0) != 0);
    }
    free(text);
}

C_TEST(watch, failure_fix_hint_resize_and_quit) {
    struct session s;
    struct winsize narrow = {.ws_row = 24, .ws_col = 40};
    begin(&s, NULL);
    expect(&s, "\033[?1049h"); /* the page */
    expect(&s, "04_sgemm  labs/04_sgemm/sgemm.cu");
    expect(&s, "1 of 2 tests passed");
    expect(&s, "race in shared memory: two warps");
    expect(&s, "first failed: odd_sizes");
    expect(&s, "shape 33x17x5: element 7 is 1.5, want 2.5");
    save(&s, "right");
    expect(&s, "2 of 2 tests passed");
    expect(&s, "v2_tile          0.0200");
    expect(&s, "kernel 5x of 13.8x");
    expect(&s, "points   30 of 100"); /* parity, and half of the faster model */
    expect(&s, "why      64 blocks on 64 of 132 multiprocessors");
    save(&s, "FAST");
    expect(&s, "v2_tile: 2.00x faster than before");
    press(&s, "h");
    expect(&s, "Hint 1: look at the addresses (1 of 2)");
    expect(&s, "Lane by lane.");
    EXPECT_INT_EQ(0, ioctl(s.terminal, TIOCSWINSZ, &narrow));
    expect(&s, "\033[24;1H"); /* the last line of the smaller page */
    press(&s, "q");
    expect_end(&s, 0);
    expect(&s, "\033[?1049l");
    end(&s);
}

C_TEST(watch, compiler_errors_come_first) {
    struct session s;
    begin(&s, "--plain");
    expect(&s, "1 of 2 tests passed");
    save(&s, "SYNTAX");
    expect(&s, "build    red");
    expect(&s, "labs/04_sgemm/sgemm.cu:7: error: identifier \"tile\" is undefined");
    expect(&s, "      tile = 3;");
    press(&s, "h\n");
    expect(&s, "Hint 1: look at the addresses");
    save(&s, "right");
    expect(&s, "build    ok");
    expect(&s, "parity   ok");
    expect(&s, "bench    ok");
    expect(&s, "speedup  red");
    press(&s, "q\n");
    expect_end(&s, 0);
    EXPECT_TRUE(strstr(s.output, "\033[?1049h") == NULL); /* no page */
    end(&s);
}

/* A save while Bazel builds begins anew; Ctrl-C ends the build. */
C_TEST(watch, saves_cancel_and_nothing_is_left_running) {
    struct session s;
    begin(&s, NULL);
    expect(&s, "1 of 2 tests passed");
    save(&s, "ENDLESS");
    expect(&s, "build    ...");
    await_build(&s);
    save(&s, "right");
    expect(&s, "2 of 2 tests passed");
    expect_gone(&s);
    save(&s, "ENDLESS");
    await_build(&s);
    press(&s, "\003"); /* Ctrl-C */
    expect_end(&s, 130);
    expect(&s, "\033[?1049l");
    expect_gone(&s);
    end(&s);
}

/* An editor writes a file beside, renames it, touches others: one round. */
C_TEST(watch, bursts_are_one_round) {
    struct session s;
    char from[800], to[800], *text;
    size_t size, builds = 0;
    begin(&s, "--plain");
    expect(&s, "1 of 2 tests passed");
    put(&s, "labs/04_sgemm/README.md", "not a source");
    for (int i = 0; i < 5; i++) {
        put(&s, "labs/04_sgemm/.sgemm.cu.swp", "an editor's");
        put(&s, "labs/04_sgemm/sgemm.cu~", "an editor's");
        path_of(&s, "labs/04_sgemm/4913", from, sizeof from);
        path_of(&s, "labs/04_sgemm/sgemm.cu", to, sizeof to);
        put(&s, "labs/04_sgemm/4913", "right");
        EXPECT_INT_EQ(0, rename(from, to));
    }
    expect(&s, "speedup  red");
    press(&s, "q\n");
    expect_end(&s, 0);
    path_of(&s, "builds", from, sizeof from);
    ASSERT_OK(file_read(from, 1 << 16, &text, &size, NULL));
    for (size_t i = 0; i < size; i++) {
        builds += text[i] == '\n';
    }
    EXPECT_INT_EQ(3, builds); /* at the beginning, after the burst, and of the bench */
    free(text);
    end(&s);
}

C_TEST(watch, missing_bazel_is_told) {
    struct session s;
    begin_with(&s, "--bazel", "no-such-bazel");
    expect(&s, "no-such-bazel cannot be started: install it (./setup.sh)");
    press(&s, "q");
    expect_end(&s, 0);
    end(&s);
}

/* Only one watch reads and writes the logs of a workspace. */
C_TEST(watch, second_one_is_refused) {
    struct session s;
    int state = 0;
    begin(&s, NULL);
    expect(&s, "1 of 2 tests passed");
    pid_t second = fork();
    if (second == 0) {
        char *arguments[] = {"watch", "04", NULL};
        become(&s, arguments);
    }
    EXPECT_INT_EQ(second, waitpid(second, &state, 0));
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 1);
    kill(s.program, SIGTERM);
    expect_end(&s, 128 + SIGTERM);
    end(&s);
}
