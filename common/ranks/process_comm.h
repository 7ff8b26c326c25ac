/**
 * @file process_comm.h
 * @brief A communicator (comm.h) whose ranks are processes (processes.h).
 */
#ifndef WARPBOOK_COMMON_RANKS_PROCESS_COMM_H_
#define WARPBOOK_COMMON_RANKS_PROCESS_COMM_H_

#include "common/ranks/comm.h"
#include "common/ranks/processes.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief COLLECTIVE: chooses this rank's GPU for the calling thread, enables peer access, and makes
 *        the communicator.
 * @param ranks outlives it
 * @return STATUS_NO_DEVICE with a line for fewer GPUs than ranks, or GPUs that do not reach each
 *         other; STATUS_DEVICE
 */
MUST_CHECK enum status process_comm_create(struct comm *comm, struct ranks *ranks,
                                           struct error *error);

/** Frees; a zeroed one is allowed. Memory of comm_alloc() has been freed. */
void process_comm_free(struct comm *comm);

#ifdef __cplusplus
}
#endif

#endif
