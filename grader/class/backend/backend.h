/**
 * @file backend.h
 * @brief Where submissions are graded: this machine, or a cluster. A back end is a table of
 *        functions; backends.c lists them.
 *
 * A back end starts OUTPUT/kit/bin/grade_submission OUTPUT ID for each task that it is given, sends
 * what that says to OUTPUT/tasks/ID/said, and says when it has ended. Results, retries and resuming
 * are the collector's (collect.h).
 */
#ifndef WARPBOOK_GRADER_CLASS_BACKEND_BACKEND_H_
#define WARPBOOK_GRADER_CLASS_BACKEND_BACKEND_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct backend_options {
    const char *folder; /**< the output folder, absolute, without links */
    size_t jobs;        /**< most tasks at a time; 0: the back end's own choice */
    const char *gpu;    /**< kind of GPU that is asked for, or NULL */
    const char *text;   /**< --backend-options, in the back end's own words, or NULL */
    bool needs_gpu;     /**< the kit is built for GPUs; else for simt */
    double limit_s;     /**< longest time of one task */
};

enum backend_how {
    BACKEND_EXITED,    /**< code: exit status, see enum task_exit */
    BACKEND_SIGNALLED, /**< code: the signal */
    BACKEND_LOST       /**< the node failed, the job is gone */
};

/** A task that ended. */
struct backend_end {
    unsigned id;
    enum backend_how how;
    int code;
    char why[200]; /**< one line for BACKEND_LOST, or "" */
    char node[64]; /**< of a cluster, where it ran last, or "" */
    bool by_node;  /**< no verdict, and by the fault of its machine */
};

struct backend {
    const char *name; /**< for --backend */

    /** Also reads what an earlier collector left in OUTPUT/backend/. @param self for the others */
    enum status (*open)(void **self, const struct backend_options *options, struct error *error);

    /** @return whether an earlier collector's start of this task still waits or runs */
    bool (*has)(void *self, unsigned id);

    /** @return how many tasks start() takes now */
    size_t (*room)(void *self);

    /** Starts all of these or none. */
    enum status (*start)(void *self, const unsigned *ids, size_t count, struct error *error);

    /** Says which tasks ended since the last call; within a second. @param ends (most) */
    enum status (*poll)(void *self, struct backend_end *ends, size_t most, size_t *count,
                        struct error *error);

    /** "2 running on n1 n2, 37 waiting", for the progress line. */
    void (*describe)(void *self, char *text, size_t size);

    /** Ends all tasks that run or wait. */
    void (*cancel)(void *self);

    void (*close)(void *self);
};

extern const struct backend backend_local;

/** @return the back end of that name, or NULL with a line that lists all */
const struct backend *backend_find(const char *name, struct error *error);

#endif
