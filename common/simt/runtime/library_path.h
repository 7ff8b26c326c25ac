/**
 * @file library_path.h
 * @brief Where the emulator's library is, for the programs that belong to it.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_LIBRARY_PATH_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_LIBRARY_PATH_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/**
 * @brief Finds libcudart.so.13 beside the running program, or in ../lib as in the package.
 * @return STATUS_OK; STATUS_NOT_FOUND with a line
 */
MUST_CHECK enum status library_path_find(char *path, size_t size, struct error *error);

/** Finds libnccl.so.2 beside the emulator's library, or where this workspace builds it. @return
 *  whether it is there */
bool library_path_find_nccl(const char *library, char *path, size_t size);

/**
 * @brief Puts the library before all others in $LD_PRELOAD, for the program that is started next.
 *
 * Blanks and colons end a name there, so a path that has some is given by a descriptor.
 */
MUST_CHECK enum status library_path_preload(const char *path, struct error *error);

#endif
