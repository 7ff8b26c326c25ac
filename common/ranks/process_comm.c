#include "common/ranks/process_comm.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "common/ranks/processes_internal.h"

static enum status all_gather(void *state, int rank, const void *mine, size_t bytes, void *all,
                              struct error *error) {
    (void)rank;
    return ranks_all_gather(state, mine, bytes, all, error);
}

static const struct comm_transport processes = {.one_process = false, .all_gather = all_gather};

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

static enum status check_count(const struct ranks *ranks, struct error *error) {
    int count = 0, need = ranks_count(ranks);
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess && code != cudaErrorNoDevice) {
        return device_open(error); /* which says why */
    }
    if (count >= need) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_NO_DEVICE, "--gpus %d: there %s %d here%s", need,
                     count == 1 ? "is" : "are", count,
                     getenv("SIMT_DEVICES") != NULL || count == 0
                         ? ""
                         : "; simt emulates as many as SIMT_DEVICES says, and a process of srun "
                           "or mpirun must see all GPUs of its host");
}

/* Peer memory ends at the host. */
static enum status check_host(struct ranks *ranks, struct error *error) {
    int local = ranks_local(ranks), all[RANKS_MOST];
    TRY(ranks_all_gather(ranks, &local, sizeof local, all, error));
    for (int r = 1; r < ranks_count(ranks); r++) {
        for (int before = 0; before < r; before++) {
            if (all[before] == all[r]) {
                return error_set(error, STATUS_UNSUPPORTED,
                                 "ranks %d and %d are both number %d of their host: all ranks must "
                                 "run on one host, whose GPUs reach each other's memory",
                                 before, r, all[r]);
            }
        }
    }
    return STATUS_OK;
}

/* Kernels of this rank's GPU may follow pointers to the memory of all others. */
static enum status enable_peers(const struct ranks *ranks, struct error *error) {
    int own = ranks_local(ranks);
    for (int peer = 0; peer < ranks_count(ranks); peer++) {
        int reaches = 0;
        if (peer == own) {
            continue;
        }
        TRY(check(cudaDeviceCanAccessPeer(&reaches, own, peer), "peer access", error));
        if (!reaches) {
            return error_set(error, STATUS_NO_DEVICE,
                             "--gpus %d: GPU %d has no access to the memory of GPU %d, which the "
                             "ranks exchange through",
                             ranks_count(ranks), own, peer);
        }
        cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
        if (code == cudaErrorPeerAccessAlreadyEnabled) {
            (void)cudaGetLastError();
            code = cudaSuccess;
        }
        TRY(check(code, "peer access", error));
    }
    return STATUS_OK;
}

static enum status share_host(struct comm *comm, const struct ranks *ranks, struct error *error) {
    struct ranks_board *board = ranks->board;
    if (board == NULL) {
        return STATUS_OK;
    }
    TRY(check(cudaHostRegister(board->host, sizeof board->host, cudaHostRegisterPortable),
              "host memory that the ranks share", error));
    for (int r = 0; r < comm->ranks; r++) {
        comm->host[r] = board->host[r];
    }
    return STATUS_OK;
}

enum status process_comm_create(struct comm *comm, struct ranks *ranks, struct error *error) {
    _Static_assert((int)RANKS_MOST == (int)COMM_MAX_RANKS, "a rank of one is one of the other");
    _Static_assert((int)RANKS_HOST_BYTES == (int)COMM_HOST_BYTES, "host memory of a rank");
    *comm = (struct comm){.rank = ranks_rank(ranks),
                          .ranks = ranks_count(ranks),
                          .device = ranks_local(ranks),
                          .transport = &processes,
                          .state = ranks};
    TRY(check_host(ranks, error));
    TRY(check_count(ranks, error));
    TRY(check(cudaSetDevice(comm->device), "choosing a GPU", error));
    TRY(device_open(error));
    TRY(enable_peers(ranks, error));
    return share_host(comm, ranks, error);
}

void process_comm_free(struct comm *comm) {
    if (comm->host[0] != NULL) {
        (void)cudaHostUnregister(comm->host[0]);
    }
    *comm = (struct comm){.rank = 0};
}
