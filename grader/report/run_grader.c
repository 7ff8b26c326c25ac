#include "grader/report/run_grader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { TICK_MS = 50, MOST_OUTPUT = 64 << 20 };

/* A signal handler gets no context of ours. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) {
    (void)number;
    interrupted = 1;
}

void grader_catch_interrupts(void) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before;
        bool kept = sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (signals[i] != SIGHUP || !kept) { /* nohup outlives its terminal */
            sigaction(signals[i], &action, NULL);
        }
    }
}

int grader_interrupted(void) {
    return interrupted;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool is_dropped(const char *variable) {
    static const char *const prefixes[] = {"GTEST_", "WARPBOOK_GRADES=", "WARPBOOK_COMMIT=",
                                           "TEST_UNDECLARED_OUTPUTS_DIR=", "XML_OUTPUT_FILE="};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* The program's environment; see environment_free(). */
struct environment {
    char **variables;
    char *grades, *commit;
};

static void environment_free(struct environment *e) {
    free(e->variables);
    free(e->grades);
    free(e->commit);
}

static bool environment_create(struct environment *e, const struct grader_command *command) {
    size_t count = 0;
    *e = (struct environment){0};
    if (command->tool) {
        return true; /* environ itself */
    }
    while (environ[count] != NULL) {
        count++;
    }
    e->variables = calloc(count + 3, sizeof *e->variables);
    bool good =
        e->variables != NULL && asprintf(&e->grades, "WARPBOOK_GRADES=%s", command->grades) > 0;
    if (good && command->commit != NULL) {
        good = asprintf(&e->commit, "WARPBOOK_COMMIT=%s", command->commit) > 0;
    }
    if (!good) {
        environment_free(e);
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_dropped(environ[i])) {
            e->variables[kept++] = environ[i];
        }
    }
    e->variables[kept++] = e->grades;
    e->variables[kept] = e->commit;
    return true;
}

static void unblock_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child: only what may be called after fork(). */
static void become(const struct grader_command *command, char **variables, int log, pid_t parent) {
    const char *program = command->program;
    char *alone[] = {(char *)program, NULL};
    char *const *arguments = command->arguments != NULL ? command->arguments : alone;
    struct rlimit output;
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a report that is killed takes the program with it */
    if (getppid() != parent) {
        _exit(127); /* it was killed already */
    }
    unblock_signals();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    getrlimit(RLIMIT_FSIZE, &output);
    if (output.rlim_cur > MOST_OUTPUT && !command->tool) {
        output.rlim_cur = MOST_OUTPUT; /* graded tests need more for memory that they share */
    }
    setrlimit(RLIMIT_FSIZE, &output);
    if (command->folder != NULL && chdir(command->folder) != 0) {
        _exit(127);
    }
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2) {
        execvpe(program, arguments, variables != NULL ? variables : environ);
    }
    _exit(127);
}

/* Waits for the end or the limit; the child is a zombie or gone in the first case. */
static enum grader_how wait_for(pid_t child, const struct grader_command *command, double start,
                                int *state) {
    const struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
    while (waitpid(child, state, WNOHANG) == 0) {
        bool late = now() - start > command->limit;
        if (late || interrupted) {
            kill(-child, SIGKILL);
            waitpid(child, state, 0);
            return late ? GRADER_TIMED_OUT : GRADER_INTERRUPTED;
        }
        if (command->tick != NULL) {
            command->tick(command->argument);
        }
        nanosleep(&pause, NULL);
    }
    kill(-child, SIGKILL); /* whatever it left behind */
    return WIFSIGNALED(*state) ? GRADER_SIGNALLED : GRADER_EXITED;
}

enum status grader_start(const struct grader_command *command, pid_t *child, struct error *error) {
    struct environment environment;
    if (!command->tool && access(command->program, X_OK) != 0) {
        return error_set(error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s",
                         command->program, strerror(errno));
    }
    int log = open(command->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", command->log, strerror(errno));
    }
    if (!environment_create(&environment, command)) {
        close(log);
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", command->program);
    }
    fflush(NULL);
    pid_t parent = getpid();
    *child = fork();
    if (*child == 0) {
        become(command, environment.variables, log, parent);
    }
    environment_free(&environment);
    close(log);
    if (*child < 0) {
        return error_set(error, STATUS_IO, "%s: cannot start: %s", command->program,
                         strerror(errno));
    }
    setpgid(*child, *child); /* whoever comes first */
    return STATUS_OK;
}

enum status run_grader(const struct grader_command *command, struct grader_end *end,
                       struct error *error) {
    pid_t child = -1;
    int state = 0;
    double begin = now();
    *end = (struct grader_end){0};
    TRY(grader_start(command, &child, error));
    end->how = wait_for(child, command, begin, &state);
    end->code = WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state);
    end->seconds = now() - begin;
    return STATUS_OK;
}
