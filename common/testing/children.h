/**
 * @file children.h
 * @brief Finding processes that a test has started, and waiting for them and for those that it has
 *        inherited from them (PR_SET_CHILD_SUBREAPER).
 */
#ifndef WARPBOOK_COMMON_TESTING_CHILDREN_H_
#define WARPBOOK_COMMON_TESTING_CHILDREN_H_

#include <stdbool.h>
#include <stddef.h>
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

/** @return the process's parent; 0: there is no such process. */
pid_t children_parent_of(pid_t process);

/** @return its state as ps shows it, 'Z' for one that nobody has waited for; 0: as above. */
char children_state_of(pid_t process);

/** @return whether there is such a process, and it has that name, of 15 characters at most. */
bool children_is_named(pid_t process, const char *name);

/** @return whether both are there, and have the same name. */
bool children_have_same_name(pid_t one, pid_t other);

/**
 * @brief Finds the processes below another one: its children, theirs, and so on.
 * @param found receives at most @p most
 * @return how many
 */
size_t children_below(pid_t ancestor, pid_t *found, size_t most);

#endif
