#include "grader/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "grader/sandbox/child.h"
#include "grader/sandbox/code_files.h"
#include "grader/sandbox/processes.h"
#include "grader/sandbox/supervisor.h"
#include "grader/sandbox/temporary_folder.h"

/* What a supervisor may take beyond the wall limit: starting, killing, cleaning up. */
enum { GRACE_S = 10 };

struct sandbox {
    pid_t supervisor;
    int lifeline; /* write end: closing it ends the program */
    int done;     /* read end: closes with the supervisor */
    struct supervisor_shared *shared;
    struct timespec deadline;
    char program[PATH_MAX];
    struct code_files code;
    bool gpu;
};

struct sandbox_limits sandbox_default_limits(void) {
    return (struct sandbox_limits){.wall_s = 10,
                                   .cpu_s = 20,
                                   .memory_bytes = (size_t)1 << 30,
                                   .threads = 64,
                                   .files = 64,
                                   .file_bytes = (size_t)64 << 20,
                                   .stack_bytes = (size_t)8 << 20};
}

static enum status check_limits(const struct sandbox_limits *limits, struct error *error) {
    const struct {
        const char *name;
        double value;
    } all[] = {{"wall_s", limits->wall_s},
               {"cpu_s", limits->cpu_s},
               {"memory_bytes", (double)limits->memory_bytes},
               {"threads", limits->threads},
               {"files", limits->files},
               {"file_bytes", (double)limits->file_bytes},
               {"stack_bytes", (double)limits->stack_bytes}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(all[i].value > 0 && all[i].value <= 1e18)) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "sandbox: %s is %g, not above 0",
                             all[i].name, all[i].value);
        }
    }
    if (limits->wall_s > 1e6 || limits->cpu_s > 1e6) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "sandbox: a limit of more than 1e6 s");
    }
    return STATUS_OK;
}

static enum status check_command(const struct sandbox_command *command, struct error *error) {
    if (command->argv == NULL || command->argv[0] == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "sandbox: no program");
    }
    for (size_t i = 0; i < command->descriptor_count; i++) {
        const struct sandbox_descriptor *descriptor = &command->descriptors[i];
        if (fcntl(descriptor->ours, F_GETFD) < 0) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "sandbox: descriptor %d is not open",
                             descriptor->ours);
        }
        if (descriptor->theirs < 0 || descriptor->theirs >= CHILD_DESCRIPTORS) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "sandbox: descriptor %d for the program is not in 0 to %d",
                             descriptor->theirs, CHILD_DESCRIPTORS - 1);
        }
    }
    return check_limits(&command->limits, error);
}

/* The program's path as it stands in the result when it is not there, else the whole path. */
static enum status find_program(const char *name, char *path, struct error *error) {
    if (realpath(name, path) == NULL && snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX) {
        return error_set(error, STATUS_TOO_LONG, "sandbox: the program's path is too long");
    }
    return STATUS_OK;
}

static unsigned close_memory(const struct sandbox_command *command) {
    bool closed =
        (command->without & SANDBOX_HOLDS_MEMORY) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
    return closed ? SANDBOX_HOLDS_MEMORY : 0;
}

static struct supervisor_shared *share(void) {
    void *memory = mmap(NULL, sizeof(struct supervisor_shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Forks the supervisor. The pipes' other ends are its own then. */
static enum status fork_supervisor(struct sandbox *sandbox, const struct sandbox_command *command,
                                   struct error *error) {
    int lifeline[2], done[2];
    if (pipe2(lifeline, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_IO, "sandbox: no pipe: %s", strerror(errno));
    }
    if (pipe2(done, O_CLOEXEC) != 0) {
        close(lifeline[0]);
        close(lifeline[1]);
        return error_set(error, STATUS_IO, "sandbox: no pipe: %s", strerror(errno));
    }
    struct supervisor_plan plan = {.command = command,
                                   .program = sandbox->program,
                                   .code = &sandbox->code,
                                   .lifeline = lifeline[0],
                                   .done = done[1],
                                   .holds = close_memory(command),
                                   .shared = sandbox->shared};
    sandbox->supervisor = fork();
    if (sandbox->supervisor == 0) {
        supervisor_run(&plan);
    }
    int failure = errno;
    close(lifeline[0]);
    close(done[1]);
    sandbox->lifeline = lifeline[1];
    sandbox->done = done[0];
    return sandbox->supervisor > 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "sandbox: no process: %s", strerror(failure));
}

static void release(struct sandbox *sandbox) {
    if (sandbox->lifeline >= 0) {
        close(sandbox->lifeline);
    }
    if (sandbox->done >= 0) {
        close(sandbox->done);
    }
    if (sandbox->shared != NULL) {
        const char *folder = sandbox->shared->folder;
        if (folder[0] != '\0' && access(folder, F_OK) == 0) {
            folder_remove(folder); /* only when the supervisor could not */
        }
        munmap(sandbox->shared, sizeof *sandbox->shared);
    }
    code_files_free(&sandbox->code);
    free(sandbox);
}

static enum status find_code(struct sandbox *sandbox, const struct sandbox_command *command,
                             struct error *error) {
    struct code_files *code = &sandbox->code;
    sandbox->gpu = command->gpu;
    TRY(code_files_add(code, sandbox->program, command->environment,
                       command->gpu ? CODE_FILES_DRIVER : NULL, error));
    if (command->loads != NULL) {
        TRY(code_files_add(code, command->loads, command->environment, command->loads_by_name,
                           error));
    }
    for (const char *const *program = command->programs; program != NULL && *program != NULL;
         program++) {
        TRY(code_files_add(code, *program, command->environment, NULL, error));
    }
    return STATUS_OK;
}

static enum status start(struct sandbox *sandbox, const struct sandbox_command *command,
                         struct error *error) {
    sandbox->shared = share();
    if (sandbox->shared == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "sandbox: no memory for the result");
    }
    TRY(find_program(command->argv[0], sandbox->program, error));
    TRY(find_code(sandbox, command, error));
    clock_gettime(CLOCK_MONOTONIC, &sandbox->deadline);
    sandbox->deadline.tv_sec += (time_t)command->limits.wall_s + 1 + GRACE_S;
    return fork_supervisor(sandbox, command, error);
}

enum status sandbox_start(struct sandbox **result, const struct sandbox_command *command,
                          struct error *error) {
    *result = NULL;
    TRY(check_command(command, error));
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);
    if (sandbox == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "sandbox: no memory");
    }
    sandbox->lifeline = sandbox->done = -1;
    enum status status = start(sandbox, command, error);
    if (status != STATUS_OK) {
        release(sandbox);
        return status;
    }
    *result = sandbox;
    return STATUS_OK;
}

void sandbox_stop(struct sandbox *sandbox) {
    if (sandbox->lifeline >= 0) {
        close(sandbox->lifeline);
        sandbox->lifeline = -1;
    }
}

double sandbox_waited(const struct sandbox *sandbox) {
    pid_t pid = sandbox->shared->result.pid;
    return pid > 0 ? processes_waited(pid) : 0.0;
}

double sandbox_ran(const struct sandbox *sandbox) {
    pid_t pid = sandbox->shared->result.pid;
    clockid_t clock;
    struct timespec ran;
    bool known =
        pid > 0 && clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &ran) == 0;
    return known ? (double)ran.tv_sec + 1e-9 * (double)ran.tv_nsec : 0.0;
}

bool sandbox_has_foreign_code(const struct sandbox *sandbox, char *what, size_t size) {
    char name[CODE_NAME];
    pid_t pid = sandbox->shared->result.pid;
    if (pid <= 0 || !code_is_foreign(pid, &sandbox->code, sandbox->gpu, name)) {
        return false;
    }
    describe_code(name, what, size);
    return true;
}

bool sandbox_wait(const struct sandbox *sandbox, double seconds) {
    struct pollfd done = {.fd = sandbox->done, .events = POLLIN};
    int ready;
    do {
        ready = poll(&done, 1, (int)(1e3 * seconds));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

void sandbox_pause(struct sandbox *sandbox, bool pause) {
    atomic_store(&sandbox->shared->pause, pause);
    for (int i = 0; i < 500 && atomic_load(&sandbox->shared->paused) != (int)pause; i++) {
        if (sandbox_wait(sandbox, 1e-3)) {
            return;
        }
    }
}

/* Waits until the supervisor has ended. @return whether it did before the deadline */
static bool wait_for_supervisor(const struct sandbox *sandbox) {
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        long long left = (long long)(sandbox->deadline.tv_sec - now.tv_sec) * 1000;
        if (left <= 0) {
            return false;
        }
        struct pollfd done = {.fd = sandbox->done, .events = POLLIN};
        if (poll(&done, 1, (int)(left < INT_MAX ? left : INT_MAX)) > 0) {
            return true;
        }
    }
}

/* The supervisor itself is gone without a word: somebody killed it, or nothing could move it. */
static void judge_without_supervisor(struct sandbox_result *result, bool in_time) {
    result->end = in_time ? SANDBOX_UNWATCHED : SANDBOX_WALL_LIMIT;
    result->exit_code = -1;
    result->out = result->error = (struct sandbox_output){0};
}

void sandbox_finish(struct sandbox *sandbox, struct sandbox_result *result) {
    bool in_time = wait_for_supervisor(sandbox);
    bool done = atomic_load(&sandbox->shared->done) != 0;
    if (!done && sandbox->supervisor > 0) {
        kill(sandbox->supervisor, SIGKILL); /* the program dies with it */
    }
    while (waitpid(sandbox->supervisor, NULL, 0) < 0 && errno == EINTR) {
    }
    *result = sandbox->shared->result;
    if (!done) {
        judge_without_supervisor(result, in_time);
    }
    release(sandbox);
}

enum status sandbox_run(const struct sandbox_command *command, struct sandbox_result *result,
                        struct error *error) {
    struct sandbox *sandbox;
    TRY(sandbox_start(&sandbox, command, error));
    sandbox_finish(sandbox, result);
    return STATUS_OK;
}

/* The program is not there: all is put in force before that shows. */
enum status sandbox_find_holds(unsigned without, unsigned *holds, struct error *error) {
    static const char *const nothing[] = {"/nothing/to/run", NULL};
    const struct sandbox_command command = {
        .argv = nothing, .limits = sandbox_default_limits(), .without = without};
    struct sandbox_result *result = calloc(1, sizeof *result);
    *holds = 0;
    if (result == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "sandbox: no memory");
    }
    enum status status = sandbox_run(&command, result, error);
    *holds = status == STATUS_OK ? result->holds : 0;
    free(result);
    return status;
}
