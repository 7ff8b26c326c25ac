/**
 * @file folder.h
 * @brief Paths of the files in a checkpoint's folder.
 */
#ifndef WARPBOOK_COMMON_BASE_FOLDER_H_
#define WARPBOOK_COMMON_BASE_FOLDER_H_

#include <stdbool.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FOLDER_PATH_BYTES = 4096 };

/**
 * @brief Makes FOLDER/NAME.
 * @param what of whom the path is, for the message: "checkpoint"
 * @return STATUS_OK or STATUS_TOO_LONG
 */
MUST_CHECK enum status folder_join(char path[FOLDER_PATH_BYTES], const char *folder,
                                   const char *name, const char *what, struct error *error);

/** @return whether there is a folder of this path. */
bool folder_exists(const char *path);

/** @return whether there is anything of this path. */
bool path_exists(const char *path);

#ifdef __cplusplus
}
#endif

#endif
