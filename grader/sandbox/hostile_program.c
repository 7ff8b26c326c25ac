/*
 * A program that does one thing that a sandbox must stand: its first argument
 * says which. Exit status 0: nothing stopped it; 3: it was told no; 9: it does
 * not know the word. Its numbers, where there are any, come as further arguments.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { STOOD = 0, REFUSED = 3, UNKNOWN = 9 };

/* A pipe that some tests hand over: a byte in it says that the program is where they want it. */
enum { WITNESS = 9 };

static const char *word = "";
static const char *argument = "";

static int verdict(bool refused) {
    return refused ? REFUSED : STOOD;
}

static void wait_for_ever(void) {
    for (;;) {
        pause();
    }
}

/* --- Time --- */

static int do_loop(void) {
    for (volatile unsigned long i = 0;; i++) {
    }
    return STOOD;
}

static int do_sleep(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGALRM, SIG_IGN);
    wait_for_ever();
    return STOOD;
}

static int do_stop(void) {
    raise(SIGSTOP);
    return STOOD;
}

static void notice(int number) {
    (void)number;
}

/* Always has a signal under way that continues it: SIGSTOP finds the timer set. */
static int do_wakes_itself(void) {
    /* Put off again and again, and long: a stop takes a signal back that waits for a processor, and
       the timer with it. */
    const struct itimerspec soon = {.it_interval = {0, 200000000}, .it_value = {0, 200000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
    timer_t timer;
    signal(SIGCONT, notice);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
        return REFUSED;
    }
    bool told = false;
    while (timer_settime(timer, 0, &soon, NULL) == 0) {
        told = told || write(WITNESS, "!", 1) == 1;
    }
    return REFUSED;
}

/* --- Processes --- */

/* Far more than a test allows, far fewer than a machine has room for: where nothing filters calls,
   for root nothing else limits them, and a busy machine looks late. */
enum { MANY = 300 };

/* Never ends forking; MANY of the children stay. */
static int do_forks(void) {
    for (int staying = 0;; staying += staying < MANY) {
        pid_t child = fork();
        if (child == 0 && staying < MANY) {
            wait_for_ever();
        } else if (child == 0) {
            _exit(0);
        } else if (child < 0) {
            usleep(1000);
        } else if (staying == MANY) {
            waitpid(child, NULL, 0);
        }
    }
    return STOOD;
}

static void *sleeper(void *nothing) {
    wait_for_ever();
    return nothing;
}

static int do_threads(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < MANY; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleeper, NULL) != 0) {
            usleep(1000);
        }
    }
    wait_for_ever();
    return STOOD;
}

static int do_few_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, sleeper, NULL) != 0) {
            return REFUSED;
        }
    }
    return STOOD;
}

/* A grandchild in a session of its own, whose parent has gone. */
static int do_orphan(void) {
    int ready[2];
    char byte;
    if (pipe(ready) != 0) {
        return UNKNOWN;
    }
    pid_t child = fork();
    if (child < 0) {
        return REFUSED;
    }
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            setsid();
            if (write(ready[1], "x", 1) == 1) {
                wait_for_ever();
            }
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return verdict(read(ready[0], &byte, 1) != 1);
}

static int do_vfork(void) {
    return vfork() == 0 ? (_exit(0), 0) : verdict(true);
}

static int do_exec(void) {
    execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
    return REFUSED;
}

static int do_system(void) {
    return verdict(system("exit 0") != 0);
}

/* --- Code that is not its own --- */

static int do_map_code(void) {
    void *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return verdict(memory == MAP_FAILED);
}

static int do_protect_code(void) {
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return verdict(mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0);
}

static int do_personality(void) {
    return verdict(personality(READ_IMPLIES_EXEC) == -1);
}

/* A file of its own, mapped as the loader does it, and kept for a while. */
static int do_map_file(void) {
    int fd = open("mine.so", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0) {
        return REFUSED;
    }
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    sleep((unsigned)atoi(argument));
    return verdict(memory == MAP_FAILED);
}

static void *ends(void *unused) {
    pthread_exit(unused); /* the C library loads libgcc_s.so.1 for it */
}

/* What honest programs do: a library of their own once more, and a thread that ends itself. */
static int do_own_code(void) {
    pthread_t thread;
    bool loaded = dlopen("libc.so.6", RTLD_NOW) != NULL;
    return verdict(!loaded || pthread_create(&thread, NULL, ends, NULL) != 0 ||
                   pthread_join(thread, NULL) != 0);
}

/* --- Memory --- */

static int do_malloc(void) {
    size_t size = (size_t)100 << 30;
    volatile char *memory = malloc(size);
    for (size_t i = 0; memory != NULL && i < size; i += 4096) {
        memory[i] = 1;
    }
    return verdict(memory == NULL);
}

static int do_mmap(void) {
    size_t size = (size_t)100 << 30;
    volatile char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; memory != MAP_FAILED && i < size; i += 4096) {
        memory[i] = 1;
    }
    return verdict(memory == MAP_FAILED);
}

/* Many small ones, until there are no more; then it sits on them. */
static int do_pieces(void) {
    for (;;) {
        char *memory = malloc(1 << 20);
        if (memory == NULL) {
            wait_for_ever();
        }
        memset(memory, 1, 1 << 20);
    }
    return STOOD;
}

static int recurse(volatile char *above, int depth) {
    volatile char here[4096];
    here[0] = above[0];
    return depth < 0 ? here[0] : recurse(here, depth + 1) + here[0];
}

static int do_stack(void) {
    char first = 1;
    return recurse(&first, 0);
}

/* --- Output and files --- */

static int do_flood(void) {
    static char bytes[65536];
    memset(bytes, 'x', sizeof bytes);
    for (;;) {
        if (write(STDOUT_FILENO, bytes, sizeof bytes) < 0) {
            return REFUSED;
        }
        if (write(STDERR_FILENO, bytes, sizeof bytes) < 0) {
            return REFUSED;
        }
    }
}

/* A MiB of numbered lines. */
static int do_lines(void) {
    for (int i = 0; i < 65536; i++) {
        printf("line number %04x\n", i);
    }
    return STOOD;
}

static int do_file(void) {
    static char bytes[65536];
    int fd = open("huge", O_WRONLY | O_CREAT, 0600);
    while (fd >= 0 && write(fd, bytes, sizeof bytes) > 0) {
    }
    return REFUSED;
}

static int do_files(void) {
    for (int i = 0;; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || write(fd, name, sizeof name) < 0) {
            usleep(1000);
        }
        close(fd);
    }
    return STOOD;
}

static int do_large_files(void) {
    static char bytes[1 << 19];
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || write(fd, bytes, sizeof bytes) < 0) {
            return REFUSED;
        }
    }
    wait_for_ever();
    return STOOD;
}

static int do_folder(void) {
    return verdict(mkdir("folder", 0700) != 0 && symlink("/", "root") != 0 &&
                   mkfifo("pipe", 0600) != 0 && link("/proc/self/exe", "link") != 0);
}

/* Leaves behind what is hard to remove. */
static int do_litter(void) {
    for (int i = 0; i < 3000; i++) {
        if (mkdir("a folder whose name is not short", 0700) != 0 ||
            chdir("a folder whose name is not short") != 0) {
            return REFUSED;
        }
    }
    mkdir("closed", 0);
    return verdict(symlink("/", "root") != 0 || mkfifo("pipe", 0) != 0);
}

/* Its folder is empty, and it may write there and read it back. */
static int do_scratch(void) {
    struct stat status;
    DIR *here = opendir(".");
    int count = 0;
    while (here != NULL && readdir(here) != NULL) {
        count++;
    }
    int fd = open("scratch", O_RDWR | O_CREAT | O_EXCL, 0600);
    bool fine = count == 2 && fd >= 0 && write(fd, "abc", 3) == 3 && fstat(fd, &status) == 0 &&
                status.st_size == 3 && unlink("scratch") == 0;
    return verdict(!fine);
}

static int do_read_file(void) {
    return verdict(open(argument, O_RDONLY) < 0);
}

static int do_write_file(void) {
    return verdict(open(argument, O_WRONLY) < 0 && open(argument, O_RDWR | O_TRUNC) < 0 &&
                   truncate(argument, 0) != 0 && unlink(argument) != 0 &&
                   rename(argument, "mine") != 0 && chmod(argument, 0) != 0 &&
                   utimensat(AT_FDCWD, argument, NULL, 0) != 0);
}

/* --- Its parent --- */

static int do_parent_memory(void) {
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
    int fd = open(path, O_RDONLY);
    return verdict(fd < 0 || pread(fd, &byte, 1, strtoll(argument, NULL, 0)) != 1);
}

static int do_parent_environment(void) {
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
    int fd = open(path, O_RDONLY);
    return verdict(fd < 0 || read(fd, &byte, 1) != 1);
}

static int do_ptrace(void) {
    return verdict(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) != 0);
}

static int do_vm_read(void) {
    char byte;
    struct iovec ours = {.iov_base = &byte, .iov_len = 1};
    struct iovec theirs = {.iov_base = (void *)(uintptr_t)strtoull(argument, NULL, 0),
                           .iov_len = 1};
    return verdict(process_vm_readv(getppid(), &ours, 1, &theirs, 1, 0) != 1);
}

static int do_kill_parent(void) {
    return verdict(kill(getppid(), SIGKILL) != 0);
}

static void do_nothing(int number) {
    (void)number;
}

/* Over and over, disturbed by a clock: a call that waits for a verdict begins again each time. */
static int do_kill_disturbed(void) {
    struct itimerval often = {.it_interval.tv_usec = 100, .it_value.tv_usec = 100};
    signal(SIGALRM, do_nothing);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 1000000; i++) {
        if (kill(getppid(), SIGKILL) == 0) {
            return STOOD;
        }
    }
    return REFUSED;
}

/*
 * Signal 0 only asks. The filter goes by whom a signal is for, so this shows as
 * much; and where there is no filter, nobody on the machine comes to harm.
 */
static int do_kill_all(void) {
    return verdict(kill(-1, 0) != 0);
}

static int do_tgkill(void) {
    return verdict(syscall(SYS_tgkill, getppid(), getppid(), SIGKILL) != 0);
}

/* A signal by way of a pipe that has something to read. */
static int do_fcntl_signal(void) {
    return verdict(fcntl(STDIN_FILENO, F_SETOWN, getppid()) != 0);
}

static int do_limits_of_parent(void) {
    struct rlimit limit = {0};
    return verdict(prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL) != 0);
}

/* Another process's, a group's, and that of all that this user runs, under both of its names. */
static int do_priorities(void) {
    return verdict(setpriority(PRIO_PROCESS, (id_t)getppid(), 19) != 0 &&
                   setpriority(PRIO_PGRP, (id_t)getpgrp(), 19) != 0 &&
                   setpriority(PRIO_USER, 0, 19) != 0 && setpriority(PRIO_USER, getuid(), 19) != 0);
}

/* --- What it is and has --- */

static int do_limits(void) {
    static const int all[] = {RLIMIT_AS, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct rlimit more = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        if (setrlimit(all[i], &more) == 0) {
            return STOOD;
        }
    }
    return REFUSED;
}

static int do_environment(void) {
    int count = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        puts(*entry);
        count++;
    }
    return count;
}

/* Prints the numbers of all open descriptors. */
static int do_descriptors(void) {
    for (int fd = 0; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            printf("%d ", fd);
        }
    }
    return STOOD;
}

static int do_close_all(void) {
    for (int fd = 0; fd < 4096; fd++) {
        close(fd);
    }
    return STOOD;
}

static int do_undo(void) {
    return verdict(prctl(PR_SET_PDEATHSIG, 0) != 0);
}

/* The same, with rubbish in the half of the register that the kernel does not look at. */
static int do_undo_wide(void) {
    return verdict(syscall(SYS_prctl, (1UL << 32) | PR_SET_PDEATHSIG, 0, 0, 0, 0) != 0);
}

static int do_capabilities(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "CapEff:", 7) == 0 || strncmp(line, "CapPrm:", 7) == 0) {
            if (strtoull(line + 7, NULL, 16) != 0) {
                return STOOD;
            }
        }
    }
    return verdict(status != NULL);
}

/* --- Beyond --- */

static int do_socket(void) {
    return verdict(socket(AF_INET, SOCK_STREAM, 0) < 0);
}

static int do_unix_socket(void) {
    return verdict(socket(AF_UNIX, SOCK_STREAM, 0) < 0);
}

static int do_connect(void) {
    struct sockaddr_in somebody = {.sin_family = AF_INET, .sin_port = htons(80)};
    return verdict(connect(STDIN_FILENO, (struct sockaddr *)&somebody, sizeof somebody) != 0);
}

static int do_shm(void) {
    int segment = shmget(IPC_PRIVATE, 4096, 0600 | IPC_CREAT);
    if (segment >= 0) {
        shmctl(segment, IPC_RMID, NULL);
    }
    return verdict(segment < 0);
}

static int do_unshare(void) {
    return verdict(syscall(SYS_unshare, 0x10000000) != 0);
}

static int do_io_uring(void) {
    char parameters[256] = {0};
    return verdict(syscall(SYS_io_uring_setup, 1, parameters) < 0);
}

static int do_perf(void) {
    char attributes[128] = {0};
    return verdict(syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0UL) < 0);
}

#ifdef __x86_64__
/* The system's older gate, where the same numbers are other calls. */
static int do_old_gate(void) {
    long got;
    __asm__ volatile("int $0x80" : "=a"(got) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return verdict(got < 0);
}

/* Calls of programs with short pointers have numbers of their own. */
static int do_short_pointers(void) {
    return verdict(syscall(0x40000000L | SYS_getpid) < 0);
}
#endif

/* --- Talking --- */

static int do_garbage(void) {
    char bytes[512];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 7);
    }
    return verdict(write(atoi(argument), bytes, sizeof bytes) != (ssize_t)sizeof bytes);
}

/* Gives back what it is told, until there is no more. */
static int do_echo(void) {
    char bytes[256];
    ssize_t got;
    int fd = atoi(argument);
    while ((got = read(fd, bytes, sizeof bytes)) > 0) {
        if (write(fd, bytes, (size_t)got) != got) {
            return REFUSED;
        }
    }
    return STOOD;
}

/* --- Ends --- */

static void leave_early(void) {
    _exit(0);
}

static void claim_success(void) {
    printf("[  PASSED  ] all tests\n");
    fflush(stdout);
    _exit(0);
}

/* Runs before main(), which never sees it: the word is read from the command line's copy. */
__attribute__((constructor)) static void construct(int argc, char **argv) {
    const char *asked = argc > 1 ? argv[1] : "";
    if (strcmp(asked, "constructor_crash") == 0) {
        *(volatile int *volatile)NULL = 1;
    }
    if (strcmp(asked, "constructor_exit") == 0) {
        leave_early();
    }
}

static int do_atexit(void) {
    atexit(claim_success);
    exit(1);
}

static int do_signal(void) {
    signal(atoi(argument), SIG_DFL);
    raise(atoi(argument));
    return STOOD;
}

static int do_segv(void) {
    *(volatile int *volatile)NULL = 1;
    return STOOD;
}

static int do_divide(void) {
    volatile int seven = 7, zero = 0;
    return seven / zero;
}

static int do_exit(void) {
    return atoi(argument);
}

#define ACT(word) \
    { #word, do_##word }

static const struct {
    const char *word;
    int (*act)(void);
} acts[] = {
    ACT(loop),          ACT(sleep),
    ACT(stop),          ACT(forks),
    ACT(threads),       ACT(few_threads),
    ACT(orphan),        ACT(vfork),
    ACT(exec),          ACT(system),
    ACT(malloc),        ACT(mmap),
    ACT(pieces),        ACT(stack),
    ACT(flood),         ACT(lines),
    ACT(file),          ACT(files),
    ACT(large_files),   ACT(folder),
    ACT(litter),        ACT(scratch),
    ACT(read_file),     ACT(write_file),
    ACT(parent_memory), ACT(parent_environment),
    ACT(ptrace),        ACT(vm_read),
    ACT(kill_parent),   ACT(kill_disturbed),
    ACT(kill_all),      ACT(tgkill),
    ACT(fcntl_signal),  ACT(limits_of_parent),
    ACT(priorities),    ACT(limits),
    ACT(environment),   ACT(descriptors),
    ACT(close_all),     ACT(undo),
    ACT(undo_wide),     ACT(capabilities),
    ACT(socket),        ACT(unix_socket),
    ACT(connect),       ACT(shm),
    ACT(unshare),       ACT(io_uring),
    ACT(perf),          ACT(garbage),
    ACT(echo),          ACT(atexit),
    ACT(signal),        ACT(segv),
    ACT(divide),        ACT(exit),
    ACT(wakes_itself),  ACT(map_code),
    ACT(protect_code),  ACT(personality),
    ACT(map_file),      ACT(own_code),
#ifdef __x86_64__
    ACT(old_gate),      ACT(short_pointers),
#endif
};

int main(int argc, char **argv) {
    word = argc > 1 ? argv[1] : "";
    argument = argc > 2 ? argv[2] : "";
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        if (strcmp(acts[i].word, word) == 0) {
            return acts[i].act();
        }
    }
    return UNKNOWN;
}
