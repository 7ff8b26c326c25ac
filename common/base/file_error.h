/**
 * @file file_error.h
 * @brief The message for a system call on a file that failed; for file.c and file_write.c.
 */
#ifndef WARPBOOK_COMMON_BASE_FILE_ERROR_H_
#define WARPBOOK_COMMON_BASE_FILE_ERROR_H_

#include "common/base/status.h"

/** @return STATUS_NOT_FOUND or STATUS_IO by errno: "FILE: cannot ACTION: No space left on device" */
enum status file_error(struct error *error, const char *path, const char *action);

#endif
