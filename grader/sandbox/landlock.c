#include "grader/sandbox/landlock.h"

#include <fcntl.h>
#include <glob.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The kernel's interface, written out: installed headers may be older than the
 * kernel. Rights are bits that came one by one; each version knows the lower ones.
 */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_FOLDER = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_FOLDER = 1 << 7,
    MAKE_FILE = 1 << 8,
    FIRST_RIGHTS = (1 << 13) - 1,
    REFER = 1 << 13,     /* version 2 */
    TRUNCATE = 1 << 14,  /* 3 */
    IOCTL_DEV = 1 << 15, /* 5 */
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
    /* In its own folder a program has files and nothing else, so that they can be counted. */
    OWN_FOLDER = READ_FILE | WRITE_FILE | READ_DIR | REMOVE_FILE | MAKE_FILE | TRUNCATE
};
enum { SCOPE_ABSTRACT_SOCKETS = 1 << 0, SCOPE_SIGNALS = 1 << 1 }; /* 6 */
enum { VERSION_FLAG = 1 << 0, RULE_PATH_BENEATH = 1 };

struct ruleset {
    uint64_t files, network, scoped;
};

struct rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

/* Numbers are the same on every architecture. */
enum { CALL_CREATE_RULESET = 444, CALL_ADD_RULE = 445, CALL_RESTRICT_SELF = 446 };

static const char *const files[] = {"/etc/ld.so.cache",
                                    "/etc/ld.so.preload",
                                    "/etc/localtime",
                                    "/dev/zero",
                                    "/dev/random",
                                    "/dev/urandom",
                                    "/proc/cpuinfo",
                                    "/proc/meminfo",
                                    "/sys/devices/system/cpu",
                                    "/sys/devices/system/node"};
static const char *const gpu_files[] = {"/usr/local",    "/usr/share",   "/etc",
                                        "/sys",          "/proc/driver", "/proc/devices",
                                        "/proc/modules", "/proc/sys"};
static const char *const gpu_devices[] = {"/dev/nvidia*", "/dev/nvidia-caps/*"};

static uint64_t rights_of_version(long version) {
    return FIRST_RIGHTS | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) |
           (version >= 5 ? IOCTL_DEV : 0);
}

/* Allows `rights` of what there is at `path` and below. */
static void allow(int ruleset, const char *path, uint64_t rights) {
    struct stat status;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) == 0) {
        struct rule rule = {.allowed = S_ISDIR(status.st_mode) ? rights : rights & OF_FILES,
                            .parent = fd};
        syscall(CALL_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
    }
    close(fd);
}

static void allow_all(int ruleset, const char *const *paths, size_t count, uint64_t rights) {
    for (size_t i = 0; i < count; i++) {
        allow(ruleset, paths[i], rights);
    }
}

static void allow_gpu(int ruleset, uint64_t known) {
    allow_all(ruleset, gpu_files, sizeof gpu_files / sizeof *gpu_files, READ_FILE | READ_DIR);
    /* The driver names its threads, in /proc/self/task/N/comm, and gives up where it cannot. */
    allow(ruleset, "/proc/self/task", (READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE) & known);
    for (size_t i = 0; i < sizeof gpu_devices / sizeof *gpu_devices; i++) {
        glob_t found;
        if (glob(gpu_devices[i], 0, NULL, &found) == 0) {
            allow_all(ruleset, (const char *const *)found.gl_pathv, found.gl_pathc,
                      (READ_FILE | WRITE_FILE | IOCTL_DEV) & known);
            globfree(&found);
        }
    }
}

static void allow_usual(int ruleset, const struct reach *reach, uint64_t known) {
    for (size_t i = 0; i < reach->code->count; i++) {
        allow(ruleset, reach->code->paths[i], EXECUTE | READ_FILE);
    }
    allow(ruleset, reach->folder, OWN_FOLDER & known);
    for (const char *const *path = reach->writable; path != NULL && *path != NULL; path++) {
        allow(ruleset, *path, (OWN_FOLDER | MAKE_FOLDER | REMOVE_FOLDER) & known);
    }
    allow(ruleset, "/dev/null", READ_FILE | WRITE_FILE);
    allow(ruleset, "/proc/self", READ_FILE | READ_DIR);
    allow_all(ruleset, files, sizeof files / sizeof *files, READ_FILE | READ_DIR);
    for (const char *const *path = reach->readable; path != NULL && *path != NULL; path++) {
        allow(ruleset, *path, READ_FILE | READ_DIR);
    }
    if (reach->gpu) {
        allow_gpu(ruleset, known);
    }
}

enum reach_state reach_limit(const struct reach *reach) {
    long version = syscall(CALL_CREATE_RULESET, NULL, 0, VERSION_FLAG);
    if (version < 1) {
        return REACH_NONE;
    }
    bool scopes = version >= 6;
    struct ruleset rules = {.files = rights_of_version(version),
                            .scoped = scopes ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : 0};
    int ruleset = (int)syscall(CALL_CREATE_RULESET, &rules, sizeof rules, 0);
    if (ruleset < 0) {
        return REACH_NONE;
    }
    allow_usual(ruleset, reach, rules.files);
    long code = syscall(CALL_RESTRICT_SELF, ruleset, 0);
    close(ruleset);
    if (code != 0) {
        return REACH_NONE;
    }
    return scopes ? REACH_FILES_AND_SIGNALS : REACH_FILES;
}
