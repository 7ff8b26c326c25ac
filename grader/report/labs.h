/**
 * @file labs.h
 * @brief What report, reset and hint know of the labs.
 */
#ifndef WARPBOOK_GRADER_REPORT_LABS_H_
#define WARPBOOK_GRADER_REPORT_LABS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LAB_COUNT = 15 };

struct lab {
    const char *name;  /**< "04_sgemm" */
    const char *title; /**< "Tiled SGEMM" */
    const char *file;  /**< the one to edit, below labs/NAME or solutions/NAME: "sgemm.cu" */
};

/** @return lab @p index of LAB_COUNT, in the order of the course. */
const struct lab *lab_at(size_t index);

/** Handouts with hints: those of the labs, then that of 00_warmups, which has no points. */
enum { HANDOUT_COUNT = LAB_COUNT + 1 };

/** @return whose handout @p index of HANDOUT_COUNT is; that of the warm-ups has no `file`. */
const struct lab *handout_at(size_t index);

/** As lab_find(), with the warm-ups: "00_warmups", "00". @param index receives which handout */
MUST_CHECK enum status handout_find(const char *text, size_t *index, struct error *error);

/**
 * @brief Finds a lab by its name, or by its number alone: "04_sgemm", "04", "4".
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line that lists the labs
 */
MUST_CHECK enum status lab_find(const char *text, const struct lab **lab, struct error *error);

/**
 * @brief Reads a list with commas into @p chosen, which then has NULL for each lab not named.
 * @param list         NULL or empty: all labs, and the warm-ups
 * @param with_warmups receives whether 00_warmups are among them
 */
MUST_CHECK enum status lab_choose(const char *list, const struct lab *chosen[LAB_COUNT],
                                  bool *with_warmups, struct error *error);

/** Writes the path of a lab's starter, the file to edit as the course hands it out. */
void lab_starter_path(const struct lab *lab, const char *workspace, char *path, size_t size);

/** @return whether both files can be read and have the same content */
bool lab_file_is(const char *path, const char *starter);

/**
 * @return the workspace: $BUILD_WORKSPACE_DIRECTORY of `bazel run`, else the nearest folder from
 *         the current one upwards with WORKSPACE and labs/, else the current one
 */
const char *lab_workspace(void);

#ifdef __cplusplus
}
#endif

#endif
