/**
 * @file compile.h
 * @brief A compiler's run on a submission's file: what it may start, read and use.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_COMPILE_COMPILE_H_
#define WARPBOOK_GRADER_SANDBOX_COMPILE_COMPILE_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/** Most paths of a kind; an action of the build has some hundred headers. */
enum { COMPILE_PATHS = 4000, COMPILE_PROGRAMS = 24 };

/** Paths, as a list that ends with NULL. */
struct compile_paths {
    const char *items[COMPILE_PATHS + 1];
    size_t count;
};

struct compile {
    const char *output;            /**< the object file */
    bool unlinked;                 /**< it is none, and is not looked at as one */
    const char *toolkit;           /**< CUDA's folder; NULL: no nvcc */
    const char *without_ptxas;     /**< folder of what stands in for ptxas; NULL: CUDA has it */
    const char *const *command;    /**< the compiler and its arguments, but for the output */
    size_t words;                  /**< of it */
    double cpu_s;                  /**< of the processes that run at the same time */
    size_t memory_mib;             /**< of all its processes together */
    struct compile_paths read;     /**< the source, headers, folders of headers */
    struct compile_paths programs; /**< that the compiler starts */
};

/** Adds a path, where there is room; a copy of it stays until the program ends. */
void compile_add(struct compile_paths *paths, const char *path);

/**
 * @brief Finds what the compiler at @p path starts and reads: its passes, the assembler, its own
 *        headers and the system's.
 */
void compile_find_gcc(struct compile *compile, const char *path);

/** As compile_find_gcc(), of the toolkit's nvcc; gcc, which it starts, is found on its own. */
void compile_find_nvcc(struct compile *compile);

/** @return STATUS_OK for an object file whose linking is nothing but linking; else a line. */
MUST_CHECK enum status object_check(const void *bytes, size_t size, struct error *error);

#endif
