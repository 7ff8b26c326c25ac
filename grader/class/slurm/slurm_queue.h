/**
 * @file slurm_queue.h
 * @brief Reads what squeue prints.
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_QUEUE_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_QUEUE_H_

#include <stddef.h>

#include "common/base/status.h"

/** squeue's --format. Two fields that others choose freely come last. */
#define SLURM_QUEUE_FORMAT "%U|%F|%K|%T|%r|%P|%N|%k|%j"

enum slurm_state {
    SLURM_WAITS, /**< will run, or run again */
    SLURM_RUNS,
    SLURM_OVER /**< will not run again */
};

/** One of our tasks, as the queue shows it. */
struct slurm_job {
    unsigned batch, index, job;
    enum slurm_state state;
    char word[24];   /**< the state as Slurm calls it: PENDING, NODE_FAIL */
    char reason[40]; /**< (Resources), (Priority); "" for none */
    char node[64];
};

struct slurm_queue {
    struct slurm_job *jobs; /**< ours */
    size_t count, capacity;
    size_t place;   /**< of our first task that waits, among those that wait; 0: none waits */
    size_t waiting; /**< all tasks that wait in that partition, others' too */
};

/**
 * @brief Reads all lines. Lines of other users and other names are counted and no more.
 * @param text squeue's output with SLURM_QUEUE_FORMAT, in the order of priority; changed
 * @param name of our jobs; their comment is the number of the batch
 * @return STATUS_OK; STATUS_BAD_FORMAT; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status slurm_queue_read(struct slurm_queue *queue, char *text, unsigned user,
                                        const char *name, struct error *error);

void slurm_queue_free(struct slurm_queue *queue);

#endif
