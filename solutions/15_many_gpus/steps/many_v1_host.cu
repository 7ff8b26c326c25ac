/**
 * @file many_v1_host.cu
 * @brief v1: copies through the host.
 *
 * The starter's way: each rank copies its data to host memory that all ranks share, waits for the
 * others, adds up all ranks' copies and copies the sum back. Bytes: each rank's once down and once
 * up over PCIe, some 50 GB/s, and ranks times through one core of the CPU. Two waits of the host.
 */
#include <cuda_bf16.h>
#include <string.h>

#include "solutions/15_many_gpus/steps/ladder.h"

enum { PIECE_BYTES = 1 << 16 /* of a rank's COMM_HOST_BYTES */ };

static void add_f32(float *sum, const float *more, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sum[i] += more[i];
    }
}

static void add_bf16(__nv_bfloat16 *sum, const __nv_bfloat16 *more, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sum[i] = __float2bfloat16_rn(__bfloat162float(sum[i]) + __bfloat162float(more[i]));
    }
}

static enum status reduce_piece(struct comm *comm, void *data, size_t bytes, enum nn_dtype dtype,
                                device_stream stream, struct error *error) {
    uint4 sum[PIECE_BYTES / sizeof(uint4)];
    TRY(device_read(comm->host[comm->rank], data, bytes, stream, error));
    TRY(comm_barrier(comm, error)); /* all have copied */
    memcpy(sum, comm->host[0], bytes);
    for (int r = 1; r < comm->ranks; r++) {
        if (dtype == NN_F32) {
            add_f32((float *)sum, (const float *)comm->host[r], bytes / sizeof(float));
        } else {
            add_bf16((__nv_bfloat16 *)sum, (const __nv_bfloat16 *)comm->host[r],
                     bytes / sizeof(__nv_bfloat16));
        }
    }
    TRY(device_write(data, sum, bytes, stream, error));
    return comm_barrier(comm, error); /* all have read: the next piece may be copied */
}

enum status many_v1_host(struct comm *comm, const struct many_all_reduce *reduce,
                         device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    size_t bytes = reduce->count * nn_dtype_bytes(reduce->dtype);
    for (size_t first = 0; first < bytes; first += PIECE_BYTES) {
        size_t left = bytes - first;
        TRY(reduce_piece(comm, (char *)reduce->data[comm->rank] + first,
                         left < PIECE_BYTES ? left : (size_t)PIECE_BYTES, reduce->dtype, stream,
                         error));
    }
    return STATUS_OK;
}
