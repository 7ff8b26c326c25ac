/**
 * @file code_files.h
 * @brief The files that a program's code comes from, and whether what runs comes from others.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_CODE_FILES_H_
#define WARPBOOK_GRADER_SANDBOX_CODE_FILES_H_

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/status.h"

/** Most files of one program: NVIDIA's driver has some twenty, a compiler a dozen. */
enum { CODE_FILES = 120, CODE_NAME = 200 };

struct code_files {
    char *paths[CODE_FILES]; /**< absolute; as they are named, and as they are without links */
    size_t count;
};

/** NVIDIA's driver: with it comes what lies beside it. */
#define CODE_FILES_DRIVER "libcuda.so.1"

/**
 * @brief Adds a program, and the libraries that the system's loader finds for it in this
 *        environment. None of the program's code runs.
 *
 * A program that the loader cannot load has none, and will not start.
 *
 * @param by_name a library that the program loads by its name while it runs; NULL: none. Where
 * there is no such library, it will not find it either
 * @return STATUS_OK; STATUS_INTERRUPTED when the loader was killed before it had said all
 */
MUST_CHECK enum status code_files_add(struct code_files *files, const char *program,
                                      const char *const *environment, const char *by_name,
                                      struct error *error);

void code_files_free(struct code_files *files);

/** @return whether the file at this path, as /proc names it, is one of them. */
bool code_files_have(const struct code_files *files, const char *path);

/**
 * @brief Looks for executable memory of a process that comes from no file of its own.
 * @param anonymous whether memory without a file may be executable, too
 * @param name receives the file's path, or what the kernel calls the memory
 * @return whether there is such memory; false also for a process that has ended
 */
bool code_is_foreign(pid_t pid, const struct code_files *files, bool anonymous,
                     char name[CODE_NAME]);

/** @return @p text: how a program ends that has such code, as sandbox_describe() says it. */
const char *describe_code(const char *name, char *text, size_t size);

/** As code_is_foreign(), of a descriptor that the process is about to map. */
bool code_descriptor_is_foreign(pid_t pid, int fd, const struct code_files *files,
                                char name[CODE_NAME]);

#endif
