#include "common/simt/runtime/devices/devices.h"

enum { THREADS = 128 };

__device__ int own = 0;

static __global__ void fill(int *to, int value, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] = value + i;
    }
}

static __global__ void next(int *to, const int *from, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] = from[i] + 1;
    }
}

static __global__ void add_own(int *out, int add) {
    own += add;
    out[0] = own;
}

static __global__ void play(volatile int *mine, volatile int *theirs, int rounds, bool first) {
    for (int round = 1; round <= rounds; round++) {
        if (first) {
            *theirs = round;
        }
        while (*mine < round) {
        }
        if (!first) {
            *theirs = round;
        }
    }
}

static __global__ void wait_for(volatile int *flag, int value, int *out) {
    while (*flag != value) {
    }
    out[0] = value;
}

static __global__ void wait_atomic(int *flag, int value, int *out) {
    while (atomicAdd_system(flag, 0) != value) {
    }
    out[0] = value;
}

static __global__ void send(int *data, volatile int *flag, int value, int count, bool fence) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        data[i] = value + i;
    }
    if (fence) {
        __threadfence_system();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        *flag = 1;
    }
}

static __global__ void receive(const int *data, volatile int *flag, int count, int *sum,
                               bool fence) {
    int mine = 0;
    if (threadIdx.x == 0) {
        while (*flag == 0) {
        }
        if (fence) {
            __threadfence_system();
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        mine += data[i];
    }
    atomicAdd(sum, mine);
}

static unsigned blocks_for(int count) {
    return ((unsigned)count + THREADS - 1) / THREADS;
}

void launch_fill(int *d_to, int value, int count, cudaStream_t stream) {
    fill<<<blocks_for(count), THREADS, 0, stream>>>(d_to, value, count);
}

void launch_next(int *d_to, const int *d_from, int count, cudaStream_t stream) {
    next<<<blocks_for(count), THREADS, 0, stream>>>(d_to, d_from, count);
}

void launch_own(int *d_out, int add, cudaStream_t stream) {
    add_own<<<1, 1, 0, stream>>>(d_out, add);
}

void launch_play(int *d_mine, int *d_theirs, int rounds, bool first, cudaStream_t stream) {
    play<<<1, 1, 0, stream>>>(d_mine, d_theirs, rounds, first);
}

void launch_wait(int *d_flag, int value, int *d_out, cudaStream_t stream) {
    wait_for<<<1, 1, 0, stream>>>(d_flag, value, d_out);
}

void launch_wait_atomic(int *d_flag, int value, int *d_out, cudaStream_t stream) {
    wait_atomic<<<1, 1, 0, stream>>>(d_flag, value, d_out);
}

void launch_send(int *d_data, int *d_flag, int value, int count, bool fence, cudaStream_t stream) {
    send<<<1, 64, 0, stream>>>(d_data, d_flag, value, count, fence);
}

void launch_receive(const int *d_data, int *d_flag, int count, int *d_sum, bool fence,
                    cudaStream_t stream) {
    receive<<<1, 64, 0, stream>>>(d_data, d_flag, count, d_sum, fence);
}
