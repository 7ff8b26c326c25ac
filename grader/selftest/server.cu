#include "grader/selftest/server.h"

#include <cuda_runtime.h>

enum { THREADS = 512, PAUSES = 400 };

/* Told to begin, and what it tells. */
struct server_flags {
    unsigned begin, done;
};

static struct server_flags *flags; /* on SERVER_GPU */
static cudaStream_t works, asks;   /* of SERVER_GPU, and of the other one */
static bool ends;

static __global__ void __launch_bounds__(THREADS)
    server_kernel(volatile struct server_flags *f, float *a, float *b, size_t count, bool stays) {
    while (f->begin == 0) {
    }
    __threadfence_system();
    __syncthreads();
    for (size_t i = threadIdx.x; i < count; i += THREADS) {
        a[i] = b[i] = a[i] + b[i];
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        f->done = 1;
    }
    while (stays && f->begin != 2) {
    }
}

static enum status said(cudaError_t code, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "the server: %s", cudaGetErrorString(code));
}

static cudaError_t make(void) {
    (void)cudaSetDevice(SERVER_OTHER_GPU);
    (void)cudaStreamCreateWithFlags(&asks, cudaStreamNonBlocking);
    (void)cudaSetDevice(SERVER_GPU);
    (void)cudaStreamCreateWithFlags(&works, cudaStreamNonBlocking);
    return cudaMalloc(&flags, sizeof *flags);
}

/* Many sets of a word: each takes a few microseconds. */
static cudaError_t work_elsewhere(void) {
    unsigned *word;
    (void)cudaSetDevice(SERVER_OTHER_GPU);
    cudaError_t code = cudaMalloc(&word, sizeof *word);
    for (int i = 0; i < PAUSES && code == cudaSuccess; i++) {
        code = cudaMemset(word, 0, sizeof *word);
    }
    return code;
}

static cudaError_t start(float *const data[2], size_t count, bool stays) {
    cudaError_t code = make();
    if (code == cudaSuccess) {
        code = cudaMemset(flags, 0, sizeof *flags);
        (void)cudaDeviceSynchronize();
        server_kernel<<<1, THREADS, 0, works>>>(flags, data[0], data[1], count, stays);
    }
    ends = !stays;
    return code == cudaSuccess ? work_elsewhere() : code;
}

enum status server_start(float *const data[2], size_t count, bool stays, struct error *error) {
    int device = 0;
    (void)cudaGetDevice(&device);
    enum status status = said(start(data, count, stays), error);
    (void)cudaSetDevice(device);
    return status;
}

static cudaError_t ask(void) {
    struct server_flags now = {0, 0};
    cudaError_t code = cudaMemsetAsync(&flags->begin, 1, sizeof flags->begin, asks);
    code = code == cudaSuccess && ends ? cudaStreamSynchronize(works) : code;
    while (code == cudaSuccess && !ends && now.done == 0) {
        (void)cudaStreamQuery(works); /* so that simt gives it a turn */
        code = cudaMemcpyAsync(&now, flags, sizeof now, cudaMemcpyDeviceToHost, asks);
        code = code == cudaSuccess ? cudaStreamSynchronize(asks) : code;
    }
    return code;
}

enum status server_sum(struct error *error) {
    int device = 0;
    (void)cudaGetDevice(&device);
    (void)cudaSetDevice(SERVER_OTHER_GPU);
    enum status status = said(ask(), error);
    (void)cudaSetDevice(device);
    return status;
}
