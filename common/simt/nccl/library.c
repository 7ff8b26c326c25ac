#include "common/simt/nccl/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A library has process state by nature: the line of the last error. */
static struct {
    pthread_mutex_t lock;
    char line[512];
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find(const char *name, void *function) {
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

const struct calls *library_calls(void) {
    static struct calls calls;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool found = find("simt_collective_join", &calls.join) &&
                 find("simt_collective_split", &calls.split) &&
                 find("simt_collective_status", &calls.status) &&
                 find("simt_collective_submit", &calls.submit) &&
                 find("simt_collective_exchange", &calls.exchange);
    pthread_mutex_unlock(&lock);
    if (!found) {
        (void)library_fail(ncclSystemError, "this is the emulator's libnccl.so.2, and needs its "
                                            "libcudart.so.13: start the program by simt run, or "
                                            "take NVIDIA's libnccl.so.2");
    }
    return found ? &calls : NULL;
}

ncclResult_t library_fail(ncclResult_t result, const char *format, ...) {
    va_list args;
    pthread_mutex_lock(&last.lock);
    va_start(args, format);
    vsnprintf(last.line, sizeof last.line, format, args);
    va_end(args);
    fflush(stdout);
    fprintf(stderr, "NCCL: %s\n", last.line);
    pthread_mutex_unlock(&last.lock);
    return result;
}

ncclResult_t library_result_of(cudaError_t error, const char *call) {
    switch (error) {
    case cudaSuccess:
        return ncclSuccess;
    case cudaErrorInvalidValue:
        return library_fail(ncclInvalidArgument, "%s: invalid argument", call);
    case cudaErrorInvalidResourceHandle:
        return library_fail(ncclInvalidArgument,
                            "%s: the stream is none, or of another device than the communicator",
                            call);
    default:
        return library_fail(ncclUnhandledCudaError, "%s: %s", call, cudaGetErrorString(error));
    }
}

ncclResult_t library_result_of_state(uint32_t state) {
    static const ncclResult_t RESULTS[] = {
        [COLLECTIVE_GOOD] = ncclSuccess,
        [COLLECTIVE_WAITS] = ncclInProgress,
        [COLLECTIVE_INVALID] = ncclInvalidUsage,
        [COLLECTIVE_REMOTE] = ncclRemoteError,
        [COLLECTIVE_OUT_OF_MEMORY] = ncclSystemError,
    };
    return state < sizeof RESULTS / sizeof *RESULTS ? RESULTS[state] : ncclInternalError;
}

double library_patience(void) {
    const char *value = getenv("SIMT_WAIT_SECONDS");
    double seconds = value != NULL ? strtod(value, NULL) : 0;
    return 3 * (seconds >= 1 ? seconds : 10);
}

/** Only the emulator's library has it: its libcudart.so.13 looks. */
extern const int ncclEmulated;
EXPORTED const int ncclEmulated = 1;

EXPORTED ncclResult_t ncclGetVersion(int *version) {
    if (version == NULL) {
        return library_fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    }
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

EXPORTED const char *ncclGetErrorString(ncclResult_t result) {
    static const char *const TEXTS[] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error",
        [ncclSystemError] = "unhandled system error",
        [ncclInternalError] = "internal error",
        [ncclInvalidArgument] = "invalid argument",
        [ncclInvalidUsage] = "invalid usage",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };
    return (unsigned)result < ncclNumResults ? TEXTS[result] : "unknown result code";
}

EXPORTED const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm;
    return last.line;
}

EXPORTED ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
    return library_result_of(cudaMalloc(memory, bytes), "ncclMemAlloc");
}

EXPORTED ncclResult_t ncclMemFree(void *memory) {
    return library_result_of(cudaFree(memory), "ncclMemFree");
}
