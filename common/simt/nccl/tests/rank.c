/*
 * One rank of several, a process each: rank CASE RANK RANKS FOLDER. With SIMT_DEVICE=shared:NAME.
 * What ranks tell each other goes through files of the folder. Exits with 0 when all went well, 3
 * when CUDA or NCCL failed, 1 else.
 *
 *     reduce   an all-reduce
 *     memory   rank 0 hands memory and an event to rank 1, which reads and writes it
 *     stays    waits in an all-reduce until it is ended
 *     early    rank 1 exits before its all-reduce
 *     trespass rank 1 writes to memory of rank 0 that it was not handed
 *     pinned   kernels of all ranks write host memory of the same address at the same time
 *     free     says how much device memory is taken
 *     ends     is the devices' process for a program that comes as that ends: it lets one in and
 * goes
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "common/simt/runtime/devices/devices.h"

enum { COUNT = 1000, SECONDS = 30 };

struct rank {
    const char *folder;
    int rank, ranks;
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(3);
}

static void try_cuda(const char *what, cudaError_t error) {
    if (error != cudaSuccess) {
        fail(what, cudaGetErrorName(error));
    }
}

static void try_nccl(const char *what, ncclResult_t result) {
    if (result != ncclSuccess) {
        fail(what, ncclGetErrorString(result));
    }
}

/** A file appears whole. */
static void tell(const struct rank *r, const char *name, const void *data, size_t bytes) {
    char path[512], hidden[520];
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    snprintf(hidden, sizeof hidden, "%s.part", path);
    FILE *file = fopen(hidden, "wb");
    if (file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0 ||
        rename(hidden, path) != 0) {
        fail(path, "cannot be written");
    }
}

static void hear(const struct rank *r, const char *name, void *data, size_t bytes) {
    const struct timespec pause = {.tv_nsec = 1000000};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", r->folder, name);
    time_t end = time(NULL) + SECONDS;
    FILE *file = NULL;
    while ((file = fopen(path, "rb")) == NULL && time(NULL) < end) {
        nanosleep(&pause, NULL);
    }
    if (file == NULL || fread(data, 1, bytes, file) != bytes) {
        fail(path, "has not come");
    }
    fclose(file);
}

static ncclComm_t join(const struct rank *r) {
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    if (r->rank == 0) {
        try_nccl("ncclGetUniqueId", ncclGetUniqueId(&id));
        tell(r, "id", &id, sizeof id);
    }
    hear(r, "id", &id, sizeof id);
    try_nccl("ncclCommInitRank", ncclCommInitRank(&comm, r->ranks, id, r->rank));
    return comm;
}

static int *make_ints(int value) {
    int *d = NULL;
    try_cuda("cudaMalloc", cudaMalloc((void **)&d, COUNT * sizeof(int)));
    launch_fill(d, value, COUNT, NULL);
    try_cuda("fill", cudaDeviceSynchronize());
    return d;
}

static void expect(const int *d, int value, int step) {
    int host[COUNT];
    try_cuda("cudaMemcpy", cudaMemcpy(host, d, sizeof host, cudaMemcpyDefault));
    for (int i = 0; i < COUNT; i++) {
        if (host[i] != value + step * i) {
            fprintf(stderr, "element %d is %d, not %d\n", i, host[i], value + step * i);
            exit(1);
        }
    }
}

static void reduce(const struct rank *r) {
    ncclComm_t comm = join(r);
    int *d = make_ints(r->rank);
    try_nccl("ncclAllReduce", ncclAllReduce(d, d, COUNT, ncclInt, ncclSum, comm, NULL));
    try_cuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
    expect(d, r->ranks * (r->ranks - 1) / 2, r->ranks);
    try_cuda("cudaFree", cudaFree(d));
    try_nccl("ncclCommDestroy", ncclCommDestroy(comm));
}

/** What rank 0 hands over. */
struct offer {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t filled;
};

static void offer(const struct rank *r) {
    struct offer offer;
    cudaEvent_t filled = NULL;
    char done = 0;
    int *d = NULL;
    try_cuda("cudaMalloc", cudaMalloc((void **)&d, COUNT * sizeof(int)));
    try_cuda("cudaEventCreateWithFlags",
             cudaEventCreateWithFlags(&filled, cudaEventDisableTiming | cudaEventInterprocess));
    try_cuda("cudaIpcGetMemHandle", cudaIpcGetMemHandle(&offer.memory, d));
    try_cuda("cudaIpcGetEventHandle", cudaIpcGetEventHandle(&offer.filled, filled));
    if (cudaIpcGetMemHandle(&offer.memory, d + 1) != cudaErrorInvalidValue) {
        fail("cudaIpcGetMemHandle", "takes the middle of an allocation");
    }
    launch_fill(d, 5, COUNT, NULL);
    try_cuda("cudaEventRecord", cudaEventRecord(filled, NULL));
    tell(r, "offer", &offer, sizeof offer);
    hear(r, "done", &done, 1);
    expect(d, 6, 1);
    try_cuda("cudaFree", cudaFree(d));
    try_cuda("cudaEventDestroy", cudaEventDestroy(filled));
}

static void expect_refusals(const struct offer *good) {
    cudaIpcMemHandle_t bad = good->memory;
    void *memory = NULL;
    for (size_t n = 0; n < 40; n++) { /* all that a handle says */
        bad = good->memory;
        bad.reserved[n] ^= 1;
        if (cudaIpcOpenMemHandle(&memory, bad, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess) {
            fail("cudaIpcOpenMemHandle", "takes a handle with a wrong bit");
        }
    }
    if (cudaIpcOpenMemHandle(&memory, good->memory, 0) != cudaErrorInvalidValue ||
        cudaIpcOpenMemHandle(NULL, good->memory, cudaIpcMemLazyEnablePeerAccess) !=
            cudaErrorInvalidValue ||
        cudaIpcCloseMemHandle(&bad) != cudaErrorInvalidValue) {
        fail("cudaIpcOpenMemHandle", "takes what is wrong");
    }
    (void)cudaGetLastError();
}

static void accept_offer(const struct rank *r) {
    struct offer offer;
    cudaEvent_t filled = NULL;
    int *theirs = NULL;
    const char done = 1;
    hear(r, "offer", &offer, sizeof offer);
    expect_refusals(&offer);
    try_cuda("cudaIpcOpenMemHandle",
             cudaIpcOpenMemHandle((void **)&theirs, offer.memory, cudaIpcMemLazyEnablePeerAccess));
    try_cuda("cudaIpcOpenEventHandle", cudaIpcOpenEventHandle(&filled, offer.filled));
    try_cuda("cudaStreamWaitEvent", cudaStreamWaitEvent(NULL, filled, 0));
    launch_next(theirs, theirs, COUNT, NULL);
    try_cuda("next", cudaDeviceSynchronize());
    if (cudaFree(theirs) != cudaErrorInvalidValue) {
        fail("cudaFree", "frees another program's memory");
    }
    (void)cudaGetLastError();
    try_cuda("cudaIpcCloseMemHandle", cudaIpcCloseMemHandle(theirs));
    try_cuda("cudaEventDestroy", cudaEventDestroy(filled));
    tell(r, "done", &done, 1);
}

/** Without a handle the memory of another program is not there. */
static void trespass(const struct rank *r) {
    int *d = make_ints(1);
    if (r->rank == 0) {
        char done = 0;
        tell(r, "address", (const void *)&d, sizeof d);
        hear(r, "done", &done, 1);
        expect(d, 1, 1);
    } else {
        int *theirs = NULL;
        hear(r, "address", (void *)&theirs, sizeof theirs);
        launch_fill(theirs, 9, COUNT, NULL);
        cudaError_t error = cudaDeviceSynchronize();
        tell(r, "done", "", 1);
        try_cuda("trespass", error);
    }
}

/** A page of the same address in all ranks, as programs have that were forked: each its own. */
static void pin(const struct rank *r) {
    enum { PAGE = 4096 };
    char name[32];
    int *at = (int *)0x100000000000; /* far from where memory is placed by itself */
    int *page = mmap(at, PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != at) {
        fail("mmap", "the address is taken");
    }
    try_cuda("cudaHostRegister", cudaHostRegister(page, PAGE, cudaHostRegisterMapped));
    cudaStream_t stream = NULL;
    try_cuda("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    launch_fill(page, 10 * r->rank, COUNT, stream);
    snprintf(name, sizeof name, "launched.%d", r->rank);
    tell(r, name, "", 1);
    for (int other = 0; other < r->ranks; other++) {
        char launched = 0;
        snprintf(name, sizeof name, "launched.%d", other);
        hear(r, name, &launched, 1);
    }
    try_cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        if (page[i] != 10 * r->rank + i) {
            fail("a page", "another rank's kernel has written it");
        }
    }
    try_cuda("cudaStreamDestroy", cudaStreamDestroy(stream));
    try_cuda("cudaHostUnregister", cudaHostUnregister(page));
}

static void stay(const struct rank *r, bool early) {
    ncclComm_t comm = join(r);
    int *d = make_ints(r->rank);
    if (r->rank == 1) {
        tell(r, "there", "", 1);
        if (early) {
            _exit(0);
        }
        pause();
    }
    try_nccl("ncclAllReduce", ncclAllReduce(d, d, COUNT, ncclInt, ncclSum, comm, NULL));
    try_cuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

/* Under the name that device_process.c gives it. */
static void end(const struct rank *r) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = getenv("SIMT_DEVICE");
    int used = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "simt-%u-%s",
                        (unsigned)getuid(), name != NULL ? strchr(name, ':') + 1 : "");
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (bind(listener, (const struct sockaddr *)&address, length) != 0 ||
        listen(listener, 1) != 0) {
        fail("a socket", "the name is taken");
    }
    tell(r, "listens", "", 1);
    if (accept(listener, NULL, NULL) < 0) {
        fail("a socket", "nobody comes");
    }
}

int main(int argc, char **argv) {
    if (argc != 5) {
        return 1;
    }
    const struct rank r = {.folder = argv[4], .rank = atoi(argv[2]), .ranks = atoi(argv[3])};
    if (strcmp(argv[1], "ends") == 0) {
        end(&r);
        return 0;
    }
    size_t free_bytes = 0, total = 0;
    int devices = 0;
    try_cuda("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    try_cuda("cudaSetDevice", cudaSetDevice(r.rank % devices));
    if (strcmp(argv[1], "reduce") == 0) {
        reduce(&r);
    } else if (strcmp(argv[1], "memory") == 0 && r.rank == 0) {
        offer(&r);
    } else if (strcmp(argv[1], "memory") == 0) {
        accept_offer(&r);
    } else if (strcmp(argv[1], "pinned") == 0) {
        pin(&r);
    } else if (strcmp(argv[1], "trespass") == 0) {
        trespass(&r);
    } else if (strcmp(argv[1], "stays") == 0 || strcmp(argv[1], "early") == 0) {
        stay(&r, strcmp(argv[1], "early") == 0);
    } else if (strcmp(argv[1], "free") == 0) {
        try_cuda("cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total));
        printf("%zu bytes are taken\n", total - free_bytes);
    }
    return 0;
}
