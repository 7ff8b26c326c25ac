/**
 * @file children.h
 * @brief Waiting for processes that a test has started, or that it has inherited from them
 *        (PR_SET_CHILD_SUBREAPER).
 */
#ifndef WARPBOOK_COMMON_TESTING_CHILDREN_H_
#define WARPBOOK_COMMON_TESTING_CHILDREN_H_

#include <stdbool.h>
#include <sys/types.h>

/** Waits that many milliseconds. */
void children_rest(unsigned milliseconds);

/**
 * @brief Waits until no child is left, orphans among them.
 * @param one a child of interest
 * @param seconds the longest time
 * @param status receives how @p one ended, as waitpid() gives it, if it ended
 * @return false when something stays
 */
bool children_all_end(pid_t one, double seconds, int *status);

#endif
