/*
 * On a GPU: which multiprocessor each block of a launch runs on, and when it begins. A line of JSON
 * a launch: three of each number of blocks, without and with work in every 132nd block, as
 * `one_processor` in uneven_kernels.cu has it.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/simt/calibration/placement.h"

enum { APART = 132, MOST = APART * 16, LAUNCHES = 3 };

static void show(const struct placement_start *starts, int blocks, int apart, int launch) {
    unsigned long long first = starts[0].ns;
    for (int i = 1; i < blocks; i++) {
        first = starts[i].ns < first ? starts[i].ns : first;
    }
    printf("{\"blocks\": %d, \"work_every\": %d, \"launch\": %d, \"multiprocessors\": [", blocks,
           apart, launch);
    for (int i = 0; i < blocks; i++) {
        printf("%s%u", i > 0 ? ", " : "", starts[i].multiprocessor);
    }
    printf("], \"start_ns\": [");
    for (int i = 0; i < blocks; i++) {
        printf("%s%llu", i > 0 ? ", " : "", starts[i].ns - first);
    }
    puts("]}");
}

static int launch(struct placement_start *device, int blocks, int apart) {
    static struct placement_start starts[MOST];
    int code = 0;
    for (int i = 0; i < LAUNCHES && code == 0; i++) {
        code = placement_launch(device, blocks, apart);
        code = code == 0 ? (int)cudaMemcpy(starts, device, (size_t)blocks * sizeof *starts,
                                           cudaMemcpyDeviceToHost)
                         : code;
        if (code == 0) {
            show(starts, blocks, apart, i);
        }
    }
    return code;
}

int main(void) {
    static const int blocks[] = {APART, 2 * APART, APART * 8, MOST};
    struct placement_start *device;
    int code = (int)cudaMalloc((void **)&device, MOST * sizeof *device);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && code == 0; i++) {
        code = launch(device, blocks[i], 0);
        code = code == 0 ? launch(device, blocks[i], APART) : code;
    }
    if (code != 0) {
        fprintf(stderr, "placement: %s\n", cudaGetErrorString((cudaError_t)code));
    }
    return code != 0;
}
