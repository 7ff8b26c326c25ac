#include "common/bench/device/kernel_profile.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/simt/kernel_name.h"
#include "common/simt/simt.h"
#include "common/simt/why.h"

static bool good(cudaError_t code) {
    if (code != cudaSuccess) {
        (void)cudaGetLastError(); /* so that the next launch does not report it */
    }
    return code == cudaSuccess;
}

/* ---- As the runtime tells it ---- */

static bool describe(const struct cudaKernelNodeParams *kernel, struct simt_profile *p) {
    const dim3 *grid = &kernel->gridDim, *block = &kernel->blockDim;
    struct cudaFuncAttributes attributes;
    struct cudaDeviceProp gpu;
    const char *name = NULL;
    int device = 0, at_a_time = 0;
    bool known = good(cudaGetDevice(&device)) && good(cudaGetDeviceProperties(&gpu, device)) &&
                 good(cudaFuncGetAttributes(&attributes, kernel->func)) &&
                 good(cudaFuncGetName(&name, kernel->func)) &&
                 good(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                     &at_a_time, kernel->func, (int)(block->x * block->y * block->z),
                     kernel->sharedMemBytes));
    if (!known) {
        return false;
    }
    *p = (struct simt_profile){.grid = {grid->x, grid->y, grid->z},
                               .block = {block->x, block->y, block->z},
                               .registers = (uint32_t)attributes.numRegs,
                               .shared = attributes.sharedSizeBytes + kernel->sharedMemBytes,
                               .blocks = (uint64_t)grid->x * grid->y * grid->z};
    snprintf(p->gpu, sizeof p->gpu, "%.63s", gpu.name);
    kernel_name_readable(name, p->kernel, sizeof p->kernel);
    const struct simt_processor processor = {.threads = (uint32_t)gpu.maxThreadsPerMultiProcessor,
                                             .blocks = (uint32_t)gpu.maxBlocksPerMultiProcessor,
                                             .registers = (uint32_t)gpu.regsPerMultiprocessor};
    simt_profile_set_occupancy(p, &processor, (uint32_t)gpu.multiProcessorCount,
                               (uint32_t)at_a_time);
    return true;
}

static double threads_of(const struct cudaKernelNodeParams *kernel) {
    const dim3 *grid = &kernel->gridDim, *block = &kernel->blockDim;
    return (double)grid->x * grid->y * grid->z * block->x * block->y * block->z;
}

/* The kernel with most threads; false: there is none. */
static bool largest_kernel(const cudaGraphNode_t *nodes, size_t count,
                           struct cudaKernelNodeParams *largest) {
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        enum cudaGraphNodeType type;
        struct cudaKernelNodeParams kernel;
        bool is_kernel = good(cudaGraphNodeGetType(nodes[i], &type)) &&
                         type == cudaGraphNodeTypeKernel &&
                         good(cudaGraphKernelNodeGetParams(nodes[i], &kernel));
        if (is_kernel && (!found || threads_of(&kernel) > threads_of(largest))) {
            *largest = kernel;
            found = true;
        }
    }
    return found;
}

static bool describe_graph(cudaGraph_t graph, struct simt_profile *profile) {
    size_t count = 0;
    struct cudaKernelNodeParams kernel;
    if (!good(cudaGraphGetNodes(graph, NULL, &count)) || count == 0) {
        return false;
    }
    cudaGraphNode_t *nodes = calloc(count, sizeof(*nodes));
    bool known = nodes != NULL && good(cudaGraphGetNodes(graph, nodes, &count)) &&
                 largest_kernel(nodes, count, &kernel) && describe(&kernel, profile);
    free(nodes);
    return known;
}

/* Records the call's work; *graph is to be destroyed unless NULL. */
static bool record(device_bench_function *function, void *argument, device_stream stream,
                   cudaGraph_t *graph) {
    if (!good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed))) {
        return false;
    }
    enum status status = function(argument, stream, NULL);
    return good(cudaStreamEndCapture(stream, graph)) && status == STATUS_OK;
}

bool kernel_profile_recorded(device_bench_function *function, void *argument,
                             struct simt_profile *profile) {
    cudaGraph_t graph = NULL;
    device_stream stream;
    *profile = (struct simt_profile){.modelled = false};
    if (device_stream_create(&stream, NULL) != STATUS_OK) {
        return false;
    }
    bool known = record(function, argument, stream, &graph) && describe_graph(graph, profile);
    if (graph != NULL) {
        (void)cudaGraphDestroy(graph);
    }
    device_stream_destroy(stream);
    return known;
}

/* ---- As simt models it ---- */

bool kernel_profile(device_bench_function *function, void *argument, struct simt_profile *profile) {
    struct simt_api simt;
    if (!simt_find(&simt)) {
        return kernel_profile_recorded(function, argument, profile);
    }
    (void)simt.take_longest(profile); /* of what ran before */
    bool ran =
        function(argument, NULL, NULL) == STATUS_OK && device_synchronize(NULL, NULL) == STATUS_OK;
    return simt.take_longest(profile) && ran;
}

bool kernel_profile_longest(struct simt_profile *profile) {
    struct simt_api simt;
    return simt_find(&simt) && simt.take_longest(profile);
}

void kernel_profile_print(const struct simt_profile *profile) {
    char text[WHY_BYTES];
    printf("    why: %s\n", why_line(profile, text, sizeof text));
    if (why_advice(profile, text, sizeof text)[0] != '\0') {
        printf("         %s\n", text);
    }
}
