/**
 * @file program_folder.h
 * @brief Paths of files in the folder of the running program, under Bazel and in the bundle.
 */
#ifndef WARPBOOK_GRADER_HARNESS_PROGRAM_FOLDER_H_
#define WARPBOOK_GRADER_HARNESS_PROGRAM_FOLDER_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the path of a file in this program's own folder; does not look whether it is there.
 * @param name relative to that folder
 * @return STATUS_OK; STATUS_NOT_FOUND when the folder is unknown; STATUS_TOO_LONG
 */
MUST_CHECK enum status program_folder_path(char *path, size_t size, const char *name,
                                           struct error *error);

#ifdef __cplusplus
}
#endif

#endif
