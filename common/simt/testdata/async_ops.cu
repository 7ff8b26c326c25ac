/* Kernels for async_test: asynchronous copies, mbarriers, named and reducing barriers, grids that
 * meet, dependent launches, and the heap. Blocks have 64 threads unless a comment says otherwise. */
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

static __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Copies of 4, 8 and 16 bytes; of 16 with `size[t]` bytes from the source; of 16 or none. */
extern "C" __global__ void copies(const char *in, const int *size, char *out) {
    __shared__ __align__(16) char tile[5][64][16];
    int t = threadIdx.x;
    for (int i = 0; i < 5 * 16; i++) {
        tile[i / 16][t][i % 16] = 1;
    }
    const char *from = in + 16 * t;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(tile[0][t])),
                 "l"(from));
    asm volatile("cp.async.ca.shared.global [%0+8], [%1+4], 8;" ::"r"(shared_address(tile[1][t])),
                 "l"(from + 4));
    asm volatile(
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(tile[2][t])),
        "l"(from));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(tile[3][t])),
                 "l"(from), "r"(size[t]));
    asm volatile("{.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t"
                 "cp.async.cg.shared.global [%0], [%1], 16, p;}" ::"r"(shared_address(tile[4][t])),
                 "l"(from), "r"(t % 3));
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;\n\tcp.async.wait_all;");
    __syncthreads();
    for (int n = 0; n < 5; n++) {
        for (int i = 0; i < 16; i++) {
            out[(n * 64 + t) * 16 + i] = tile[n][t ^ 33][i];
        }
    }
}

/* out = in rotated by one inside blocks of 64, through two stages. */
extern "C" __global__ void pipelined(const int *in, int *out, int steps) {
    __shared__ int stage[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], &in[t], 4);
    __pipeline_commit();
    for (int i = 0; i < steps; i++) {
        if (i + 1 < steps) {
            __pipeline_memcpy_async(&stage[(i + 1) & 1][t], &in[64 * (i + 1) + t], 4);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[64 * i + t] = stage[i & 1][(t + 1) % 64];
        __syncthreads();
    }
}

/* As copies into a tile that the other warp reads without a barrier between. */
extern "C" __global__ void copies_unseen(const int *in, int *out) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[t] = tile[t ^ 32];
}

static __device__ bool poll(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile("{.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}

static __device__ void arrive(unsigned barrier) {
    asm volatile("{.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];}" ::"r"(barrier)
                 : "memory");
}

/* Warp 0 produces, warp 1 consumes, `steps` times, through one buffer and two barriers. */
extern "C" __global__ void producer_consumer(const int *in, int *out, int steps) {
    __shared__ unsigned long long barriers[2];
    __shared__ int buffer[32];
    unsigned full = shared_address(&barriers[0]), empty = shared_address(&barriers[1]);
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(full));
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(empty), "r"(32));
    }
    __syncthreads();
    for (int i = 0; i < steps; i++) {
        if (threadIdx.x < 32) {
            while (!poll(empty, (i & 1) ^ 1)) {
            }
            buffer[lane] = in[32 * i + lane];
            arrive(full);
        } else {
            while (!poll(full, i & 1)) {
            }
            out[32 * i + lane] = buffer[31 - lane];
            arrive(empty);
        }
    }
}

/* Lanes of one warp wait for another lane of their own warp. One warp. */
extern "C" __global__ void lanes_wait(int *out) {
    __shared__ unsigned long long object;
    __shared__ int value;
    unsigned barrier = shared_address(&object);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier));
    }
    __syncwarp();
    if (threadIdx.x != 31) {
        while (!poll(barrier, 0)) {
        }
        out[threadIdx.x] = value + threadIdx.x;
    } else {
        value = 1000;
        arrive(barrier);
        out[31] = -1;
    }
}

/* Counts of one barrier as it changes; one thread. */
extern "C" __global__ void counting(unsigned *out) {
    __shared__ unsigned long long object;
    unsigned barrier = shared_address(&object), parity = 0;
    unsigned long long state, later;
    asm volatile("mbarrier.init.shared.b64 [%0], 5;" ::"r"(barrier));
#define PENDING(n) asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[n]) : "l"(state));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier));
    PENDING(0)
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(barrier));
    PENDING(1)
    asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier));
    PENDING(2)
    out[3] = poll(barrier, parity);
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(later) : "r"(barrier));
    out[4] = poll(barrier, parity);
    asm volatile("{.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;}"
                 : "=r"(out[5])
                 : "r"(barrier), "l"(later));
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 3;" : "=l"(state) : "r"(barrier));
    PENDING(6)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], 48;"
                 : "=l"(state)
                 : "r"(barrier));
    PENDING(7)
    out[8] = poll(barrier, 1);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(barrier));
    out[9] = poll(barrier, 1);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(barrier));
    asm volatile("{.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 1, 100;\n\t"
                 "selp.u32 %0, 1, 0, p;}"
                 : "=r"(out[10])
                 : "r"(barrier));
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(barrier));
}

/* One arrival too many. */
extern "C" __global__ void arrives_too_often(int *out) {
    __shared__ unsigned long long object;
    unsigned barrier = shared_address(&object);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(barrier));
        asm volatile("{.reg .b64 s;\n\tmbarrier.arrive.shared.b64 s, [%0], 3;}" ::"r"(barrier));
    }
    out[threadIdx.x] = 1;
}

/* Nobody ever arrives. */
extern "C" __global__ void waits_for_ever(int *out) {
    __shared__ unsigned long long object;
    unsigned barrier = shared_address(&object);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier));
    }
    __syncthreads();
    while (!poll(barrier, 0)) {
    }
    out[threadIdx.x] = 1;
}

/* The copies of all threads, then an arrival that stands for them. */
extern "C" __global__ void copies_arrive(const int *in, int *out) {
    __shared__ unsigned long long object;
    __shared__ int tile[64];
    unsigned barrier = shared_address(&object);
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(barrier));
    }
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&tile[t])),
                 "l"(in + t));
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
    while (!poll(barrier, 0)) {
    }
    out[t] = tile[63 - t];
}

/* The C++ barrier: every thread adds what its neighbour wrote, `steps` times. */
extern "C" __global__ void phases(int *out, int steps) {
    __shared__ int values[2][64];
    __shared__ alignas(8) char storage[sizeof(cuda::barrier<cuda::thread_scope_block>)];
    auto *barrier = reinterpret_cast<cuda::barrier<cuda::thread_scope_block> *>(storage);
    int t = threadIdx.x;
    if (t == 0) {
        init(barrier, 64);
    }
    __syncthreads();
    values[0][t] = t;
    for (int i = 0; i < steps; i++) {
        barrier->arrive_and_wait();
        values[(i + 1) & 1][t] = values[i & 1][t] + values[i & 1][(t + 1) % 64];
    }
    out[t] = values[steps & 1][t];
}

/* __syncthreads_count, _and, _or. */
extern "C" __global__ void votes_of_a_block(int *out) {
    int t = threadIdx.x;
    int count = __syncthreads_count(t % 3 == 0);
    int all = __syncthreads_and(t < 1000);
    int not_all = __syncthreads_and(t != 70);
    int some = __syncthreads_or(t == 70);
    int none = __syncthreads_or(t < 0);
    out[t] = count * 16 + all * 8 + not_all * 4 + some * 2 + none;
}

/* Warp 1 waits at barrier 1 for what warp 0 arrives at and does not wait for. 96 threads; warp 2
 * has nothing to do with it. */
extern "C" __global__ void named(int *out) {
    __shared__ int value[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        value[lane] = 3 * lane;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        out[lane] = 1;
    } else if (warp == 1) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[32 + lane] = value[31 - lane];
    } else {
        out[64 + lane] = 2;
    }
}

/* Threads of a warp come to the same barrier from two sides. */
extern "C" __global__ void from_two_sides(int *out) {
    __shared__ int value[64];
    int t = threadIdx.x;
    if (t % 2 == 0) {
        value[t] = t;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[t] = value[(t + 1) % 64];
    } else {
        value[t] = -t;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[t] = 2 * value[(t + 1) % 64];
    }
}

/* All blocks meet: each adds its neighbour's value, `steps` times. */
extern "C" __global__ void grid_steps(int *values, int steps) {
    cg::grid_group grid = cg::this_grid();
    int count = (int)grid.size(), t = (int)grid.thread_rank();
    for (int i = 0; i < steps; i++) {
        int next = values[(i & 1) * count + (t + 33) % count];
        values[((i + 1) & 1) * count + t] = values[(i & 1) * count + t] + next;
        grid.sync();
    }
}

/* A list per thread on the heap. */
extern "C" __global__ void heap(int *out, int length) {
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    int *list = (int *)malloc((length + t % 4) * sizeof(int));
    if (list == nullptr) {
        out[t] = -1;
        return;
    }
    for (int i = 0; i < length; i++) {
        list[i] = i + t;
    }
    int sum = 0;
    for (int i = 0; i < length; i++) {
        sum += list[i];
    }
    free(list);
    out[t] = sum;
}

extern "C" __global__ void heap_is_full(int *out) {
    void *most = malloc(8000000);
    void *more = malloc(500000);
    out[0] = most != nullptr;
    out[1] = more == nullptr;
    free(most);
    more = malloc(500000);
    out[2] = more != nullptr;
    free(more);
    free(nullptr);
}

extern "C" __global__ void frees_twice(int *out) {
    int *p = (int *)malloc(16);
    *p = 3;
    out[0] = *p;
    free(p);
    free(p);
}

extern "C" __global__ void uses_what_it_freed(int *out) {
    volatile int *p = (int *)malloc(16);
    *p = 3;
    free((void *)p);
    out[0] = *p;
}

/* Programmatic dependent launch: out[t] = twice what the launch before left there. By instruction
 * and by the functions of the runtime. */
extern "C" __global__ void doubles_after_wait(int *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[t] *= 2;
}

extern "C" __global__ void doubles_after_synchronize(int *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    cudaGridDependencySynchronize();
    out[t] *= 2;
    if (t % 3 == 0) {
        cudaTriggerProgrammaticLaunchCompletion();
    }
}
