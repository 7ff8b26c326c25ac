#include "grader/selftest/honest_ways.h"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <alloca.h>
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#define MISTAKES(X)                                                                      \
    X(host)    /* containers, threads, exceptions, a large stack, an allocator, ... */   \
    X(kernels) /* templates, inline PTX, prints, asserts, groups, atomics, recursion */  \
    X(memory)  /* pools, managed and page-locked memory, symbols, a kept buffer */       \
    X(order)   /* streams, events, graphs, host functions, an own stream for the work */ \
    X(all)     /* all of them in each call */

#define MISTAKE_VARIABLE "WRONG_HONEST_WAY"
#include "grader/selftest/mistakes.h"

enum { THREADS = 128, COUNT = 1024, POOL = 64 << 20, DEEP = 3 << 20 };

static enum status told(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

/* ---- On the host ---- */

/* Memory from one static array, for containers. */
static unsigned char pool[POOL];
static size_t pool_used;

template <class T> struct pool_allocator {
    typedef T value_type;
    pool_allocator() = default;
    template <class U> pool_allocator(const pool_allocator<U> &) {
    }
    T *allocate(size_t n) {
        size_t bytes = (n * sizeof(T) + 63) / 64 * 64;
        pool_used = pool_used + bytes > POOL ? 0 : pool_used;
        pool_used += bytes;
        return (T *)(pool + pool_used - bytes);
    }
    void deallocate(T *, size_t) {
    }
    bool operator==(const pool_allocator &) const {
        return true;
    }
    bool operator!=(const pool_allocator &) const {
        return false;
    }
};

static int deep_stack(void) {
    volatile unsigned char *memory = (volatile unsigned char *)alloca(DEEP);
    memory[0] = memory[DEEP - 1] = 1;
    return memory[0] + memory[DEEP - 1];
}

static bool look_around(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    srand48(7);
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 &&
           getpagesize() > 0 && pthread_equal(pthread_self(), pthread_self()) && drand48() >= 0.0 &&
           std::thread::hardware_concurrency() < 100000 && isfinite(lgamma(2.5) + cbrt(3.0));
}

static enum status on_the_host(struct error *error) {
    static std::mutex lock;
    static std::unordered_map<std::string, std::shared_ptr<std::vector<int>>> plans;
    thread_local size_t calls;
    std::vector<float, pool_allocator<float>> numbers(COUNT, 0.5f);
    std::function<void(size_t)> half = [&](size_t i) { numbers[i] *= 0.5f; };
    std::vector<std::thread> helpers;
    for (size_t t = 0; t < 3; t++) {
        helpers.emplace_back([&, t] {
            for (size_t i = t; i < COUNT; i += 3) {
                half(i);
            }
        });
    }
    std::for_each(helpers.begin(), helpers.end(), [](std::thread &helper) { helper.join(); });
    std::lock_guard<std::mutex> guard(lock);
    auto &plan = plans["plan " + std::to_string(++calls % 5)];
    plan = plan ? plan : std::make_shared<std::vector<int>>(16, 1);
    try {
        throw std::runtime_error("thrown and caught");
    } catch (const std::exception &e) {
        fprintf(stderr, "%s: %zu plans\n", e.what(), plans.size());
    }
    return numbers[COUNT - 1] == 0.25f && deep_stack() == 2 && look_around()
               ? STATUS_OK
               : error_set(error, STATUS_IO, "the host is strange");
}

/* ---- Kernels ---- */

static __constant__ float factor = 2.0f;
static __device__ unsigned counter;

static __device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

template <int WIDTH, class F> static __global__ void toy_kernel(float *out, F f, bool prints) {
    cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
    auto tile = cooperative_groups::tiled_partition<WIDTH>(block);
    __shared__ float sums[THREADS / WIDTH];
    float local[32];
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    for (int i = 0; i < 32; i++) {
        local[i] = f((float)i);
    }
    float sum = local[(lane + (unsigned)fibonacci(5)) % 32];
    for (int apart = WIDTH / 2; apart > 0; apart /= 2) {
        sum += tile.shfl_xor(sum, apart);
    }
    if (tile.thread_rank() == 0) {
        sums[threadIdx.x / WIDTH] = sum;
        atomicAdd(&counter, 1u);
    }
    block.sync();
    out[blockIdx.x * THREADS + threadIdx.x] = factor * sums[threadIdx.x / WIDTH];
    assert(sums[0] > 0.0f);
    if (prints && threadIdx.x == 0) {
        printf("block %u has %f\n", blockIdx.x, sums[0]);
    }
}

struct square {
    float plus;
    __device__ float operator()(float x) const {
        return x * x + plus;
    }
};

static enum status by_kernels(float *memory, cudaStream_t stream, struct error *error) {
    toy_kernel<32><<<2, THREADS, 0, stream>>>(memory, square{0.5f}, true);
    TRY(told(cudaGetLastError(), "a kernel", error));
    toy_kernel<8><<<dim3(4), dim3(THREADS), 0, stream>>>(memory, square{1.5f}, false);
    return told(cudaGetLastError(), "a kernel", error);
}

/* ---- Memory ---- */

static enum status by_memory(float *memory, cudaStream_t stream, struct error *error) {
    static float *managed, *pinned;
    const size_t bytes = COUNT * sizeof(float);
    float two = 2.0f;
    void *piece, *address;
    if (managed == NULL) {
        TRY(told(cudaMallocManaged((void **)&managed, bytes, cudaMemAttachGlobal), "memory",
                 error));
        TRY(told(cudaHostAlloc((void **)&pinned, 256, cudaHostAllocMapped), "memory", error));
    }
    TRY(told(cudaMallocAsync(&piece, bytes, stream), "a pool", error));
    TRY(told(cudaMemsetAsync(piece, 0, bytes, stream), "a pool", error));
    TRY(told(cudaMemcpyAsync(memory, piece, bytes, cudaMemcpyDeviceToDevice, stream), "a pool",
             error));
    TRY(told(cudaFreeAsync(piece, stream), "a pool", error));
    toy_kernel<16><<<COUNT / THREADS, THREADS, 0, stream>>>(managed, square{0.5f}, false);
    TRY(told(cudaMemcpyToSymbolAsync(factor, &two, sizeof two, 0, cudaMemcpyHostToDevice, stream),
             "a symbol", error));
    TRY(told(cudaGetSymbolAddress(&address, counter), "a symbol", error));
    TRY(told(cudaMemcpyAsync(pinned, address, 4, cudaMemcpyDeviceToHost, stream), "a symbol",
             error));
    return told(cudaGetLastError(), "memory", error);
}

/* ---- Order ---- */

static void nothing(void *calls) {
    ++*(int *)calls;
}

static enum status launch_graph(float *memory, cudaStream_t stream, struct error *error) {
    static cudaGraphExec_t graph;
    if (graph == NULL) {
        cudaStream_t own;
        cudaGraph_t recorded;
        TRY(told(cudaStreamCreateWithPriority(&own, cudaStreamNonBlocking, 0), "a stream", error));
        TRY(told(cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal), "a graph", error));
        enum status status = by_kernels(memory, own, error);
        TRY(told(cudaStreamEndCapture(own, &recorded), "a graph", error));
        TRY(status);
        TRY(told(cudaGraphInstantiate(&graph, recorded, 0), "a graph", error));
        (void)cudaGraphDestroy(recorded);
        (void)cudaStreamDestroy(own);
    }
    return told(cudaGraphLaunch(graph, stream), "a graph", error);
}

static enum status in_order(honest_work *work, const void *arguments, float *memory,
                            cudaStream_t stream, bool moves, struct error *error) {
    static cudaStream_t own;
    static cudaEvent_t before, after;
    static int calls;
    if (own == NULL) {
        TRY(told(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "a stream", error));
        TRY(told(cudaEventCreate(&before), "an event", error));
        TRY(told(cudaEventCreateWithFlags(&after, cudaEventDisableTiming), "an event", error));
    }
    TRY(launch_graph(memory, stream, error));
    TRY(told(cudaLaunchHostFunc(stream, nothing, &calls), "a host function", error));
    TRY(told(cudaEventRecord(before, stream), "an event", error));
    TRY(told(cudaStreamWaitEvent(own, before, 0), "an event", error));
    TRY(work(arguments, moves ? (device_stream)own : (device_stream)stream, error));
    TRY(told(cudaEventRecord(after, own), "an event", error));
    return told(cudaStreamWaitEvent(stream, after, 0), "an event", error);
}

static bool is_recorded(cudaStream_t stream) {
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &capturing) != cudaSuccess ||
           capturing != cudaStreamCaptureStatusNone;
}

enum status honest_around(honest_work *work, const void *arguments, device_stream stream,
                          bool moves, struct error *error) {
    static float *memory; /* (COUNT), device */
    enum mistake way = chosen_mistake();
    cudaStream_t on = (cudaStream_t)stream;
    if (is_recorded(on)) {
        return work(arguments, stream, error);
    }
    if (memory == NULL) {
        TRY(told(cudaMalloc((void **)&memory, COUNT * sizeof *memory), "memory", error));
    }
    if (way == MISTAKE_host || way == MISTAKE_all) {
        TRY(on_the_host(error));
    }
    if (way == MISTAKE_kernels || way == MISTAKE_all) {
        TRY(by_kernels(memory, on, error));
    }
    if (way == MISTAKE_memory || way == MISTAKE_all) {
        TRY(by_memory(memory, on, error));
    }
    return way == MISTAKE_order || way == MISTAKE_all
               ? in_order(work, arguments, memory, on, moves, error)
               : work(arguments, stream, error);
}
