/**
 * @file slurm_nodes.h
 * @brief Which nodes fail every task of ours, and so get no more of them. No input or output here.
 *
 * A node fails a task when the task ended there without a verdict, by the node's fault: no GPU, no
 * compiler, no shared folder. It is excluded once NODES_FAILURES tasks in a row, not all of them
 * the same, failed there, and while another node that is not excluded has graded one, or has been
 * at one for NODES_WORK_S: where every node fails, none is excluded, and the tasks are given up.
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_NODES_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_NODES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

enum { NODES_FAILURES = 3, NODES_NAME = 64, NODES_LIST = 2000 };

/** Longer than run_task.sh holds a node that cannot grade. */
static const double NODES_WORK_S = 8;

struct slurm_node {
    char name[NODES_NAME];
    unsigned failures; /**< in a row */
    unsigned first;    /**< the task that failed first of them */
    bool several;      /**< other tasks failed, too */
    bool works;        /**< graded one, or is at one for long enough */
    bool excluded;
};

struct slurm_nodes {
    struct slurm_node *all;
    size_t count, capacity;
};

/** Notes a task's end on a node: graded, or failed by the node's fault. */
MUST_CHECK enum status slurm_nodes_end(struct slurm_nodes *nodes, const char *name, unsigned id,
                                       bool failed, struct error *error);

/** Notes that a task has been running on a node for @p seconds. */
MUST_CHECK enum status slurm_nodes_run(struct slurm_nodes *nodes, const char *name, double seconds,
                                       struct error *error);

/** @return a node that is to be excluded from now on, marked so; NULL: none */
const struct slurm_node *slurm_nodes_exclude(struct slurm_nodes *nodes);

/** Writes all that are excluded with commas, behind @p also, which may be NULL. @return how many */
size_t slurm_nodes_list(const struct slurm_nodes *nodes, const char *also, char text[NODES_LIST]);

void slurm_nodes_free(struct slurm_nodes *nodes);

#endif
