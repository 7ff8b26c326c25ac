/**
 * @file file.h
 * @brief Read-only views of whole files, and files that appear whole or not at all.
 */
#ifndef WARPBOOK_COMMON_BASE_FILE_H_
#define WARPBOOK_COMMON_BASE_FILE_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A file mapped read-only; `data` is NULL for an empty file. */
struct file_view {
    const unsigned char *data;
    size_t size;
};

/**
 * @brief Maps a regular file.
 * @param path as the user gave it; it appears in the message
 * @return STATUS_OK, STATUS_NOT_FOUND, STATUS_IO (a folder, a device, no permission)
 */
MUST_CHECK enum status file_view_open(struct file_view *view, const char *path,
                                      struct error *error);

/** Unmaps; a zero-initialised or closed view is allowed. */
void file_view_close(struct file_view *view);

/**
 * @brief Goes to the folder `bazel run` was called in, so that the paths a user types mean there.
 *
 * `bazel run` starts programs elsewhere and leaves the folder in
 * $BUILD_WORKING_DIRECTORY. Does nothing when that is not set. For main() only.
 */
void file_enter_working_directory(void);

/**
 * @brief Reads a file, or standard input for "-", into memory with a NUL after it.
 * @param limit most bytes accepted; more is STATUS_TOO_LONG
 * @param text  receives memory that the caller frees
 * @param size  receives the length without the NUL
 */
MUST_CHECK enum status file_read(const char *path, size_t limit, char **text, size_t *size,
                                 struct error *error);

/**
 * @brief Writes a file under a temporary name beside it, syncs it and renames it.
 *
 * An existing file keeps its content until the new one is complete.
 */
MUST_CHECK enum status file_write(const char *path, const void *data, size_t size,
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
