// Kernels whose blocks wait for blocks of their launch, by several ways, and some that do not.
// block_clock_test.c knows what each of them takes on a GPU at least.

// A chain of dependent instructions: so many steps, whose result cannot be foreseen.
static __device__ __forceinline__ float work(float x, int steps) {
    for (int i = 0; i < steps; i++) {
        x = x * 1.0001f + 0.5f;
    }
    return x;
}

static __device__ __forceinline__ void wait_for(const unsigned *flag, unsigned goal) {
    if (threadIdx.x == 0) {
        while (*(const volatile unsigned *)flag < goal) {
        }
    }
    __syncthreads();
    __threadfence();
}

static __device__ __forceinline__ void give(unsigned *flag, unsigned value) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *(volatile unsigned *)flag = value;
    }
}

extern "C" {

// Nobody waits.
__global__ void apart(unsigned *flags, float *data, int steps) {
    data[blockIdx.x * blockDim.x + threadIdx.x] = work(threadIdx.x, steps) + flags[blockIdx.x];
}

// Each waits for the one before it.
__global__ void in_a_chain(unsigned *flags, float *data, int steps) {
    if (blockIdx.x > 0) {
        wait_for(&flags[blockIdx.x - 1], 1);
    }
    data[blockIdx.x * blockDim.x + threadIdx.x] = work(threadIdx.x, steps);
    give(&flags[blockIdx.x], 1);
}

// The same, with plain stores as flags, and without a loop: on a GPU it may be too early.
__global__ void looks_once(unsigned *flags, float *data, int steps) {
    unsigned before = blockIdx.x > 0 ? *(const volatile unsigned *)&flags[blockIdx.x - 1] : 1;
    if (before == 0) {
        return;
    }
    data[blockIdx.x * blockDim.x + threadIdx.x] = work(threadIdx.x, steps);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        flags[blockIdx.x] = 1;
    }
}

// The same, by atomic operations that change nothing.
__global__ void asks_by_atomics(unsigned *flags, float *data, int steps) {
    if (threadIdx.x == 0 && blockIdx.x > 0) {
        while (atomicOr(&flags[blockIdx.x - 1], 0) == 0) {
        }
    }
    __syncthreads();
    __threadfence();
    data[blockIdx.x * blockDim.x + threadIdx.x] = work(threadIdx.x, steps);
    give(&flags[blockIdx.x], 1);
}

// The same, by counting on a flag that is a number in float: it changes as little as a counter.
__global__ void asks_by_counting(unsigned *flags, float *data, int steps) {
    if (threadIdx.x == 0 && blockIdx.x > 0) {
        while (atomicAdd(&flags[blockIdx.x - 1], 1) < 0x3f800000) {
        }
    }
    __syncthreads();
    __threadfence();
    data[blockIdx.x * blockDim.x + threadIdx.x] = work(threadIdx.x, steps);
    give(&flags[blockIdx.x], 0x3f800000);
}

// The flag is not looked at by the warp that works: it learns of it by shared memory, without a
// barrier.
__global__ void tells_another_warp(unsigned *flags, float *data, int steps) {
    __shared__ volatile unsigned told, done;
    if (threadIdx.x == 0) {
        told = done = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        while (blockIdx.x > 0 && *(volatile unsigned *)&flags[blockIdx.x - 1] == 0) {
        }
        told = 1;
    } else if (threadIdx.x == 32) {
        while (told == 0) {
        }
        data[blockIdx.x * blockDim.x] = work(threadIdx.x, steps);
        __threadfence();
        *(volatile unsigned *)&flags[blockIdx.x] = 1;
    }
}

// Somebody else stores the flag once more, who waits for nobody.
__global__ void stored_again(unsigned *flags, float *data, int steps) {
    unsigned part = blockIdx.x / 2;
    if (blockIdx.x % 2 == 1) {
        if (threadIdx.x == 0) {
            *(volatile unsigned *)&flags[part] = 1;
        }
        return;
    }
    if (part > 0) {
        wait_for(&flags[part - 1], 1);
    }
    data[blockIdx.x * blockDim.x + threadIdx.x] = work(threadIdx.x, steps);
    give(&flags[part], 1);
}

// Works for as long before it waits, all blocks at the same time, and then as long again by other
// means: conflicts in shared memory.
__global__ void busy_before(unsigned *flags, float *data, int steps) {
    extern __shared__ volatile float tile[];
    float x = work(threadIdx.x, steps);
    if (blockIdx.x > 0) {
        wait_for(&flags[blockIdx.x - 1], 1);
    }
    for (int i = 0; i < steps / 8; i++) {
        tile[threadIdx.x % 32 * 32] = x;
    }
    data[blockIdx.x * blockDim.x + threadIdx.x] = x;
    give(&flags[blockIdx.x], 1);
}

// The last block to come adds up what all have left.
__global__ void the_last_one_adds(unsigned *flags, float *data, int steps) {
    __shared__ bool last;
    float x = work(threadIdx.x, steps);
    data[blockIdx.x * blockDim.x + threadIdx.x] = x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&flags[0], 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        float sum = 0;
        for (unsigned b = 0; b < gridDim.x; b++) {
            sum += data[b * blockDim.x + threadIdx.x];
        }
        data[threadIdx.x] = sum;
    }
}

// Parts of four blocks, each of which waits for all blocks of the part before by one counter, and
// goes on with what one of them has left.
__global__ void parts_by_a_counter(unsigned *flags, float *data, int steps) {
    unsigned part = blockIdx.x / 4;
    if (threadIdx.x == 0) {
        while (*(const volatile unsigned *)flags < 4 * part) {
        }
    }
    __syncthreads();
    __threadfence();
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    data[at] = work(part > 0 ? __ldcg(&data[at - 4 * blockDim.x]) : 1.0f, steps);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(flags, 1);
    }
}

// Places in a list: each block asks for one many times.
__global__ void takes_places(unsigned *flags, float *data, int steps) {
    float x = threadIdx.x;
    for (int i = 0; i < 8; i++) {
        x = work(x, steps / 8);
        if (threadIdx.x == 0) {
            data[atomicAdd(&flags[0], 1)] = x;
        }
    }
}

// Blocks of a tile add their parts in turn: the work comes before, only the sum waits.
__global__ void add_in_turn(unsigned *flags, float *data, int steps) {
    float x = work(threadIdx.x, steps);
    wait_for(&flags[0], blockIdx.x);
    data[threadIdx.x] += x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&flags[0], 1);
    }
}
}
