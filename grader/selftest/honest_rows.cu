/*
 * Submissions to lab 05 that are right, and use what few use: each has the starter do the work, but
 * behind or between calls of CUDA's runtime that are no trick. $WRONG_ROWS_WAY names one. Parity
 * must pass, and the speedup test must say that they are slow and nothing else.
 */
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>

#include "common/device/device.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

#define MISTAKES(X)                                                                     \
    X(own_stream)     /* a stream of its own, behind and before the call's by events */ \
    X(graph)          /* the launches are captured, and launched as a graph */          \
    X(pool)           /* input goes through memory of a pool */                         \
    X(grown)          /* ... through a buffer that is kept, and made anew for more */   \
    X(texture)        /* ... through texture fetches */                                 \
    X(cooperative)    /* ... copied by a cooperative launch, with a barrier of all */   \
    X(dynamic_shared) /* ... through more shared memory than 48 KiB a block */          \
    X(managed)        /* ... through managed memory that only kernels use */            \
    X(constants)      /* the epsilon comes from constant memory */                      \
    X(symbol)         /* counts its calls in a managed variable of the device */        \
    X(events)         /* times its own launches */                                      \
    X(prints)         /* prints from a kernel and from the host */                      \
    X(asserts)        /* a kernel asserts what holds */                                 \
    X(thread)         /* another thread of the host launches */                         \
    X(host_function)  /* a host function in the stream */                               \
    X(asks)           /* asks for attributes, occupancy and free memory first */        \
    X(attributes)     /* a launch with attributes: programmatic, and a window of L2 */

#define MISTAKE_VARIABLE "WRONG_ROWS_WAY"
#include "grader/selftest/mistakes.h"

extern "C" {
enum status __real_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error);
enum status __wrap_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error);
}

enum { THREADS = 256, SHARED = 64 * 1024 };

static enum status told(cudaError_t code, const char *what, struct error *error) {
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: %s", what, cudaGetErrorString(code));
}

/* ---- Copies of the input by kernels ---- */

static __global__ void plain_kernel(unsigned char *to, const unsigned char *from, size_t bytes) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < bytes) {
        to[i] = from[i];
    }
}

static __global__ void texture_kernel(unsigned char *to, cudaTextureObject_t from, size_t bytes) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < bytes) {
        to[i] = tex1Dfetch<unsigned char>(from, (int)i);
    }
}

/* Backwards first, so that the barrier between all blocks is needed. */
static __global__ void cooperative_kernel(unsigned char *to, const unsigned char *from,
                                          size_t bytes) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (size_t i = grid.thread_rank(); i < bytes; i += grid.size()) {
        to[bytes - 1 - i] = from[i];
    }
    grid.sync();
    for (size_t i = grid.thread_rank(); i < bytes / 2; i += grid.size()) {
        unsigned char kept = to[i];
        to[i] = to[bytes - 1 - i];
        to[bytes - 1 - i] = kept;
    }
}

static __global__ void shared_kernel(unsigned char *to, const unsigned char *from, size_t bytes) {
    extern __shared__ unsigned char piece[];
    for (size_t first = (size_t)blockIdx.x * SHARED; first < bytes;
         first += (size_t)gridDim.x * SHARED) {
        for (size_t i = threadIdx.x; i < SHARED && first + i < bytes; i += blockDim.x) {
            piece[i] = from[first + i];
        }
        __syncthreads();
        for (size_t i = threadIdx.x; i < SHARED && first + i < bytes; i += blockDim.x) {
            to[first + i] = piece[i];
        }
        __syncthreads();
    }
}

static __global__ void print_kernel(size_t bytes) {
    printf("the kernel has %llu bytes\n", (unsigned long long)bytes);
}

static __global__ void assert_kernel(size_t bytes) {
    assert(bytes > 0);
}

static __constant__ float epsilon;
static __managed__ unsigned calls;

static __global__ void count_kernel(void) {
    calls++;
}

static __global__ void epsilon_kernel(float *to) {
    *to = epsilon;
}

static unsigned blocks_of(size_t bytes) {
    return (unsigned)((bytes + THREADS - 1) / THREADS);
}

static cudaError_t copy_by_texture(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    cudaResourceDesc resource = {};
    cudaTextureDesc texture = {};
    cudaTextureObject_t object;
    if ((size_t)from % 256 != 0 || bytes > ((size_t)1 << 27)) { /* texture memory's own limits */
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    }
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = (void *)from;
    resource.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
    resource.res.linear.sizeInBytes = bytes;
    texture.readMode = cudaReadModeElementType;
    cudaError_t code = cudaCreateTextureObject(&object, &resource, &texture, NULL);
    if (code == cudaSuccess) {
        texture_kernel<<<blocks_of(bytes), THREADS, 0, stream>>>((unsigned char *)to, object,
                                                                 bytes);
        code = cudaStreamSynchronize(stream); /* before the object goes */
        (void)cudaDestroyTextureObject(object);
    }
    return code;
}

static cudaError_t copy_together(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    void *arguments[] = {&to, &from, &bytes};
    return cudaLaunchCooperativeKernel((void *)cooperative_kernel, dim3(8), dim3(THREADS),
                                       arguments, 0, stream);
}

static cudaError_t copy_by_shared(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    cudaError_t code =
        cudaFuncSetAttribute(shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    if (code == cudaSuccess) {
        shared_kernel<<<16, THREADS, SHARED, stream>>>((unsigned char *)to,
                                                       (const unsigned char *)from, bytes);
        code = cudaGetLastError();
    }
    return code;
}

static cudaError_t copy_with_attributes(void *to, const void *from, size_t bytes,
                                        cudaStream_t stream) {
    cudaLaunchAttribute attributes[1] = {};
    cudaLaunchConfig_t config = {};
    cudaStreamAttrValue window = {};
    window.accessPolicyWindow.base_ptr = (void *)from;
    window.accessPolicyWindow.num_bytes = bytes < ((size_t)1 << 20) ? bytes : (size_t)1 << 20;
    window.accessPolicyWindow.hitRatio = 1.0f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    (void)cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window);
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks_of(bytes));
    config.blockDim = dim3(THREADS);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, plain_kernel, (unsigned char *)to,
                              (const unsigned char *)from, bytes);
}

static cudaError_t copy_input(void *to, const void *from, size_t bytes, cudaStream_t stream) {
    switch (chosen_mistake()) {
    case MISTAKE_texture:
        return copy_by_texture(to, from, bytes, stream);
    case MISTAKE_cooperative:
        return copy_together(to, from, bytes, stream);
    case MISTAKE_dynamic_shared:
        return copy_by_shared(to, from, bytes, stream);
    case MISTAKE_attributes:
        return copy_with_attributes(to, from, bytes, stream);
    default:
        plain_kernel<<<blocks_of(bytes), THREADS, 0, stream>>>((unsigned char *)to,
                                                               (const unsigned char *)from, bytes);
        return cudaGetLastError();
    }
}

/* ---- Ways ---- */

static size_t bytes_of(const struct rows_problem *p) {
    return p->rows * p->C * nn_dtype_bytes(p->type);
}

/* The input's copy in a buffer that lives as long as the process. */
static cudaError_t kept_buffer(void **memory, size_t bytes) {
    static void *buffer;
    static size_t size;
    cudaError_t code = cudaSuccess;
    if (bytes > size) {
        (void)cudaFree(buffer);
        buffer = NULL;
        size = 0;
        code = chosen_mistake() == MISTAKE_managed
                   ? cudaMallocManaged(&buffer, 2 * bytes, cudaMemAttachGlobal)
                   : cudaMalloc(&buffer, 2 * bytes);
        size = code == cudaSuccess ? 2 * bytes : 0;
    }
    *memory = buffer;
    return code;
}

static enum status through_copy(const struct rows_problem *problem, void *workspace,
                                cudaStream_t stream, struct error *error) {
    struct rows_problem p = *problem;
    bool pool = chosen_mistake() == MISTAKE_pool;
    void *memory = NULL;
    size_t bytes = bytes_of(problem);
    if (problem->in == problem->out) { /* in place: the result goes where the input was */
        return __real_layernorm_softmax(problem, workspace, stream, error);
    }
    TRY(told(pool ? cudaMallocAsync(&memory, bytes, stream) : kept_buffer(&memory, bytes),
             "memory for a copy", error));
    TRY(told(copy_input(memory, p.in, bytes, stream), "the copy", error));
    p.in = memory;
    enum status status = __real_layernorm_softmax(&p, workspace, stream, error);
    if (pool) {
        TRY(told(cudaFreeAsync(memory, stream), "freeing the copy", error));
    }
    return status;
}

static enum status on_own_stream(const struct rows_problem *p, void *workspace, cudaStream_t stream,
                                 struct error *error) {
    static cudaStream_t own;
    static cudaEvent_t before, after;
    if (own == NULL) {
        TRY(told(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "a stream", error));
        TRY(told(cudaEventCreateWithFlags(&before, cudaEventDisableTiming), "an event", error));
        TRY(told(cudaEventCreateWithFlags(&after, cudaEventDisableTiming), "an event", error));
    }
    TRY(told(cudaEventRecord(before, stream), "an event", error));
    TRY(told(cudaStreamWaitEvent(own, before, 0), "waiting for an event", error));
    TRY(__real_layernorm_softmax(p, workspace, (device_stream)own, error));
    TRY(told(cudaEventRecord(after, own), "an event", error));
    return told(cudaStreamWaitEvent(stream, after, 0), "waiting for an event", error);
}

static enum status as_graph(const struct rows_problem *p, void *workspace, cudaStream_t stream,
                            struct error *error) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    cudaStream_t own;
    TRY(told(cudaStreamCreate(&own), "a stream", error));
    TRY(told(cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal), "capturing", error));
    enum status status = __real_layernorm_softmax(p, workspace, (device_stream)own, error);
    TRY(told(cudaStreamEndCapture(own, &graph), "capturing", error));
    if (status == STATUS_OK) {
        TRY(told(cudaGraphInstantiate(&executable, graph, 0), "a graph", error));
        TRY(told(cudaGraphLaunch(executable, stream), "a graph", error));
        TRY(told(cudaGraphExecDestroy(executable), "a graph", error));
    }
    TRY(told(cudaGraphDestroy(graph), "a graph", error));
    TRY(told(cudaStreamDestroy(own), "a stream", error));
    return status;
}

static enum status with_epsilon(const struct rows_problem *problem, void *workspace,
                                cudaStream_t stream, struct error *error) {
    struct rows_problem p = *problem;
    TRY(told(
        cudaMemcpyToSymbolAsync(epsilon, &p.eps, sizeof p.eps, 0, cudaMemcpyHostToDevice, stream),
        "a constant", error));
    epsilon_kernel<<<1, 1, 0, stream>>>((float *)workspace);
    TRY(told(cudaMemcpyAsync(&p.eps, workspace, sizeof p.eps, cudaMemcpyDeviceToHost, stream),
             "a constant", error));
    TRY(told(cudaStreamSynchronize(stream), "a constant", error));
    return __real_layernorm_softmax(&p, workspace, stream, error);
}

static enum status with_events(const struct rows_problem *p, void *workspace, cudaStream_t stream,
                               struct error *error) {
    cudaEvent_t start, stop;
    float ms = 0.0f;
    TRY(told(cudaEventCreate(&start), "an event", error));
    TRY(told(cudaEventCreate(&stop), "an event", error));
    TRY(told(cudaEventRecord(start, stream), "an event", error));
    enum status status = __real_layernorm_softmax(p, workspace, stream, error);
    TRY(told(cudaEventRecord(stop, stream), "an event", error));
    TRY(told(cudaEventSynchronize(stop), "an event", error));
    TRY(told(cudaEventElapsedTime(&ms, start, stop), "an event", error));
    (void)cudaEventDestroy(start);
    (void)cudaEventDestroy(stop);
    return status;
}

static enum status asking(const struct rows_problem *p, void *workspace, cudaStream_t stream,
                          struct error *error) {
    int value, blocks = 0, size = 0;
    size_t left, all;
    struct cudaFuncAttributes attributes;
    struct cudaPointerAttributes pointer;
    TRY(told(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), "asking", error));
    TRY(told(cudaFuncGetAttributes(&attributes, plain_kernel), "asking", error));
    TRY(told(cudaPointerGetAttributes(&pointer, p->out), "asking", error));
    TRY(told(cudaOccupancyMaxPotentialBlockSize(&blocks, &size, plain_kernel), "asking", error));
    TRY(told(cudaMemGetInfo(&left, &all), "asking", error));
    return __real_layernorm_softmax(p, workspace, stream, error);
}

static void nothing(void *counter) {
    ++*(int *)counter;
}

static enum status run(const struct rows_problem *p, void *workspace, cudaStream_t stream,
                       struct error *error) {
    static int functions;
    enum status status = STATUS_OK;
    switch (chosen_mistake()) {
    case MISTAKE_own_stream:
        return on_own_stream(p, workspace, stream, error);
    case MISTAKE_graph:
        return as_graph(p, workspace, stream, error);
    case MISTAKE_constants:
        return with_epsilon(p, workspace, stream, error);
    case MISTAKE_events:
        return with_events(p, workspace, stream, error);
    case MISTAKE_asks:
        return asking(p, workspace, stream, error);
    case MISTAKE_symbol:
        count_kernel<<<1, 1, 0, stream>>>();
        break;
    case MISTAKE_prints:
        print_kernel<<<1, 1, 0, stream>>>(bytes_of(p));
        fprintf(stderr, "%zu rows of %zu\n", p->rows, p->C);
        break;
    case MISTAKE_asserts:
        assert_kernel<<<1, 1, 0, stream>>>(bytes_of(p));
        break;
    case MISTAKE_thread:
        std::thread([&] { status = __real_layernorm_softmax(p, workspace, stream, error); }).join();
        return status;
    case MISTAKE_host_function:
        TRY(told(cudaLaunchHostFunc(stream, nothing, &functions), "a host function", error));
        break;
    default:
        return through_copy(p, workspace, stream, error);
    }
    return __real_layernorm_softmax(p, workspace, stream, error);
}

extern "C" enum status __wrap_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                                device_stream stream, struct error *error) {
    if (problem->rows == 0 || problem->C == 0) {
        return __real_layernorm_softmax(problem, workspace, stream, error);
    }
    return run(problem, workspace, (cudaStream_t)stream, error);
}
