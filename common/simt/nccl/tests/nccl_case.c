/*
 * What is wrong with NCCL, one ending each: nccl_case NAME, on two devices. Exits with 3 when CUDA
 * or NCCL returned the error it prints, 0 else.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 100, RANKS = 2 };

struct world {
    ncclComm_t comm[RANKS];
    float *d[RANKS];
};

static bool begin(struct world *w) {
    bool good = ncclCommInitAll(w->comm, RANKS, NULL) == ncclSuccess;
    for (int r = 0; r < RANKS && good; r++) {
        good = cudaSetDevice(r) == cudaSuccess &&
               cudaMalloc((void **)&w->d[r], 2 * COUNT * sizeof(float)) == cudaSuccess &&
               cudaMemset(w->d[r], 0, 2 * COUNT * sizeof(float)) == cudaSuccess &&
               cudaDeviceSynchronize() == cudaSuccess;
    }
    return good;
}

static ncclResult_t reduce(struct world *w, int rank, size_t count, ncclRedOp_t op) {
    return ncclAllReduce(w->d[rank], w->d[rank], count, ncclFloat, op, w->comm[rank], NULL);
}

static ncclResult_t absent(struct world *w) {
    return reduce(w, 0, COUNT, ncclSum);
}

static ncclResult_t counts(struct world *w) {
    ncclResult_t result = reduce(w, 0, COUNT, ncclSum);
    return result != ncclSuccess ? result : reduce(w, 1, 2 * COUNT, ncclSum);
}

static ncclResult_t operations(struct world *w) {
    ncclResult_t result = reduce(w, 0, COUNT, ncclSum);
    return result != ncclSuccess ? result : reduce(w, 1, COUNT, ncclMax);
}

static ncclResult_t kinds(struct world *w) {
    ncclResult_t result = reduce(w, 0, COUNT, ncclSum);
    return result != ncclSuccess
               ? result
               : ncclBroadcast(w->d[1], w->d[1], COUNT, ncclFloat, 0, w->comm[1], NULL);
}

static ncclResult_t sends(struct world *w) {
    ncclResult_t result = ncclSend(w->d[0], COUNT, ncclFloat, 1, w->comm[0], NULL);
    return result != ncclSuccess ? result
                                 : ncclRecv(w->d[1], 2 * COUNT, ncclFloat, 0, w->comm[1], NULL);
}

static ncclResult_t unanswered(struct world *w) {
    return ncclRecv(w->d[1], COUNT, ncclFloat, 0, w->comm[1], NULL);
}

static ncclResult_t left(struct world *w) {
    ncclResult_t result = ncclCommDestroy(w->comm[1]);
    w->comm[1] = NULL;
    return result != ncclSuccess ? result : reduce(w, 0, COUNT, ncclSum);
}

static ncclResult_t lonely(struct world *w) {
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    (void)w;
    (void)ncclGetUniqueId(&id);
    return ncclCommInitRank(&comm, 3, id, 1);
}

static ncclResult_t read_early(struct world *w) {
    cudaStream_t stream = NULL;
    (void)cudaSetDevice(0);
    (void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    ncclResult_t result = reduce(w, 0, COUNT, ncclSum);
    result = result != ncclSuccess ? result : reduce(w, 1, COUNT, ncclSum);
    (void)cudaMemsetAsync(w->d[0], 0, 4, stream); /* nothing orders this and the all-reduce */
    return result;
}

static ncclResult_t right(struct world *w) {
    ncclResult_t result = reduce(w, 0, COUNT, ncclSum);
    return result != ncclSuccess ? result : reduce(w, 1, COUNT, ncclSum);
}

static cudaError_t wait_for_all(void) {
    cudaError_t error = cudaSuccess;
    for (int r = 0; r < RANKS; r++) {
        (void)cudaSetDevice(r);
        cudaError_t one = cudaDeviceSynchronize();
        error = error == cudaSuccess ? one : error;
    }
    return error;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        ncclResult_t (*run)(struct world *w);
    } cases[] = {
        {"absent", absent}, {"counts", counts}, {"operations", operations},
        {"kinds", kinds},   {"sends", sends},   {"unanswered", unanswered},
        {"left", left},     {"lonely", lonely}, {"read_early", read_early},
        {"right", right},
    };
    struct world w;
    if (argc != 2 || !begin(&w)) {
        return 1;
    }
    ncclResult_t result = ncclInternalError, state = ncclSuccess;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        if (strcmp(cases[n].name, argv[1]) == 0) {
            result = cases[n].run(&w);
        }
    }
    cudaError_t error = wait_for_all();
    (void)ncclCommGetAsyncError(w.comm[0], &state);
    printf("%s; %s; then %s\n", ncclGetErrorString(result), cudaGetErrorName(error),
           ncclGetErrorString(state));
    for (int r = 0; r < RANKS && error == cudaSuccess; r++) {
        (void)cudaSetDevice(r);
        (void)cudaFree(w.d[r]);
        (void)ncclCommDestroy(w.comm[r]);
    }
    return result == ncclSuccess && error == cudaSuccess ? 0 : 3;
}
