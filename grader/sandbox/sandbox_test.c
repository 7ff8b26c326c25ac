#include "grader/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/testing/testing.h"

/* As BUILD puts it beside this test. */
static const char hostile[] = "grader/sandbox/hostile";

enum {
    FILES = SANDBOX_HOLDS_READS | SANDBOX_HOLDS_WRITES,
    CALLS = SANDBOX_HOLDS_CALLS | SANDBOX_HOLDS_NAMES,
    WITNESS = 9 /* a pipe's end in the program: it closes when nobody holds it any more */
};

/* A hostile program, and its result. Limits are far away unless a test brings them near. */
struct trial {
    const char *argv[4];
    struct sandbox_command command;
    struct sandbox_result result;
};

static struct trial *trial(const char *word, const char *argument) {
    struct trial *t = calloc(1, sizeof *t);
    if (t == NULL) {
        abort();
    }
    t->argv[0] = hostile;
    t->argv[1] = word;
    t->argv[2] = argument;
    t->command.argv = t->argv;
    t->command.limits = sandbox_default_limits();
    t->command.limits.wall_s = 60;
    t->command.limits.cpu_s = 60;
    t->command.limits.memory_bytes = (size_t)256 << 20;
    return t;
}

/* A test with one trial, `t`. */
#define TRIAL_TEST(name, word, argument)               \
    static void body_##name(struct trial *);           \
    C_TEST(sandbox, name) {                            \
        struct trial *created = trial(word, argument); \
        body_##name(created);                          \
        free(created);                                 \
    }                                                  \
    static void body_##name(struct trial *t)

/* How many entries the test's own folder has. */
static int count_entries(void) {
    const char *path = getenv("TEST_TMPDIR");
    DIR *dir = opendir(path == NULL ? "/tmp" : path);
    int count = 0;
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += strncmp(entry->d_name, "sandbox.", 8) == 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* Does anybody still hold the other end? */
static bool held(int fd) {
    struct pollfd end = {.fd = fd, .events = POLLIN};
    return poll(&end, 1, 0) == 0;
}

/* Where this test is process 1 of a container, whoever loses its parent becomes its child. */
static void reap_adopted(void) {
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

/* Runs it; whatever it is, nothing may stay: no process, no child, no folder. */
static void run(struct trial *t) {
    int witness[2];
    int before = count_entries();
    struct error error = {0};
    ASSERT_TRUE(pipe2(witness, O_CLOEXEC) == 0);
    struct sandbox_descriptor handed = {.ours = witness[1], .theirs = WITNESS};
    if (t->command.descriptors == NULL) {
        t->command.descriptors = &handed;
        t->command.descriptor_count = 1;
    }
    ASSERT_OK(sandbox_run(&t->command, &t->result, &error));
    close(witness[1]);
    EXPECT_TRUE(!held(witness[0]));
    close(witness[0]);
    EXPECT_TRUE(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    EXPECT_TRUE(t->result.pid == 0 || (kill(t->result.pid, 0) == -1 && errno == ESRCH));
    EXPECT_INT_EQ(0, t->result.unkillable);
    EXPECT_INT_EQ(before, count_entries());
}

static bool lacks(const struct trial *t, unsigned what) {
    return (t->result.holds & what) != what;
}

static void expect_end(const struct trial *t, enum sandbox_end end) {
    char text[512];
    if (t->result.end != end) {
        TEST_FAIL("%s %s; stderr: %.200s", t->argv[1],
                  sandbox_describe(&t->result, &t->command.limits, text, sizeof text),
                  t->result.error.text);
    }
}

static void run_to(struct trial *t, enum sandbox_end end) {
    run(t);
    expect_end(t, end);
}

static void run_to_exit(struct trial *t, int code) {
    run_to(t, SANDBOX_EXITED);
    EXPECT_INT_EQ(code, t->result.exit_code);
}

static void expect_exit(const char *word, const char *argument, int code) {
    struct trial *t = trial(word, argument);
    run_to_exit(t, code);
    EXPECT_INT_EQ(0, t->result.left_behind);
    free(t);
}

static void expect_signal(const char *word, const char *argument, int number) {
    struct trial *t = trial(word, argument);
    run_to(t, SANDBOX_SIGNALLED);
    EXPECT_INT_EQ(number, t->result.signal);
    free(t);
}

/*
 * The call must end it, by name where the kernel says the name. Where nothing
 * filters calls it does not run at all: some of them would do real harm.
 */
static void expect_refused(const char *word, const char *argument, const char *call) {
    struct trial *t = trial(word, argument);
    t->command.required = SANDBOX_HOLDS_CALLS;
    run(t);
    if (lacks(t, SANDBOX_HOLDS_CALLS)) {
        expect_end(t, SANDBOX_COULD_NOT_START);
    } else {
        expect_end(t, SANDBOX_REFUSED_CALL);
        EXPECT_STR_EQ(lacks(t, SANDBOX_HOLDS_NAMES) ? "" : call, t->result.call);
    }
    free(t);
}

/* --- It starts --- */

TRIAL_TEST(tells_what_holds, "exit", "0") {
    char text[512];
    run_to(t, SANDBOX_EXITED);
    EXPECT_TRUE(!lacks(t, SANDBOX_HOLDS_PRIVILEGES | SANDBOX_HOLDS_MEMORY | SANDBOX_HOLDS_ORPHANS |
                              SANDBOX_HOLDS_COUNTS));
    printf("this kernel lacks: %s\n", sandbox_lacks(&t->result, ~0u, text, sizeof text));
}

C_TEST(sandbox, gives_the_exit_status) {
    expect_exit("exit", "0", 0);
    expect_exit("exit", "7", 7);
    expect_exit("exit", "255", 255);
    expect_exit("no such word", NULL, 9);
}

TRIAL_TEST(tells_what_it_used, "lines", NULL) {
    run_to(t, SANDBOX_EXITED);
    EXPECT_TRUE(t->result.wall_s > 0 && t->result.wall_s < 60);
    EXPECT_TRUE(t->result.user_s + t->result.system_s > 0);
    EXPECT_TRUE(t->result.resident_bytes > 100000);
}

TRIAL_TEST(says_why_it_could_not_start, "exit", "0") {
    t->argv[0] = "/proc/nowhere/at/all";
    run_to(t, SANDBOX_COULD_NOT_START);
    EXPECT_STR_EQ("/proc/nowhere/at/all: No such file or directory", t->result.reason);
    t->argv[0] = "/etc/ld.so.cache";
    run_to(t, SANDBOX_COULD_NOT_START);
    EXPECT_STR_EQ("/etc/ld.so.cache: Permission denied", t->result.reason);
    char path[300];
    memset(path, '/', sizeof path);
    snprintf(path + 200, sizeof path - 200, "/proc/nowhere/at/all");
    t->argv[0] = path;
    run_to(t, SANDBOX_COULD_NOT_START);
    EXPECT_TRUE(strncmp(t->result.reason, ".../", 4) == 0 &&
                strstr(t->result.reason, "/proc/nowhere/at/all: No such file or directory") !=
                    NULL);
}

TRIAL_TEST(refuses_to_start_without_what_is_required, "exit", "0") {
    t->command.required = SANDBOX_HOLDS_READS;
    t->command.without = SANDBOX_HOLDS_READS;
    run_to(t, SANDBOX_COULD_NOT_START);
    EXPECT_STR_EQ("this kernel lacks what is required: files outside its folder not readable "
                  "(Landlock)",
                  t->result.reason);
}

static void expect_bad_command(const struct trial *t, const char *message) {
    struct sandbox *sandbox;
    struct error error = {0};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, sandbox_start(&sandbox, &t->command, &error));
    EXPECT_STR_EQ(message, error.message);
    EXPECT_TRUE(sandbox == NULL);
}

TRIAL_TEST(refuses_bad_commands, "exit", "0") {
    struct sandbox_descriptor closed = {.ours = 900, .theirs = 3};
    t->command.descriptors = &closed;
    t->command.descriptor_count = 1;
    expect_bad_command(t, "sandbox: descriptor 900 is not open");
    closed = (struct sandbox_descriptor){.ours = 0, .theirs = 64};
    expect_bad_command(t, "sandbox: descriptor 64 for the program is not in 0 to 63");
    t->command.descriptor_count = 0;
    t->command.limits.cpu_s = 0;
    expect_bad_command(t, "sandbox: cpu_s is 0, not above 0");
    t->command.argv = NULL;
    expect_bad_command(t, "sandbox: no program");
}

/* --- Time --- */

static void expect_wall_limit(const char *word) {
    struct trial *t = trial(word, NULL);
    t->command.limits.wall_s = 0.3;
    run_to(t, SANDBOX_WALL_LIMIT);
    EXPECT_TRUE(t->result.wall_s >= 0.3 && t->result.wall_s < 20);
    EXPECT_INT_EQ(-1, t->result.exit_code);
    free(t);
}

C_TEST(sandbox, stops_a_loop_at_the_wall_limit) {
    expect_wall_limit("loop");
}

TRIAL_TEST(stops_a_loop_at_the_cpu_limit, "loop", NULL) {
    t->command.limits.cpu_s = 0.2;
    run_to(t, SANDBOX_CPU_LIMIT);
    EXPECT_TRUE(t->result.user_s + t->result.system_s >= 0.19);
}

C_TEST(sandbox, stops_one_that_sleeps_and_ignores_signals) {
    expect_wall_limit("sleep");
}

C_TEST(sandbox, stops_one_that_has_stopped_itself) {
    expect_wall_limit("stop");
}

/* --- Processes --- */

C_TEST(sandbox, refuses_processes) {
    expect_refused("forks", NULL, "clone");
    expect_refused("orphan", NULL, "clone");
    expect_refused("system", NULL, "clone");
#ifdef __x86_64__
    expect_refused("vfork", NULL, "vfork");
#endif
}

C_TEST(sandbox, refuses_other_programs) {
    expect_refused("exec", NULL, "execve");
}

TRIAL_TEST(counts_processes_without_the_filter, "forks", NULL) {
    t->command.without = CALLS;
    t->command.limits.threads = 20;
    run_to(t, SANDBOX_THREAD_LIMIT);
    EXPECT_TRUE(t->result.left_behind >= 20);
}

TRIAL_TEST(finds_orphans_without_the_filter, "orphan", NULL) {
    t->command.without = CALLS;
    run_to_exit(t, 0);
    EXPECT_INT_EQ(1, t->result.left_behind);
}

C_TEST(sandbox, counts_threads) {
    struct trial *t = trial("threads", NULL);
    t->command.limits.threads = 40;
    run_to(t, SANDBOX_THREAD_LIMIT);
    free(t);
    expect_exit("few_threads", NULL, 0);
}

/* --- Memory --- */

/* What is asked for at once is refused before it is there, and by name where the kernel can. */
static void expect_memory_limit(const char *word, bool resident, unsigned without) {
    struct trial *t = trial(word, NULL);
    t->command.limits.memory_bytes = (size_t)64 << 20;
    t->command.limits.resident = resident;
    t->command.without = without;
    run(t);
    bool at_once = !resident && strcmp(word, "pieces") != 0;
    if (at_once && lacks(t, CALLS)) {
        expect_end(t, SANDBOX_EXITED);
        EXPECT_INT_EQ(3, t->result.exit_code);
    } else {
        expect_end(t, SANDBOX_MEMORY_LIMIT);
        EXPECT_TRUE((t->result.asked_bytes >= (uint64_t)100 << 30) == at_once);
    }
    free(t);
}

C_TEST(sandbox, stops_what_asks_for_too_much_memory) {
    expect_memory_limit("malloc", false, 0);
    expect_memory_limit("mmap", false, 0);
    expect_memory_limit("pieces", false, 0);
    expect_memory_limit("mmap", false, SANDBOX_HOLDS_NAMES);
    expect_memory_limit("mmap", false, CALLS);
    expect_memory_limit("pieces", false, CALLS);
}

C_TEST(sandbox, stops_what_touches_too_much_memory) {
    expect_memory_limit("mmap", true, 0);
    expect_memory_limit("pieces", true, 0);
    expect_memory_limit("pieces", true, CALLS);
}

C_TEST(sandbox, survives_a_full_stack) {
    expect_signal("stack", NULL, SIGSEGV);
}

/* --- Output and files --- */

/* On a busy machine it may need more than half a second to write that much. */
TRIAL_TEST(reads_an_endless_output, "flood", NULL) {
    t->command.limits.wall_s = 0.5;
    do {
        run_to(t, SANDBOX_WALL_LIMIT);
        t->command.limits.wall_s *= 2;
    } while (t->result.error.total <= SANDBOX_KEPT && t->command.limits.wall_s < 20);
    EXPECT_TRUE(t->result.out.total > SANDBOX_KEPT && t->result.error.total > SANDBOX_KEPT);
    EXPECT_TRUE(t->result.out.size < sizeof t->result.out.text);
    EXPECT_TRUE(strstr(t->result.out.text, " bytes left out]\n") != NULL);
}

TRIAL_TEST(keeps_the_beginning_and_the_end_of_the_output, "lines", NULL) {
    run(t);
    const struct sandbox_output *out = &t->result.out;
    EXPECT_INT_EQ(17 * 65536, out->total);
    EXPECT_INT_EQ(17 * 65536 - SANDBOX_KEPT, out->missed);
    EXPECT_TRUE(strncmp(out->text, "line number 0000\nline number 0001\n", 34) == 0);
    EXPECT_STR_EQ("line number fffe\nline number ffff\n", out->text + out->size - 34);
    EXPECT_TRUE(strstr(out->text, "\n[1048576 bytes left out]\n") != NULL);
    EXPECT_INT_EQ(0, t->result.error.total);
}

C_TEST(sandbox, limits_files_in_size_and_number) {
    static const char *const words[] = {"file", "files", "large_files"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct trial *t = trial(words[i], NULL);
        t->command.limits.file_bytes = i == 1 ? 64 << 20 : 1 << 20;
        t->command.required = SANDBOX_HOLDS_READS; /* without it nothing is written at all */
        run(t);
        if (!lacks(t, SANDBOX_HOLDS_READS)) {
            expect_end(t, SANDBOX_FILE_LIMIT);
        }
        free(t);
    }
}

C_TEST(sandbox, gives_an_empty_folder_for_files) {
    struct trial *t = trial("scratch", NULL);
    run(t);
    bool closed = !lacks(t, SANDBOX_HOLDS_WRITES); /* by Landlock, or else by the filter */
    EXPECT_INT_EQ(closed && lacks(t, SANDBOX_HOLDS_READS) ? 3 : 0, t->result.exit_code);
    free(t);
    if (closed) {
        expect_exit("folder", NULL, 3);
    }
}

TRIAL_TEST(removes_whatever_is_in_the_folder, "litter", NULL) {
    t->command.without = FILES | CALLS;
    run_to_exit(t, 0);
}

/* A file that the sandbox does not know of; an earlier run may have changed the rights of its own.
 */
static const char *secret_file(char *path, size_t size) {
    (void)unlink(test_temporary_path("secret", path, size));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    EXPECT_TRUE(fd >= 0 && write(fd, "seed", 4) == 4);
    close(fd);
    return path;
}

C_TEST(sandbox, reads_no_other_files) {
    char path[4096];
    struct trial *t = trial("read_file", secret_file(path, sizeof path));
    run_to(t, SANDBOX_EXITED);
    EXPECT_INT_EQ(lacks(t, SANDBOX_HOLDS_READS) ? 0 : 3, t->result.exit_code);
    const char *readable[] = {path, NULL};
    t->command.readable = readable;
    run(t);
    EXPECT_INT_EQ(0, t->result.exit_code);
    free(t);
}

static void expect_no_writes(unsigned without) {
    char path[4096];
    struct stat status;
    struct trial *t = trial("write_file", secret_file(path, sizeof path));
    const char *readable[] = {path, NULL};
    t->command.readable = readable;
    t->command.without = without;
    run_to(t, SANDBOX_EXITED);
    if (!lacks(t, SANDBOX_HOLDS_WRITES)) {
        EXPECT_TRUE(stat(path, &status) == 0 && status.st_size == 4);
    }
    if (!lacks(t, SANDBOX_HOLDS_WRITES | SANDBOX_HOLDS_CALLS)) { /* chmod() is a call's business */
        EXPECT_INT_EQ(3, t->result.exit_code);
        EXPECT_INT_EQ(0600, status.st_mode & 0777);
    }
    free(t);
}

C_TEST(sandbox, writes_no_other_files) {
    expect_no_writes(0);
}

C_TEST(sandbox, writes_no_other_files_without_landlock) {
    expect_no_writes(SANDBOX_HOLDS_READS);
}

C_TEST(sandbox, finds_what_holds_here) {
    unsigned holds = 0, fewer = 0;
    struct trial *t = trial("exit", "0");
    ASSERT_OK(sandbox_find_holds(0, &holds, NULL));
    run_to(t, SANDBOX_EXITED);
    EXPECT_INT_EQ(t->result.holds, holds);
    free(t);
    ASSERT_OK(sandbox_find_holds(SANDBOX_HOLDS_READS | SANDBOX_HOLDS_NAMES, &fewer, NULL));
    EXPECT_INT_EQ(0, fewer & (SANDBOX_HOLDS_READS | SANDBOX_HOLDS_NAMES));
}

/* --- Code that is not its own --- */

/* Ended for it; without notifications the kernel ends it, and says less. */
static void expect_no_code(const char *word, const char *argument, unsigned without) {
    struct trial *t = trial(word, argument);
    t->command.without = without;
    run(t);
    if (!lacks(t, SANDBOX_HOLDS_NAMES)) {
        expect_end(t, SANDBOX_FOREIGN_CODE);
    } else if (!lacks(t, SANDBOX_HOLDS_CALLS)) {
        expect_end(t, SANDBOX_REFUSED_CALL);
    }
    free(t);
}

C_TEST(sandbox, lets_no_memory_become_code) {
    expect_no_code("map_code", NULL, 0);
    expect_no_code("protect_code", NULL, 0);
    expect_no_code("map_code", NULL, SANDBOX_HOLDS_NAMES);
    expect_no_code("protect_code", NULL, SANDBOX_HOLDS_NAMES);
    struct trial *t = trial("personality", NULL);
    run(t);
    expect_end(t, lacks(t, SANDBOX_HOLDS_CALLS) ? SANDBOX_EXITED : SANDBOX_REFUSED_CALL);
    free(t);
}

/* Where nobody can be asked about a file, the supervisor sees what it was mapped as. */
C_TEST(sandbox, lets_no_file_of_its_own_become_code) {
    char text[512];
    for (int asked = 0; asked < 2; asked++) {
        struct trial *t = trial("map_file", asked ? "0" : "60");
        t->command.without = asked ? 0 : SANDBOX_HOLDS_NAMES;
        run(t);
        /* Without Landlock it can make no file; else it is seen as soon as anybody looks. */
        if (lacks(t, SANDBOX_HOLDS_READS)) {
            expect_end(t, SANDBOX_EXITED);
        } else if (!asked || !lacks(t, SANDBOX_HOLDS_NAMES)) {
            expect_end(t, SANDBOX_FOREIGN_CODE);
            sandbox_describe(&t->result, &t->command.limits, text, sizeof text);
            EXPECT_STR_CONTAINS("/mine.so, which is not allowed here", text);
        }
        free(t);
    }
}

TRIAL_TEST(lets_honest_code_be, "own_code", NULL) {
    run_to(t, SANDBOX_EXITED);
    EXPECT_INT_EQ(0, t->result.exit_code);
}

/* --- Its parent --- */

static void expect_no_memory(const char *word, unsigned without) {
    static const char secret = 'x';
    char address[32];
    snprintf(address, sizeof address, "%p", (const void *)&secret);
    struct trial *t = trial(word, address);
    t->command.without = without;
    run(t);
    if (t->result.end != SANDBOX_REFUSED_CALL) {
        expect_end(t, SANDBOX_EXITED);
        EXPECT_INT_EQ(3, t->result.exit_code);
    }
    free(t);
}

C_TEST(sandbox, keeps_its_memory_to_itself) {
    expect_no_memory("parent_memory", 0);
    expect_no_memory("parent_memory", SANDBOX_HOLDS_READS);
    expect_no_memory("parent_memory", SANDBOX_HOLDS_MEMORY);
    expect_no_memory("parent_environment", 0);
    expect_no_memory("vm_read", CALLS);
    expect_no_memory("vm_read", CALLS | SANDBOX_HOLDS_READS);
    expect_no_memory("vm_read", CALLS | SANDBOX_HOLDS_MEMORY);
    expect_no_memory("ptrace", CALLS);
    expect_no_memory("ptrace", CALLS | SANDBOX_HOLDS_READS);
    expect_no_memory("ptrace", CALLS | SANDBOX_HOLDS_MEMORY);
    expect_refused("vm_read", "0", "process_vm_readv");
    expect_refused("ptrace", NULL, "ptrace");
}

C_TEST(sandbox, survives_a_program_that_kills) {
    expect_refused("kill_parent", NULL, "kill");
    expect_refused("kill_disturbed", NULL, "kill");
    expect_refused("kill_all", NULL, "kill");
    expect_refused("tgkill", NULL, "tgkill");
    expect_refused("fcntl_signal", NULL, "fcntl");
    expect_refused("limits_of_parent", NULL, "prlimit64");
}

TRIAL_TEST(makes_nobody_else_nicer, "priorities", NULL) {
    t->command.required = CALLS; /* without the filter it would work, on all of this user's */
    run(t);
    if (t->result.end != SANDBOX_COULD_NOT_START) {
        expect_end(t, SANDBOX_EXITED);
        EXPECT_INT_EQ(3, t->result.exit_code);
    }
}

TRIAL_TEST(survives_a_program_that_kills_without_the_filter, "kill_parent", NULL) {
    t->command.without = CALLS;
    t->command.required = SANDBOX_HOLDS_SIGNALS;
    run(t);
    if (t->result.end != SANDBOX_COULD_NOT_START) {
        expect_end(t, SANDBOX_EXITED);
        EXPECT_INT_EQ(3, t->result.exit_code);
    }
}

TRIAL_TEST(survives_the_death_of_its_supervisor, "kill_parent", NULL) {
    t->command.without = CALLS | SANDBOX_HOLDS_READS;
    struct error error = {0};
    int witness[2];
    char byte;
    ASSERT_TRUE(pipe2(witness, O_CLOEXEC) == 0);
    struct sandbox_descriptor handed = {.ours = witness[1], .theirs = WITNESS};
    t->command.descriptors = &handed;
    t->command.descriptor_count = 1;
    ASSERT_OK(sandbox_run(&t->command, &t->result, &error));
    close(witness[1]);
    expect_end(t, SANDBOX_UNWATCHED);
    EXPECT_INT_EQ(0, count_entries());
    EXPECT_INT_EQ(0, read(witness[0], &byte, 1));
    close(witness[0]);
    reap_adopted();
}

/* --- What it is and has --- */

C_TEST(sandbox, cannot_raise_its_limits) {
    expect_exit("limits", NULL, 3);
}

C_TEST(sandbox, has_no_capabilities) {
    expect_exit("capabilities", NULL, 3);
}

C_TEST(sandbox, gives_the_environment_that_is_named) {
    expect_exit("environment", NULL, 0);
    struct trial *t = trial("environment", NULL);
    const char *environment[] = {"LAB=04_sgemm", "SIMT_GPU=T4", NULL};
    t->command.environment = environment;
    run(t);
    EXPECT_INT_EQ(2, t->result.exit_code);
    EXPECT_STR_EQ("LAB=04_sgemm\nSIMT_GPU=T4\n", t->result.out.text);
    free(t);
}

TRIAL_TEST(gives_the_descriptors_that_are_named, "descriptors", NULL) {
    int open_here = open("/dev/null", O_RDONLY); /* without close-on-exec */
    int high = fcntl(open_here, F_DUPFD, 200);
    run(t);
    EXPECT_STR_EQ("0 1 2 9 ", t->result.out.text);
    close(open_here);
    close(high);
}

C_TEST(sandbox, closes_what_a_program_closes) {
    expect_exit("close_all", NULL, 0);
}

C_TEST(sandbox, cannot_undo_what_was_set) {
    expect_refused("undo", NULL, "prctl");
    expect_refused("undo_wide", NULL, "prctl");
}

/* --- Beyond --- */

C_TEST(sandbox, refuses_the_network) {
    expect_refused("socket", NULL, "socket");
    expect_refused("unix_socket", NULL, "socket");
    expect_refused("connect", NULL, "connect");
}

C_TEST(sandbox, refuses_what_reaches_into_the_system) {
    expect_refused("shm", NULL, "shmget");
    expect_refused("wakes_itself", NULL, "timer_create");
    expect_refused("unshare", NULL, "unshare");
    expect_refused("io_uring", NULL, "io_uring_setup");
    expect_refused("perf", NULL, "perf_event_open");
}

TRIAL_TEST(refuses_without_naming, "socket", NULL) {
    t->command.without = SANDBOX_HOLDS_NAMES;
    run(t);
    if (!lacks(t, SANDBOX_HOLDS_CALLS)) {
        expect_end(t, SANDBOX_REFUSED_CALL);
        EXPECT_STR_EQ("", t->result.call);
        EXPECT_INT_EQ(SIGSYS, t->result.signal);
    }
}

#ifdef __x86_64__
C_TEST(sandbox, refuses_other_gates) {
    struct trial *t = trial("old_gate", NULL);
    run(t);
    /* Some kernels have closed it: a fault. */
    EXPECT_TRUE(lacks(t, SANDBOX_HOLDS_CALLS) || t->result.end == SANDBOX_REFUSED_CALL ||
                t->result.signal == SIGSEGV);
    free(t);
    expect_refused("short_pointers", NULL, "");
}
#endif

/* --- With a GPU's rights --- */

C_TEST(sandbox, gives_a_gpu_program_no_more_than_it_needs) {
    static const struct {
        const char *word;
        enum sandbox_end end;
        int exit_code;
    } cases[] = {{"unix_socket", SANDBOX_EXITED, 0}, {"socket", SANDBOX_REFUSED_CALL, -1},
                 {"system", SANDBOX_EXITED, 3},      {"kill_parent", SANDBOX_REFUSED_CALL, -1},
                 {"connect", SANDBOX_EXITED, 3},     {"wakes_itself", SANDBOX_EXITED, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial *t = trial(cases[i].word, NULL);
        t->command.gpu = true;
        t->command.limits.resident = true;
        t->command.required = SANDBOX_HOLDS_CALLS;
        run(t);
        if (!lacks(t, SANDBOX_HOLDS_CALLS)) {
            expect_end(t, cases[i].end);
            EXPECT_INT_EQ(cases[i].exit_code, t->result.exit_code);
        }
        free(t);
    }
}

/* --- Talking --- */

/* A socketpair; one end becomes descriptor 5 of the program. */
struct talk {
    struct trial *trial;
    struct sandbox *sandbox;
    struct sandbox_descriptor handed;
    int fd;
};

/* @param wall_s how long it may take: little only where it must be stopped for that */
static bool talk_start(struct talk *talk, const char *word, double wall_s) {
    int ends[2];
    struct error error = {0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    talk->trial = trial(word, "5");
    talk->handed = (struct sandbox_descriptor){.ours = ends[1], .theirs = 5};
    talk->trial->command.descriptors = &talk->handed;
    talk->trial->command.descriptor_count = 1;
    talk->trial->command.limits.wall_s = wall_s;
    talk->fd = ends[0];
    enum status status = sandbox_start(&talk->sandbox, &talk->trial->command, &error);
    close(ends[1]);
    return status == STATUS_OK;
}

static void talk_end(struct talk *talk) {
    close(talk->fd);
    free(talk->trial);
}

C_TEST(sandbox, talks_while_the_program_runs) {
    struct talk talk;
    char answer[6] = "";
    ASSERT_TRUE(talk_start(&talk, "echo", 60));
    EXPECT_INT_EQ(5, send(talk.fd, "hello", 5, MSG_NOSIGNAL));
    EXPECT_INT_EQ(5, recv(talk.fd, answer, 5, MSG_WAITALL));
    EXPECT_STR_EQ("hello", answer);
    shutdown(talk.fd, SHUT_WR);
    sandbox_finish(talk.sandbox, &talk.trial->result);
    expect_end(talk.trial, SANDBOX_EXITED);
    EXPECT_INT_EQ(0, talk.trial->result.exit_code);
    talk_end(&talk);
}

C_TEST(sandbox, lets_garbage_through) {
    struct talk talk;
    char bytes[1024];
    ASSERT_TRUE(talk_start(&talk, "garbage", 60));
    EXPECT_INT_EQ(512, recv(talk.fd, bytes, sizeof bytes, MSG_WAITALL));
    EXPECT_INT_EQ((char)(511 * 7), bytes[511]);
    sandbox_finish(talk.sandbox, &talk.trial->result);
    expect_end(talk.trial, SANDBOX_EXITED);
    talk_end(&talk);
}

C_TEST(sandbox, never_waits_for_one_that_does_not_read_or_write) {
    static const char much[1 << 20];
    struct talk talk;
    char byte;
    ASSERT_TRUE(talk_start(&talk, "sleep", 0.5));
    EXPECT_TRUE(send(talk.fd, much, sizeof much, MSG_NOSIGNAL) < (ssize_t)sizeof much);
    EXPECT_TRUE(recv(talk.fd, &byte, 1, 0) <= 0);
    sandbox_finish(talk.sandbox, &talk.trial->result);
    expect_end(talk.trial, SANDBOX_WALL_LIMIT);
    talk_end(&talk);
}

/* Without the filter nothing keeps the program from sending itself SIGCONT. */
static void pause_and_finish(struct trial *t, bool tells) {
    struct sandbox *sandbox = NULL;
    struct error error = {0};
    int witness[2];
    ASSERT_TRUE(pipe2(witness, O_CLOEXEC) == 0);
    const struct sandbox_descriptor handed = {.ours = witness[1], .theirs = WITNESS};
    struct pollfd word = {.fd = witness[0], .events = POLLIN};
    t->command.descriptors = &handed;
    t->command.descriptor_count = 1;
    ASSERT_OK(sandbox_start(&sandbox, &t->command, &error));
    EXPECT_TRUE(!tells || poll(&word, 1, 50000) == 1);
    sandbox_pause(sandbox, true);
    bool ended = sandbox_wait(sandbox, tells ? 50.0 : 1.0);
    sandbox_pause(sandbox, false);
    if (!ended) {
        sandbox_stop(sandbox);
    }
    sandbox_finish(sandbox, &t->result);
    close(witness[0]);
    close(witness[1]);
}

C_TEST(sandbox, ends_one_that_does_not_stand_still) {
    struct trial *t = trial("wakes_itself", NULL);
    t->command.without = CALLS;
    pause_and_finish(t, true);
    expect_end(t, SANDBOX_WENT_ON);
    free(t);
}

C_TEST(sandbox, lets_one_stand_still) {
    struct trial *t = trial("loop", NULL);
    pause_and_finish(t, false);
    expect_end(t, SANDBOX_STOPPED);
    free(t);
}

C_TEST(sandbox, stops_when_told) {
    struct talk talk;
    ASSERT_TRUE(talk_start(&talk, "sleep", 60));
    sandbox_stop(talk.sandbox);
    sandbox_finish(talk.sandbox, &talk.trial->result);
    expect_end(talk.trial, talk.trial->result.pid == 0 ? SANDBOX_COULD_NOT_START : SANDBOX_STOPPED);
    EXPECT_TRUE(talk.trial->result.wall_s < 10);
    talk_end(&talk);
}

/* Each has its own lifeline, though the second was forked when the first was there. */
C_TEST(sandbox, runs_several_at_once) {
    struct talk talks[3];
    ASSERT_TRUE(talk_start(&talks[0], "sleep", 60));
    ASSERT_TRUE(talk_start(&talks[1], "echo", 60));
    ASSERT_TRUE(talk_start(&talks[2], "sleep", 0.5));
    sandbox_stop(talks[0].sandbox);
    sandbox_finish(talks[0].sandbox, &talks[0].trial->result);
    EXPECT_TRUE(talks[0].trial->result.end == SANDBOX_STOPPED ||
                talks[0].trial->result.end == SANDBOX_COULD_NOT_START);
    shutdown(talks[1].fd, SHUT_WR);
    sandbox_finish(talks[1].sandbox, &talks[1].trial->result);
    expect_end(talks[1].trial, SANDBOX_EXITED);
    sandbox_finish(talks[2].sandbox, &talks[2].trial->result);
    expect_end(talks[2].trial, SANDBOX_WALL_LIMIT);
    for (int i = 0; i < 3; i++) {
        talk_end(&talks[i]);
    }
}

/* A caller that dies takes all with it: the program's end of a pipe closes. */
C_TEST(sandbox, ends_with_its_caller) {
    int witness[2];
    char byte;
    ASSERT_TRUE(pipe2(witness, O_CLOEXEC) == 0);
    pid_t caller = fork();
    if (caller == 0) {
        struct trial *t = trial("sleep", NULL);
        struct sandbox_descriptor handed = {.ours = witness[1], .theirs = WITNESS};
        struct sandbox *sandbox;
        t->command.descriptors = &handed;
        t->command.descriptor_count = 1;
        if (sandbox_start(&sandbox, &t->command, NULL) == STATUS_OK) {
            usleep(100000);
        }
        raise(SIGKILL);
    }
    close(witness[1]);
    EXPECT_TRUE(caller > 0 && waitpid(caller, NULL, 0) == caller);
    EXPECT_INT_EQ(0, read(witness[0], &byte, 1));
    close(witness[0]);
    /* The folder goes last. */
    for (int i = 0; i < 1000 && count_entries() > 0; i++) {
        usleep(10000);
    }
    EXPECT_INT_EQ(0, count_entries());
    reap_adopted();
}

/* --- Ends --- */

C_TEST(sandbox, tells_signals) {
    static const int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,
                                  SIGABRT, SIGBUS,  SIGFPE,  SIGKILL, SIGUSR1,
                                  SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", numbers[i]);
        expect_signal("signal", text, numbers[i]);
    }
    expect_signal("segv", NULL, SIGSEGV);
#ifdef __x86_64__
    expect_signal("divide", NULL, SIGFPE);
#endif
}

C_TEST(sandbox, tells_what_constructors_do) {
    expect_signal("constructor_crash", NULL, SIGSEGV);
    /* A status is all that it is: whoever believes it must have seen results as well. */
    expect_exit("constructor_exit", NULL, 0);
}

TRIAL_TEST(tells_what_atexit_handlers_do, "atexit", NULL) {
    run_to_exit(t, 0);
    EXPECT_STR_EQ("[  PASSED  ] all tests\n", t->result.out.text);
}

C_TEST(sandbox, describes_ends) {
    static const struct {
        struct sandbox_result result;
        const char *want;
    } cases[] = {
        {{.end = SANDBOX_EXITED, .exit_code = 7}, "ended with exit status 7"},
        {{.end = SANDBOX_SIGNALLED, .signal = SIGFPE},
         "crashed (SIGFPE: a division of integers by zero)"},
        {{.end = SANDBOX_SIGNALLED, .signal = SIGTERM}, "was ended by SIGTERM"},
        {{.end = SANDBOX_WALL_LIMIT}, "did not end within 10 s"},
        {{.end = SANDBOX_CPU_LIMIT}, "used more than 20 s of CPU time"},
        {{.end = SANDBOX_MEMORY_LIMIT}, "used more than 1024 MiB of memory"},
        {{.end = SANDBOX_MEMORY_LIMIT, .asked_bytes = (uint64_t)100 << 30},
         "asked for 102400 MiB of memory at once, of 1024 MiB in all"},
        {{.end = SANDBOX_THREAD_LIMIT}, "had more than 64 threads"},
        {{.end = SANDBOX_FILE_LIMIT}, "wrote more than 67108864 bytes of files, or 1000 files"},
        {{.end = SANDBOX_REFUSED_CALL, .call = "socket"},
         "called socket, which is not allowed here"},
        {{.end = SANDBOX_STOPPED}, "was stopped from outside"},
        {{.end = SANDBOX_WENT_ON}, "went on running while it was to stand still"},
        {{.end = SANDBOX_UNWATCHED},
         "was ended with the process that watched it, which was killed"},
        {{.end = SANDBOX_COULD_NOT_START, .reason = "gone"}, "could not be started: gone"},
    };
    struct sandbox_limits limits = sandbox_default_limits();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        EXPECT_STR_EQ(cases[i].want,
                      sandbox_describe(&cases[i].result, &limits, text, sizeof text));
    }
}
