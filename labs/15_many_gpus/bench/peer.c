/**
 * @file peer.c
 * @brief NCCL as one more step: its all-reduce, and a product in front of it.
 */
#include <string.h>

#include "common/ranks/nccl.h"
#include "labs/03_resident_weights/given/operators.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/15_many_gpus/bench/many_bench.h"

static enum status all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                              device_stream stream, struct error *error) {
    return comm_nccl_all_reduce(comm, reduce->data[comm->rank], reduce->count, reduce->dtype,
                                stream, error);
}

/* Three launches: lab 09's product, NCCL, an addition. */
static enum status linear(struct comm *comm, const struct many_linear *l, device_stream stream,
                          struct error *error) {
    float *sum = l->workspace->at[comm->rank];
    const struct kv_linear product = {.N = l->N,
                                      .K = l->K,
                                      .dtype = l->dtype,
                                      .weight = l->weight,
                                      .in = l->in,
                                      .residual = l->bias,
                                      .out = sum};
    TRY(kv_linear(&product, stream, error));
    TRY(comm_nccl_all_reduce(comm, sum, l->N, NN_F32, stream, error));
    return launch_residual(l->x, l->x, sum, l->N, stream, error);
}

static const struct many_step nccl = {"NCCL", {all_reduce, linear, NULL}, true};

bool many_bench_is_nccl(const struct many_step *step) {
    return step->functions.all_reduce == all_reduce;
}

size_t many_bench_steps(const struct many_setup *setup, struct many_step steps[MANY_MOST_STEPS]) {
    size_t count;
    const struct many_step *all = many_ladder(&count);
    count = count < MANY_MOST_STEPS ? count : MANY_MOST_STEPS - 1;
    memcpy(steps, all, count * sizeof *all);
    if (setup->nccl) {
        steps[count++] = nccl;
    }
    return count;
}

enum status many_bench_open_nccl(struct comm *comm, void *context, struct error *error) {
    (void)context;
    return comm_nccl_open(comm, error);
}

enum status many_bench_close_nccl(struct comm *comm, void *context, struct error *error) {
    (void)context;
    (void)error;
    comm_nccl_close(comm);
    return STATUS_OK;
}
