#include "grader/isolation/worker_process.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/testing/testing.h"
#include "grader/harness/crash_handler.h"
#include "grader/harness/summary.h"
#include "grader/isolation/plain_text.h"
#include "grader/isolation/surroundings.h"

/* Where arenas lie, in every process: far from what loaders, CUDA, simt and sanitizers use. */
#define ARENA_BASE UINT64_C(0x300000000000)
#define ARENA_BYTES ((size_t)4 << 30)
enum { ALIGNMENT = 64, MOST_MIB = 12 << 10 };

/* From the end of the channel to that of the process: CUDA gives back all that it has. */
#define LAST_SECONDS 10.0

/* Most that a busy machine makes of a worker's seconds, and a wait that the kernel does not yet
   tell: it does when the wait is over. */
#define MOST_BUSY 10
#define LEAST_WAIT 0.02
#define UNSEEN_WAIT 0.25

bool side_runs(const struct side *side) {
    return side->sandbox != NULL && side->lost[0] == '\0';
}

/* The report limits the files that a graded test writes; memory that is shared is no such file. */
static bool set_size(int file, size_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const struct rlimit most = {limit.rlim_max, limit.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &most);
    bool done = ftruncate(file, (off_t)bytes) == 0;
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, handler);
    return done;
}

/* A file in memory that nobody can shorten: the grader must not fault on it. */
static enum status make_arena(struct side *side, enum remote_side which, struct error *error) {
    uint64_t base = ARENA_BASE + (uint64_t)which * 4 * ARENA_BYTES;
    void *wanted = (void *)(uintptr_t)base;
    side->arena_file = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (side->arena_file < 0 || !set_size(side->arena_file, ARENA_BYTES) ||
        fcntl(side->arena_file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return error_set(error, STATUS_IO, "cannot make memory to share with the learner's code");
    }
    void *got = mmap(wanted, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                     side->arena_file, 0);
    if (got != wanted) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "no addresses for memory to share with the learner's code");
    }
    side->arena = got;
    side->used = SIDE_STAGING;
    return STATUS_OK;
}

/* The grader's own tests set $WARPBOOK_WORKER_MIB to less: they fill it. */
static size_t most_memory(void) {
    const char *less = getenv("WARPBOOK_WORKER_MIB");
    size_t mib = less != NULL ? strtoul(less, NULL, 10) : 0;
    return (mib > 0 && mib < MOST_MIB ? mib : MOST_MIB) << 20;
}

/* What one worker may use: all that a lab needs, and less than would hurt the machine. */
static struct sandbox_limits limits(void) {
    struct sandbox_limits l = sandbox_default_limits();
    l.wall_s = 1800.0;
    l.cpu_s = 4.0 * 3600.0;
    l.memory_bytes = most_memory();
    l.resident = true; /* CUDA and simt reserve more addresses than there is memory */
    l.threads = 1024;
    l.files = 256;
    return l;
}

/* The report's --require-isolation sets the variable for the graded programs. */
static unsigned required_holds(void) {
    const char *all = getenv("WARPBOOK_REQUIRE_ISOLATION");
    return all != NULL && strcmp(all, "1") == 0 ? SANDBOX_HOLDS_ISOLATION : SANDBOX_HOLDS_CALLS;
}

static enum status start_worker(struct side *side, const struct surroundings *s, int theirs,
                                int device, struct error *error) {
    const char *argv[] = {s->worker, NULL};
    const struct sandbox_descriptor handed[] = {
        {theirs, WORKER_CHANNEL}, {side->arena_file, WORKER_ARENA}, {device, WORKER_DEVICE}};
    const struct sandbox_command command = {.argv = argv,
                                            .environment = s->environment,
                                            .descriptors = handed,
                                            .descriptor_count = device >= 0 ? 3 : 2,
                                            .gpu = s->gpu,
                                            .limits = limits(),
                                            .required = required_holds()};
    return sandbox_start(&side->sandbox, &command, error);
}

static enum status start_process(struct side *side, enum remote_side which, int theirs,
                                 struct error *error) {
    struct surroundings s;
    const struct sandbox_limits most = limits();
    int device = -1;
    TRY(surroundings_find(&s, which, error));
    side->modelled = remote_program.device && !s.gpu;
    if (side->modelled && remote_program.device == REMOTE_GPU) {
        TRY(simt_device_start(&side->device, &s, &most, &device, error));
    }
    enum status status = start_worker(side, &s, theirs, device, error);
    if (device >= 0) {
        close(device);
    }
    return status;
}

/* A constructor runs before main(): the first answer never comes. */
static const char *when(const struct side *side) {
    return !side->answered ? " before its first call" : "";
}

/* A process that leaves by itself has not done what it was asked for, whatever its status says. */
static const char *describe(const struct sandbox_result *result, char *text, size_t size) {
    const struct sandbox_limits l = limits();
    if (result->end == SANDBOX_EXITED) {
        snprintf(text, size, "left with exit status %d instead of an answer", result->exit_code);
        return text;
    }
    return sandbox_describe(result, &l, text, size);
}

/* Prints with a mark before each line, and nothing that a terminal would obey. */
static void print_lines(const char *text, size_t size) {
    bool begins = true;
    for (size_t i = 0; i < size;) {
        bool plain;
        size_t length = plain_text_first(text + i, size - i, &plain);
        if (begins) {
            fputs("  | ", stdout);
        }
        begins = text[i] == '\n';
        fwrite(plain ? text + i : "?", plain ? length : 1, 1, stdout);
        i += length;
    }
    if (!begins) {
        putchar('\n');
    }
}

/* A fault of simt that has been printed is not printed again. */
static void print_marked(const char *whose, const char *stream, const struct sandbox_output *out) {
    struct grade_fault fault;
    if (out->size == 0) {
        return;
    }
    printf("%s wrote to %s:\n", whose, stream);
    bool found = grade_summary_fault(out->text, out->size, &fault);
    if (found && fault.again) {
        const char *behind = fault.text + fault.size;
        print_lines(out->text, (size_t)(fault.text - out->text));
        printf("  | (a fault of the same kind at the same line as above)\n");
        print_lines(behind, (size_t)(out->text + out->size - behind));
    } else {
        print_lines(out->text, out->size);
    }
    fflush(stdout);
    if (found && fault.endless) {
        TEST_STOP("a loop does not end: its message stands above; the other tests are not run");
    }
}

/* What the device itself writes is about its start; what its kernels print, the worker prints. */
static void end_device(struct side *side) {
    struct sandbox_result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        abort();
    }
    simt_device_end(&side->device, result);
    print_marked("the emulated GPU", "standard error", &result->error);
    free(result);
}

/* Waits for its end, notes how that came, and prints what it wrote. */
static enum sandbox_end lose(struct side *side, const char *whose, const char *instead) {
    char text[300];
    struct sandbox_result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        abort(); /* the grader itself is out of memory */
    }
    if (instead == NULL && !sandbox_wait(side->sandbox, LAST_SECONDS)) {
        instead = "closed the grader's channel and went on";
    }
    if (instead != NULL) {
        sandbox_stop(side->sandbox);
    }
    sandbox_finish(side->sandbox, result);
    side->sandbox = NULL;
    const char *how = instead != NULL ? instead : describe(result, text, sizeof text);
    snprintf(side->lost, sizeof side->lost, "%s %s%s", whose, how, when(side));
    end_device(side);
    print_marked(whose, "standard output", &result->out);
    print_marked(whose, "standard error", &result->error);
    enum sandbox_end end = result->end;
    free(result);
    return end;
}

static enum status start(struct side *side, enum remote_side which, double seconds,
                         struct error *error) {
    int ends[2];
    struct message message = {.kind = MESSAGE_READY};
    TRY(make_arena(side, which, error));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return error_set(error, STATUS_IO, "cannot make a channel to the learner's code");
    }
    side->channel = ends[0];
    enum status status = start_process(side, which, ends[1], error);
    close(ends[1]);
    if (status != STATUS_OK) {
        return status;
    }
    message.a[0] = (uint64_t)(uintptr_t)side->arena;
    message.a[1] = ARENA_BYTES;
    const char *whose = which == REMOTE_SUBJECT ? "your code" : "the baseline";
    TRY(side_ask(side, &message, seconds, whose, error));
    if (message.status != STATUS_OK) {
        lose(side, whose, "cannot use the memory that it shares with the grader");
        return error_set(error, STATUS_INTERRUPTED, "%s: %s", side->lost, message.text);
    }
    struct simt_reading begun; /* what constructors did is done */
    if (side->device.sandbox != NULL && simt_device_read(&side->device, &begun)) {
        side->device.calls = begun.calls;
        side->device.faults = begun.faults;
    }
    return STATUS_OK;
}

enum status side_start(struct side *side, enum remote_side which, double seconds,
                       struct error *error) {
    struct error own = {0};
    if (side->lost[0] != '\0') {
        return error_set(error, STATUS_INTERRUPTED, "%s", side->lost);
    }
    if (side->sandbox != NULL) {
        return STATUS_OK;
    }
    const char *before = crash_handler_phase("start of a worker");
    enum status status = start(side, which, seconds, &own);
    (void)crash_handler_phase(before);
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (side->lost[0] == '\0') {
        /* Nothing runs, and another try would meet what is left of this one. */
        snprintf(side->lost, sizeof side->lost, "%s", error_text(&own, status));
    }
    return error_set(error, status, "%s", error_text(&own, status));
}

/* Somebody who knows the next number answers before there is a question. */
static uint64_t unforeseen(void) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        abort(); /* this kernel has had it since before it had the sandbox's filter */
    }
    return number;
}

/* The answer to what was asked at `begun`, within `seconds` and what the worker waited for a
   processor since this was added last; looked up only when time is over, as it takes longer than an
   answer. */
static enum status await_answer(struct side *side, struct message *message, double begun,
                                double seconds) {
    double left = seconds, waited = side->waited_s;
    enum status status = message_receive(side->channel, message, seconds);
    while (status == STATUS_INTERRUPTED) {
        double took = message_now() - begun;
        double more =
            sandbox_waited(side->sandbox) + simt_device_waited(&side->device) - side->waited_s;
        if (!(more > LEAST_WAIT)) {
            break;
        }
        waited = side->waited_s + more;
        left = fmin(seconds + more + UNSEEN_WAIT, MOST_BUSY * seconds) - took;
        if (!(left > 0.0)) {
            break;
        }
        status = message_receive(side->channel, message, left + 0.001);
    }
    side->waited_s = waited;
    side->took_s = message_now() - begun;
    side->added_s = fmax(side->took_s - seconds, 0.0);
    return status;
}

/* What ran of somebody else's is still there, unless its owner hides it: the supervisor looks, too.
 */
static enum status check_code(struct side *side, const char *whose, struct error *error) {
    char how[400];
    if (!sandbox_has_foreign_code(side->sandbox, how, sizeof how)) {
        return STATUS_OK;
    }
    lose(side, whose, how);
    return error_set(error, STATUS_INTERRUPTED, "%s", side->lost);
}

enum status side_ask(struct side *side, struct message *message, double seconds, const char *whose,
                     struct error *error) {
    char late[100];
    bool runs = message->kind == MESSAGE_READY || message->kind == MESSAGE_CALL;
    message->number = side->number = unforeseen();
    double begun = message_now(); /* not later: this process may lose its processor */
    enum status status = message_send(side->channel, message);
    if (status == STATUS_OK) {
        status = await_answer(side, message, begun, seconds);
    }
    if (status == STATUS_OK && message->number == side->number) {
        side->answered = true;
        plain_text(message->text);
        return runs ? check_code(side, whose, error) : STATUS_OK;
    }
    snprintf(late, sizeof late, "did not come to an end within %.2g s", seconds);
    side->late = status == STATUS_INTERRUPTED;
    lose(side, whose,
         status == STATUS_INTERRUPTED                         ? late
         : status == STATUS_OK || status == STATUS_BAD_FORMAT ? "wrote to the grader's channel"
                                                              : NULL);
    return error_set(error, STATUS_INTERRUPTED, "%s", side->lost);
}

bool side_is_silent(struct side *side, const char *whose) {
    char first;
    if (side->sandbox == NULL || recv(side->channel, &first, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) {
        return true;
    }
    lose(side, whose, "wrote to the grader's channel");
    return false;
}

bool side_has_device(struct side *side, const char *whose) {
    if (simt_device_attach(&side->device)) {
        return true;
    }
    side_lose_device(side, whose);
    return false;
}

void side_lose_device(struct side *side, const char *whose) {
    const struct sandbox_limits most = limits();
    char how[300];
    if (side->lost[0] != '\0' || side->sandbox == NULL) {
        return;
    }
    struct sandbox_result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        abort();
    }
    simt_device_end(&side->device, result);
    sandbox_describe(result, &most, how, sizeof how);
    print_marked("the emulated GPU", "standard error", &result->error);
    free(result);
    lose(side, whose, "lost the emulated GPU");
    snprintf(side->lost, sizeof side->lost, "the emulated GPU of %s %s", whose, how);
}

enum status side_alloc(struct side *side, void **memory, size_t bytes, struct error *error) {
    size_t room = ARENA_BYTES - side->used;
    if (bytes > room - ALIGNMENT) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "%zu bytes do not fit into what is shared with the learner's code", bytes);
    }
    *memory = side->arena + side->used;
    side->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return STATUS_OK;
}

void side_end(struct side *side, const char *whose) {
    const char *before = crash_handler_phase("end of a worker");
    if (side->sandbox != NULL) {
        struct message none;
        char how[400];
        bool foreign = sandbox_has_foreign_code(side->sandbox, how, sizeof how);
        /* The worker's loop ends, and with it the process, unless something holds it. */
        shutdown(side->channel, SHUT_WR);
        bool stays = message_receive(side->channel, &none, 2.0) == STATUS_INTERRUPTED;
        enum sandbox_end end = lose(side, whose,
                                    foreign ? how
                                    : stays ? "stayed when its work was done"
                                            : NULL);
        if (foreign || end == SANDBOX_FOREIGN_CODE || end == SANDBOX_WENT_ON) {
            TEST_FAIL("%s", side->lost); /* with all that it has answered */
        }
    }
    end_device(side); /* where the worker did not start */
    if (side->channel > 0) {
        close(side->channel);
    }
    if (side->arena != NULL) {
        munmap(side->arena, ARENA_BYTES);
    }
    if (side->arena_file > 0) {
        close(side->arena_file);
    }
    *side = (struct side){0};
    (void)crash_handler_phase(before);
}
