/**
 * @file json_lines.h
 * @brief Results as JSON, one object a line, appended whole.
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
 * Folders of the path are made when missing.
 */
MUST_CHECK enum status json_lines_append(const char *path, const struct cJSON *object,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
