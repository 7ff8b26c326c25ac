/*
 * Operations and groups. An operation outside of a group is a group of one.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/simt/nccl/library.h"

/* An operation that waits for the end of its group. */
struct queued {
    const char *name;
    ncclComm_t comm;
    cudaStream_t stream;
    bool is_part, done;
    struct collective operation;
    struct collective_part part;
    struct queued *next;
};

/* Each thread has its own group. */
struct group {
    unsigned depth;
    struct queued *first, **end;
    struct joining *joinings, **joinings_end;
    ncclResult_t result; /* of the first call in it that was refused */
};

static struct group *the_group(void) {
    static _Thread_local struct group group;
    group.end = group.first == NULL ? &group.first : group.end;
    group.joinings_end = group.joinings == NULL ? &group.joinings : group.joinings_end;
    return &group;
}

/* ---- Communicators of a group ---- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Asks for all, once. */
static ncclResult_t go_once(struct joining *joinings, const struct joining **waits) {
    ncclResult_t result = ncclSuccess;
    *waits = NULL;
    for (struct joining *j = joinings; j != NULL; j = j->next) {
        ncclResult_t one = ncclSuccess;
        if (j->splits || (j->made != NULL && !j->made->joined)) {
            one = joining_go(j);
        }
        if (one == ncclInProgress) {
            *waits = j;
        } else if (one != ncclSuccess) {
            return one;
        }
    }
    return *waits != NULL ? ncclInProgress : result;
}

static ncclResult_t join_all(struct joining *joinings) {
    const struct timespec pause = {.tv_nsec = 300000};
    const struct joining *waits = NULL;
    double end = now() + library_patience();
    ncclResult_t result = go_once(joinings, &waits);
    while (result == ncclInProgress && now() < end) {
        nanosleep(&pause, NULL);
        result = go_once(joinings, &waits);
    }
    if (result == ncclInProgress) {
        bool splits = waits->splits;
        result = library_fail(ncclRemoteError, "%s: rank %u of %u has waited %g s: %s",
                              splits ? "ncclCommSplit" : "ncclCommInitRank",
                              splits ? waits->split.rank : waits->join.rank, waits->join.ranks,
                              library_patience(),
                              splits ? "not all ranks have called it" : waits->join.text);
    }
    while (joinings != NULL) {
        struct joining *j = joinings;
        joinings = j->next;
        joining_end(j);
    }
    return result;
}

ncclResult_t group_join(struct joining *joining) {
    struct group *group = the_group();
    if (group->depth == 0) {
        return join_all(joining);
    }
    *group->joinings_end = joining;
    group->joinings_end = &joining->next;
    return ncclSuccess;
}

/* ---- Operations ---- */

/* Work of the device of the communicator, whatever the thread's device is. */
static ncclResult_t on_device(const struct queued *q, const struct collective_exchange *exchange) {
    const struct calls *calls = library_calls();
    int before = 0;
    if (calls == NULL) {
        return ncclSystemError;
    }
    (void)cudaGetDevice(&before);
    cudaError_t error = cudaSetDevice(q->comm->device);
    if (error == cudaSuccess) {
        error = exchange != NULL ? calls->exchange(exchange, q->stream)
                                 : calls->submit(&q->operation, q->stream);
    }
    (void)cudaSetDevice(before);
    return library_result_of(error, q->name);
}

/* All sends and receives of a communicator and stream happen together. */
static ncclResult_t submit_parts(struct queued *first) {
    struct collective_exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL) {
        return library_fail(ncclSystemError, "%s: out of memory", first->name);
    }
    exchange->communicator = first->comm->number;
    exchange->rank = first->comm->rank;
    for (struct queued *q = first; q != NULL; q = q->next) {
        if (!q->is_part || q->comm != first->comm || q->stream != first->stream) {
            continue;
        }
        if (exchange->part_count == COLLECTIVE_MOST_PARTS) {
            free(exchange);
            return library_fail(ncclInvalidUsage,
                                "a group of more than %d sends and receives of a rank",
                                COLLECTIVE_MOST_PARTS);
        }
        exchange->parts[exchange->part_count++] = q->part;
        q->done = true;
    }
    ncclResult_t result = on_device(first, exchange);
    free(exchange);
    return result;
}

static ncclResult_t submit_all(struct queued *queue) {
    ncclResult_t result = ncclSuccess;
    for (struct queued *q = queue; q != NULL && result == ncclSuccess; q = q->next) {
        if (q->done) {
            continue;
        }
        if (!q->comm->joined) {
            result = library_fail(ncclInvalidArgument, "%s: the communicator has not been joined",
                                  q->name);
        } else {
            q->operation.communicator = q->comm->number;
            result = q->is_part ? submit_parts(q) : on_device(q, NULL);
        }
    }
    while (queue != NULL) {
        struct queued *q = queue;
        queue = q->next;
        free(q);
    }
    return result;
}

EXPORTED ncclResult_t ncclGroupStart(void) {
    the_group()->depth++;
    return ncclSuccess;
}

EXPORTED ncclResult_t ncclGroupEnd(void) {
    struct group *group = the_group();
    if (group->depth == 0) {
        return library_fail(ncclInvalidUsage, "ncclGroupEnd: no group is open");
    }
    if (--group->depth > 0) {
        return ncclSuccess;
    }
    struct queued *queue = group->first;
    struct joining *joinings = group->joinings;
    ncclResult_t result = group->result;
    *group = (struct group){0};
    ncclResult_t joined = join_all(joinings);
    result = result != ncclSuccess ? result : joined;
    if (result != ncclSuccess) {
        while (queue != NULL) {
            struct queued *q = queue;
            queue = q->next;
            free(q);
        }
        return result;
    }
    return submit_all(queue);
}

static ncclResult_t refuse(ncclResult_t result) {
    struct group *group = the_group();
    if (group->depth > 0 && group->result == ncclSuccess) {
        group->result = result;
    }
    return result;
}

/* Keeps it for the end of the group, or submits it. */
static ncclResult_t enqueue(const struct queued *made) {
    if (made->comm == NULL) {
        return refuse(library_fail(ncclInvalidArgument, "%s: comm is NULL", made->name));
    }
    uint32_t type = made->is_part ? made->part.type : made->operation.type;
    if (type >= COLLECTIVE_TYPES) {
        return refuse(library_fail(ncclInvalidArgument, "%s: %u is no type", made->name, type));
    }
    struct queued *q = malloc(sizeof *q);
    if (q == NULL) {
        return refuse(library_fail(ncclSystemError, "%s: out of memory", made->name));
    }
    *q = *made;
    q->operation.rank = q->comm->rank;
    struct group *group = the_group();
    if (group->depth == 0) {
        return submit_all(q);
    }
    *group->end = q;
    group->end = &q->next;
    return ncclSuccess;
}

/* The operation of a reduction, with the scalar of the program's own. */
static bool set_operation(struct collective *call, ncclRedOp_t op, ncclComm_t comm) {
    call->operation = (uint32_t)op;
    if ((unsigned)op < ncclNumOps || comm == NULL) {
        return (unsigned)op < ncclNumOps;
    }
    unsigned index = (unsigned)op - ncclNumOps;
    if (index >= MOST_OWN_OPERATIONS || !comm->own[index].used ||
        (uint32_t)comm->own[index].type != call->type) {
        return false;
    }
    call->operation = COLLECTIVE_PRE_MUL_SUM;
    call->scalar = comm->own[index].scalar;
    call->scalar_on_device = comm->own[index].on_device;
    return true;
}

static struct queued make(const char *name, enum collective_kind kind, const void *send,
                          void *receive, size_t count, ncclDataType_t type) {
    struct queued q = {.name = name};
    q.operation = (struct collective){.kind = kind,
                                      .type = (uint32_t)type,
                                      .count = count,
                                      .send = (uint64_t)(uintptr_t)send,
                                      .receive = (uint64_t)(uintptr_t)receive};
    return q;
}

static ncclResult_t reduce(struct queued *q, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    q->comm = comm;
    q->stream = stream;
    if (!set_operation(&q->operation, op, comm) && comm != NULL) {
        return refuse(library_fail(ncclInvalidArgument, "%s: %d is no operation of this type",
                                   q->name, (int)op));
    }
    return enqueue(q);
}

static bool is_root(int root, ncclComm_t comm) {
    return comm != NULL && root >= 0 && (uint32_t)root < comm->ranks;
}

static ncclResult_t wrong_rank(const char *name, const char *what, int rank, ncclComm_t comm) {
    return refuse(library_fail(ncclInvalidArgument, "%s: %s %d is no rank of the communicator's %u",
                               name, what, rank, comm != NULL ? comm->ranks : 0));
}

EXPORTED ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count,
                                    ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                    cudaStream_t stream) {
    struct queued q = make("ncclAllReduce", COLLECTIVE_ALL_REDUCE, send, receive, count, type);
    return reduce(&q, op, comm, stream);
}

EXPORTED ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    struct queued q = make("ncclReduce", COLLECTIVE_REDUCE, send, receive, count, type);
    if (!is_root(root, comm)) {
        return wrong_rank(q.name, "root", root, comm);
    }
    q.operation.root = (uint32_t)root;
    return reduce(&q, op, comm, stream);
}

EXPORTED ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                        cudaStream_t stream) {
    struct queued q =
        make("ncclReduceScatter", COLLECTIVE_REDUCE_SCATTER, send, receive, count, type);
    return reduce(&q, op, comm, stream);
}

EXPORTED ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count,
                                    ncclDataType_t type, int root, ncclComm_t comm,
                                    cudaStream_t stream) {
    struct queued q = make("ncclBroadcast", COLLECTIVE_BROADCAST, send, receive, count, type);
    if (!is_root(root, comm)) {
        return wrong_rank(q.name, "root", root, comm);
    }
    q.operation.root = (uint32_t)root;
    q.comm = comm;
    q.stream = stream;
    return enqueue(&q);
}

EXPORTED ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root,
                                ncclComm_t comm, cudaStream_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

EXPORTED ncclResult_t ncclAllGather(const void *send, void *receive, size_t count,
                                    ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    struct queued q = make("ncclAllGather", COLLECTIVE_ALL_GATHER, send, receive, count, type);
    q.comm = comm;
    q.stream = stream;
    return enqueue(&q);
}

static ncclResult_t part(const char *name, const void *memory, size_t count, ncclDataType_t type,
                         int peer, bool sends, ncclComm_t comm, cudaStream_t stream) {
    struct queued q = {.name = name, .comm = comm, .stream = stream, .is_part = true};
    if (!is_root(peer, comm)) {
        return wrong_rank(name, "peer", peer, comm);
    }
    q.part = (struct collective_part){.address = (uint64_t)(uintptr_t)memory,
                                      .count = count,
                                      .type = (uint32_t)type,
                                      .peer = (uint32_t)peer,
                                      .sends = sends};
    return enqueue(&q);
}

EXPORTED ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
    return part("ncclSend", send, count, type, peer, true, comm, stream);
}

EXPORTED ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
    return part("ncclRecv", receive, count, type, peer, false, comm, stream);
}

/* ---- Operations of the program's own ---- */

EXPORTED ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                               ncclScalarResidence_t residence, ncclComm_t comm) {
    unsigned index = 0;
    if (op == NULL || scalar == NULL || comm == NULL || (unsigned)type >= ncclNumTypes ||
        (unsigned)residence > ncclScalarHostImmediate) {
        return library_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: invalid argument");
    }
    while (index < MOST_OWN_OPERATIONS && comm->own[index].used) {
        index++;
    }
    if (index == MOST_OWN_OPERATIONS) {
        return library_fail(ncclInvalidUsage, "ncclRedOpCreatePreMulSum: more than %d operations",
                            MOST_OWN_OPERATIONS);
    }
    struct own_operation *own = &comm->own[index];
    *own = (struct own_operation){
        .used = true, .on_device = residence == ncclScalarDevice, .type = type};
    if (own->on_device) {
        own->scalar = (uint64_t)(uintptr_t)scalar;
    } else {
        memcpy(&own->scalar, scalar, collective_type_bytes((uint32_t)type));
    }
    *op = (ncclRedOp_t)(ncclNumOps + index);
    return ncclSuccess;
}

EXPORTED ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    unsigned index = (unsigned)op - ncclNumOps;
    if (comm == NULL || (unsigned)op < ncclNumOps || index >= MOST_OWN_OPERATIONS ||
        !comm->own[index].used) {
        return library_fail(ncclInvalidArgument,
                            "ncclRedOpDestroy: no operation of ncclRedOpCreatePreMulSum()");
    }
    comm->own[index].used = false;
    return ncclSuccess;
}
