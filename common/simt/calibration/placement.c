/*
 * On a GPU: which multiprocessor each block of a launch runs on, and when it begins. A line of JSON
 * a launch, three of each kind: whole rounds of 132 blocks, without and with work in every 132nd
 * block, as `one_processor` in uneven_kernels.cu has it; then grids that end within a round, and
 * blocks of more and of fewer threads.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/simt/calibration/placement.h"

enum { APART = 132, MOST = APART * 16, LAUNCHES = 3 };

/* What is launched. */
struct grid {
    int blocks, threads, apart;
};

static void show(const struct placement_start *starts, const struct grid *grid, int launch) {
    unsigned long long first = starts[0].ns;
    for (int i = 1; i < grid->blocks; i++) {
        first = starts[i].ns < first ? starts[i].ns : first;
    }
    printf("{\"blocks\": %d, \"threads\": %d, \"work_every\": %d, \"launch\": %d, "
           "\"multiprocessors\": [",
           grid->blocks, grid->threads, grid->apart, launch);
    for (int i = 0; i < grid->blocks; i++) {
        printf("%s%u", i > 0 ? ", " : "", starts[i].multiprocessor);
    }
    printf("], \"start_ns\": [");
    for (int i = 0; i < grid->blocks; i++) {
        printf("%s%llu", i > 0 ? ", " : "", starts[i].ns - first);
    }
    puts("]}");
}

static int launch(struct placement_start *device, const struct grid *grid) {
    static struct placement_start starts[MOST];
    int code = 0;
    for (int i = 0; i < LAUNCHES && code == 0; i++) {
        code = placement_launch(device, grid->blocks, grid->threads, grid->apart);
        code = code == 0 ? (int)cudaMemcpy(starts, device, (size_t)grid->blocks * sizeof *starts,
                                           cudaMemcpyDeviceToHost)
                         : code;
        if (code == 0) {
            show(starts, grid, i);
        }
    }
    return code;
}

int main(void) {
    static const struct grid grids[] = {
        {APART, 256, 0},         {APART, 256, APART},
        {2 * APART, 256, 0},     {2 * APART, 256, APART},
        {8 * APART, 256, 0},     {8 * APART, 256, APART},
        {MOST, 256, 0},          {MOST, 256, APART},
        {APART + 1, 256, 0},     {140, 256, 0},
        {200, 256, 0},           {300, 256, 0},
        {700, 256, 0},           {2 * APART, 1024, APART},
        {4 * APART, 512, APART}, {8 * APART, 128, APART},
        {MOST, 128, APART},
    };
    struct placement_start *device;
    int code = (int)cudaMalloc((void **)&device, MOST * sizeof *device);
    for (size_t i = 0; i < sizeof grids / sizeof *grids && code == 0; i++) {
        code = launch(device, &grids[i]);
    }
    if (code != 0) {
        fprintf(stderr, "placement: %s\n", cudaGetErrorString((cudaError_t)code));
    }
    return code != 0;
}
