/*
 * Hands a submission all that it could find, and looks at its time:
 *   hand_over TEST CASE TRICK=END...
 * TEST is a speedup test that chooses its submission by $WRONG_SABOTAGE, CASE the one of its cases
 * that is run. An honest one is run first. END is what must come of a trick's: "same" (the honest
 * one's time, and its verdict), or words that must stand in what the test says when it fails. None
 * passes, and none is faster.
 */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/children.h"
#include "grader/selftest/handed.h"

enum { MOST = 64, TEXT = 1 << 18, ADDRESSES = 16 };

/* Of two runs of a model that differ in nothing. */
static const double NOISE = 1e-6;

/* Far away: it only ends what hangs. */
static const double PATIENCE = 120.0;

static pid_t start(const char *const test[2], const char *trick, int output) {
    pid_t child = fork();
    if (child == 0) {
        setenv("WRONG_SABOTAGE", trick, 1);
        setenv("GTEST_FILTER", test[1], 1);
        setenv("WARPBOOK_SEED", "7", 1);
        setenv("WARPBOOK_GRADES", "/dev/null", 1);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execl(test[0], test[0], (char *)NULL);
        _exit(127);
    }
    return child;
}

/* A line of /proc/PID/status: the signals that the process keeps waiting, signal 1 in bit 0. They
   are read once: between two readings a supervisor becomes a program that blocks none. */
static unsigned long long blocked_by(pid_t process) {
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "SigBlk: %llx", &mask) != 1) {
    }
    if (file != NULL) {
        fclose(file);
    }
    return mask;
}

/* It blocks the signals by which it is handed all, and not SIGTERM. */
static bool is_submission(pid_t process) {
    const unsigned long long both = 1ULL << (HANDED_ALL - 1) | 1ULL << (SIGTERM - 1);
    return (blocked_by(process) & both) == 1ULL << (HANDED_ALL - 1);
}

/* Supervisors block all signals, and are the test's children; the submission is one's child. */
static pid_t find_submission(pid_t test) {
    pid_t found[MOST];
    size_t count = children_below(test, found, MOST);
    for (size_t i = 0; i < count; i++) {
        if (children_parent_of(found[i]) != test && is_submission(found[i])) {
            return found[i];
        }
    }
    return 0;
}

static void hand(pid_t to, enum handed what, uintptr_t value) {
    (void)sigqueue(to, what, (union sigval){.sival_ptr = (void *)value});
}

/* Where the device's library and its heap write: the clock is among it. */
static void hand_addresses(pid_t device, pid_t to) {
    char path[64], line[512], rights[8];
    unsigned long long begin, end;
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)device);
    FILE *maps = fopen(path, "r");
    while (maps != NULL && count < ADDRESSES && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%llx-%llx %7s", &begin, &end, rights) == 3 && rights[1] == 'w') {
            hand(to, HANDED_ADDRESS, (uintptr_t)begin);
            count++;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    if (count == 0) { /* another user's process: some address that is there in each */
        hand(to, HANDED_ADDRESS, (uintptr_t)hand_addresses);
    }
}

/* @return whether the submission came, and was handed all */
static bool hand_over(pid_t test) {
    pid_t found[MOST], submission = 0;
    for (int i = 0; i < 20000 && submission == 0 && children_state_of(test) != 'Z'; i++) {
        submission = find_submission(test);
        children_rest(submission == 0);
    }
    if (submission == 0) {
        return false;
    }
    size_t count = children_below(test, found, MOST);
    hand(submission, HANDED_PROCESS, (uintptr_t)test);
    hand(submission, HANDED_PROCESS, (uintptr_t)getpid());
    for (size_t i = 0; i < count; i++) {
        if (found[i] != submission) {
            hand(submission, HANDED_PROCESS, (uintptr_t)found[i]);
        }
        if (children_is_named(found[i], "simt device")) {
            hand_addresses(found[i], submission);
        }
    }
    hand(submission, HANDED_ALL, 0);
    return true;
}

struct result {
    char text[TEXT];
    bool ended, handed, passed;
    double ms; /* of the submission, as the test says it; NaN: it says none */
    int nice;  /* of this process, in whose group and of whose user the test is */
};

static void run(const char *const test[2], const char *trick, bool honest, struct result *r) {
    static const char before[] = " ms, yours ";
    int status = -1, output = memfd_create("output", MFD_CLOEXEC);
    pid_t child = start(test, trick, output);
    *r = (struct result){.handed = honest || hand_over(child)};
    r->ended = children_all_end(child, PATIENCE, &status);
    ssize_t size = pread(output, r->text, sizeof r->text - 1, 0);
    r->text[size > 0 ? size : 0] = '\0';
    close(output);
    const char *yours = strstr(r->text, before);
    r->ms = yours != NULL ? strtod(yours + sizeof before - 1, NULL) : (double)NAN;
    r->passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    r->nice = getpriority(PRIO_PROCESS, 0);
}

/* @param texts one or more, separated by '|' @return whether one of them was said */
static bool said_one_of(const struct result *r, const char *texts) {
    bool said = false;
    for (const char *next = texts; next != NULL && !said; next = strchr(next, '|')) {
        char text[128];
        next += next > texts;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(next, "|"), next);
        said = strstr(r->text, text) != NULL;
    }
    return said;
}

/* @return whether it came as it must */
static bool judge(const struct result *r, const char *end, double honest_ms, int nice) {
    bool same = fabs(r->ms - honest_ms) <= NOISE * honest_ms;
    bool right = strcmp(end, "same") == 0 ? same && strstr(r->text, "is too slow") != NULL
                                          : said_one_of(r, end) && (isnan(r->ms) || same);
    return r->ended && r->handed && !r->passed && right && r->nice == nice &&
           strstr(r->text, "was reached") == NULL && strstr(r->text, "handed over") == NULL;
}

int main(int argc, char **argv) {
    static struct result honest, result;
    int failed = 0, nice = getpriority(PRIO_PROCESS, 0);
    if (argc < 4) {
        fprintf(stderr, "usage: hand_over TEST CASE TRICK=END...\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const char *const test[2] = {argv[1], argv[2]};
    run(test, "handed_nothing", true, &honest);
    if (!honest.ended || honest.passed || isnan(honest.ms)) {
        fprintf(stderr, "hand_over: the honest one says:\n%s\n", honest.text);
        return 1;
    }
    for (int i = 3; i < argc; i++) {
        char trick[64];
        const char *end = strchr(argv[i], '=');
        snprintf(trick, sizeof trick, "%.*s", (int)(end != NULL ? end - argv[i] : 0), argv[i]);
        run(test, trick, false, &result);
        bool good = end != NULL && judge(&result, end + 1, honest.ms, nice);
        printf("%s: %s, %g ms, honest %g ms\n", trick, good ? end + 1 : "FAILED", result.ms,
               honest.ms);
        if (!good) {
            fprintf(stderr, "hand_over: FAILED %s, nice %d, it said:\n%s\n", argv[i], result.nice,
                    result.text);
        }
        failed += !good;
    }
    return failed != 0;
}
