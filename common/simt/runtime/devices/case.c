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

/* A slot in device 1's memory that device 0 fills; behind it ready, come and back. */
static cudaError_t slot(int *d[2], int waits_for, int count) {
    int *ready = d[1] + COUNT, *come = ready + 1, *back = ready + 2;
    connect();
    launch_fill_slot(d[1], ready, waits_for == 0 ? come : back, count, 3, NULL);
    (void)cudaSetDevice(1);
    launch_empty_slot(d[1], ready, come, back, count, 3, d[1] + COUNT + 3, NULL);
    return wait_for_both();
}

static cudaError_t slot_reused(int *d[2]) {
    return slot(d, 0, COUNT);
}

static cudaError_t slot_given_back(int *d[2]) {
    return slot(d, 1, COUNT);
}

/* Two slots with a flag each; the second one's is taken for that of the first. */
static cudaError_t two_slots(int *d[2], bool right) {
    int *flags = d[1] + COUNT;
    connect();
    launch_send_word(d[1], flags, BY_SYSTEM_FENCE, NULL);
    launch_send_word(d[1] + 1, flags + 1, BY_SYSTEM_FENCE, NULL);
    launch_send_word(d[1] + 2, flags + 2, BY_SYSTEM_FENCE, NULL);
    (void)cudaSetDevice(1);
    launch_receive_word(d[1] + (right ? 1 : 2), flags + 1, d[1] + COUNT + 3, BY_SYSTEM_FENCE, NULL);
    return wait_for_both();
}

static cudaError_t flag_of_another(int *d[2]) {
    return two_slots(d, false);
}

static cudaError_t flag_of_its_own(int *d[2]) {
    return two_slots(d, true);
}

static cudaError_t word(int *d[2], enum order_by before, enum order_by behind) {
    connect();
    launch_send_word(d[1], d[1] + COUNT, before, NULL);
    (void)cudaSetDevice(1);
    launch_receive_word(d[1], d[1] + COUNT, d[1] + COUNT + 1, behind, NULL);
    return wait_for_both();
}

static cudaError_t no_fence_behind(int *d[2]) {
    return word(d, BY_SYSTEM_FENCE, BY_NOTHING);
}

static cudaError_t device_fence_before(int *d[2]) {
    return word(d, BY_DEVICE_FENCE, BY_SYSTEM_FENCE);
}

static cudaError_t device_fence_behind(int *d[2]) {
    return word(d, BY_THE_ACCESS, BY_DEVICE_FENCE);
}

static cudaError_t system_fences(int *d[2]) {
    return word(d, BY_SYSTEM_FENCE, BY_SYSTEM_FENCE);
}

static cudaError_t release_and_acquire(int *d[2]) {
    return word(d, BY_THE_ACCESS, BY_THE_ACCESS);
}

static cudaError_t release_and_fence(int *d[2]) {
    return word(d, BY_THE_ACCESS, BY_SYSTEM_FENCE);
}

/* Both devices add to one counter, behind words of their own. */
static cudaError_t counted(int *d[2], bool fence) {
    int *counter = d[1] + COUNT;
    connect();
    launch_send_counted(d[1], counter, fence, NULL);
    (void)cudaSetDevice(1);
    launch_send_counted(d[1] + 1, counter, true, NULL);
    launch_receive_counted(d[1], counter, 2, counter + 1, NULL);
    return wait_for_both();
}

static cudaError_t counter_with_fences(int *d[2]) {
    return counted(d, true);
}

static cudaError_t counter_without(int *d[2]) {
    return counted(d, false);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        cudaError_t (*run)(int *d[2]);
    } cases[] = {
        {"no_access", no_access},
        {"unordered", unordered},
        {"no_fence", no_fence},
        {"with_fence", with_fence},
        {"forever", forever},
        {"forever_atomic", forever_atomic},
        {"never_waited", never_waited},
        {"slot_reused", slot_reused},
        {"slot_given_back", slot_given_back},
        {"flag_of_another", flag_of_another},
        {"flag_of_its_own", flag_of_its_own},
        {"no_fence_behind", no_fence_behind},
        {"device_fence_before", device_fence_before},
        {"device_fence_behind", device_fence_behind},
        {"system_fences", system_fences},
        {"release_and_acquire", release_and_acquire},
        {"release_and_fence", release_and_fence},
        {"counter_with_fences", counter_with_fences},
        {"counter_without", counter_without},
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
