/**
 * @file group.h
 * @brief Ranks as threads of one process, a device each: for tests, benches and graders.
 *
 * On simt one rank runs at a time, until it waits for the others: then modelled times and messages
 * are the same in every run. On GPUs all run at once.
 */
#ifndef WARPBOOK_COMMON_RANKS_GROUP_H_
#define WARPBOOK_COMMON_RANKS_GROUP_H_

#include "common/ranks/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct comm_group;

/** What a rank does. @param context the same for all ranks */
typedef enum status comm_function(struct comm *comm, void *context, struct error *error);

/** @return GPUs that can all reach each other, from device 0 on: the most ranks of a group. */
int comm_devices(void);

/**
 * @brief Makes a group: rank r is on device r.
 * @return STATUS_OK; STATUS_NO_DEVICE with a line that says how many devices there are, or which
 *         two cannot reach each other; STATUS_OUT_OF_MEMORY; STATUS_DEVICE
 */
MUST_CHECK enum status comm_group_create(struct comm_group **group, int ranks, struct error *error);

/**
 * @brief Runs a function on all ranks, each in a thread whose device is set; waits for all.
 *
 * A rank that fails ends the others' waiting: their collective calls return its status.
 *
 * @return STATUS_OK, or the status and line of the first rank that failed by itself, "rank 1: ..."
 */
MUST_CHECK enum status comm_group_run(struct comm_group *group, comm_function *function,
                                      void *context, struct error *error);

/** Frees; NULL is allowed. */
void comm_group_free(struct comm_group *group);

#ifdef __cplusplus
}
#endif

#endif
