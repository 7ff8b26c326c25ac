#include "grader/sandbox/code_files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const beside_driver[] = {"libcuda*.so*", "libnvidia-*.so*"};

/* Of a deleted file, which a new build has replaced: /proc says so behind its path. */
static const char deleted[] = " (deleted)";

static bool holds(const struct code_files *files, const char *path, size_t length) {
    for (size_t i = 0; i < files->count; i++) {
        if (strlen(files->paths[i]) == length && memcmp(files->paths[i], path, length) == 0) {
            return true;
        }
    }
    return false;
}

static void add_path(struct code_files *files, const char *path) {
    if (files->count < CODE_FILES && !holds(files, path, strlen(path))) {
        char *copy = strdup(path);
        files->paths[files->count] = copy;
        files->count += copy != NULL;
    }
}

/* Under both names: the loader opens one, /proc shows the other. */
static void add_file(struct code_files *files, const char *path) {
    char real[PATH_MAX];
    add_path(files, path);
    if (realpath(path, real) != NULL) {
        add_path(files, real);
    }
}

static void folder_of(const char *path, char folder[PATH_MAX]) {
    snprintf(folder, PATH_MAX, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
}

static void add_all_of(struct code_files *files, const char *folder, const char *pattern) {
    char path[PATH_MAX + 32];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    if (glob(path, GLOB_NOESCAPE, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            add_file(files, found.gl_pathv[i]);
        }
        globfree(&found);
    }
}

static void add_driver(struct code_files *files, const char *path) {
    char folder[PATH_MAX], real[PATH_MAX];
    const char *const names[] = {path, realpath(path, real)};
    for (size_t i = 0; i < 2 && names[i] != NULL; i++) {
        folder_of(names[i], folder);
        for (size_t k = 0; k < sizeof beside_driver / sizeof *beside_driver; k++) {
            add_all_of(files, folder, beside_driver[k]);
        }
    }
}

/* A library that the loader has found. The C library loads one more itself, to end a thread. */
static void add_library(struct code_files *files, const char *path) {
    char folder[PATH_MAX];
    const char *name = strrchr(path, '/') + 1;
    add_file(files, path);
    if (strncmp(name, "libc.so.", 8) == 0) {
        folder_of(path, folder);
        add_all_of(files, folder, "libgcc_s.so.1");
    } else if (strcmp(name, CODE_FILES_DRIVER) == 0) {
        add_driver(files, path);
    }
}

/* A line is "name => /path (address)", or "/path (address)". */
static void read_list(struct code_files *files, FILE *list) {
    char line[PATH_MAX + 256];
    while (fgets(line, sizeof line, list) != NULL) {
        char *path = strchr(line, '/');
        char *arrow = strstr(line, "=> ");
        path = arrow != NULL ? arrow + 3 : path;
        char *end = path != NULL ? strstr(path, " (0x") : NULL;
        if (end != NULL && path[0] == '/') {
            *end = '\0';
            add_library(files, path);
        }
    }
}

/* The loader of this process: a program cannot choose another one to be asked about it. */
static const char *loader(void) {
    Dl_info info;
    const void *base = (const void *)(uintptr_t)getauxval(AT_BASE); /* NOLINT: an address */
    return base != NULL && dladdr(base, &info) != 0 ? info.dli_fname : NULL;
}

static void become_loader(int out, const char *path, const char *program,
                          const char *const *environment, const char *by_name)
    __attribute__((noreturn));

static void become_loader(int out, const char *path, const char *program,
                          const char *const *environment, const char *by_name) {
    static const char *const nothing[] = {NULL};
    const char *plain[] = {path, "--list", program, NULL};
    const char *with_library[] = {path, "--preload", by_name, "--list", program, NULL};
    int quiet = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(quiet, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(quiet, STDERR_FILENO);
    execve(path, (char *const *)(uintptr_t)(by_name != NULL ? with_library : plain),
           (char *const *)(uintptr_t)(environment != NULL ? environment : nothing));
    _exit(127);
}

static enum status ask_loader(struct code_files *files, const char *path, const char *program,
                              const char *const *environment, const char *by_name,
                              struct error *error) {
    int ends[2], how = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_IO, "sandbox: no pipe: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        become_loader(ends[1], path, program, environment, by_name);
    }
    close(ends[1]);
    FILE *list = child > 0 ? fdopen(ends[0], "r") : NULL;
    if (list == NULL) {
        close(ends[0]);
    } else {
        read_list(files, list);
        fclose(list);
    }
    if (child > 0) {
        while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
        }
    }
    return child > 0 && !WIFSIGNALED(how)
               ? STATUS_OK
               : error_set(error, STATUS_INTERRUPTED,
                           "the loader was killed when it was asked for the libraries of %.200s",
                           program);
}

enum status code_files_add(struct code_files *files, const char *program,
                           const char *const *environment, const char *by_name,
                           struct error *error) {
    const char *path = loader();
    add_file(files, program);
    if (path == NULL) {
        return STATUS_OK;
    }
    add_file(files, path);
    return ask_loader(files, path, program, environment, by_name, error);
}

void code_files_free(struct code_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        free(files->paths[i]);
    }
    *files = (struct code_files){0};
}

bool code_files_have(const struct code_files *files, const char *path) {
    size_t length = strlen(path), end = sizeof deleted - 1;
    return holds(files, path, length) ||
           (length > end && strcmp(path + length - end, deleted) == 0 &&
            holds(files, path, length - end));
}

/* What the kernel itself puts into every process. */
static bool is_kernels(const char *name) {
    static const char *const names[] = {"[vdso]", "[vsyscall]", "[vectors]", "[sigpage]",
                                        "[uprobes]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The end of a long path says more than its beginning. */
static void keep_name(char name[CODE_NAME], const char *path) {
    size_t length = strlen(path), most = CODE_NAME - sizeof "/...";
    if (length > most) {
        snprintf(name, CODE_NAME, "/...%.*s", (int)most, path + length - most);
    } else {
        memcpy(name, path, length + 1);
    }
}

/* "start-end rwxp offset device inode   name": whether it is executable and not the program's. */
static bool line_is_foreign(char *line, const struct code_files *files, bool anonymous,
                            char name[CODE_NAME]) {
    char rights[8];
    int behind = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%*s %7s %*s %*s %*s %n", rights, &behind) != 1 || rights[2] != 'x') {
        return false;
    }
    const char *what = line + behind;
    bool file = what[0] == '/';
    if (file ? code_files_have(files, what) : anonymous || is_kernels(what)) {
        return false;
    }
    keep_name(name, what);
    return true;
}

bool code_is_foreign(pid_t pid, const struct code_files *files, bool anonymous,
                     char name[CODE_NAME]) {
    char path[48], line[PATH_MAX + 256];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        found = line_is_foreign(line, files, anonymous, name);
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

bool code_descriptor_is_foreign(pid_t pid, int fd, const struct code_files *files,
                                char name[CODE_NAME]) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (code_files_have(files, path)) {
        return false;
    }
    keep_name(name, path);
    return true;
}
