/**
 * @file json_lines.h
 * @brief Appends results to a JSON Lines file: one object a line.
 */
#ifndef WARPBOOK_COMMON_BASE_JSON_LINES_H_
#define WARPBOOK_COMMON_BASE_JSON_LINES_H_

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/**
 * @brief Appends @p object to a file as one line, in one write, so that two
 *        programs that append at the same time do not mix their lines.
 *
 * Missing folders of the path are created.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the failure of file_open_append(), with the path
 */
MUST_CHECK enum status json_lines_append(const char *path, const struct cJSON *object,
                                         struct error *error);

/**
 * @brief json_lines_append() to a file that file_open_append() opened, for programs that append
 *        often: the reader of a pipe sees its end only once.
 * @param path for the message
 */
MUST_CHECK enum status json_lines_write(int descriptor, const char *path,
                                        const struct cJSON *object, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
