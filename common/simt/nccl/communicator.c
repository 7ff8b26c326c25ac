/*
 * Communicators: how ranks come together, split and go.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/simt/nccl/library.h"

/* The first bytes of a unique id. */
struct id {
    char magic[8];
    uint64_t key[2];
};

static const char MAGIC[8] = "simtnccl";

EXPORTED ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    struct id made;
    if (id == NULL) {
        return library_fail(ncclInvalidArgument, "ncclGetUniqueId: id is NULL");
    }
    memcpy(made.magic, MAGIC, sizeof made.magic);
    if (getrandom(made.key, sizeof made.key, 0) != (ssize_t)sizeof made.key) {
        return library_fail(ncclSystemError, "ncclGetUniqueId: no random numbers");
    }
    memset(id, 0, sizeof *id);
    memcpy(id, &made, sizeof made);
    return ncclSuccess;
}

/* ---- Coming ---- */

ncclResult_t joining_go(struct joining *j) {
    const struct calls *calls = library_calls();
    if (calls == NULL) {
        return ncclSystemError;
    }
    if (j->splits) {
        if (calls->split(&j->split) != cudaSuccess) {
            return library_fail(ncclInvalidUsage, "ncclCommSplit: the communicator has failed");
        }
        if (j->split.state != COLLECTIVE_GOOD) {
            return ncclInProgress;
        }
        j->splits = false;
        j->join.key[0] = j->split.new_key[0];
        j->join.key[1] = j->split.new_key[1];
        j->join.ranks = j->made->ranks = j->split.new_ranks;
        j->join.rank = j->made->rank = j->split.new_rank;
        if (j->split.color == NCCL_SPLIT_NOCOLOR) {
            free(j->made);
            j->made = NULL;
            *j->slot = NULL;
        }
    }
    if (j->made == NULL) {
        return ncclSuccess;
    }
    if (calls->join(&j->join) != cudaSuccess) {
        return library_fail(ncclInvalidArgument,
                            "ncclCommInitRank: rank %u of %u on device %d: there are 1 to %d "
                            "ranks, counted from 0",
                            j->join.rank, j->join.ranks, j->join.device, COLLECTIVE_MOST_RANKS);
    }
    j->made->number = j->join.communicator;
    if (j->join.state == COLLECTIVE_GOOD) {
        j->made->joined = true;
    } else if (j->join.state != COLLECTIVE_WAITS) {
        return library_fail(library_result_of_state(j->join.state), "ncclCommInitRank: %s",
                            j->join.text);
    }
    return library_result_of_state(j->join.state);
}

void joining_end(struct joining *j) {
    const struct calls *calls = library_calls();
    if (j->made != NULL && !j->made->joined) {
        if (calls != NULL && j->join.has_come) {
            struct collective_status status = {
                .communicator = j->made->number, .rank = j->made->rank, .ends = 2};
            (void)calls->status(&status);
        }
        *j->slot = NULL;
        free(j->made);
    }
    free(j);
}

static struct joining *joining_new(ncclComm_t *slot, int device) {
    struct joining *j = calloc(1, sizeof *j);
    ncclComm_t made = calloc(1, sizeof *made);
    if (j == NULL || made == NULL) {
        free(j);
        free(made);
        return NULL;
    }
    made->device = device;
    j->slot = slot;
    j->made = *slot = made;
    j->join.device = device;
    return j;
}

/* Of a rank on a device. */
static ncclResult_t init(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
                         int device) {
    struct id read;
    memcpy(&read, id, sizeof read);
    if (memcmp(read.magic, MAGIC, sizeof MAGIC) != 0) {
        return library_fail(ncclInvalidArgument,
                            "ncclCommInitRank: the unique id is none that ncclGetUniqueId() has "
                            "made");
    }
    if (ranks < 1 || ranks > COLLECTIVE_MOST_RANKS || rank < 0 || rank >= ranks) {
        return library_fail(ncclInvalidArgument,
                            "ncclCommInitRank: rank %d of %d: there are 1 to %d ranks, counted "
                            "from 0",
                            rank, ranks, COLLECTIVE_MOST_RANKS);
    }
    struct joining *j = joining_new(comm, device);
    if (j == NULL) {
        return library_fail(ncclSystemError, "ncclCommInitRank: out of memory");
    }
    j->join.key[0] = read.key[0];
    j->join.key[1] = read.key[1];
    j->join.ranks = j->made->ranks = (uint32_t)ranks;
    j->join.rank = j->made->rank = (uint32_t)rank;
    return group_join(j);
}

EXPORTED ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    int device = 0;
    if (comm == NULL) {
        return library_fail(ncclInvalidArgument, "ncclCommInitRank: comm is NULL");
    }
    cudaError_t error = cudaGetDevice(&device);
    return error == cudaSuccess ? init(comm, ranks, &id, rank, device)
                                : library_result_of(error, "ncclCommInitRank");
}

EXPORTED ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                             ncclConfig_t *config) {
    (void)config;
    return ncclCommInitRank(comm, ranks, id, rank);
}

EXPORTED ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ranks, const int *devices) {
    ncclUniqueId id;
    if (comms == NULL || ranks < 1) {
        return library_fail(ncclInvalidArgument, "ncclCommInitAll: no communicators");
    }
    ncclResult_t result = ncclGetUniqueId(&id);
    (void)ncclGroupStart();
    for (int rank = 0; rank < ranks && result == ncclSuccess; rank++) {
        result = init(&comms[rank], ranks, &id, rank, devices != NULL ? devices[rank] : rank);
    }
    ncclResult_t end = ncclGroupEnd();
    return result != ncclSuccess ? result : end;
}

static ncclResult_t check(const char *call, ncclComm_t comm, const void *result) {
    return comm != NULL && result != NULL ? ncclSuccess
                                          : library_fail(ncclInvalidArgument, "%s: %s is NULL",
                                                         call, comm == NULL ? "comm" : "a result");
}

EXPORTED ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *split,
                                    ncclConfig_t *config) {
    (void)config;
    ncclResult_t result = check("ncclCommSplit", comm, split);
    if (result != ncclSuccess) {
        return result;
    }
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
        return library_fail(ncclInvalidArgument, "ncclCommSplit: color %d is negative", color);
    }
    struct joining *j = joining_new(split, comm->device);
    if (j == NULL) {
        return library_fail(ncclSystemError, "ncclCommSplit: out of memory");
    }
    j->splits = true;
    j->split = (struct collective_split){
        .communicator = comm->number, .rank = comm->rank, .color = color, .key = key};
    return group_join(j);
}

/* ---- Asking and going ---- */

EXPORTED ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
    ncclResult_t result = check("ncclCommCount", comm, count);
    if (result == ncclSuccess) {
        *count = (int)comm->ranks;
    }
    return result;
}

EXPORTED ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
    ncclResult_t result = check("ncclCommCuDevice", comm, device);
    if (result == ncclSuccess) {
        *device = comm->device;
    }
    return result;
}

EXPORTED ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
    ncclResult_t result = check("ncclCommUserRank", comm, rank);
    if (result == ncclSuccess) {
        *rank = (int)comm->rank;
    }
    return result;
}

static ncclResult_t status_of(ncclComm_t comm, uint32_t ends) {
    const struct calls *calls = library_calls();
    struct collective_status status = {
        .communicator = comm->number, .rank = comm->rank, .ends = ends};
    if (calls == NULL) {
        return ncclSystemError;
    }
    cudaError_t error = calls->status(&status);
    return error == cudaSuccess ? library_result_of_state(status.state) : ncclInternalError;
}

EXPORTED ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    ncclResult_t result = check("ncclCommGetAsyncError", comm, error);
    if (result == ncclSuccess) {
        *error = status_of(comm, 0);
    }
    return result;
}

/* Operations are done when their streams are. */
EXPORTED ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    return check("ncclCommFinalize", comm, comm);
}

EXPORTED ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (comm != NULL) {
        (void)status_of(comm, 1);
        free(comm);
    }
    return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (comm != NULL) {
        (void)status_of(comm, 2);
        free(comm);
    }
    return ncclSuccess;
}

/* Memory needs no registration here. */
EXPORTED ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes,
                                       void **handle) {
    ncclResult_t result = check("ncclCommRegister", comm, handle);
    if (result == ncclSuccess && (memory == NULL || bytes == 0)) {
        result = library_fail(ncclInvalidArgument, "ncclCommRegister: no memory");
    }
    if (result == ncclSuccess) {
        *handle = memory;
    }
    return result;
}

EXPORTED ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
    return check("ncclCommDeregister", comm, handle);
}
