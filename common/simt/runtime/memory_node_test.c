/*
 * Nodes of graphs that allocate and free memory, made by hand or by a capture. What is wanted
 * follows from CUDA's documentation and from what its samples do.
 */
#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/checks.h"
#include "common/simt/runtime/testdata/kernels.h"
#include "common/simt/simt.h"
#include "common/testing/fixture.h"

enum { COUNT = 256, BYTES = COUNT * sizeof(int) };

struct scene {
    cudaStream_t stream;
    cudaGraph_t graph;
    int in[COUNT], out[COUNT];
};

static bool create(struct scene *s) {
    for (int n = 0; n < COUNT; n++) {
        s->in[n] = n;
    }
    return cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cudaGraphCreate(&s->graph, 0) == cudaSuccess;
}

static void destroy(struct scene *s) {
    WANT(cudaSuccess, cudaGraphDestroy(s->graph));
    WANT(cudaSuccess, cudaStreamDestroy(s->stream));
}

#define SCENE_TEST(name) FIXTURE_TEST(memory_node, name, struct scene, s, create(s), destroy(s))

static cudaGraphNode_t put_allocation(cudaGraph_t graph, int **memory) {
    cudaGraphNode_t node = NULL;
    struct cudaMemAllocNodeParams parameters = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = BYTES};
    WANT(cudaSuccess, cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
    *memory = parameters.dptr;
    return node;
}

static cudaGraphNode_t put_release(cudaGraph_t graph, const cudaGraphNode_t *after, void *memory) {
    cudaGraphNode_t node = NULL;
    WANT(cudaSuccess, cudaGraphAddMemFreeNode(&node, graph, after, after != NULL ? 1 : 0, memory));
    return node;
}

static unsigned long long used(enum cudaGraphMemAttributeType attribute) {
    unsigned long long bytes = 1;
    WANT(cudaSuccess, cudaDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
}

static void launch(struct scene *s, cudaGraphExec_t executable) {
    WANT(cudaSuccess, cudaGraphLaunch(executable, s->stream));
    WANT(cudaSuccess, cudaStreamSynchronize(s->stream));
}

static void expect_scaled(const struct scene *s, int factor, int offset) {
    int wrong = 0;
    for (int n = 0; n < COUNT; n++) {
        wrong += s->out[n] != n * factor + offset;
    }
    EXPECT_INT_EQ(0, wrong);
}

/* Copies s->in there, scales it twice, and copies it back, on two streams of which one is gone when
 * the capture ends. */
static cudaGraph_t capture(struct scene *s) {
    cudaStream_t side = NULL;
    cudaEvent_t fork = NULL, join = NULL;
    cudaGraph_t graph = NULL;
    int *a = NULL, *b = NULL;
    WANT(cudaSuccess, cudaStreamCreate(&side));
    WANT(cudaSuccess, cudaEventCreate(&fork));
    WANT(cudaSuccess, cudaEventCreate(&join));
    WANT(cudaSuccess, cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
    WANT(cudaSuccess, cudaMallocAsync((void **)&a, BYTES, s->stream));
    WANT(cudaSuccess, cudaMemcpyAsync(a, s->in, BYTES, cudaMemcpyHostToDevice, s->stream));
    WANT(cudaSuccess, cudaEventRecord(fork, s->stream));
    WANT(cudaSuccess, cudaStreamWaitEvent(side, fork, 0));
    WANT(cudaSuccess, cudaMallocAsync((void **)&b, BYTES, side));
    launch_scale(b, a, 3, 1, COUNT, 2, 128, side);
    WANT(cudaSuccess, cudaFreeAsync(a, side));
    WANT(cudaSuccess, cudaEventRecord(join, side));
    WANT(cudaSuccess, cudaStreamWaitEvent(s->stream, join, 0));
    WANT(cudaSuccess, cudaMemcpyAsync(s->out, b, BYTES, cudaMemcpyDeviceToHost, s->stream));
    WANT(cudaSuccess, cudaFreeAsync(b, s->stream));
    WANT(cudaSuccess, cudaStreamDestroy(side));
    WANT(cudaSuccess, cudaStreamEndCapture(s->stream, &graph));
    WANT(cudaSuccess, cudaEventDestroy(fork));
    WANT(cudaSuccess, cudaEventDestroy(join));
    return graph;
}

SCENE_TEST(a_capture_allocates_and_frees) {
    cudaGraphExec_t executable = NULL;
    cudaGraph_t graph = capture(s);
    WANT(cudaSuccess, cudaGraphInstantiate(&executable, graph, 0));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    for (int round = 0; round < 3; round++) {
        s->in[0] = round;
        launch(s, executable);
        EXPECT_INT_EQ(3 * round + 1, s->out[0]);
        s->out[0] = 1;
        expect_scaled(s, 3, 1);
    }
    EXPECT_TRUE(used(cudaGraphMemAttrUsedMemCurrent) >= 2 * BYTES);
    EXPECT_TRUE(used(cudaGraphMemAttrUsedMemHigh) >= 2 * BYTES);
    WANT(cudaSuccess, cudaDeviceGraphMemTrim(0));
    EXPECT_INT_EQ(0, used(cudaGraphMemAttrUsedMemCurrent));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
}

/* One graph allocates, the program works with the memory and frees it: by a graph, by
 * cudaFreeAsync(), by cudaFree(). */
SCENE_TEST(memory_stays_until_somebody_frees_it) {
    cudaGraph_t other = NULL;
    cudaGraphExec_t executable = NULL, frees = NULL;
    int *memory = NULL;
    (void)put_allocation(s->graph, &memory);
    WANT(cudaSuccess, cudaGraphCreate(&other, 0));
    (void)put_release(other, NULL, memory);
    WANT(cudaSuccess, cudaGraphInstantiate(&executable, s->graph, 0));
    WANT(cudaSuccess, cudaGraphInstantiate(&frees, other, 0));
    for (int way = 0; way < 3; way++) {
        launch(s, executable);
        WANT(cudaErrorInvalidValue, cudaGraphLaunch(executable, s->stream));
        WANT(cudaSuccess, cudaMemcpy(memory, s->in, BYTES, cudaMemcpyHostToDevice));
        launch_scale(memory, memory, 2, 0, COUNT, 2, 128, s->stream);
        WANT(cudaSuccess, cudaStreamSynchronize(s->stream));
        WANT(cudaSuccess, cudaMemcpy(s->out, memory, BYTES, cudaMemcpyDeviceToHost));
        expect_scaled(s, 2, 0);
        if (way == 0) {
            launch(s, frees);
        } else {
            WANT(cudaSuccess, way == 1 ? cudaFreeAsync(memory, s->stream) : cudaFree(memory));
        }
        WANT(cudaSuccess, cudaStreamSynchronize(s->stream));
    }
    WANT(cudaSuccess, cudaGraphExecDestroy(frees));
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
    WANT(cudaSuccess, cudaGraphDestroy(other));
}

SCENE_TEST(a_graph_may_free_what_its_last_launch_left) {
    cudaGraphExec_t executable = NULL;
    int *memory = NULL;
    (void)put_allocation(s->graph, &memory);
    WANT(cudaSuccess,
         cudaGraphInstantiate(&executable, s->graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    launch(s, executable);
    launch(s, executable);
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
    WANT(cudaSuccess, cudaFree(memory));
}

SCENE_TEST(what_cuda_forbids_is_refused) {
    cudaGraph_t copy = NULL, parent = NULL;
    cudaGraphNode_t node = NULL, child = NULL;
    cudaGraphExec_t one = NULL, two = NULL;
    int *memory = NULL, *plain = NULL;
    struct cudaMemAllocNodeParams told;
    void *freed = NULL;
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    cudaGraphNode_t allocation = put_allocation(s->graph, &memory);
    node = put_release(s->graph, &allocation, memory);
    WANT(cudaSuccess, cudaGraphNodeGetType(node, &type));
    EXPECT_INT_EQ(cudaGraphNodeTypeMemFree, type);
    WANT(cudaSuccess, cudaGraphMemAllocNodeGetParams(allocation, &told));
    EXPECT_TRUE(told.dptr == memory && told.bytesize == BYTES);
    WANT(cudaSuccess, cudaGraphMemFreeNodeGetParams(node, (void *)&freed));
    EXPECT_TRUE(freed == memory);
    WANT(cudaErrorNotSupported, cudaGraphClone(&copy, s->graph));
    WANT(cudaSuccess, cudaGraphCreate(&parent, 0));
    WANT(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&child, parent, NULL, 0, s->graph));
    WANT(cudaSuccess, cudaMalloc((void **)&plain, BYTES));
    WANT(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&node, parent, NULL, 0, plain));
    WANT(cudaSuccess, cudaGraphInstantiate(&one, s->graph, 0));
    WANT(cudaErrorNotSupported, cudaGraphInstantiate(&two, s->graph, 0));
    WANT(cudaSuccess, cudaGraphExecDestroy(one));
    WANT(cudaSuccess, cudaGraphInstantiate(&two, s->graph, 0));
    launch(s, two);
    WANT(cudaErrorInvalidValue, cudaMemcpy(memory, s->in, BYTES, cudaMemcpyHostToDevice));
    WANT(cudaSuccess, cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
    WANT(cudaErrorInvalidValue, cudaFreeAsync(plain, s->stream));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s->stream, &copy));
    WANT(cudaSuccess, cudaGraphExecDestroy(two));
    WANT(cudaSuccess, cudaGraphDestroy(parent));
    WANT(cudaSuccess, cudaFree(plain));
}

/* Last, as the context is gone then: a kernel behind the node that frees. */
SCENE_TEST(use_behind_the_free_node_is_found) {
    cudaGraphExec_t executable = NULL;
    cudaGraphNode_t node = NULL;
    int *memory = NULL, factor = 1, offset = 0, elements = COUNT;
    struct simt_api api;
    if (!simt_find(&api)) {
        return; /* a GPU finds it or not */
    }
    void *arguments[] = {&memory, &memory, &factor, &offset, &elements};
    cudaGraphNode_t allocation = put_allocation(s->graph, &memory);
    cudaGraphNode_t release = put_release(s->graph, &allocation, memory);
    const struct cudaKernelNodeParams kernel = {.func = (void *)(uintptr_t)kernel_scale(),
                                                .gridDim = {.x = 1, .y = 1, .z = 1},
                                                .blockDim = {.x = 32, .y = 1, .z = 1},
                                                .kernelParams = arguments};
    WANT(cudaSuccess, cudaGraphAddKernelNode(&node, s->graph, &release, 1, &kernel));
    WANT(cudaSuccess, cudaGraphInstantiate(&executable, s->graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(executable, s->stream));
    EXPECT_STR_EQ("cudaErrorIllegalAddress", cudaGetErrorName(cudaDeviceSynchronize()));
    (void)cudaDeviceReset();
    (void)cudaGetLastError();
}
