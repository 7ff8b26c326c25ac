#include "common/ranks/nccl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The part of NCCL's interface used here: results and codes are ints. */
enum { NCCL_OK = 0, NCCL_SUM = 0, NCCL_F32 = 7, NCCL_BF16 = 9, NCCL_ID_BYTES = 128 };

struct unique_id {
    char bytes[NCCL_ID_BYTES];
};

typedef int version_function(int *version);
typedef int id_function(struct unique_id *id);
typedef int init_function(void **nccl, int ranks, struct unique_id id, int rank);
typedef int destroy_function(void *nccl);
typedef const char *text_function(int result);
typedef int all_reduce_function(const void *from, void *to, size_t count, int type, int op,
                                void *nccl, device_stream stream);

struct nccl {
    void *library, *communicator;
    version_function *version;
    id_function *id;
    init_function *init;
    destroy_function *destroy;
    text_function *text;
    all_reduce_function *all_reduce;
};

static enum status open_library(struct nccl *nccl, struct error *error) {
    const char *file = getenv("WARPBOOK_NCCL");
    bool named = file != NULL && file[0] != '\0';
    nccl->library = dlopen(named ? file : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (nccl->library == NULL) {
        return named ? error_set(error, STATUS_NOT_FOUND, "NCCL of $WARPBOOK_NCCL: %s", dlerror())
                     : error_set(error, STATUS_NOT_FOUND,
                                 "NCCL is not installed (no libnccl.so.2 on the loader's path); "
                                 "name the file in $WARPBOOK_NCCL to compare with it");
    }
    return STATUS_OK;
}

/* POSIX allows a function's address in an object pointer. */
static void find(const struct nccl *nccl, void *function, const char *name, const char **missing) {
    *(void **)function = dlsym(nccl->library, name);
    if (*(void **)function == NULL && *missing == NULL) {
        *missing = name;
    }
}

static enum status find_functions(struct nccl *nccl, struct error *error) {
    const char *missing = NULL;
    find(nccl, &nccl->version, "ncclGetVersion", &missing);
    find(nccl, &nccl->id, "ncclGetUniqueId", &missing);
    find(nccl, &nccl->init, "ncclCommInitRank", &missing);
    find(nccl, &nccl->destroy, "ncclCommDestroy", &missing);
    find(nccl, &nccl->text, "ncclGetErrorString", &missing);
    find(nccl, &nccl->all_reduce, "ncclAllReduce", &missing);
    return missing == NULL ? STATUS_OK
                           : error_set(error, STATUS_NOT_FOUND,
                                       "the library opened as NCCL has no %s", missing);
}

static enum status check(const struct nccl *nccl, int result, const char *what,
                         struct error *error) {
    return result == NCCL_OK ? STATUS_OK
                             : error_set(error, STATUS_DEVICE, "%s: %s (NCCL result %d)", what,
                                         nccl->text(result), result);
}

/* What a rank has so far; rank 0 brings the id. */
struct offer {
    enum status status;
    struct unique_id id;
};

static enum status load(const struct comm *comm, struct nccl *nccl, struct offer *offer,
                        struct error *error) {
    TRY(open_library(nccl, error));
    TRY(find_functions(nccl, error));
    return comm->rank == 0 ? check(nccl, nccl->id(&offer->id), "ncclGetUniqueId", error)
                           : STATUS_OK;
}

static enum status connect(struct comm *comm, struct nccl *nccl, struct error *error) {
    struct offer mine = {.status = STATUS_OK}, all[COMM_MAX_RANKS];
    mine.status = load(comm, nccl, &mine, error);
    TRY(comm_all_gather(comm, &mine, sizeof mine, all, error));
    TRY(mine.status);
    for (int r = 0; r < comm->ranks; r++) {
        if (all[r].status != STATUS_OK) {
            return error_set(error, all[r].status, "rank %d cannot use NCCL", r);
        }
    }
    /* NCCL can order launches of graphs with others of the same communicator that run beside them.
       A stream of ours has them one behind the other, and without that a small sum in a graph takes
       5.4 us instead of 6.5 (two H100, NCCL 2.28.9). */
    (void)setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 0);
    comm_block(comm, true); /* it waits for the other ranks in its own way */
    int result = nccl->init(&nccl->communicator, comm->ranks, all[0].id, comm->rank);
    comm_block(comm, false);
    return check(nccl, result, "ncclCommInitRank", error);
}

static void unload(struct nccl *nccl) {
    if (nccl->library != NULL) {
        dlclose(nccl->library);
    }
    free(nccl);
}

enum status comm_nccl_open(struct comm *comm, struct error *error) {
    if (comm->nccl != NULL) {
        return STATUS_OK;
    }
    struct nccl *nccl = calloc(1, sizeof *nccl);
    if (nccl == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for NCCL");
    }
    enum status status = connect(comm, nccl, error);
    if (status != STATUS_OK) {
        unload(nccl);
        return status;
    }
    comm->nccl = nccl;
    return STATUS_OK;
}

void comm_nccl_close(struct comm *comm) {
    struct nccl *nccl = comm->nccl;
    if (nccl != NULL) {
        comm_block(comm, true);
        (void)nccl->destroy(nccl->communicator);
        comm_block(comm, false);
        unload(nccl);
        comm->nccl = NULL;
    }
}

enum status comm_nccl_all_reduce(struct comm *comm, void *data, size_t count, enum nn_dtype dtype,
                                 device_stream stream, struct error *error) {
    const struct nccl *nccl = comm->nccl;
    if (nccl == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "NCCL: the ranks are not connected; call comm_nccl_open() first");
    }
    int type = dtype == NN_F32 ? NCCL_F32 : NCCL_BF16;
    return check(nccl,
                 nccl->all_reduce(data, data, count, type, NCCL_SUM, nccl->communicator, stream),
                 "ncclAllReduce", error);
}

int comm_nccl_version(const struct comm *comm) {
    const struct nccl *nccl = comm->nccl;
    int version = 0;
    return nccl != NULL && nccl->version(&version) == NCCL_OK ? version : 0;
}
