/**
 * @file processes.h
 * @brief Ranks as processes of one host, a GPU each: how they are started, find each other, gather
 *        small pieces of host memory, and end together.
 *
 * Without a launcher of the system, ranks_start() forks the ranks and the calling process becomes
 * their launcher. Under srun or mpirun each process is a rank already; what started it is read from
 * the environment:
 *
 *     srun      SLURM_STEP_ID, SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID
 *     Open MPI  OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
 *     MPICH     PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
 *
 * All ranks are connected to rank 0. Forked ranks inherit the connections. Others meet at a socket
 * of an abstract name, which leaves no file; or where WARPBOOK_RENDEZVOUS says: HOST:PORT, on which
 * rank 0 listens (no encryption and no password: for networks that you trust), or the path of a
 * socket, which is removed when all have come. They wait for each other for
 * WARPBOOK_RENDEZVOUS_SECONDS, 9 by default.
 *
 * A rank that dies or fails ends the others: a thread of each rank watches the connections. One
 * line is printed in all, by the rank that failed, or about the one that died. A rank that holds
 * (ranks_hold()) is given 6 seconds to finish; the launcher kills what is left after 8.
 *
 * Functions take NULL for a program that runs alone. COLLECTIVE ones are called by all ranks, in
 * the same order.
 */
#ifndef WARPBOOK_COMMON_RANKS_PROCESSES_H_
#define WARPBOOK_COMMON_RANKS_PROCESSES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RANKS_MOST = 8 };

struct ranks; /**< opaque */

/**
 * @brief Starts the ranks, or joins those that srun or mpirun has started.
 *
 * To be called before the first call of CUDA, and while the process has one thread.
 *
 * @param ranks   receives NULL for one GPU without srun and mpirun
 * @param program for messages
 * @param gpus    value of --gpus
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for another number than 1 .. RANKS_MOST or than that
 *         of the processes which srun or mpirun has started; STATUS_IO when ranks do not come
 */
MUST_CHECK enum status ranks_start(struct ranks **ranks, const char *program, int gpus,
                                   struct error *error);

/** @return whether this process is the launcher, which only calls ranks_supervise(). */
bool ranks_launches(const struct ranks *ranks);

/** Waits for all ranks, and passes signals on to them. Frees. @return the program's exit status */
int ranks_supervise(struct ranks *ranks);

/** @return 0 .. count - 1. */
int ranks_rank(const struct ranks *ranks);
/** @return 1 .. RANKS_MOST. */
int ranks_count(const struct ranks *ranks);
/** @return the rank among those of this host: the number of its GPU. */
int ranks_local(const struct ranks *ranks);

/** Says in messages what the ranks are doing: "loading", "training". @param phase lives on */
void ranks_phase(struct ranks *ranks, const char *phase);

/**
 * @brief COLLECTIVE: gathers `bytes` of each rank, in their order; a barrier, too.
 * @param mine (bytes)
 * @param all  (count, bytes)
 * @return STATUS_OK; STATUS_MISMATCH for ranks that make different calls; STATUS_IO when a rank has
 *         gone
 */
MUST_CHECK enum status ranks_all_gather(struct ranks *ranks, const void *mine, size_t bytes,
                                        void *all, struct error *error);

/**
 * @brief COLLECTIVE: compares a text on all ranks, as "the flags" or "the checkpoint".
 * @return STATUS_MISMATCH, with the first rank that differs from rank 0, on all ranks
 */
MUST_CHECK enum status ranks_compare(struct ranks *ranks, const char *what, const char *text,
                                     struct error *error);

/** COLLECTIVE: the largest value of all ranks, as of a signal that only some have seen. */
MUST_CHECK enum status ranks_largest(struct ranks *ranks, uint32_t *value, struct error *error);

/** Until ranks_release(), this rank is not ended at once: it writes files. No nesting. */
void ranks_hold(struct ranks *ranks);
void ranks_release(struct ranks *ranks);

/**
 * @brief COLLECTIVE unless the work has failed: ends the ranks together, and frees.
 *
 * Prints one line in all for a failure, as program_exit_status() does for one process.
 *
 * @param number 128 + it is the exit status of STATUS_INTERRUPTED: interrupt_seen()
 * @return the exit status
 */
int ranks_end(struct ranks *ranks, const char *program, const struct error *error,
              enum status status, int number);

#ifdef __cplusplus
}
#endif

#endif
