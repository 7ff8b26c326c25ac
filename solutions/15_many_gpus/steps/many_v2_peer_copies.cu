/**
 * @file many_v2_peer_copies.cu
 * @brief v2: GPUs copy from each other, without the host's memory.
 *
 * Changes since v1: each rank copies the other ranks' data into its own workspace and adds all up
 * in a kernel. Why: NVLink carries 370 GB/s one way where PCIe carries 50, and the sum is the
 * GPU's. The hosts still wait for each other twice: before the copies (all data is there) and
 * behind them (all have read, so data may be overwritten). Bytes: (ranks - 1) times the data to
 * each GPU.
 */
#include <cuda_runtime.h>

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

enum { THREADS = 256 };

/* All ranks' pieces, of which this rank's own is `data` itself. */
struct pieces {
    const uint4 *at[COMM_MAX_RANKS];
};

/* data = the sum of all pieces in the order of ranks. Mapping: a thread has a vector. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    sum_kernel(uint4 *data, struct pieces pieces, int ranks, size_t count) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        uint4 sum = pieces.at[0][i];
        for (int r = 1; r < ranks; r++) {
            sum = add_vectors(sum, pieces.at[r][i], E());
        }
        data[i] = sum;
    }
}

/* Copies the other ranks' pieces to the workspace; `pieces` receives where each is. */
static enum status fetch(const struct comm *comm, const struct many_all_reduce *reduce,
                         size_t first, size_t bytes, size_t room, struct pieces *pieces,
                         device_stream stream, struct error *error) {
    char *to = (char *)reduce->workspace->at[comm->rank] + PACKETS_AT;
    for (int r = 0; r < comm->ranks; r++, to += room) {
        const char *from = (const char *)reduce->data[r] + first;
        pieces->at[r] = (const uint4 *)(r == comm->rank ? from : to);
        if (r != comm->rank) {
            TRY(device_copy(to, from, bytes, stream, error));
        }
    }
    return STATUS_OK;
}

static enum status reduce_piece(struct comm *comm, const struct many_all_reduce *reduce,
                                size_t first, size_t bytes, size_t room, device_stream stream,
                                struct error *error) {
    struct pieces pieces = {};
    size_t count = bytes / sizeof(uint4);
    uint4 *data = (uint4 *)((char *)reduce->data[comm->rank] + first);
    TRY(device_synchronize(stream, error));
    TRY(comm_barrier(comm, error)); /* all data is there */
    TRY(fetch(comm, reduce, first, bytes, room, &pieces, stream, error));
    TRY(device_synchronize(stream, error));
    TRY(comm_barrier(comm, error)); /* all have read */
    FOR_ELEMENT_TYPE(reduce->dtype,
                     (sum_kernel<E><<<(unsigned)ceil_div(count, THREADS), THREADS, 0, stream>>>(
                         data, pieces, comm->ranks, count)));
    return device_launched("sum", error);
}

enum status many_v2_peer_copies(struct comm *comm, const struct many_all_reduce *reduce,
                                device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    size_t bytes = reduce->count * nn_dtype_bytes(reduce->dtype);
    size_t room = (MANY_WORKSPACE_BYTES - PACKETS_AT) / (size_t)comm->ranks / 256 * 256;
    for (size_t first = 0; first < bytes; first += room) {
        size_t left = bytes - first;
        TRY(reduce_piece(comm, reduce, first, left < room ? left : room, room, stream, error));
    }
    return STATUS_OK;
}
