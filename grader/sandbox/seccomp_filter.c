#include "grader/sandbox/seccomp_filter.h"

#ifdef WARPBOOK_NO_SECCOMP

/* Built where libseccomp is missing: nothing is filtered, and the result says so. */
enum filter_state filter_load(const struct filter_settings *settings, int *listener) {
    (void)settings;
    *listener = -1;
    return FILTER_NONE;
}

bool filter_read(int listener, struct filter_report *report) {
    (void)listener;
    (void)report;
    return false;
}

bool filter_waits(int listener, const struct filter_report *report) {
    (void)listener;
    (void)report;
    return false;
}

bool filter_go_on(int listener, const struct filter_report *report) {
    (void)listener;
    (void)report;
    return false;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The kernel reads these arguments as 32 bits, so the upper half must not count. */
#define INT_BITS UINT64_C(0xffffffff)

/* Numbers that libseccomp may be too old to know; the same on every architecture. */
enum {
    CALL_FCHMODAT2 = 452,
    CALL_SETXATTRAT = 463,
    CALL_REMOVEXATTRAT = 466,
    CALL_OPEN_TREE_ATTR = 467,
    CALL_FILE_SETATTR = 469
};

/* Each ends the program. */
static const int refused[] = {
    /* other processes: their memory, descriptors, signals */
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(kcmp),
    SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(process_madvise), SCMP_SYS(process_mrelease), SCMP_SYS(tkill), SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages), SCMP_SYS(execveat),
    /* what stays when the program has gone, and joins processes */
    SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(shmctl), SCMP_SYS(semget), SCMP_SYS(semop),
    SCMP_SYS(semtimedop), SCMP_SYS(semctl), SCMP_SYS(msgget), SCMP_SYS(msgsnd), SCMP_SYS(msgrcv),
    SCMP_SYS(msgctl), SCMP_SYS(mq_open), SCMP_SYS(mq_unlink), SCMP_SYS(ipc),
    /* ways round this filter */
    SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
    SCMP_SYS(seccomp), SCMP_SYS(userfaultfd),
    /* the machine */
    SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot),
    SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(fsopen), SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(mount_setattr), SCMP_SYS(unshare),
    SCMP_SYS(setns), SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(keyctl), SCMP_SYS(add_key),
    SCMP_SYS(request_key), SCMP_SYS(open_by_handle_at), SCMP_SYS(fanotify_init),
    SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff),
    SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex), SCMP_SYS(clock_adjtime), SCMP_SYS(acct), SCMP_SYS(quotactl),
    SCMP_SYS(syslog), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(lookup_dcookie),
    SCMP_SYS(nfsservctl), SCMP_SYS(uselib), CALL_OPEN_TREE_ATTR};

/* Landlock does not cover these; each fails with EPERM. */
static const int forbidden[] = {
    SCMP_SYS(chmod),        SCMP_SYS(fchmod),     SCMP_SYS(fchmodat),    SCMP_SYS(chown),
    SCMP_SYS(lchown),       SCMP_SYS(fchown),     SCMP_SYS(fchownat),    SCMP_SYS(utime),
    SCMP_SYS(utimes),       SCMP_SYS(futimesat),  SCMP_SYS(utimensat),   SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),    SCMP_SYS(fsetxattr),  SCMP_SYS(removexattr), SCMP_SYS(lremovexattr),
    SCMP_SYS(fremovexattr), SCMP_SYS(ioprio_set), CALL_FCHMODAT2,        CALL_SETXATTRAT,
    CALL_REMOVEXATTRAT,     CALL_FILE_SETATTR};

/* Without Landlock these change files anywhere; each fails with EACCES. */
static const int changes[] = {
    SCMP_SYS(creat),   SCMP_SYS(truncate), SCMP_SYS(unlink),    SCMP_SYS(unlinkat),
    SCMP_SYS(rename),  SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(link),
    SCMP_SYS(linkat),  SCMP_SYS(symlink),  SCMP_SYS(symlinkat), SCMP_SYS(mkdir),
    SCMP_SYS(mkdirat), SCMP_SYS(rmdir),    SCMP_SYS(mknod),     SCMP_SYS(mknodat)};

/* prctl() options that would undo what the sandbox set, or reach out of it. */
static const unsigned refused_prctl[] = {PR_SET_DUMPABLE, PR_SET_PDEATHSIG,       PR_SET_SECCOMP,
                                         PR_SET_MM,       PR_SET_CHILD_SUBREAPER, PR_SET_PTRACER};

/* fcntl() commands that send signals to others. */
static const unsigned refused_fcntl[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};

/* ioctl() requests that do, or that type into a terminal: FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX.
 */
static const unsigned refused_ioctl[] = {0x8901, 0x8902, 0x5412, 0x541c};

struct builder {
    scmp_filter_ctx context;
    uint32_t refuse; /* action */
    int failure;     /* first error, 0 for none */
};

/* A response of Linux 5.5: what older headers call nothing. */
enum { MAY_GO_ON = 1 };

/* @return whether this kernel can let a reported call happen: Linux 5.5 and later */
static bool kernel_goes_on(void) {
    struct utsname name;
    unsigned major = 0, minor = 0;
    return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 5));
}

/* Adds a rule; a call that this architecture lacks needs none. */
static void add(struct builder *b, uint32_t action, int call, unsigned count,
                struct scmp_arg_cmp compare) {
    if (b->failure == 0 && call != __NR_SCMP_ERROR) {
        b->failure = seccomp_rule_add(b->context, action, call, count, compare);
    }
}

static void add_always(struct builder *b, uint32_t action, const int *calls, size_t count) {
    for (size_t i = 0; i < count; i++) {
        add(b, action, calls[i], 0, (struct scmp_arg_cmp){0});
    }
}

/* A rule for each value that a 32-bit argument may not have. */
static void add_values(struct builder *b, int call, unsigned argument, const unsigned *values,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        add(b, b->refuse, call, 1, SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, INT_BITS, values[i]));
    }
}

/* Signals, limits and the like go to the program itself. */
static void add_processes(struct builder *b) {
    static const int self_only[] = {SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo),
                                    SCMP_SYS(rt_tgsigqueueinfo)};
    /* 0 means the caller; threads may not name each other here, which costs them little */
    static const int zero_only[] = {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler),
                                    SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr)};
    uint64_t self = (uint64_t)getpid();
    for (size_t i = 0; i < sizeof self_only / sizeof *self_only; i++) {
        add(b, b->refuse, self_only[i], 1, SCMP_CMP64(0, SCMP_CMP_NE, self));
    }
    for (size_t i = 0; i < sizeof zero_only / sizeof *zero_only; i++) {
        add(b, SCMP_ACT_ERRNO(EPERM), zero_only[i], 1, SCMP_CMP64(0, SCMP_CMP_NE, 0));
    }
    /* PRIO_USER and 0 mean all that this user runs. */
    add(b, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setpriority), 1,
        SCMP_CMP64(0, SCMP_CMP_NE, PRIO_PROCESS));
    add(b, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setpriority), 1, SCMP_CMP64(1, SCMP_CMP_NE, 0));
    add(b, b->refuse, SCMP_SYS(prlimit64), 1, SCMP_CMP64(0, SCMP_CMP_NE, 0));
}

/* New threads are allowed, new processes are not, new programs need the key. */
static void add_starts(struct builder *b, const struct filter_settings *settings) {
    uint32_t action = settings->gpu ? SCMP_ACT_ERRNO(EPERM) : b->refuse;
    add(b, b->refuse, SCMP_SYS(fork), 0, (struct scmp_arg_cmp){0});
    add(b, b->refuse, SCMP_SYS(vfork), 0, (struct scmp_arg_cmp){0});
    add(b, action, SCMP_SYS(clone), 1, SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    /* A timer's signal would have it go on where it is to stand still. */
    add(b, action, SCMP_SYS(timer_create), 0, (struct scmp_arg_cmp){0});
    add(b, action, SCMP_SYS(mq_notify), 0, (struct scmp_arg_cmp){0});
    /* Its flags lie in memory, out of reach; the C library then takes clone(). */
    add(b, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, (struct scmp_arg_cmp){0});
    for (unsigned i = 0; i < 3; i++) {
        add(b, b->refuse, SCMP_SYS(execve), 1,
            SCMP_CMP64(3 + i, SCMP_CMP_NE, settings->key.words[i]));
    }
}

/*
 * Code comes from the program's files alone: the loader maps them, and the supervisor looks at
 * each. Where it cannot be asked, memory without a file is refused, and files are looked at later.
 * NVIDIA's driver is not held to it: what it does was not looked at on all its versions.
 */
static void add_code(struct builder *b, const struct filter_settings *settings) {
    static const int protects[] = {SCMP_SYS(mprotect), SCMP_SYS(pkey_mprotect)};
    const struct scmp_arg_cmp executable = SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC);
    bool asked = b->refuse == SCMP_ACT_NOTIFY && kernel_goes_on();
    /* Only the question which it is: all else would make what is readable executable, too. */
    add(b, b->refuse, SCMP_SYS(personality), 1,
        SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, READ_IMPLIES_EXEC, READ_IMPLIES_EXEC));
    for (size_t i = 0; !settings->gpu && i < sizeof protects / sizeof *protects; i++) {
        add(b, b->refuse, protects[i], 1, executable);
    }
    if (!settings->gpu && b->failure == 0) {
        const struct scmp_arg_cmp both[] = {
            executable, SCMP_CMP64(3, SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS)};
        b->failure =
            seccomp_rule_add_array(b->context, b->refuse, SCMP_SYS(mmap), asked ? 1 : 2, both);
    }
}

static void add_sockets(struct builder *b, const struct filter_settings *settings) {
    static const int calls[] = {SCMP_SYS(socket), SCMP_SYS(connect), SCMP_SYS(bind),
                                SCMP_SYS(listen), SCMP_SYS(accept),  SCMP_SYS(accept4)};
    if (settings->gpu) {
        add(b, b->refuse, SCMP_SYS(socket), 1, SCMP_CMP64(0, SCMP_CMP_NE, AF_UNIX));
        add(b, SCMP_ACT_ERRNO(ECONNREFUSED), SCMP_SYS(connect), 0, (struct scmp_arg_cmp){0});
        return;
    }
    add_always(b, b->refuse, calls, sizeof calls / sizeof *calls);
    add(b, b->refuse, SCMP_SYS(memfd_create), 0, (struct scmp_arg_cmp){0});
}

/* Where refused calls cannot be told apart, the allocation fails instead. */
static void add_memory(struct builder *b, size_t largest) {
    uint32_t action = b->refuse == SCMP_ACT_NOTIFY ? b->refuse : SCMP_ACT_ERRNO(ENOMEM);
    if (largest > 0) {
        add(b, action, SCMP_SYS(mmap), 1, SCMP_CMP64(1, SCMP_CMP_GT, largest));
        add(b, action, SCMP_SYS(mremap), 1, SCMP_CMP64(2, SCMP_CMP_GT, largest));
    }
}

/* Opening for writing fails with EACCES, wherever it is. */
static void add_no_writes(struct builder *b) {
    static const unsigned flags[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC};
    add_always(b, SCMP_ACT_ERRNO(EACCES), changes, sizeof changes / sizeof *changes);
    add(b, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0, (struct scmp_arg_cmp){0});
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        add(b, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(open), 1,
            SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
        add(b, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 1,
            SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
    }
}

static void add_rules(struct builder *b, const struct filter_settings *settings) {
    add_always(b, b->refuse, refused, sizeof refused / sizeof *refused);
    add_always(b, SCMP_ACT_ERRNO(EPERM), forbidden, sizeof forbidden / sizeof *forbidden);
    add_values(b, SCMP_SYS(prctl), 0, refused_prctl, sizeof refused_prctl / sizeof(unsigned));
    add_values(b, SCMP_SYS(fcntl), 1, refused_fcntl, sizeof refused_fcntl / sizeof(unsigned));
    add_values(b, SCMP_SYS(ioctl), 1, refused_ioctl, sizeof refused_ioctl / sizeof(unsigned));
    if (!settings->programs) {
        add_processes(b);
        add_starts(b, settings);
        add_code(b, settings);
    }
    add_sockets(b, settings);
    add_memory(b, settings->largest_mapping);
    if (settings->no_writes) {
        add_no_writes(b);
    }
}

/* @return whether the filter is in force */
static bool load(const struct filter_settings *settings, uint32_t refuse, int *listener) {
    struct builder b = {.context = seccomp_init(SCMP_ACT_ALLOW), .refuse = refuse};
    if (b.context == NULL) {
        return false;
    }
    b.failure = seccomp_attr_set(b.context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* Both only save time, and an old kernel or library has neither: a tree instead of a list, and
       no slower loads for fear of the program's own threads. */
    (void)seccomp_attr_set(b.context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    (void)seccomp_attr_set(b.context, SCMP_FLTATR_CTL_SSB, 1);
    add_rules(&b, settings);
    if (b.failure == 0) {
        b.failure = seccomp_load(b.context);
    }
    if (b.failure == 0 && refuse == SCMP_ACT_NOTIFY) {
        *listener = seccomp_notify_fd(b.context);
    }
    seccomp_release(b.context); /* leaves the listener open */
    return b.failure == 0;
}

enum filter_state filter_load(const struct filter_settings *settings, int *listener) {
    *listener = -1;
    if (settings->named && load(settings, SCMP_ACT_NOTIFY, listener)) {
        fcntl(*listener, F_SETFD, FD_CLOEXEC);
        return FILTER_NAMED;
    }
    return load(settings, SCMP_ACT_KILL_PROCESS, listener) ? FILTER_UNNAMED : FILTER_NONE;
}

static bool asks_for_code(const struct seccomp_data *data) {
    bool protects = data->nr == SCMP_SYS(mprotect) || data->nr == SCMP_SYS(pkey_mprotect);
    return (protects || data->nr == SCMP_SYS(mmap)) && (data->args[2] & PROT_EXEC) != 0;
}

static void describe(const struct seccomp_data *data, struct filter_report *report) {
    char *name = seccomp_syscall_resolve_num_arch(data->arch, data->nr);
    report->call[0] = '\0';
    strncat(report->call, name == NULL ? "an unknown system call" : name, sizeof report->call - 1);
    free(name);
    if (asks_for_code(data)) {
        bool file = data->nr == SCMP_SYS(mmap) && (data->args[3] & MAP_ANONYMOUS) == 0;
        report->code = true;
        report->fd = file ? (int)data->args[4] : -1;
    } else if (data->nr == SCMP_SYS(mmap) || data->nr == SCMP_SYS(mremap)) {
        report->mapping = true;
        report->asked_bytes = data->args[data->nr == SCMP_SYS(mmap) ? 1 : 2];
    }
}

bool filter_waits(int listener, const struct filter_report *report) {
    return seccomp_notify_id_valid(listener, report->id) == 0;
}

bool filter_go_on(int listener, const struct filter_report *report) {
    struct seccomp_notif_resp response = {.id = report->id, .flags = MAY_GO_ON};
    return seccomp_notify_respond(listener, &response) == 0;
}

bool filter_read(int listener, struct filter_report *report) {
    struct seccomp_notif *request = NULL;
    struct seccomp_notif_resp *response = NULL;
    bool read = seccomp_notify_alloc(&request, &response) == 0 &&
                seccomp_notify_receive(listener, request) == 0;
    if (read) {
        *report = (struct filter_report){.pid = (pid_t)request->pid, .id = request->id};
        describe(&request->data, report);
    }
    seccomp_notify_free(request, response);
    return read;
}

#endif
