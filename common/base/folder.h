/**
 * @file folder.h
 * @brief Files in a folder: their paths, whether they exist, writing one.
 */
#ifndef WARPBOOK_COMMON_BASE_FOLDER_H_
#define WARPBOOK_COMMON_BASE_FOLDER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FOLDER_PATH_BYTES = 4096 };

/**
 * @brief Joins a folder and a file name: "FOLDER/NAME".
 * @param path receives the result, NUL-terminated
 * @param what noun for the error message: "checkpoint" gives "path of the checkpoint is longer ..."
 * @return STATUS_OK or STATUS_TOO_LONG
 */
MUST_CHECK enum status folder_join(char path[FOLDER_PATH_BYTES], const char *folder,
                                   const char *name, const char *what, struct error *error);

/**
 * @brief Writes FOLDER/NAME as file_write() does; the folder must exist.
 * @param what as for folder_join()
 * @return STATUS_OK, STATUS_TOO_LONG, or the status of file_write()
 */
MUST_CHECK enum status folder_write(const char *folder, const char *name, const void *data,
                                    size_t size, const char *what, struct error *error);

/** @return whether @p path is a folder. */
bool folder_exists(const char *path);

/**
 * @return whether a file, folder or device exists at @p path, or may: without permission to look,
 *         the answer is true, so that opening it says "Permission denied".
 */
bool path_exists(const char *path);

#ifdef __cplusplus
}
#endif

#endif
