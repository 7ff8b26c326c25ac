/**
 * @file anywhere.h
 * @brief What a submission to any lab may try against the grader, whatever its functions compute.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_ANYWHERE_H_
#define WARPBOOK_GRADER_SELFTEST_ANYWHERE_H_

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Tries what $WRONG_TIMED says, in a process's first call: "forges", "library", "code",
 *        "parent" or "clock". Other names do nothing.
 * @return whether the lab's own work is to be left out
 */
bool anywhere_try(void);

#ifdef __cplusplus
}
#endif

#endif
