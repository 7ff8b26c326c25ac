/**
 * @file hints.h
 * @brief The hints of a handout, one after the other, and how many were shown.
 *
 * A hint is what stands in a handout between `<details><summary>Hint N: TITLE</summary>` and
 * `</details>`, each at the beginning of a line.
 */
#ifndef WARPBOOK_GRADER_REPORT_HINTS_H_
#define WARPBOOK_GRADER_REPORT_HINTS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "grader/report/labs.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_HINTS = 40 };

/** Pieces of the handout's text. */
struct hint {
    const char *title, *body;
    size_t title_length, body_length;
};

/**
 * @brief Finds the hints of a handout.
 * @return how many there are, at most MOST_HINTS
 */
size_t hints_find(const char *handout, struct hint hints[MOST_HINTS]);

/** How many hints of each handout were shown. */
struct hints_shown {
    int count[HANDOUT_COUNT];
};

/**
 * @brief Reads the file; without one no hint was shown.
 *
 * A damaged file is moved out of the way, and @p error says so although the status is STATUS_OK.
 * On failure @p shown holds zeros, too, and the file must not be written.
 */
MUST_CHECK enum status hints_load(struct hints_shown *shown, const char *path, struct error *error);

/**
 * @brief Notes that hints up to @p end of a lab were shown, and writes the file into a folder that
 * is made if need be. The file appears whole or not at all; it never counts backwards.
 * @param lab index of the lab
 */
MUST_CHECK enum status hints_remember(struct hints_shown *shown, size_t lab, int end,
                                      const char *folder, struct error *error);

/** Writes the path of the file in a folder. @return @p path */
const char *hints_path(const char *folder, char *path, size_t size);

#ifdef __cplusplus
}
#endif

#endif
