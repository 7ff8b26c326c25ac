/**
 * @file copy_file.h
 * @brief Copies one plain file.
 */
#ifndef WARPBOOK_GRADER_CLASS_COPY_FILE_H_
#define WARPBOOK_GRADER_CLASS_COPY_FILE_H_

#include "common/base/status.h"

/** Copies content and permissions to a new file; a file that is there is replaced. */
MUST_CHECK enum status copy_file(const char *from, const char *to, struct error *error);

#endif
