/*
 * Kills a graded test, its workers, their emulated GPUs, or who watches one of them, at random
 * moments:
 *   kill_grader TEST COUNT [NAME=VALUE]...
 * TEST must end soon. Unless it was killed itself it says in a line what has died, and accuses
 * nobody; nothing may be left running, and nothing in its temporary folder. The variables are set
 * for it. TEST passes when nobody is killed: the first run shows that, and how long it takes.
 */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/bench/bench.h"
#include "common/testing/children.h"

enum { MOST = 64, TEXT = 1 << 20 };

/* Far away: it only ends what hangs. */
static const double PATIENCE = 120.0;

/* LOADER is asked which libraries a worker has. */
enum kind { GRADER, WORKER, DEVICE, WATCHER, LOADER, KINDS };

static const struct {
    const char *name;
    unsigned lines; /* of `ends`, by bits: one must be said */
} kinds[KINDS] = {
    [GRADER] = {"grader", 0},
    [WORKER] = {"worker", 1u << WORKER},
    [DEVICE] = {"device", 1u << DEVICE},
    [WATCHER] = {"watcher", 1u << WATCHER | 1u << LOADER}, /* a loader begins as a copy, too */
    [LOADER] = {"loader", 1u << LOADER},
};

static const char *const ends[KINDS][3] = {
    [WORKER] = {"your code was ended by SIGKILL", "the baseline was ended by SIGKILL"},
    [DEVICE] = {"the emulated GPU of your code was ended by SIGKILL",
                "the emulated GPU of the baseline was ended by SIGKILL",
                "the emulated GPU was ended by SIGKILL"},
    [WATCHER] = {"was ended with the process that watched it, which was killed"},
    [LOADER] = {"the loader was killed when it was asked for the libraries of"},
};

/* What is said of a submission that does something wrong: this one does nothing. */
static const char *const accusations[] = {
    "used the GPU when", "went on running", "not allowed here",    "grader's channel",
    "instead of",        "too slow",        "does not count",      "changed",
    "tolerance",         "did not come",    "closed the grader's", "does not use the emulated",
    "a kernel of",       "could not be",    "devices unavailable", "other logits",
    "was not done",      "no launch was",   "invalid resource",    "stayed when",
};

/* Starts the test; what it writes goes to the file. */
static pid_t start(const char *test, const char *folder, int output) {
    pid_t child = fork();
    if (child == 0) {
        setenv("TMPDIR", folder, 1);
        setenv("TEST_TMPDIR", folder, 1);
        setenv("WARPBOOK_GRADES", "/dev/null", 1);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execl(test, test, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* The test's children watch, or are loaders; theirs are workers and devices. */
static enum kind kind_of(pid_t process, pid_t test) {
    bool loader = children_is_named(process, "ld-linux-x86-64");
    if (process == test) {
        return GRADER;
    }
    if (children_parent_of(process) == test) {
        return loader ? LOADER : WATCHER;
    }
    return loader || children_is_named(process, "simt device") ? DEVICE : WORKER;
}

/* One of this kind; one of any kind but the grader where there is none. 0: there is nobody. */
static pid_t find(pid_t test, enum kind wanted, struct rng *rng) {
    pid_t found[MOST];
    size_t count = children_below(test, found, MOST);
    size_t first = count > 0 ? rng_below(rng, count) : 0;
    for (size_t i = 0; i < count; i++) {
        pid_t process = found[(first + i) % count];
        if (kind_of(process, test) == wanted) {
            return process;
        }
    }
    return wanted == GRADER ? test : count > 0 ? found[first] : 0;
}

static bool is_empty(const char *path) {
    bool empty = true;
    DIR *folder = opendir(path);
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!dots) {
            fprintf(stderr, "kill_grader: %s/%s was left\n", path, e->d_name);
        }
        empty = empty && dots;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return folder != NULL && empty;
}

static bool says_any(const char *text, const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (lines[i] != NULL && strstr(text, lines[i]) != NULL) {
            return true;
        }
    }
    return false;
}

#define SAYS_ANY(text, lines) says_any(text, lines, sizeof(lines) / sizeof *(lines))

static bool says_end(const char *text, unsigned kinds_of_ends) {
    bool said = false;
    for (unsigned i = 0; i < KINDS; i++) {
        said = said || ((kinds_of_ends >> i & 1) != 0 && SAYS_ANY(text, ends[i]));
    }
    return said;
}

/* A kill that came too late changes nothing; else the test fails and says why. */
static bool is_right(enum kind kind, unsigned lines, const char *text, int status) {
    bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (kind == GRADER) {
        return passed || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    bool failed = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    return passed || (failed && says_end(text, lines) && !SAYS_ANY(text, accusations));
}

struct run {
    const char *test;
    char folder[4096];
    struct rng rng;
    double seconds;         /* of the shortest run to its end */
    unsigned counts[KINDS]; /* killed */
    unsigned killed, late;  /* all of these; those that the test passed in spite of */
};

/* As find(), but a loader is waited for: it lives for a millisecond. */
static pid_t choose(pid_t test, enum kind wanted, struct rng *rng) {
    pid_t victim = find(test, wanted, rng);
    for (int i = 0; i < 3000 && wanted == LOADER && victim > 0; i++) {
        if (kind_of(victim, test) == LOADER) {
            break;
        }
        victim = find(test, wanted, rng);
    }
    return victim;
}

/* Who is killed before it has become what it is to be still has the test's name. */
static unsigned lines_of(pid_t victim, pid_t test, enum kind kind) {
    bool begins = kind == WORKER && children_have_same_name(victim, test);
    return kinds[kind].lines | (begins ? 1u << DEVICE : 0);
}

/* Waits for the end of all. @return whether all ended; *text receives what was said */
static bool await_end(pid_t child, int output, const char **text, int *status) {
    static char said[TEXT];
    bool ended = children_all_end(child, PATIENCE, status);
    ssize_t size = pread(output, said, sizeof said - 1, 0);
    said[size > 0 ? size : 0] = '\0';
    *text = said;
    close(output);
    return ended;
}

static bool try_once(struct run *r) {
    const char *text;
    int status = 0, output = memfd_create("output", MFD_CLOEXEC);
    enum kind kind = (enum kind)rng_below(&r->rng, KINDS);
    double begun = bench_now();
    pid_t child = start(r->test, r->folder, output);
    children_rest((unsigned)rng_below(&r->rng, (uint64_t)(1e3 * r->seconds) + 1));
    pid_t victim = choose(child, kind, &r->rng);
    kind = victim > 0 ? kind_of(victim, child) : kind;
    unsigned lines = victim > 0 ? lines_of(victim, child, kind) : 0;
    bool killed = victim > 0 && kill(victim, SIGKILL) == 0;
    bool ended = await_end(child, output, &text, &status);
    bool right = killed ? is_right(kind, lines, text, status) : status == 0;
    bool empty = is_empty(r->folder);
    r->counts[kind] += killed;
    r->killed += killed;
    r->late += killed && status == 0;
    r->seconds = status == 0 ? fmin(r->seconds, bench_now() - begun) : r->seconds;
    if (!ended || !right || !empty) {
        fprintf(stderr,
                "kill_grader: FAILED after the %s was killed: %s, status %d, it said:\n%s\n",
                kinds[kind].name, ended ? "all ended" : "something stayed", status, text);
    }
    return ended && right && empty;
}

/* Nobody dies. */
static bool try_alone(struct run *r) {
    const char *text;
    int status = -1, output = memfd_create("output", MFD_CLOEXEC);
    double begun = bench_now();
    pid_t child = start(r->test, r->folder, output);
    bool ended = await_end(child, output, &text, &status);
    r->seconds = bench_now() - begun;
    if (!ended || status != 0 || !is_empty(r->folder)) {
        fprintf(stderr, "kill_grader: FAILED: nobody was killed, status %d, it said:\n%s\n", status,
                text);
        return false;
    }
    return true;
}

/* @return whether there is an empty folder for the test's temporary files */
static bool make_folder(struct run *r) {
    const char *parent = getenv("TEST_TMPDIR");
    snprintf(r->folder, sizeof r->folder, "%s/killed.XXXXXX", parent != NULL ? parent : "/tmp");
    return mkdtemp(r->folder) != NULL;
}

static bool try_all(struct run *r, unsigned wanted) {
    bool good = try_alone(r);
    for (unsigned i = 0; i < 4 * wanted && r->killed < wanted && good; i++) {
        good = try_once(r); /* some come when all is over */
    }
    return good && r->killed >= wanted;
}

int main(int argc, char **argv) {
    static struct run r;
    if (argc < 3) {
        fprintf(stderr, "usage: kill_grader TEST COUNT [NAME=VALUE]...\n");
        return 2;
    }
    r.rng = rng_create(rng_secret_seed());
    r.test = argv[1];
    for (int i = 3; i < argc; i++) {
        putenv(argv[i]);
    }
    if (!make_folder(&r)) {
        fprintf(stderr, "kill_grader: no folder for temporary files\n");
        return 1;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    bool good = try_all(&r, (unsigned)strtoul(argv[2], NULL, 10));
    printf("a run of %.2f s; killed:", r.seconds);
    for (size_t i = 0; i < KINDS; i++) {
        printf(" %s %u,", kinds[i].name, r.counts[i]);
    }
    printf(" of %u killed %u too late to matter\n", r.killed, r.late);
    return rmdir(r.folder) == 0 && good ? 0 : 1;
}
