/**
 * @file sums.c
 * @brief All-reduces of many sizes: microseconds a call, and bus bandwidth.
 *
 * Steps that can be recorded are timed in a CUDA graph of many calls, the others one by one. Each
 * is first run once with numbers whose sums are exact. Bus bandwidth is 2 (ranks - 1) / ranks times
 * the bytes over the time, as NCCL's tests have it: what a link carries one way.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/device/device_bench.h"
#include "labs/15_many_gpus/bench/many_bench.h"

static enum status check(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

struct reduce_bench {
    struct many_rig *rig;
    const struct many_step *step;
    size_t count;
    enum nn_dtype dtype;
    int calls, repeats; /* of a recorded graph; launches of it */
    double us;          /* a call: rank 0's */
};

static enum status submit(const struct reduce_bench *b, struct comm *comm, struct error *error) {
    const struct many_rank_state *state = &b->rig->states[comm->rank];
    struct many_all_reduce reduce = {
        .count = b->count, .dtype = b->dtype, .workspace = &state->workspace};
    memcpy(reduce.data, state->data.at, sizeof reduce.data);
    for (int i = 0; i < b->calls; i++) {
        TRY(b->step->functions.all_reduce(comm, &reduce, state->stream, error));
    }
    return STATUS_OK;
}

static enum status record(const struct reduce_bench *b, struct comm *comm, cudaGraphExec_t *graph,
                          struct error *error) {
    const struct many_rank_state *state = &b->rig->states[comm->rank];
    cudaGraph_t recorded;
    TRY(check(cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeRelaxed), "recording",
              error));
    TRY(submit(b, comm, error));
    TRY(check(cudaStreamEndCapture(state->stream, &recorded), "recording", error));
    TRY(check(cudaGraphInstantiate(graph, recorded, 0), "instantiating", error));
    return check(cudaGraphDestroy(recorded), "recording", error);
}

static enum status launch(const struct reduce_bench *b, struct comm *comm, cudaGraphExec_t graph,
                          struct error *error) {
    return graph != NULL
               ? check(cudaGraphLaunch(graph, b->rig->states[comm->rank].stream), "launch", error)
               : submit(b, comm, error);
}

/* One launch of the graph that is not timed, then the fastest of `repeats`. */
static enum status time_reduce(struct comm *comm, void *context, struct error *error) {
    struct reduce_bench *b = context;
    device_stream stream = b->rig->states[comm->rank].stream;
    cudaGraphExec_t graph = NULL;
    double best = INFINITY;
    if (b->step->recordable) {
        TRY(record(b, comm, &graph, error));
    }
    for (int i = 0; i <= b->repeats; i++) {
        TRY(comm_synchronize(comm, stream, error));
        TRY(comm_barrier(comm, error));
        double start = device_now();
        TRY(launch(b, comm, graph, error));
        TRY(comm_synchronize(comm, stream, error));
        double us = 1e6 * (device_now() - start) / b->calls;
        best = i > 0 || b->repeats == 0 ? fmin(best, us) : best;
    }
    if (comm->rank == 0) {
        b->us = best;
    }
    TRY(comm_barrier(comm, error));
    return graph == NULL ? STATUS_OK : check(cudaGraphExecDestroy(graph), "graph", error);
}

/* At most 7: bf16 has all whole numbers up to 256, and eight ranks add up 36 times this one. */
static size_t small_int(size_t i) {
    return (i * 7 + 3) % 8;
}

/* Sums of numbers that are exact in any order: rank r has (r + 1) times a pattern of small ints. */
static enum status fill_exact(struct comm *comm, void *context, struct error *error) {
    const struct reduce_bench *b = context;
    const struct many_rank_state *state = &b->rig->states[comm->rank];
    size_t bytes = b->count * nn_dtype_bytes(b->dtype);
    float *numbers = malloc(b->count * sizeof *numbers);
    void *stored = malloc(bytes);
    if (numbers == NULL || stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < b->count; i++) {
        numbers[i] = (float)(small_int(i) * (size_t)(comm->rank + 1));
    }
    nn_dtype_store(stored, numbers, b->count, b->dtype);
    enum status status =
        device_write(state->data.at[comm->rank], stored, bytes, state->stream, error);
    free(numbers);
    free(stored);
    return status;
}

struct verdict {
    struct reduce_bench *bench;
    size_t wrong[COMM_MAX_RANKS];
};

static enum status count_wrong(struct comm *comm, void *context, struct error *error) {
    struct verdict *v = context;
    const struct reduce_bench *b = v->bench;
    const struct many_rank_state *state = &b->rig->states[comm->rank];
    size_t bytes = b->count * nn_dtype_bytes(b->dtype);
    size_t factor = (size_t)comm->ranks * (size_t)(comm->ranks + 1) / 2;
    float *numbers = malloc(b->count * sizeof *numbers);
    void *stored = malloc(bytes);
    if (numbers == NULL || stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status =
        device_read(stored, state->data.at[comm->rank], bytes, state->stream, error);
    nn_dtype_load(numbers, stored, b->count, b->dtype);
    for (size_t i = 0; i < b->count; i++) {
        v->wrong[comm->rank] += numbers[i] != (float)(small_int(i) * factor);
    }
    free(numbers);
    free(stored);
    return status;
}

static enum status run_once(struct comm *comm, void *context, struct error *error) {
    const struct reduce_bench *b = context;
    TRY(comm_barrier(comm, error));
    TRY(submit(b, comm, error));
    return comm_synchronize(comm, b->rig->states[comm->rank].stream, error);
}

/* One call with exact numbers. */
static enum status check_reduce(struct reduce_bench *b, size_t *wrong, struct error *error) {
    struct verdict v = {.bench = b};
    struct reduce_bench once = *b;
    once.calls = 1;
    TRY(comm_group_run(b->rig->group, fill_exact, &once, error));
    TRY(comm_group_run(b->rig->group, run_once, &once, error));
    TRY(comm_group_run(b->rig->group, count_wrong, &v, error));
    for (int r = 0; r < b->rig->ranks; r++) {
        *wrong += v.wrong[r];
    }
    return STATUS_OK;
}

static const char *size_name(char *text, size_t size, size_t bytes) {
    snprintf(text, size, bytes >= 1 << 20 ? "%zu MiB" : "%zu KiB",
             bytes >= 1 << 20 ? bytes >> 20 : bytes >> 10);
    return text;
}

static enum status append(const struct many_setup *setup, const struct reduce_bench *b,
                          size_t bytes, double bus, struct error *error) {
    const struct bench_gpu gpu = bench_gpu_of(&setup->gpu);
    char shape[64];
    snprintf(shape, sizeof shape, "%zu bytes, %d ranks", bytes, setup->ranks);
    const struct bench_record record = {
        .lab = "15_many_gpus",
        .subject = WARPBOOK_SUBJECT,
        .stage = b->step->name,
        .op = "all_reduce",
        .shape = shape,
        .dtype = nn_dtype_name(b->dtype),
        .gpu = &gpu,
        .timing = {1e-3 * b->us, 1e-3 * b->us, 1e-3 * b->us, b->repeats + 1, 0.0},
        .bytes = (double)bytes,
        .flops = NAN,
        .peer_ratio = NAN,
        .figure = "bus_bandwidth_gb_per_s",
        .figure_value = bus};
    return bench_append(&record, error);
}

enum { CHECKED_BYTES = 16 << 20 };

static enum status show(const struct many_setup *setup, struct reduce_bench *b, size_t bytes,
                        struct error *error) {
    size_t wrong = 0;
    int ranks = setup->ranks;
    bool modelled = setup->gpu.modelled;
    b->count = bytes / nn_dtype_bytes(b->dtype);
    b->calls = !b->step->recordable || modelled ? 2 : bytes > CHECKED_BYTES ? 10 : 100;
    b->repeats = modelled ? 0 : 5;
    TRY(many_rig_renew(b->rig, error));
    if (bytes <= CHECKED_BYTES) {
        TRY(check_reduce(b, &wrong, error));
    }
    if (wrong > 0) {
        return error_set(error, STATUS_MISMATCH, "%s: %zu wrong sums of %zu bytes", b->step->name,
                         wrong, bytes);
    }
    TRY(comm_group_run(b->rig->group, time_reduce, b, error));
    double bus = 2.0 * (ranks - 1) / ranks * (double)bytes / b->us * 1e-3;
    printf("  %-16s %12.2f %12.2f\n", b->step->name, b->us, bus);
    fflush(stdout);
    return append(setup, b, bytes, bus, error);
}

/* Through the host large data takes seconds. */
static bool is_shown(const struct many_step *step, size_t bytes) {
    return step->recordable || bytes <= 1 << 20;
}

/* A step whose all-reduce is the one before it has nothing new here. */
static bool is_new(const struct many_step *steps, size_t i) {
    return i == 0 || steps[i].functions.all_reduce != steps[i - 1].functions.all_reduce;
}

static enum status show_size(const struct many_setup *setup, struct many_rig *rig, size_t bytes,
                             enum nn_dtype dtype, struct error *error) {
    struct many_step steps[MANY_MOST_STEPS];
    size_t count = many_bench_steps(setup, steps);
    char text[32];
    printf("\nall-reduce of %s in %s, %d GPUs, %s\n  %-16s %12s %12s\n",
           size_name(text, sizeof text, bytes), nn_dtype_name(dtype), setup->ranks,
           device_bench_verb(&setup->gpu), "step", "us a call", "bus GB/s");
    for (size_t i = 0; i < count; i++) {
        struct reduce_bench b = {.rig = rig, .step = &steps[i], .dtype = dtype};
        if (is_shown(&steps[i], bytes) && is_new(steps, i)) {
            TRY(show(setup, &b, bytes, error));
        }
    }
    return STATUS_OK;
}

static enum status show_sizes(const struct many_setup *setup, struct many_rig *rig,
                              const size_t *sizes, size_t count, struct error *error) {
    if (setup->nccl) {
        TRY(comm_group_run(rig->group, many_bench_open_nccl, NULL, error));
    }
    for (size_t i = 0; i < count; i++) {
        TRY(show_size(setup, rig, sizes[i], NN_F32, error));
    }
    TRY(show_size(setup, rig, sizes[count - 1], NN_BF16, error));
    return setup->nccl ? comm_group_run(rig->group, many_bench_close_nccl, NULL, error) : STATUS_OK;
}

enum status many_bench_sums(const struct many_setup *setup, struct error *error) {
    static const size_t sizes[] = {8 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20, 256 << 20};
    size_t count = setup->quick ? 1 : setup->gpu.modelled ? 2 : sizeof sizes / sizeof *sizes;
    struct many_rig rig;
    enum status status = many_rig_create(&rig, setup->ranks, sizes[count - 1], error);
    if (status == STATUS_OK) {
        status = show_sizes(setup, &rig, sizes, count, error);
    }
    many_rig_free(&rig);
    return status;
}
