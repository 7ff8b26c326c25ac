#include "common/ranks/comm.h"

#include <cuda_runtime_api.h>
#include <string.h>

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "communicator: %s: %s", what,
                                           cudaGetErrorString(code));
}

enum status comm_all_gather(struct comm *comm, const void *mine, size_t bytes, void *all,
                            struct error *error) {
    return comm->transport->all_gather(comm->state, comm->rank, mine, bytes, all, error);
}

enum status comm_barrier(struct comm *comm, struct error *error) {
    return comm_all_gather(comm, NULL, 0, NULL, error);
}

void comm_block(struct comm *comm, bool begins) {
    if (comm->transport->block != NULL) {
        comm->transport->block(comm->state, comm->rank, begins);
    }
}

enum status comm_synchronize(struct comm *comm, device_stream stream, struct error *error) {
    TRY(comm_barrier(comm, error));
    return device_synchronize(stream, error);
}

/* What a rank tells the others about its allocation. */
struct offer {
    enum status status;
    size_t bytes;
    void *pointer;
    cudaIpcMemHandle_t handle;
};

static enum status allocate(const struct comm *comm, struct offer *offer, struct error *error) {
    TRY(device_alloc(&offer->pointer, offer->bytes, error));
    TRY(device_set(offer->pointer, 0, offer->bytes, NULL, error));
    TRY(device_synchronize(NULL, error));
    return comm->transport->one_process ? STATUS_OK
                                        : check(cudaIpcGetMemHandle(&offer->handle, offer->pointer),
                                                "cudaIpcGetMemHandle", error);
}

/* The same verdict on all ranks: one that failed, or sizes that differ. */
static enum status judge(const struct comm *comm, const struct offer *all, struct error *error) {
    for (int r = 0; r < comm->ranks; r++) {
        if (all[r].status != STATUS_OK) {
            return r == comm->rank
                       ? all[r].status /* with its own line */
                       : error_set(error, all[r].status, "rank %d could not allocate %zu bytes", r,
                                   all[r].bytes);
        }
        if (all[r].bytes != all[0].bytes) {
            return error_set(error, STATUS_MISMATCH,
                             "rank 0 allocates %zu bytes of symmetric memory, rank %d %zu: all "
                             "ranks must ask for the same",
                             all[0].bytes, r, all[r].bytes);
        }
    }
    return STATUS_OK;
}

static enum status map(const struct comm *comm, const struct offer *all, struct comm_memory *memory,
                       struct error *error) {
    for (int r = 0; r < comm->ranks; r++) {
        if (r == comm->rank || comm->transport->one_process) {
            memory->at[r] = all[r].pointer;
        } else {
            TRY(check(
                cudaIpcOpenMemHandle(&memory->at[r], all[r].handle, cudaIpcMemLazyEnablePeerAccess),
                "cudaIpcOpenMemHandle", error));
        }
    }
    return STATUS_OK;
}

enum status comm_alloc(struct comm *comm, size_t bytes, struct comm_memory *memory,
                       struct error *error) {
    struct offer mine = {.bytes = bytes}, all[COMM_MAX_RANKS];
    memset(memory, 0, sizeof *memory);
    mine.status = allocate(comm, &mine, error);
    memory->at[comm->rank] = mine.pointer;
    memory->bytes = bytes;
    enum status status = comm_all_gather(comm, &mine, sizeof mine, all, error);
    status = status == STATUS_OK ? judge(comm, all, error) : status;
    enum status mapped = status == STATUS_OK ? map(comm, all, memory, error) : status;
    /* Where one rank cannot map, none may use the memory. */
    if (status == STATUS_OK) {
        enum status each[COMM_MAX_RANKS];
        TRY(comm_all_gather(comm, &mapped, sizeof mapped, each, error));
        for (int r = 0; r < comm->ranks && mapped == STATUS_OK; r++) {
            mapped =
                each[r] == STATUS_OK
                    ? STATUS_OK
                    : error_set(error, each[r], "rank %d could not map other ranks' memory", r);
        }
    }
    if (mapped != STATUS_OK && status != STATUS_OK) {
        device_free(mine.pointer); /* nobody else has mapped it */
        memset(memory, 0, sizeof *memory);
    }
    return mapped;
}

void comm_free(struct comm *comm, struct comm_memory *memory) {
    if (memory->bytes == 0) {
        return;
    }
    for (int r = 0; r < comm->ranks; r++) {
        if (r != comm->rank && !comm->transport->one_process && memory->at[r] != NULL) {
            (void)cudaIpcCloseMemHandle(memory->at[r]);
        }
    }
    enum status others = comm_barrier(comm, NULL);
    (void)others; /* it frees all the same */
    device_free(memory->at[comm->rank]);
    memset(memory, 0, sizeof *memory);
}
