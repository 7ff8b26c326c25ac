#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grader/sandbox/compile/compile.h"

void compile_add(struct compile_paths *paths, const char *path) {
    char *copy = paths->count < COMPILE_PATHS ? strdup(path) : NULL;
    if (copy != NULL) {
        paths->items[paths->count++] = copy;
    }
}

/* FOLDER/PATTERN, all that there is. */
static void add_all(struct compile_paths *paths, const char *folder, const char *pattern) {
    char path[PATH_MAX];
    glob_t found;
    snprintf(path, sizeof path, "%.3000s/%.200s", folder, pattern);
    if (glob(path, GLOB_NOESCAPE, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            compile_add(paths, found.gl_pathv[i]);
        }
        globfree(&found);
    }
}

/* The first program of that name on the PATH. */
static void add_from_path(struct compile_paths *paths, const char *name) {
    const char *from = getenv("PATH");
    char path[PATH_MAX];
    for (from = from != NULL ? from : "/usr/bin:/bin"; *from != '\0';) {
        size_t length = strcspn(from, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)length, from, name);
        if (length > 0 && length < 3000 && access(path, X_OK) == 0) {
            compile_add(paths, path);
            return;
        }
        from += length + (from[length] == ':');
    }
}

/* "/usr" for "/usr/bin/gcc", without links. */
static void find_prefix(const char *program, char prefix[PATH_MAX]) {
    if (realpath(program, prefix) == NULL) {
        prefix[0] = '\0';
    }
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(prefix, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    }
}

void compile_find_gcc(struct compile *compile, const char *path) {
    static const char *const passes[] = {"lib/gcc/*/*/cc1", "lib/gcc/*/*/cc1plus",
                                         "libexec/gcc/*/*/cc1", "libexec/gcc/*/*/cc1plus"};
    static const char *const headers[] = {"lib/gcc", "lib64/gcc", "libexec/gcc", "lib/clang"};
    char prefix[PATH_MAX];
    find_prefix(path, prefix);
    compile_add(&compile->programs, path);
    add_from_path(&compile->programs, "as");
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        add_all(&compile->programs, prefix, passes[i]);
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        add_all(&compile->read, prefix, headers[i]);
    }
    compile_add(&compile->read, "/usr/include");
    compile_add(&compile->read, "/usr/local/include");
    if (strcmp(prefix, "/usr") != 0 && strcmp(prefix, "/usr/local") != 0 && prefix[0] != '\0') {
        compile_add(&compile->read, "/usr/lib/gcc"); /* clang looks for gcc's files there */
        compile_add(&compile->read, prefix);         /* a folder of the compiler's own */
    }
}

void compile_find_nvcc(struct compile *compile) {
    static const char *const programs[] = {"bin/nvcc",      "bin/cudafe++", "bin/ptxas",
                                           "bin/fatbinary", "bin/bin2c",    "nvvm/bin/cicc"};
    static const char *const folders[] = {"bin", "include", "nvvm"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        add_all(&compile->programs, compile->toolkit, programs[i]);
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        add_all(&compile->read, compile->toolkit, folders[i]);
    }
    compile_add(&compile->programs, "/bin/sh"); /* nvcc starts all of them by system() */
    if (compile->without_ptxas != NULL) {
        add_all(&compile->programs, compile->without_ptxas, "ptxas");
    }
}
