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

static __global__ void play_together(volatile int *mine, volatile int *theirs, int rounds,
                                     bool first, int pollers) {
    for (int round = 1; round <= rounds; round++) {
        if (first && threadIdx.x == 0) {
            *theirs = round;
        }
        while (threadIdx.x < pollers && *mine < round) {
        }
        __syncthreads();
        if (!first && threadIdx.x == 0) {
            *theirs = round;
        }
    }
}

static __global__ void work_while_waiting(volatile int *flag, int count, int *times) {
    float x = (float)count;
    int seen = 0, changes = 0;
    do {
        int now = *flag;
        if (now != seen) {
            seen = now;
            changes++;
#pragma unroll
            for (int i = 0; i < WORK_AT_A_CHANGE / 2; i++) {
                x = x * 0.5f + 1.0f;
            }
        }
    } while (seen != count);
    times[0] = changes;
    times[1] = (int)x;
}

template <bool FENCE>
static __global__ void tell_words(volatile int *words, volatile int *flag, int count) {
    for (int i = 1; i <= count; i++) {
        words[i] = i;
        if (FENCE) {
            __threadfence_system();
        }
        *flag = i;
    }
}

static __global__ void count_missing(const volatile int *words, const volatile int *flag, int count,
                                     int *missing) {
    int sum = 0;
    for (int i = 1; i <= count; i++) {
        while (*flag < i) {
        }
        __threadfence_system();
        sum += words[i] != i;
    }
    *missing = sum;
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

/* Fills a slot in each round, once the receiver has given it back. */
static __global__ void fill_slot(int *slot, volatile int *ready, volatile int *back, int count,
                                 int rounds) {
    for (int round = 1; round <= rounds; round++) {
        if (threadIdx.x == 0) {
            while (*back < round - 1) {
            }
            __threadfence_system();
        }
        __syncthreads();
        for (int i = threadIdx.x; i < count; i += blockDim.x) {
            slot[i] = round + i;
        }
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) {
            *ready = round;
        }
    }
}

/* Says that it has come, reads the slot, and gives it back. */
static __global__ void empty_slot(const int *slot, volatile int *ready, volatile int *come,
                                  volatile int *back, int count, int rounds, int *sum) {
    int mine = 0;
    for (int round = 1; round <= rounds; round++) {
        if (threadIdx.x == 0) {
            while (*ready < round) {
            }
            __threadfence_system();
            *come = round;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < count; i += blockDim.x) {
            mine += slot[i];
        }
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) {
            *back = round;
        }
    }
    atomicAdd(sum, mine);
}

/* One thread: FENCE 0 none, 1 for the device, 2 for the system, 3: release and acquire. */
template <int FENCE> static __device__ void fence() {
    if (FENCE == 1) {
        __threadfence();
    } else if (FENCE == 2) {
        __threadfence_system();
    }
}

template <int BEFORE> static __global__ void send_word(int *data, volatile int *flag) {
    *data = 7;
    fence<BEFORE>();
    if (BEFORE == 3) {
        asm volatile("st.release.sys.u32 [%0], 1;" ::"l"((int *)flag) : "memory");
    } else {
        *flag = 1;
    }
}

template <int BEHIND>
static __global__ void receive_word(const int *data, volatile int *flag, int *out) {
    if (BEHIND == 3) {
        int value = 0;
        while (value == 0) {
            asm volatile("ld.acquire.sys.u32 %0, [%1];"
                         : "=r"(value)
                         : "l"((int *)flag)
                         : "memory");
        }
    } else {
        while (*flag == 0) {
        }
    }
    fence<BEHIND>();
    *out = *data;
}

/* Adds one to a counter of the receiver, behind its own data; the receiver waits for all. */
static __global__ void send_counted(int *data, int *counter, bool fence) {
    *data = 1;
    if (fence) {
        __threadfence_system();
    }
    atomicAdd_system(counter, 1);
}

static __global__ void receive_counted(const int *data, int *counter, int wanted, int *out) {
    int sum = 0;
    while (atomicAdd_system(counter, 0) != wanted) {
    }
    __threadfence_system();
    for (int i = 0; i < wanted; i++) {
        sum += data[i];
    }
    *out = sum;
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

void launch_play_together(int *d_mine, int *d_theirs, int rounds, bool first, int pollers,
                          cudaStream_t stream) {
    play_together<<<1, THREADS, 0, stream>>>(d_mine, d_theirs, rounds, first, pollers);
}

void launch_tell_words(int *d_words, int *d_flag, int count, bool fence, cudaStream_t stream) {
    if (fence) {
        tell_words<true><<<1, 1, 0, stream>>>(d_words, d_flag, count);
    } else {
        tell_words<false><<<1, 1, 0, stream>>>(d_words, d_flag, count);
    }
}

void launch_work_while_waiting(int *d_flag, int count, int *d_times, cudaStream_t stream) {
    work_while_waiting<<<1, 1, 0, stream>>>(d_flag, count, d_times);
}

void launch_count_missing(int *d_words, int *d_flag, int count, int *d_missing,
                          cudaStream_t stream) {
    count_missing<<<1, 1, 0, stream>>>(d_words, d_flag, count, d_missing);
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

void launch_fill_slot(int *d_slot, int *d_ready, int *d_back, int count, int rounds,
                      cudaStream_t stream) {
    fill_slot<<<1, 64, 0, stream>>>(d_slot, d_ready, d_back, count, rounds);
}

void launch_empty_slot(const int *d_slot, int *d_ready, int *d_come, int *d_back, int count,
                       int rounds, int *d_sum, cudaStream_t stream) {
    empty_slot<<<1, 64, 0, stream>>>(d_slot, d_ready, d_come, d_back, count, rounds, d_sum);
}

void launch_send_word(int *d_data, int *d_flag, enum order_by by, cudaStream_t stream) {
    switch (by) {
    case BY_NOTHING:
        return send_word<0><<<1, 1, 0, stream>>>(d_data, d_flag);
    case BY_DEVICE_FENCE:
        return send_word<1><<<1, 1, 0, stream>>>(d_data, d_flag);
    case BY_SYSTEM_FENCE:
        return send_word<2><<<1, 1, 0, stream>>>(d_data, d_flag);
    case BY_THE_ACCESS:
        return send_word<3><<<1, 1, 0, stream>>>(d_data, d_flag);
    }
}

void launch_receive_word(const int *d_data, int *d_flag, int *d_out, enum order_by by,
                         cudaStream_t stream) {
    switch (by) {
    case BY_NOTHING:
        return receive_word<0><<<1, 1, 0, stream>>>(d_data, d_flag, d_out);
    case BY_DEVICE_FENCE:
        return receive_word<1><<<1, 1, 0, stream>>>(d_data, d_flag, d_out);
    case BY_SYSTEM_FENCE:
        return receive_word<2><<<1, 1, 0, stream>>>(d_data, d_flag, d_out);
    case BY_THE_ACCESS:
        return receive_word<3><<<1, 1, 0, stream>>>(d_data, d_flag, d_out);
    }
}

void launch_send_counted(int *d_data, int *d_counter, bool fence, cudaStream_t stream) {
    send_counted<<<1, 1, 0, stream>>>(d_data, d_counter, fence);
}

void launch_receive_counted(const int *d_data, int *d_counter, int wanted, int *d_out,
                            cudaStream_t stream) {
    receive_counted<<<1, 1, 0, stream>>>(d_data, d_counter, wanted, d_out);
}
