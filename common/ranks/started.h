/**
 * @file started.h
 * @brief What srun or mpirun has told a process about itself, in its environment.
 */
#ifndef WARPBOOK_COMMON_RANKS_STARTED_H_
#define WARPBOOK_COMMON_RANKS_STARTED_H_

#include "common/base/status.h"

struct started {
    const char *by;         /**< "srun", "mpirun"; NULL: neither, or a single process of theirs */
    int rank, count, local; /**< local: among the processes of this host */
    char job[160];          /**< the same for all processes of the job, another for other jobs */
};

/** @return STATUS_OK; STATUS_INVALID_ARGUMENT with the variable that is no number or out of range
 */
MUST_CHECK enum status started_read(struct started *started, struct error *error);

#endif
