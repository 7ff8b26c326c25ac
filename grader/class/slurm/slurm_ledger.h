/**
 * @file slurm_ledger.h
 * @brief Which tasks are with Slurm, and when one of them is over. No input or output here.
 *
 * A batch is what one sbatch submits: a job array whose index I is the I-th task of the batch. A
 * task is over when its note is there (the job script writes it), or when Slurm will not run it any
 * more and no note came for a while: slurmctld answers before a shared folder shows a new file
 * everywhere, and right after a restart it may not list every job yet.
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_LEDGER_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_LEDGER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "grader/class/backend/backend.h"
#include "grader/class/slurm/slurm_queue.h"

/** How long, and in how many answers of squeue, a task must be away. */
enum { LEDGER_GRACE_S = 8, LEDGER_ANSWERS = 2 };

struct ledger_task {
    unsigned id;
    enum slurm_state state;
    bool told;     /**< handed out by ledger_take() */
    bool noted;    /**< its note is there */
    int code;      /**< from the note */
    unsigned away; /**< answers in a row that do not have it under way */
    double away_since;
    double runs_since; /**< first answer that has it running; 0: none has */
    unsigned job;      /**< 0: not known yet */
    char word[24], reason[40], node[64];
};

struct ledger_batch {
    unsigned number;
    size_t first, count; /**< its tasks */
    double submitted;    /**< on slurm_clock() */
};

struct ledger {
    struct ledger_task *tasks;
    struct ledger_batch *batches;
    size_t task_count, task_capacity, batch_count, batch_capacity;
    size_t place, waiting; /**< from the last answer */
};

/** Adds a batch that was submitted, or may have been, at @p now. */
MUST_CHECK enum status ledger_add(struct ledger *ledger, unsigned batch, unsigned job,
                                  const unsigned *ids, size_t count, double now,
                                  struct error *error);

/** Takes an answer of squeue that was asked for at @p asked. */
void ledger_answer(struct ledger *ledger, const struct slurm_queue *queue, double asked);

/** Takes a note: the task's exit status, 128 and more for a signal, as a shell has it. */
void ledger_note(struct ledger *ledger, unsigned batch, unsigned index, int code, const char *node);

/** Hands out tasks that are over, each once. @return how many, at most @p most */
size_t ledger_take(struct ledger *ledger, struct backend_end *ends, size_t most, double now);

/** Forgets each task that the last answer did not have under way; for one begun by an earlier run.
 */
void ledger_forget_away(struct ledger *ledger);

/** @return whether a start of this task is not over */
bool ledger_has(const struct ledger *ledger, unsigned id);

/** @return whether any task of that batch is not over */
bool ledger_has_batch(const struct ledger *ledger, unsigned batch);

/** @return tasks that are not over */
size_t ledger_active(const struct ledger *ledger);

/** Writes "2 running on n1 n2, 37 waiting (Priority), first in the queue at place 4 of 120". */
void ledger_describe(const struct ledger *ledger, char *text, size_t size);

void ledger_free(struct ledger *ledger);

#endif
