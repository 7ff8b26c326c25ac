/**
 * @file peers.c
 * @brief Gradients are added up on a stream of their own, beneath the backward pass.
 *
 *     engine's stream    layer 3 back | layer 2 back | layer 1 back | ...     | wait | clip, AdamW
 *                              event '----.  event '----.
 *     exchange's stream                    bucket 3      bucket 2     bucket 1 '
 *
 * A bucket waits for an event that was recorded behind the kernels which computed it.
 */
#include "labs/15_many_gpus/given/peers.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { MOST_ALLOCATIONS = 8 };

struct exchange {
    struct comm *comm;
    struct many_step step;
    device_stream work, own; /* the engine's, and the exchange's */
    cudaEvent_t stands, done;
    struct comm_memory workspace;
    struct comm_memory memory[MOST_ALLOCATIONS];
    struct error failed;
};

static enum status check(struct exchange *x, cudaError_t code, const char *what) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(&x->failed, STATUS_DEVICE, "exchange: %s: %s", what,
                                           cudaGetErrorString(code));
}

/* ---- Memory ---- */

static struct comm_memory *find(struct exchange *x, const void *memory) {
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        if (x->memory[i].bytes > 0 && x->memory[i].at[x->comm->rank] == memory) {
            return &x->memory[i];
        }
    }
    return NULL;
}

static enum status alloc(void *context, size_t bytes, void **memory, struct error *error) {
    struct exchange *x = context;
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        if (x->memory[i].bytes == 0) {
            TRY(comm_alloc(x->comm, bytes, &x->memory[i], error));
            *memory = x->memory[i].at[x->comm->rank];
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_OUT_OF_MEMORY, "exchange: more than %d allocations",
                     MOST_ALLOCATIONS);
}

static void *at(void *context, const void *memory, int rank) {
    const struct comm_memory *found = find(context, memory);
    return found != NULL ? found->at[rank] : NULL;
}

static void release(void *context, void *memory) {
    struct exchange *x = context;
    struct comm_memory *found = find(x, memory);
    if (found != NULL) {
        comm_free(x->comm, found);
    }
}

/* ---- Work ---- */

/* The stream `later` goes on when what `first` has so far is done. */
static enum status order(struct exchange *x, cudaEvent_t event, device_stream first,
                         device_stream later) {
    TRY(check(x, cudaEventRecord(event, first), "recording an event"));
    return check(x, cudaStreamWaitEvent(later, event, 0), "waiting for an event");
}

static enum status all_reduce(struct exchange *x, const struct comm_memory *memory, size_t first,
                              size_t count) {
    struct many_all_reduce reduce = {.count = count, .dtype = NN_F32, .workspace = &x->workspace};
    for (int r = 0; r < x->comm->ranks; r++) {
        reduce.data[r] = (float *)memory->at[r] + first;
    }
    return x->step.functions.all_reduce(x->comm, &reduce, x->own, &x->failed);
}

/* On the exchange's stream. */
static enum status add_up(struct exchange *x, const void *memory, size_t first, size_t count) {
    const struct comm_memory *found = find(x, memory);
    if (found == NULL) {
        return error_set(&x->failed, STATUS_INVALID_ARGUMENT, "exchange: not its own memory");
    }
    for (size_t most = MANY_MAX_COUNT; count > 0; first += most) {
        size_t now = count < most ? count : most;
        TRY(all_reduce(x, found, first, now));
        count -= now;
    }
    return STATUS_OK;
}

static enum status reduce(void *context, void *memory, size_t first, size_t count) {
    struct exchange *x = context;
    TRY(order(x, x->stands, x->work, x->own));
    return add_up(x, memory, first, count);
}

static enum status join(void *context) {
    struct exchange *x = context;
    return order(x, x->done, x->own, x->work);
}

/* A sum with zeros for the other ranks' parts: twice the bytes of an all-gather, but the lab's one
   function, and in its order with everything else. A weight of -0 becomes 0. */
static enum status gather(void *context, void *memory, const size_t *firsts) {
    struct exchange *x = context;
    int rank = x->comm->rank, ranks = x->comm->ranks;
    size_t own = firsts[rank], end = firsts[rank + 1], all = firsts[ranks];
    float *data = memory;
    TRY(order(x, x->stands, x->work, x->own));
    TRY(device_set(data, 0, own * sizeof(float), x->own, &x->failed));
    TRY(device_set(data + end, 0, (all - end) * sizeof(float), x->own, &x->failed));
    TRY(add_up(x, memory, 0, all));
    return join(x);
}

static void failed(void *context, struct error *error) {
    struct exchange *x = context;
    if (x->failed.status != STATUS_OK && error != NULL) {
        *error = x->failed;
    }
    x->failed = (struct error){.status = STATUS_OK};
}

/* ---- Making ---- */

static enum status make_event(struct exchange *x, cudaEvent_t *event, struct error *error) {
    enum status status =
        check(x, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
    if (status != STATUS_OK && error != NULL) {
        *error = x->failed;
    }
    return status;
}

static enum status make(struct exchange *x, struct error *error) {
    TRY(device_stream_create(&x->own, error));
    TRY(make_event(x, &x->stands, error));
    TRY(make_event(x, &x->done, error));
    return comm_alloc(x->comm, MANY_WORKSPACE_BYTES, &x->workspace, error);
}

enum status many_peers_create(struct train_peers *peers, struct comm *comm,
                              const struct many_step *step, device_stream stream,
                              struct error *error) {
    enum { BUCKET_BYTES = 32 << 20 };
    struct exchange *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the exchange");
    }
    x->comm = comm;
    x->step = *step;
    x->work = stream;
    *peers = (struct train_peers){.context = x,
                                  .rank = comm->rank,
                                  .ranks = comm->ranks,
                                  .bucket_bytes = BUCKET_BYTES,
                                  .alloc = alloc,
                                  .at = at,
                                  .release = release,
                                  .reduce = reduce,
                                  .join = join,
                                  .gather = gather,
                                  .free = many_peers_free,
                                  .failed = failed};
    enum status status = make(x, error);
    if (status != STATUS_OK) {
        many_peers_free(peers);
    }
    return status;
}

void many_peers_free(struct train_peers *peers) {
    struct exchange *x = peers->context;
    if (x != NULL) {
        comm_free(x->comm, &x->workspace);
        if (x->stands != NULL) {
            (void)cudaEventDestroy(x->stands);
        }
        if (x->done != NULL) {
            (void)cudaEventDestroy(x->done);
        }
        device_stream_destroy(x->own);
        free(x);
    }
    *peers = (struct train_peers){.context = NULL};
}
