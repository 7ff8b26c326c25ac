/**
 * @file collect.h
 * @brief Gives tasks to a back end until each has a result, or was given up.
 */
#ifndef WARPBOOK_GRADER_CLASS_COLLECT_H_
#define WARPBOOK_GRADER_CLASS_COLLECT_H_

#include "grader/class/backend/backend.h"
#include "grader/class/task.h"

enum { MOST_TRIES = 3 };

enum task_state { TASK_WAITS, TASK_RUNS, TASK_GRADED, TASK_GIVEN_UP, TASK_REFUSED };

/** One task on its way. */
struct progress_of {
    struct task task;
    enum task_state state;
    int tries;
    char why[300]; /**< why it was given up, or "" */
};

struct collection {
    const char *output;
    const struct backend *backend;
    void *self; /**< of the back end, open */
    struct progress_of *tasks;
    size_t count;
    /** Called when results have come, not more often than every other second, and at the end. */
    enum status (*show)(const struct collection *collection, struct error *error);
    const void *argument; /**< for show() */
};

/**
 * @brief Works until nothing waits or runs, or until an interrupt.
 * @return STATUS_OK; STATUS_INTERRUPTED; what show() gives
 */
MUST_CHECK enum status collect(struct collection *collection, struct error *error);

/** @return tasks in this state */
size_t collection_count(const struct collection *collection, enum task_state state);

#endif
