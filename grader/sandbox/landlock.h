/**
 * @file landlock.h
 * @brief The files that a sandboxed program reaches (Landlock).
 */
#ifndef WARPBOOK_GRADER_SANDBOX_LANDLOCK_H_
#define WARPBOOK_GRADER_SANDBOX_LANDLOCK_H_

#include <stdbool.h>

#include "grader/sandbox/code_files.h"

struct reach {
    const struct code_files *code; /**< may be run and read */
    const char *folder;            /**< files in it may be made, read, written and removed */
    const char *const *readable;
    const char *const *writable; /**< folders; files and folders in them, as above */
    bool gpu;                    /**< NVIDIA's device files may be used */
};

enum reach_state { REACH_NONE, REACH_FILES, REACH_FILES_AND_SIGNALS };

/**
 * @brief From here on this process and all that it becomes open no other files; no-new-privileges
 *        must be set.
 *
 * /dev/null, /dev/zero, /dev/urandom, the CPU's description and the
 * process's own /proc folder are always readable. What cannot be named because it is not there is
 * left out.
 */
enum reach_state reach_limit(const struct reach *reach);

#endif
