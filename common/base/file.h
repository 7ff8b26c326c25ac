/**
 * @file file.h
 * @brief Reads whole files, mapped or copied, and writes files atomically.
 */
#ifndef WARPBOOK_COMMON_BASE_FILE_H_
#define WARPBOOK_COMMON_BASE_FILE_H_

#include <stdbool.h>
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
 * @brief Changes to the folder in which the user called `bazel run`, so that relative paths on the
 *        command line are found there.
 *
 * `bazel run` starts programs in another folder and puts the user's into
 * $BUILD_WORKING_DIRECTORY. Does nothing if that is not set. For main() only.
 */
void file_enter_working_directory(void);

/**
 * @brief Reads a file, or standard input for "-", into memory with a NUL after it.
 * @param limit largest size accepted, in bytes
 * @param text  receives memory that the caller frees; NULL on failure
 * @param size  receives the length without the NUL; 0 on failure
 * @return STATUS_OK, STATUS_NOT_FOUND, STATUS_IO, STATUS_TOO_LONG (more than @p limit bytes),
 *         STATUS_OUT_OF_MEMORY; the message begins with the path
 */
MUST_CHECK enum status file_read(const char *path, size_t limit, char **text, size_t *size,
                                 struct error *error);

/**
 * @brief Writes a file under a temporary name beside it, syncs it and renames it.
 *
 * An existing file keeps its content until the new one is complete, and its permissions. Those of a
 * new one follow the umask. A link stays, and the file that it names is written. What is no regular
 * file is written into and never replaced: a device, a pipe, /dev/stdout, /dev/fd/3.
 *
 * @return STATUS_OK, STATUS_NOT_FOUND (no such folder), STATUS_IO; the message begins with the path
 */
MUST_CHECK enum status file_write(const char *path, const void *data, size_t size,
                                  struct error *error);

/**
 * @brief Looks whether file_write() can write there, for programs that work for minutes before they
 *        do. Creates and changes nothing.
 * @return STATUS_OK, or what file_write() would return
 */
MUST_CHECK enum status file_check_writable(const char *path, struct error *error);

/**
 * @brief Opens a file to append to it, and makes it if it is missing: /dev/fd/3, devices, pipes and
 *        links as for file_write().
 * @param descriptor receives the descriptor, which the caller closes; -1 on failure
 * @return STATUS_OK, STATUS_NOT_FOUND (no such folder), STATUS_IO; the message begins with the path
 */
MUST_CHECK enum status file_open_append(const char *path, int *descriptor, struct error *error);

/**
 * @return whether @p path itself names a regular file: no device, pipe, or descriptor as
 *         /dev/fd/3, whose earlier content is not ours to read or to cut.
 */
bool file_is_regular(const char *path);

#ifdef __cplusplus
}
#endif

#endif
