/*
 * A copy that runs beside the calculation.
 *
 * An ordinary load brings a value into a register, and storing it to shared memory has to wait for
 * it. cp.async copies from device to shared memory by itself. The thread goes on, and waits when it
 * needs the data:
 *
 *   thread    start copy | close group | other work ... | wait for group | barrier | use tile
 *   copy          ------------------------------>
 *
 * A thread's wait is for its own copies alone; the barrier makes those of others visible. From
 * common/cuda/async_copy.cuh (each is one PTX instruction):
 *
 *   cp_async<16>(to, from, true)   starts a copy of 16 bytes, from device to shared memory
 *   cp_async_commit()              closes the group of the copies started so far
 *   cp_async_wait<N>()             waits until at most the N youngest groups are in flight
 */
#include "common/cuda/async_copy.cuh"
#include "labs/00_warmups/warmups.h"

enum { THREADS = 128 };

static __global__ void add_opposite(float4 *y, const float4 *x) {
    __shared__ float4 tile[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    // TODO: copy x[i] to tile[t] by cp.async: start, close, wait, barrier
    tile[t] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    float4 mine = tile[t], other = tile[THREADS - 1 - t];
    y[i] = make_float4(mine.x + other.x, mine.y + other.y, mine.z + other.z, mine.w + other.w);
}

void w23_cp_async(float *d_y, const float *d_x, int n) {
    add_opposite<<<n / 4 / THREADS, THREADS>>>(reinterpret_cast<float4 *>(d_y),
                                               reinterpret_cast<const float4 *>(d_x));
}
