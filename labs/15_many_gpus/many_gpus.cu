/**
 * @file many_gpus.cu
 * @brief Lab 15: YOUR FILE. Sums over several GPUs, and a decoder cut into parts.
 *
 * What it must do is in many_gpus.h, how to go about it in README.md. Everything in this file may
 * change; many_all_reduce(), many_cut(), many_linear() and many_ladder() must stay. Check and
 * measure with
 *
 *     bazel test //grader:15_many_gpus_parity //grader:15_many_gpus_speedup
 *     bazel run //labs/15_many_gpus:bench
 */
#include "labs/15_many_gpus/many_gpus.h"

#include <string.h>

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "labs/09_kv_cache/kv_cache.h"

/* ---- many_all_reduce() ---- */

enum { PIECE_BYTES = 1 << 16 /* of a rank's COMM_HOST_BYTES */ };

/* sum += a rank's elements, in place, in host memory. */
static void add(void *sum, const void *more, size_t count, enum nn_dtype dtype) {
    for (size_t i = 0; i < count; i++) {
        if (dtype == NN_F32) {
            ((float *)sum)[i] += ((const float *)more)[i];
        } else {
            __nv_bfloat16 *s = (__nv_bfloat16 *)sum + i;
            *s = __float2bfloat16_rn(__bfloat162float(*s) +
                                     __bfloat162float(((const __nv_bfloat16 *)more)[i]));
        }
    }
}

/*
 * One piece through the host: each rank copies its own to host memory that all ranks share; when
 * all have done so, each adds up everybody's in the order of ranks, and copies the sum back.
 */
static enum status reduce_piece(struct comm *comm, void *data, size_t count, enum nn_dtype dtype,
                                device_stream stream, struct error *error) {
    size_t bytes = count * nn_dtype_bytes(dtype);
    uint4 sum[PIECE_BYTES / sizeof(uint4)];
    TRY(device_read(comm->host[comm->rank], data, bytes, stream, error));
    TRY(comm_barrier(comm, error)); /* all have copied */
    memcpy(sum, comm->host[0], bytes);
    for (int r = 1; r < comm->ranks; r++) {
        add(sum, comm->host[r], count, dtype);
    }
    TRY(device_write(data, sum, bytes, stream, error));
    return comm_barrier(comm, error); /* all have read: the next piece may be copied */
}

enum status many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                            device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    size_t element = nn_dtype_bytes(reduce->dtype), most = PIECE_BYTES / element;
    for (size_t first = 0; first < reduce->count; first += most) {
        size_t left = reduce->count - first;
        TRY(reduce_piece(comm, (char *)reduce->data[comm->rank] + first * element,
                         left < most ? left : most, reduce->dtype, stream, error));
    }
    return STATUS_OK;
}

/* ---- many_cut() ---- */

/* Rank 0 has everything, so the others have nothing to do. */
void many_cut(enum many_matrix matrix, const struct many_shape *shape, int rank, int ranks,
              struct many_part *part) {
    size_t heads = shape->NH * shape->HS, keys = shape->KVH * shape->HS;
    const size_t N[MANY_MATRICES] = {heads,         keys,          keys,    shape->C,
                                     shape->hidden, shape->hidden, shape->C};
    const size_t K[MANY_MATRICES] = {shape->C, shape->C, shape->C,     heads,
                                     shape->C, shape->C, shape->hidden};
    (void)ranks;
    memset(part, 0, sizeof *part);
    if (rank == 0) {
        part->rows = part->biases = N[matrix];
        part->columns = K[matrix];
    }
}

/* ---- many_linear() ---- */

enum { THREADS = 128 };

/* x += sum. Mapping: a thread has a channel. */
static __global__ void add_kernel(float *x, const float *sum, size_t N) {
    size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n < N) {
        x[n] += sum[n];
    }
}

/* This rank's product into the workspace, an all-reduce there, and an addition. */
enum status many_linear(struct comm *comm, const struct many_linear *linear, device_stream stream,
                        struct error *error) {
    TRY(many_linear_check(comm, linear, error));
    struct many_all_reduce reduce = {};
    reduce.count = linear->N;
    reduce.dtype = NN_F32;
    reduce.workspace = linear->workspace;
    for (int r = 0; r < comm->ranks; r++) {
        reduce.data[r] = linear->workspace->at[r];
    }
    float *sum = (float *)reduce.data[comm->rank];
    struct kv_linear product = {};
    product.N = linear->N, product.K = linear->K;
    product.dtype = linear->dtype;
    product.weight = linear->weight;
    product.in = linear->in;
    product.residual = linear->bias;
    product.out = sum;
    if (linear->K > 0) {
        TRY(kv_linear(&product, stream, error));
    } else { /* this rank has no columns, and no bias */
        TRY(device_set(sum, 0, linear->N * sizeof(float), stream, error));
    }
    TRY(many_all_reduce(comm, &reduce, stream, error));
    add_kernel<<<(unsigned)ceil_div(linear->N, THREADS), THREADS, 0, stream>>>(linear->x, sum,
                                                                               linear->N);
    return device_launched("add", error);
}

/* ---- The steps that the bench shows ---- */

const struct many_step *many_ladder(size_t *count) {
    static const struct many_step steps[] = {
        {"v0_starter", {many_all_reduce, many_linear, NULL}, false},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}
