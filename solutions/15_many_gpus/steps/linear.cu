/**
 * @file linear.cu
 * @brief many_linear() as three launches: lab 09's product into symmetric memory, an all-reduce
 *        there, and an addition to the residual stream.
 */
#include "labs/03_resident_weights/given/operators.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

/* sum (N) = this rank's product. */
static enum status multiply(const struct many_linear *l, float *sum, device_stream stream,
                            struct error *error) {
    if (l->K == 0) {
        return device_set(sum, 0, l->N * sizeof(float), stream, error);
    }
    struct kv_linear product = {};
    product.N = l->N, product.K = l->K;
    product.dtype = l->dtype;
    product.weight = l->weight;
    product.in = l->in;
    product.residual = l->bias;
    product.out = sum;
    return kv_linear(&product, stream, error);
}

enum status many_linear_by(many_all_reduce_function *all_reduce, struct comm *comm,
                           const struct many_linear *linear, device_stream stream,
                           struct error *error) {
    struct many_all_reduce reduce = {};
    TRY(many_linear_check(comm, linear, error));
    reduce.count = linear->N;
    reduce.dtype = NN_F32;
    reduce.workspace = linear->workspace;
    for (int r = 0; r < comm->ranks; r++) {
        reduce.data[r] = (char *)linear->workspace->at[r] + PARTIAL_AT;
    }
    float *sum = (float *)reduce.data[comm->rank];
    TRY(multiply(linear, sum, stream, error));
    TRY(all_reduce(comm, &reduce, stream, error));
    return launch_residual(linear->x, linear->x, sum, linear->N, stream, error);
}

#define LINEAR(name, all_reduce)                                                                \
    enum status name(struct comm *comm, const struct many_linear *linear, device_stream stream, \
                     struct error *error) {                                                     \
        return many_linear_by(all_reduce, comm, linear, stream, error);                         \
    }

LINEAR(many_v1_linear, many_v1_host)
LINEAR(many_v2_linear, many_v2_peer_copies)
LINEAR(many_v3_linear, many_v3_ring)
LINEAR(many_v5_linear, many_v5_one_shot)
