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

/*
 * Two launches: lab 09's product into x, and NCCL in place. Rank 0 adds its product to x, the
 * others replace x by theirs, so that the sum has x once and needs no addition of its own.
 */
static enum status linear(struct comm *comm, const struct many_linear *l, device_stream stream,
                          struct error *error) {
    bool first = comm->rank == 0;
    const struct kv_linear product = {.N = l->N,
                                      .K = l->K,
                                      .dtype = l->dtype,
                                      .weight = l->weight,
                                      .in = l->in,
                                      .residual = first ? l->x : l->bias,
                                      .out = l->x};
    if (first && l->bias != NULL) {
        TRY(launch_residual(l->x, l->x, l->bias, l->N, stream, error));
    }
    TRY(kv_linear(&product, stream, error));
    return comm_nccl_all_reduce(comm, l->x, l->N, NN_F32, stream, error);
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
