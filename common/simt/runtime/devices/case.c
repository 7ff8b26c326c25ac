/*
 * What is wrong with several devices, one ending each: case NAME. Exits with 3 when CUDA returned
 * the error it prints, 0 else.
 */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/devices/devices.h"

enum { COUNT = 100 };

/** Zeros on both devices, which reach each other. */
static cudaError_t begin(int *d[2]) {
    cudaError_t error = cudaSuccess;
    for (int n = 0; n < 2 && error == cudaSuccess; n++) {
        (void)cudaSetDevice(n);
        error = cudaMalloc((void **)&d[n], 4 * COUNT * sizeof(int));
        if (error == cudaSuccess) {
            error = cudaMemset(d[n], 0, 4 * COUNT * sizeof(int));
        }
        (void)cudaDeviceSynchronize();
    }
    return error;
}

static void connect(void) {
    (void)cudaSetDevice(1);
    (void)cudaDeviceEnablePeerAccess(0, 0);
    (void)cudaSetDevice(0);
    (void)cudaDeviceEnablePeerAccess(1, 0);
}

static cudaError_t wait_for_both(void) {
    (void)cudaSetDevice(1);
    cudaError_t error = cudaDeviceSynchronize();
    (void)cudaSetDevice(0);
    return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

static cudaError_t no_access(int *d[2]) {
    (void)cudaSetDevice(0);
    launch_fill(d[1], 1, COUNT, NULL);
    return cudaDeviceSynchronize();
}

static cudaError_t unordered(int *d[2]) {
    connect();
    launch_fill(d[1], 1, COUNT, NULL); /* by device 0 */
    (void)cudaSetDevice(1);
    launch_next(d[1] + COUNT, d[1], COUNT, NULL);
    return wait_for_both();
}

static cudaError_t send_and_receive(int *d[2], bool fence) {
    connect();
    launch_send(d[1], d[1] + COUNT, 1, COUNT, fence, NULL);
    (void)cudaSetDevice(1);
    launch_receive(d[1], d[1] + COUNT, COUNT, d[1] + COUNT + 1, true, NULL);
    return wait_for_both();
}

static cudaError_t no_fence(int *d[2]) {
    return send_and_receive(d, false);
}

static cudaError_t with_fence(int *d[2]) {
    return send_and_receive(d, true);
}

static cudaError_t forever(int *d[2]) {
    (void)cudaSetDevice(1);
    launch_wait(d[1], 1, d[1] + 1, NULL);
    return cudaDeviceSynchronize();
}

static cudaError_t forever_atomic(int *d[2]) {
    (void)cudaSetDevice(1);
    launch_wait_atomic(d[1], 1, d[1] + 1, NULL);
    return cudaDeviceSynchronize();
}

static cudaError_t never_waited(int *d[2]) {
    (void)cudaSetDevice(1);
    launch_wait(d[1], 1, d[1] + 1, NULL);
    return cudaSuccess;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        cudaError_t (*run)(int *d[2]);
    } cases[] = {
        {"no_access", no_access},       {"unordered", unordered},
        {"no_fence", no_fence},         {"with_fence", with_fence},
        {"forever", forever},           {"forever_atomic", forever_atomic},
        {"never_waited", never_waited},
    };
    int *d[2] = {NULL, NULL};
    cudaError_t error = begin(d);
    for (size_t n = 0; n < sizeof cases / sizeof *cases && argc == 2 && error == cudaSuccess; n++) {
        if (strcmp(cases[n].name, argv[1]) == 0) {
            error = cases[n].run(d);
        }
    }
    for (int n = 0; n < 2 && error == cudaSuccess && strcmp(argv[1], "never_waited") != 0; n++) {
        (void)cudaSetDevice(n);
        (void)cudaFree(d[n]);
    }
    printf("%s\n", cudaGetErrorName(error));
    return error == cudaSuccess ? 0 : 3;
}
