/**
 * @file slurm_store.h
 * @brief What the Slurm back end keeps in OUTPUT/backend/, so that nothing is lost or started twice
 *        when the collector is killed at any moment.
 *
 *     name              of all jobs of this output folder: "warpbook_" and 16 random digits
 *     run_task.sh       the job script
 *     batches/N         ids of a batch, one a line; written before sbatch
 *     batches/N.void    its jobs, should there be any, must not start a task
 *     ends/N.I.JOB      "CODE NODE": how task I of the batch ended; written by the job script
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_STORE_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_STORE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "grader/class/slurm/slurm_ledger.h"

enum { STORE_PATH = 4096, STORE_NAME = 32 };

struct slurm_store {
    char folder[STORE_PATH]; /**< OUTPUT/backend */
    char name[STORE_NAME];
    char script[STORE_PATH + 32];
    unsigned next; /**< number of the next batch */
};

/**
 * @brief Makes the folder's files where they are missing, and reads the batches that are there.
 * @param output   absolute
 * @param ledger   receives batches of an earlier run that are not void, as submitted before @p now
 */
MUST_CHECK enum status slurm_store_open(struct slurm_store *store, const char *output,
                                        struct ledger *ledger, double now, struct error *error);

/** Writes the next batch and gives it a number. */
MUST_CHECK enum status slurm_store_add(struct slurm_store *store, const unsigned *ids, size_t count,
                                       unsigned *batch, struct error *error);

/** Makes a batch void. */
MUST_CHECK enum status slurm_store_void(const struct slurm_store *store, unsigned batch,
                                        struct error *error);

/** Gives the ledger all notes that came, and removes them. */
MUST_CHECK enum status slurm_store_notes(const struct slurm_store *store, struct ledger *ledger,
                                         struct error *error);

#endif
