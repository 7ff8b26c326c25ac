#include "grader/sandbox/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "grader/sandbox/landlock.h"
#include "grader/sandbox/seccomp_filter.h"

/* Room for one descriptor beside a note, aligned as the kernel wants it. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void send_note(int channel, const struct child_note *note, int listener) {
    union control control = {0};
    struct iovec data = {.iov_base = (void *)note, .iov_len = sizeof *note};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (note->listener) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &listener, sizeof listener);
    }
    if (sendmsg(channel, &message, MSG_NOSIGNAL) < 0) {
        _exit(127); /* the supervisor has gone */
    }
}

int child_read_note(int channel, struct child_note *note, int *listener) {
    union control control = {0};
    struct iovec data = {.iov_base = note, .iov_len = sizeof *note};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    }
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        memcpy(listener, CMSG_DATA(header), sizeof *listener);
    }
    return got == (ssize_t)sizeof *note ? 1 : 0;
}

static void give_up(const struct child *child, const char *what) __attribute__((noreturn));

static void give_up(const struct child *child, const char *what) {
    /* The end of a long path says more than its beginning. */
    enum { SHOWN = 120 };
    struct child_note note = {0};
    size_t length = strlen(what);
    snprintf(note.failure, sizeof note.failure, "%s%s: %s", length > SHOWN ? "..." : "",
             what + (length > SHOWN ? length - SHOWN : 0), strerror(errno));
    send_note(child->channel, &note, -1);
    _exit(127);
}

/* As a program that was just logged in has it. */
static void reset_signals(void) {
    sigset_t none;
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool drop_privileges(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
        prctl(PR_CAPBSET_DROP, i, 0, 0, 0); /* who has no right to may have none to drop */
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static unsigned limit_reach(const struct child *child) {
    const struct sandbox_command *command = child->command;
    struct reach reach = {.code = child->code,
                          .folder = child->folder,
                          .readable = command->readable,
                          .writable = command->writable,
                          .gpu = command->gpu};
    if (command->without & SANDBOX_HOLDS_READS) {
        return 0;
    }
    switch (reach_limit(&reach)) {
    case REACH_FILES_AND_SIGNALS:
        return SANDBOX_HOLDS_READS | SANDBOX_HOLDS_WRITES | SANDBOX_HOLDS_SIGNALS;
    case REACH_FILES:
        return SANDBOX_HOLDS_READS | SANDBOX_HOLDS_WRITES;
    default:
        return 0;
    }
}

/* A copy of a descriptor above all that the program is given. */
static int lift(const struct child *child, int fd) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, CHILD_DESCRIPTORS);
    if (copy < 0) {
        give_up(child, "a descriptor cannot be handed over");
    }
    return copy;
}

/* Whatever is open and not the program's closes when the program starts. */
static void close_the_rest(const struct child *child, const int *given) {
    DIR *open_ones = opendir("/proc/self/fd");
    const struct dirent *entry;
    if (open_ones == NULL) {
        give_up(child, "/proc/self/fd");
    }
    while ((entry = readdir(open_ones)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && (fd >= CHILD_DESCRIPTORS || given[fd] < 0)) {
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        }
    }
    closedir(open_ones);
}

static void hand_over(struct child *child) {
    int given[CHILD_DESCRIPTORS];
    for (int i = 0; i < CHILD_DESCRIPTORS; i++) {
        given[i] = -1;
    }
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0) {
        give_up(child, "/dev/null");
    }
    child->channel = lift(child, child->channel);
    given[STDIN_FILENO] = lift(child, null);
    given[STDOUT_FILENO] = lift(child, child->out);
    given[STDERR_FILENO] = lift(child, child->error);
    for (size_t i = 0; i < child->command->descriptor_count; i++) {
        const struct sandbox_descriptor *descriptor = &child->command->descriptors[i];
        given[descriptor->theirs] = lift(child, descriptor->ours);
    }
    for (int i = 0; i < CHILD_DESCRIPTORS; i++) {
        if (given[i] >= 0 && dup2(given[i], i) < 0) {
            give_up(child, "a descriptor cannot be handed over");
        }
    }
    close_the_rest(child, given);
}

static unsigned filter_calls(const struct child *child, struct filter_key key, unsigned holds,
                             int *listener) {
    const struct sandbox_command *command = child->command;
    bool no_writes = (holds & SANDBOX_HOLDS_WRITES) == 0 && !command->gpu &&
                     (command->without & SANDBOX_HOLDS_WRITES) == 0;
    struct filter_settings settings = {
        .key = key,
        .largest_mapping = command->limits.resident ? 0 : command->limits.memory_bytes,
        .gpu = command->gpu,
        .no_writes = no_writes && command->programs == NULL,
        .named = (command->without & SANDBOX_HOLDS_NAMES) == 0,
        .programs = command->programs != NULL};
    *listener = -1;
    if (command->without & SANDBOX_HOLDS_CALLS) {
        return holds;
    }
    enum filter_state state = filter_load(&settings, listener);
    if (state != FILTER_NONE) {
        holds |= SANDBOX_HOLDS_CALLS | (settings.no_writes ? SANDBOX_HOLDS_WRITES : 0);
    }
    return holds | (state == FILTER_NAMED ? SANDBOX_HOLDS_NAMES : 0);
}

static void set_limit(int which, double most) {
    struct rlimit limit;
    if (getrlimit(which, &limit) == 0) {
        rlim_t value = most >= 9e18 ? RLIM_INFINITY : (rlim_t)most;
        limit.rlim_max = limit.rlim_max < value ? limit.rlim_max : value;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(which, &limit);
    }
}

/*
 * What the supervisor does not count itself, and behind what it does: it sees the
 * excess of memory first, so that the program learns what it died of.
 */
static void set_limits(const struct child *child) {
    const struct sandbox_limits *limits = &child->command->limits;
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_CPU, ceil(limits->cpu_s) + 1);
    set_limit(RLIMIT_FSIZE, (double)limits->file_bytes);
    set_limit(RLIMIT_NOFILE, limits->files);
    set_limit(RLIMIT_STACK, (double)limits->stack_bytes);
    set_limit(RLIMIT_MSGQUEUE, 0);
    set_limit(RLIMIT_NICE, 0);
    set_limit(RLIMIT_RTPRIO, 0);
    /* Counts all that this user runs, and grows with what others start meanwhile. */
    set_limit(RLIMIT_NPROC, child->tasks + limits->threads + 1024.0);
    if (!limits->resident) {
        set_limit(RLIMIT_AS, 1.125 * (double)limits->memory_bytes + (64 << 20));
    }
}

static void enter_folder(const struct child *child) {
    umask(S_IRWXG | S_IRWXO);
    const char *start_in = child->command->start_in;
    const char *folder = start_in != NULL ? start_in : child->folder;
    if (chdir(folder) != 0) {
        give_up(child, folder);
    }
}

static void check_required(const struct child *child, unsigned holds) {
    struct child_note note = {.holds = holds};
    struct sandbox_result result = {.holds = holds};
    unsigned missing = child->command->required & ~holds;
    if (missing != 0) {
        char text[160];
        snprintf(note.failure, sizeof note.failure, "this kernel lacks what is required: %s",
                 sandbox_lacks(&result, missing, text, sizeof text));
        send_note(child->channel, &note, -1);
        _exit(127);
    }
}

void child_become_program(const struct child *plan) {
    struct child child = *plan;
    static char *const nothing[] = {NULL};
    const struct sandbox_command *command = child.command;
    struct filter_key key;
    int listener;
    unsigned holds = child.holds;
    reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child.supervisor || setsid() < 0 ||
        getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key) {
        give_up(&child, "a session of its own");
    }
    if (drop_privileges()) {
        holds |= SANDBOX_HOLDS_PRIVILEGES;
    }
    holds |= limit_reach(&child);
    enter_folder(&child);
    hand_over(&child);
    holds = filter_calls(&child, key, holds, &listener);
    check_required(&child, holds);
    struct child_note note = {.holds = holds, .listener = listener >= 0};
    send_note(child.channel, &note, listener);
    set_limits(&child);
    syscall(SYS_execve, child.program, command->argv,
            command->environment == NULL ? (const char *const *)nothing : command->environment,
            key.words[0], key.words[1], key.words[2]);
    give_up(&child, child.program);
}
