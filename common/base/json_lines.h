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
 * @return STATUS_OK, STATUS_IO or STATUS_OUT_OF_MEMORY, with the path
 */
MUST_CHECK enum status json_lines_append(const char *path, const struct cJSON *object,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
