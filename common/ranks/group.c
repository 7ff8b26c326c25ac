#include "common/ranks/group.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct comm_group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks;
    bool one_at_a_time;

    /* All below under the lock. */
    int turn; /* the rank that runs, where one runs at a time */
    bool waits[COMM_MAX_RANKS], done[COMM_MAX_RANKS];
    int arrived;        /* ranks in the gathering under way */
    unsigned gathering; /* counts them */
    const void *mine[COMM_MAX_RANKS];
    size_t bytes[COMM_MAX_RANKS];
    int left;           /* ranks that have yet to copy */
    int failed;         /* the first rank that failed by itself, -1: none */
    enum status status; /* of it */

    struct comm comms[COMM_MAX_RANKS];
    void *memory; /* the hosts' shared memory */
};

/* ---- One at a time ---- */

/* The next rank that can run gets its turn; where all wait, it is the first one's that does not. */
static void pass_turn(struct comm_group *g) {
    int from = g->turn < 0 ? g->ranks - 1 : g->turn;
    g->turn = -1;
    for (int i = 1; i <= g->ranks; i++) {
        int r = (from + i) % g->ranks;
        if (!g->done[r] && !g->waits[r]) {
            g->turn = r;
            break;
        }
    }
    pthread_cond_broadcast(&g->changed);
}

static void await_turn(struct comm_group *g, int rank) {
    while (g->one_at_a_time && g->turn != rank && g->turn >= 0) {
        pthread_cond_wait(&g->changed, &g->lock);
    }
    g->turn = rank;
}

/* ---- The transport ---- */

static enum status given_up(const struct comm_group *g, struct error *error) {
    return error_set(error, g->status, "rank %d has failed", g->failed);
}

/* A rank that ended well will not come any more either. */
static bool somebody_is_gone(const struct comm_group *g) {
    for (int r = 0; r < g->ranks; r++) {
        if (g->done[r]) {
            return true;
        }
    }
    return false;
}

static void begin_gathering(struct comm_group *g) {
    g->arrived = 0;
    g->left = g->ranks;
    g->gathering++;
    memset(g->waits, 0, sizeof g->waits);
    pthread_cond_broadcast(&g->changed);
}

static enum status wait_for_all(struct comm_group *g, int rank, struct error *error) {
    unsigned gathering = g->gathering;
    if (++g->arrived == g->ranks) {
        begin_gathering(g);
    } else {
        g->waits[rank] = true;
        pass_turn(g);
    }
    while (g->gathering == gathering && g->failed < 0 && !somebody_is_gone(g)) {
        pthread_cond_wait(&g->changed, &g->lock);
    }
    g->waits[rank] = false;
    if (g->gathering != gathering) {
        return STATUS_OK;
    }
    return g->failed >= 0 ? given_up(g, error)
                          : error_set(error, STATUS_MISMATCH,
                                      "rank %d waits for a rank that has already ended: all ranks "
                                      "must make the same collective calls",
                                      rank);
}

static enum status gather(struct comm_group *g, int rank, const void *mine, size_t bytes, void *all,
                          struct error *error) {
    g->mine[rank] = mine;
    g->bytes[rank] = bytes;
    TRY(wait_for_all(g, rank, error));
    enum status status = STATUS_OK;
    for (int r = 0; r < g->ranks && status == STATUS_OK; r++) {
        if (g->bytes[r] != bytes) {
            status = error_set(error, STATUS_MISMATCH,
                               "rank %d gathers %zu bytes, rank %d %zu: all ranks must make the "
                               "same collective calls",
                               rank, bytes, r, g->bytes[r]);
        } else if (bytes > 0) {
            memcpy((char *)all + (size_t)r * bytes, g->mine[r], bytes);
        }
    }
    g->left--;
    pthread_cond_broadcast(&g->changed);
    while (g->left > 0) { /* others still copy from `mine` */
        pthread_cond_wait(&g->changed, &g->lock);
    }
    return status;
}

static enum status all_gather(void *state, int rank, const void *mine, size_t bytes, void *all,
                              struct error *error) {
    struct comm_group *g = state;
    pthread_mutex_lock(&g->lock);
    enum status status = gather(g, rank, mine, bytes, all, error);
    await_turn(g, rank);
    pthread_mutex_unlock(&g->lock);
    return status;
}

/* Other ranks may run while this one waits for them. */
static void block(void *state, int rank, bool begins) {
    struct comm_group *g = state;
    pthread_mutex_lock(&g->lock);
    g->waits[rank] = begins;
    if (begins) {
        pass_turn(g);
    } else {
        await_turn(g, rank);
    }
    pthread_mutex_unlock(&g->lock);
}

static const struct comm_transport threads = {true, all_gather, block};

/* ---- Devices ---- */

static bool reach_each_other(int a, int b) {
    int ab = 0, ba = 0;
    return cudaDeviceCanAccessPeer(&ab, a, b) == cudaSuccess &&
           cudaDeviceCanAccessPeer(&ba, b, a) == cudaSuccess && ab != 0 && ba != 0;
}

int comm_devices(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    for (int d = 1; d < count; d++) {
        for (int other = 0; other < d; other++) {
            if (!reach_each_other(other, d)) {
                return d;
            }
        }
    }
    return count;
}

static enum status check_devices(int ranks, struct error *error) {
    int count = 0, reachable = comm_devices();
    if (ranks < 1 || ranks > COMM_MAX_RANKS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%d ranks; it must be 1 to %d", ranks,
                         COMM_MAX_RANKS);
    }
    if (ranks <= reachable) {
        return STATUS_OK;
    }
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < ranks) {
        (void)cudaGetLastError();
        return error_set(error, STATUS_NO_DEVICE,
                         "%d ranks need a GPU each, and there %s %d; on simt set SIMT_DEVICES=%d",
                         ranks, count == 1 ? "is" : "are", count, ranks);
    }
    return error_set(error, STATUS_NO_DEVICE,
                     "GPU %d cannot reach the memory of those before it: there is no peer access "
                     "between them",
                     reachable);
}

/* Kernels of the device may follow pointers to the memory of all others. */
static enum status enable_peers(int device, int ranks, struct error *error) {
    cudaError_t code = cudaSetDevice(device);
    for (int peer = 0; peer < ranks && code == cudaSuccess; peer++) {
        if (peer != device) {
            code = cudaDeviceEnablePeerAccess(peer, 0);
            if (code == cudaErrorPeerAccessAlreadyEnabled) {
                (void)cudaGetLastError();
                code = cudaSuccess;
            }
        }
    }
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "peer access of device %d: %s",
                                           device, cudaGetErrorString(code));
}

static enum status connect(int ranks, struct error *error) {
    enum status status = STATUS_OK;
    for (int r = 0; r < ranks && status == STATUS_OK; r++) {
        status = enable_peers(r, ranks, error);
    }
    (void)cudaSetDevice(0);
    return status;
}

/* ---- Creation ---- */

static enum status fill(struct comm_group *g, struct error *error) {
    struct device_properties gpu;
    TRY(check_devices(g->ranks, error));
    TRY(device_properties(&gpu, error));
    TRY(connect(g->ranks, error));
    g->one_at_a_time = gpu.modelled;
    cudaError_t code =
        cudaHostAlloc(&g->memory, (size_t)g->ranks * COMM_HOST_BYTES, cudaHostAllocPortable);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "page-locked memory of %d ranks: %s",
                         g->ranks, cudaGetErrorString(code));
    }
    for (int r = 0; r < g->ranks; r++) {
        struct comm *comm = &g->comms[r];
        *comm = (struct comm){
            .rank = r, .ranks = g->ranks, .device = r, .transport = &threads, .state = g};
        for (int s = 0; s < g->ranks; s++) {
            comm->host[s] = (char *)g->memory + (size_t)s * COMM_HOST_BYTES;
        }
    }
    return STATUS_OK;
}

enum status comm_group_create(struct comm_group **group, int ranks, struct error *error) {
    *group = NULL;
    struct comm_group *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a group of ranks");
    }
    g->ranks = ranks;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    enum status status = fill(g, error);
    if (status != STATUS_OK) {
        comm_group_free(g);
        return status;
    }
    *group = g;
    return STATUS_OK;
}

void comm_group_free(struct comm_group *g) {
    if (g == NULL) {
        return;
    }
    if (g->memory != NULL) {
        (void)cudaFreeHost(g->memory);
    }
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- Running ---- */

struct job {
    struct comm_group *group;
    int rank;
    comm_function *function;
    void *context;
    enum status status;
    struct error error;
};

static void end_rank(struct comm_group *g, struct job *job) {
    if (job->status != STATUS_OK && g->failed < 0) {
        g->failed = job->rank;
        g->status = job->status;
    }
    g->done[job->rank] = true;
    memset(g->waits, 0, sizeof g->waits); /* who waits for it does so in vain */
    pass_turn(g);
}

static void *run_rank(void *argument) {
    struct job *job = argument;
    struct comm_group *g = job->group;
    struct comm *comm = &g->comms[job->rank];
    pthread_mutex_lock(&g->lock);
    await_turn(g, job->rank);
    pthread_mutex_unlock(&g->lock);
    job->status =
        cudaSetDevice(comm->device) == cudaSuccess
            ? job->function(comm, job->context, &job->error)
            : error_set(&job->error, STATUS_DEVICE, "device %d cannot be set", comm->device);
    pthread_mutex_lock(&g->lock);
    end_rank(g, job);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void reset(struct comm_group *g) {
    g->turn = g->arrived = g->left = 0;
    g->failed = -1;
    g->status = STATUS_OK;
    memset(g->waits, 0, sizeof g->waits);
    memset(g->done, 0, sizeof g->done);
}

enum status comm_group_run(struct comm_group *g, comm_function *function, void *context,
                           struct error *error) {
    struct job jobs[COMM_MAX_RANKS];
    pthread_t ids[COMM_MAX_RANKS];
    int started = 0;
    reset(g);
    for (; started < g->ranks; started++) {
        jobs[started] =
            (struct job){.group = g, .rank = started, .function = function, .context = context};
        if (pthread_create(&ids[started], NULL, run_rank, &jobs[started]) != 0) {
            pthread_mutex_lock(&g->lock);
            g->failed = started;
            g->status = STATUS_OUT_OF_MEMORY;
            for (int r = started; r < g->ranks; r++) {
                g->done[r] = true;
            }
            pass_turn(g);
            pthread_mutex_unlock(&g->lock);
            break;
        }
    }
    for (int r = 0; r < started; r++) {
        pthread_join(ids[r], NULL);
    }
    if (g->failed < 0) {
        return STATUS_OK;
    }
    return g->failed < started ? error_set(error, g->status, "rank %d: %s", g->failed,
                                           error_text(&jobs[g->failed].error, g->status))
                               : error_set(error, g->status, "no thread for rank %d", g->failed);
}
