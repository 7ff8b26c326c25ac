#include "common/simt/calibration/placement.h"

enum { STEPS = 1000 };

static __global__ void start_kernel(struct placement_start *starts, int apart) {
    if (threadIdx.x == 0) {
        struct placement_start start;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(start.multiprocessor));
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start.ns));
        starts[blockIdx.x] = start;
    }
    if (apart != 0 && blockIdx.x % apart == 0) {
        float a = (float)threadIdx.x, b = a + 1.0f;
        for (int k = 0; k < STEPS; k++) {
            a = a * 0.999f + 0.5f;
            b = b * 0.999f + 0.5f;
        }
        if (a + b == 123.456f) { /* never, which the compiler cannot know */
            starts[blockIdx.x].multiprocessor = 0;
        }
    }
}

int placement_launch(struct placement_start *starts, int blocks, int threads, int apart) {
    start_kernel<<<(unsigned)blocks, (unsigned)threads>>>(starts, apart);
    return (int)cudaGetLastError();
}
