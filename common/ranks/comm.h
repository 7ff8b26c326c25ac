/**
 * @file comm.h
 * @brief A communicator: ranks of one job, a GPU each, that reach each other's memory.
 *
 * A rank is a thread or a process with a GPU of its own (SPMD: all ranks run the same program).
 * Functions marked COLLECTIVE are called by every rank, in the same order; each waits for the
 * others. If one of them fails, it fails on all ranks. Who makes the ranks is in group.h (threads
 * of one process).
 *
 * Memory that kernels exchange through is symmetric: each rank allocates the same number of bytes,
 * and has the addresses of all ranks' allocations, valid in its own kernels. Peer access is enabled
 * when the communicator is made.
 */
#ifndef WARPBOOK_COMMON_RANKS_COMM_H_
#define WARPBOOK_COMMON_RANKS_COMM_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { COMM_MAX_RANKS = 8 };

/** A rank's page-locked host memory that all ranks read and write: comm.host. */
enum { COMM_HOST_BYTES = 1 << 20 };

/** Symmetric memory: an allocation of the same size on each rank. */
struct comm_memory {
    void *at[COMM_MAX_RANKS]; /**< device memory of each rank, as this rank's kernels reach it */
    size_t bytes;             /**< on each rank */
};

/** How ranks reach each other on the host; made with the communicator. */
struct comm_transport {
    bool one_process; /**< pointers of one rank are valid in the others */
    /** Gathers `bytes` of each rank into `all` (ranks * bytes), in their order; a barrier, too. */
    enum status (*all_gather)(void *state, int rank, const void *mine, size_t bytes, void *all,
                              struct error *error);
    /** Around a call that waits for other ranks in its own way; NULL: nothing to do. */
    void (*block)(void *state, int rank, bool begins);
};

/** What one rank has. Read-only to its users. */
struct comm {
    int rank, ranks; /**< 0 .. ranks - 1; 1 .. COMM_MAX_RANKS */
    int device;      /**< number of this rank's CUDA device, which is the calling thread's */
    void *host[COMM_MAX_RANKS]; /**< each rank's COMM_HOST_BYTES of shared host memory */
    const struct comm_transport *transport;
    void *state; /**< of the transport */
    void *nccl;  /**< of comm_nccl_open() */
};

/** COLLECTIVE: waits on the host until all ranks have come. Says nothing about their GPUs. */
MUST_CHECK enum status comm_barrier(struct comm *comm, struct error *error);

/** COLLECTIVE: gathers `bytes` of each rank's host memory into `all`, (ranks, bytes). */
MUST_CHECK enum status comm_all_gather(struct comm *comm, const void *mine, size_t bytes, void *all,
                                       struct error *error);

/**
 * COLLECTIVE: waits until all ranks have submitted their work, then for this rank's stream. A rank
 * whose kernels wait for other ranks' kernels waits with this, never with device_synchronize().
 */
MUST_CHECK enum status comm_synchronize(struct comm *comm, device_stream stream,
                                        struct error *error);

/**
 * Around a call that waits for other ranks by other means than the communicator's: tell that it
 * begins, and that it has ended.
 */
void comm_block(struct comm *comm, bool begins);

/**
 * @brief COLLECTIVE: allocates symmetric memory, 256-byte aligned, zeros.
 * @param bytes the same on all ranks, or STATUS_MISMATCH with the line on all of them
 */
MUST_CHECK enum status comm_alloc(struct comm *comm, size_t bytes, struct comm_memory *memory,
                                  struct error *error);

/** COLLECTIVE: frees symmetric memory that no kernel uses any more. Zeroed memory is allowed. */
void comm_free(struct comm *comm, struct comm_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
