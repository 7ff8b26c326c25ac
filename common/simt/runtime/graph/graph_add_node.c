/**
 * @file graph_add_node.c
 * @brief cudaGraphAddNode(): done in the program by the function for the kind of node that its
 *        parameters name.
 */
#define SIMT_CLIENT /* see names.h */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/state.h"

/** What all of these functions are told. */
struct place {
    cudaGraphNode_t *node;
    cudaGraph_t graph;
    const cudaGraphNode_t *after;
    size_t count;
};

static cudaError_t add_kernel(const struct place *p, const struct cudaKernelNodeParamsV2 *given) {
    const struct cudaKernelNodeParams kernel = {.func = given->func,
                                                .gridDim = given->gridDim,
                                                .blockDim = given->blockDim,
                                                .sharedMemBytes = given->sharedMemBytes,
                                                .kernelParams = given->kernelParams,
                                                .extra = given->extra};
    return cudaGraphAddKernelNode(p->node, p->graph, p->after, p->count, &kernel);
}

static cudaError_t add_set(const struct place *p, const struct cudaMemsetParamsV2 *given) {
    const struct cudaMemsetParams set = {.dst = given->dst,
                                         .pitch = given->pitch,
                                         .value = given->value,
                                         .elementSize = given->elementSize,
                                         .width = given->width,
                                         .height = given->height};
    return cudaGraphAddMemsetNode(p->node, p->graph, p->after, p->count, &set);
}

static cudaError_t add_host(const struct place *p, const struct cudaHostNodeParamsV2 *given) {
    const struct cudaHostNodeParams host = {.fn = given->fn, .userData = given->userData};
    return cudaGraphAddHostNode(p->node, p->graph, p->after, p->count, &host);
}

static cudaError_t fail(cudaError_t error) {
    *runtime_last_error() = error;
    return error;
}

static cudaError_t refuse(const char *what) {
    runtime_say("cudaGraphAddNode: simt does not support %s", what);
    return fail(cudaErrorNotSupported);
}

/** The bodies of a conditional node, as the program is told them: they must stay. */
struct told_bodies {
    struct told_bodies *next;
    cudaGraph_t bodies[];
};

static cudaError_t add_condition(const struct place *p, struct cudaConditionalNodeParams *given) {
    static struct told_bodies *_Atomic all;
    cudaError_t error = simt_add_condition(p->node, p->graph, p->after, p->count, given->handle,
                                           given->type, given->size);
    if (error != cudaSuccess) {
        return fail(error);
    }
    struct told_bodies *told = malloc(sizeof *told + given->size * sizeof *told->bodies);
    for (unsigned n = 0; told != NULL && error == cudaSuccess && n < given->size; n++) {
        error = simt_ask_body(*p->node, n, &told->bodies[n]);
    }
    if (told == NULL || error != cudaSuccess) {
        free(told);
        return fail(error != cudaSuccess ? error : cudaErrorMemoryAllocation);
    }
    told->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &told->next, told)) {
    }
    given->phGraph_out = told->bodies;
    return cudaSuccess;
}

/** Whether memory of a device alone is asked for, which no other process shares. */
static bool is_plain(const struct cudaMemPoolProps *pool) {
    return pool->allocType == cudaMemAllocationTypePinned &&
           pool->handleTypes == cudaMemHandleTypeNone &&
           pool->location.type == cudaMemLocationTypeDevice;
}

/** Access of other devices is as cudaDeviceEnablePeerAccess() says. */
static cudaError_t add_allocation(const struct place *p, struct cudaMemAllocNodeParamsV2 *given) {
    if (!is_plain(&given->poolProps) ||
        (given->accessDescCount > 0 && given->accessDescs == NULL)) {
        return fail(cudaErrorInvalidValue);
    }
    cudaError_t error =
        simt_add_allocation(p->node, p->graph, p->after, p->count, given->poolProps.location.id,
                            given->bytesize, &given->dptr);
    return error != cudaSuccess ? fail(error) : cudaSuccess;
}

EXPORTED cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                              const cudaGraphNode_t *after, size_t count,
                                              struct cudaMemAllocNodeParams *parameters) {
    const struct place p = {node, graph, after, count};
    if (parameters == NULL) {
        return fail(cudaErrorInvalidValue);
    }
    struct cudaMemAllocNodeParamsV2 same = {.poolProps = parameters->poolProps,
                                            .accessDescs = parameters->accessDescs,
                                            .accessDescCount = parameters->accessDescCount,
                                            .bytesize = parameters->bytesize};
    cudaError_t error = add_allocation(&p, &same);
    parameters->dptr = error == cudaSuccess ? same.dptr : parameters->dptr;
    return error;
}

EXPORTED cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                                    struct cudaMemAllocNodeParams *parameters) {
    int device = 0;
    size_t bytes = 0;
    void *pointer = NULL;
    if (parameters == NULL) {
        return fail(cudaErrorInvalidValue);
    }
    cudaError_t error = simt_ask_allocation(node, &device, &bytes, &pointer);
    if (error != cudaSuccess || bytes == 0) {
        return fail(error != cudaSuccess ? error : cudaErrorInvalidValue);
    }
    *parameters = (struct cudaMemAllocNodeParams){
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice, .id = device}},
        .bytesize = bytes,
        .dptr = pointer};
    return cudaSuccess;
}

EXPORTED cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer) {
    int device = 0;
    size_t bytes = 0;
    void *memory = NULL;
    cudaError_t error = simt_ask_allocation(node, &device, &bytes, &memory);
    if (error != cudaSuccess || bytes != 0 || pointer == NULL) {
        return fail(error != cudaSuccess ? error : cudaErrorInvalidValue);
    }
    memcpy(pointer, &memory, sizeof memory);
    return cudaSuccess;
}

EXPORTED cudaError_t cudaDeviceGetGraphMemAttribute(int device,
                                                    enum cudaGraphMemAttributeType attribute,
                                                    void *value) {
    unsigned long long number = 0;
    cudaError_t error = value == NULL ? cudaErrorInvalidValue
                                      : simt_ask_graph_memory(device, (int)attribute, &number);
    if (error != cudaSuccess) {
        return fail(error);
    }
    memcpy(value, &number, sizeof number);
    return cudaSuccess;
}

EXPORTED cudaError_t cudaDeviceSetGraphMemAttribute(int device,
                                                    enum cudaGraphMemAttributeType attribute,
                                                    void *value) {
    unsigned long long number = 0;
    if (value == NULL) {
        return fail(cudaErrorInvalidValue);
    }
    memcpy(&number, value, sizeof number);
    cudaError_t error = simt_set_graph_memory(device, (int)attribute, number);
    return error != cudaSuccess ? fail(error) : cudaSuccess;
}

/** An edge that says more than "first this node, then that one". */
static bool is_special(const cudaGraphEdgeData *edges, size_t count) {
    static const cudaGraphEdgeData plain;
    for (size_t n = 0; edges != NULL && n < count; n++) {
        if (memcmp(&edges[n], &plain, sizeof plain) != 0) {
            return true;
        }
    }
    return false;
}

EXPORTED cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
                                      size_t count, struct cudaGraphNodeParams *parameters) {
    const struct place p = {node, graph, after, count};
    if (parameters == NULL) {
        return fail(cudaErrorInvalidValue);
    }
    if (is_special(edges, count)) {
        return refuse("edges with ports or types of their own");
    }
    switch (parameters->type) {
    case cudaGraphNodeTypeKernel:
        return add_kernel(&p, &parameters->kernel);
    case cudaGraphNodeTypeMemcpy:
        return cudaGraphAddMemcpyNode(node, graph, after, count, &parameters->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        return add_set(&p, &parameters->memset);
    case cudaGraphNodeTypeHost:
        return add_host(&p, &parameters->host);
    case cudaGraphNodeTypeGraph:
        return parameters->graph.ownership == cudaGraphChildGraphOwnershipClone
                   ? cudaGraphAddChildGraphNode(node, graph, after, count, parameters->graph.graph)
                   : refuse("child graphs that are moved into their parent");
    case cudaGraphNodeTypeEmpty:
        return cudaGraphAddEmptyNode(node, graph, after, count);
    case cudaGraphNodeTypeWaitEvent:
        return cudaGraphAddEventWaitNode(node, graph, after, count, parameters->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
        return cudaGraphAddEventRecordNode(node, graph, after, count,
                                           parameters->eventRecord.event);
    case cudaGraphNodeTypeConditional:
        return add_condition(&p, &parameters->conditional);
    case cudaGraphNodeTypeMemAlloc:
        return add_allocation(&p, &parameters->alloc);
    case cudaGraphNodeTypeMemFree:
        return cudaGraphAddMemFreeNode(node, graph, after, count, parameters->free.dptr);
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
        return refuse("nodes of external semaphores");
    default:
        return fail(cudaErrorInvalidValue);
    }
}
