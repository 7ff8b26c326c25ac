/**
 * @file set_aside.h
 * @brief Moves a damaged file out of the way, so that a new one can take its place.
 */
#ifndef WARPBOOK_GRADER_REPORT_SET_ASIDE_H_
#define WARPBOOK_GRADER_REPORT_SET_ASIDE_H_

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Renames @p path to PATH.broken, or to PATH.broken.2 and so on: no file is replaced.
 * @param error says why the file is not understood; receives that and the new name, for the user,
 *              also on success
 * @return STATUS_OK, or STATUS_IO when the file cannot be moved
 */
MUST_CHECK enum status set_aside(const char *path, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
