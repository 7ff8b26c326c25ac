/*
 * Runs a program as on a kernel that lacks something:
 *   without landlock|notifications|seccomp|namespaces PROGRAM [ARGUMENT]...
 * For tests of what the sandbox does there, and of who says so.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LANDLOCK_CREATE_RULESET = 444, NEW_LISTENER = 1 << 3, NEW_USER = 0x10000000 };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Goes on behind the next line when the loaded value is not this one. */
#define IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)
#define FAIL(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter no_landlock[] = {LOAD(nr), IF(LANDLOCK_CREATE_RULESET), FAIL(ENOSYS),
                                           ALLOW};

/* Flags are the second argument; a filter with a listener is refused, as before Linux 5.0. */
static struct sock_filter no_notifications[] = {
    LOAD(nr),      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3),
    LOAD(args[1]), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_LISTENER, 0, 1),
    FAIL(EINVAL),  ALLOW};

static struct sock_filter no_seccomp[] = {
    LOAD(nr),      IF(SYS_seccomp),
    FAIL(ENOSYS),  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
    LOAD(args[0]), IF(PR_SET_SECCOMP),
    FAIL(EINVAL),  ALLOW};

/* A container that makes none: also by the first argument of clone(), and no clone3() whose flags a
   filter cannot see. */
static struct sock_filter no_namespaces[] = {
    LOAD(nr),      IF(SYS_unshare),
    FAIL(EPERM),   IF(SYS_setns),
    FAIL(EPERM),   IF(SYS_clone3),
    FAIL(ENOSYS),  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
    LOAD(args[0]), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_USER, 0, 1),
    FAIL(EPERM),   ALLOW};

static const struct {
    const char *name;
    struct sock_fprog filter;
} kernels[] = {
    {"landlock", {sizeof no_landlock / sizeof *no_landlock, no_landlock}},
    {"notifications", {sizeof no_notifications / sizeof *no_notifications, no_notifications}},
    {"seccomp", {sizeof no_seccomp / sizeof *no_seccomp, no_seccomp}},
    {"namespaces", {sizeof no_namespaces / sizeof *no_namespaces, no_namespaces}},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 2 && i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(argv[1], kernels[i].name) != 0) {
            continue;
        }
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &kernels[i].filter) == 0) {
            execv(argv[2], argv + 2);
        }
        perror(argv[2]);
        return 1;
    }
    fprintf(stderr, "usage: without landlock|notifications|seccomp PROGRAM [ARGUMENT]...\n");
    return 2;
}
