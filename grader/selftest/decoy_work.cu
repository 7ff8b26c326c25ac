#include "grader/selftest/decoy_work.h"

enum { BLOCKS = 264, THREADS = 256 };

/* No value is stored: the condition is never true, which the compiler cannot know. */
static __global__ void decoy_kernel(const float4 *memory, size_t room, size_t quads, int turns) {
    float sums[4] = {0.0f, 0.1f, 0.2f, 0.3f};
    size_t thread = (size_t)blockIdx.x * THREADS + threadIdx.x;
    for (size_t i = thread; i < quads; i += (size_t)BLOCKS * THREADS) {
        float4 v = memory[i % room];
        sums[0] += v.x, sums[1] += v.y, sums[2] += v.z, sums[3] += v.w;
    }
    for (int t = 0; t < turns; t++) {
        for (int j = 0; j < 4; j++) {
            sums[j] = sums[j] * 0.999f + 0.5f;
        }
    }
    if (sums[0] + sums[1] + sums[2] + sums[3] == 1.2345678e30f) {
        *(float *)(size_t)16 = sums[0];
    }
}

enum status decoy_work(const void *memory, size_t room, double bytes, double flops,
                       device_stream stream, struct error *error) {
    size_t quads = (size_t)(bytes / sizeof(float4)) + 1;
    int turns = (int)(flops / (8.0 * BLOCKS * THREADS)) + 1;
    decoy_kernel<<<BLOCKS, THREADS, 0, stream>>>((const float4 *)memory, room / sizeof(float4),
                                                 quads, turns);
    return device_launched("decoy_kernel", error);
}
