/**
 * @file foreign.h
 * @brief A submission must do the work itself: did the process load a library that does?
 */
#ifndef WARPBOOK_GRADER_FOREIGN_H_
#define WARPBOOK_GRADER_FOREIGN_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Looks for vendor and BLAS libraries among the files this process has mapped.
 * @param name receives the first one's file name
 * @return false when there is none
 */
bool grader_foreign_library(char *name, size_t size);

/** Fails the running test when there is one, naming it. */
void grader_check_own_work(void);

#ifdef __cplusplus
}
#endif

#endif
