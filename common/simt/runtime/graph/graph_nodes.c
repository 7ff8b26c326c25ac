/**
 * @file graph_nodes.c
 * @brief Copies as nodes, and new parameters for nodes of graphs and of executable graphs.
 */
#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/state.h"

static cudaError_t add_copy(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *after, size_t count,
                            const struct cudaMemcpy3DParms *parameters) {
    struct work work;
    CUDA_TRY(work_copy_planes(runtime, "cudaGraphAddMemcpyNode", parameters, &work));
    return graph_add_checked(runtime, node, graph, after, count, &work);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemcpy3DParms *parameters) {
    DEVICE_CALL(runtime, add_copy(runtime, node, graph, after, count, parameters));
}

/** Gives a node other work of the same kind. Takes @p work, also on failure. */
static cudaError_t replace(struct runtime *runtime, cudaGraphExec_t executable,
                           cudaGraphNode_t node, struct work *work) {
    cudaError_t error = graph_find_node(runtime, executable, &node);
    if (error == cudaSuccess && node->work.kind != work->kind) {
        error = cudaErrorInvalidValue;
    }
    if (error == cudaSuccess) {
        error = work_check(runtime, work);
    }
    if (error != cudaSuccess) {
        work_free(work);
        return error;
    }
    work_free(&node->work);
    node->work = *work;
    return cudaSuccess;
}

static cudaError_t set_kernel(struct runtime *runtime, cudaGraphExec_t executable,
                              cudaGraphNode_t node, const struct cudaKernelNodeParams *parameters) {
    struct work work = {.kind = WORK_EMPTY};
    cudaError_t error = graph_kernel_work(runtime, parameters, &work);
    if (error != cudaSuccess) {
        work_free(&work);
        return error;
    }
    return replace(runtime, executable, node, &work);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *parameters) {
    DEVICE_CALL(runtime, set_kernel(runtime, NULL, node, parameters));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters) {
    DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue
                                            : set_kernel(runtime, executable, node, parameters));
}

static cudaError_t set_copy(struct runtime *runtime, cudaGraphExec_t executable,
                            cudaGraphNode_t node, const struct cudaMemcpy3DParms *parameters) {
    struct work work;
    CUDA_TRY(work_copy_planes(runtime, "cudaGraphMemcpyNodeSetParams", parameters, &work));
    return replace(runtime, executable, node, &work);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *parameters) {
    DEVICE_CALL(runtime, set_copy(runtime, NULL, node, parameters));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *parameters) {
    DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue
                                            : set_copy(runtime, executable, node, parameters));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                           size_t bytes, enum cudaMemcpyKind kind) {
    struct work work = work_copy_bytes("cudaGraphMemcpyNodeSetParams1D", to, from, bytes, kind);
    DEVICE_CALL(runtime, replace(runtime, NULL, node, &work));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void *to, const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind) {
    struct work work = work_copy_bytes("cudaGraphExecMemcpyNodeSetParams1D", to, from, bytes, kind);
    DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue
                                            : replace(runtime, executable, node, &work));
}

static cudaError_t set_memset(struct runtime *runtime, cudaGraphExec_t executable,
                              cudaGraphNode_t node, const struct cudaMemsetParams *parameters) {
    struct work work;
    CUDA_TRY(graph_set_work("cudaGraphMemsetNodeSetParams", parameters, &work));
    return replace(runtime, executable, node, &work);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *parameters) {
    DEVICE_CALL(runtime, set_memset(runtime, NULL, node, parameters));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *parameters) {
    DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue
                                            : set_memset(runtime, executable, node, parameters));
}

static cudaError_t set_host(struct runtime *runtime, cudaGraphExec_t executable,
                            cudaGraphNode_t node, const struct cudaHostNodeParams *parameters) {
    if (parameters == NULL) {
        return cudaErrorInvalidValue;
    }
    struct work work = {.kind = WORK_HOST, .call = "cudaGraphHostNodeSetParams"};
    work.host = (struct host_work){.function = parameters->fn, .data = parameters->userData};
    return replace(runtime, executable, node, &work);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *parameters) {
    DEVICE_CALL(runtime, set_host(runtime, NULL, node, parameters));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *parameters) {
    DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue
                                            : set_host(runtime, executable, node, parameters));
}

/** Cooperative launches change what runs; the others are hints. */
static cudaError_t set_attribute(struct runtime *runtime, cudaGraphNode_t node,
                                 cudaLaunchAttributeID attribute,
                                 const cudaLaunchAttributeValue *value) {
    CUDA_TRY(graph_find_node(runtime, NULL, &node));
    if (value == NULL || node->work.kind != WORK_KERNEL) {
        return cudaErrorInvalidValue;
    }
    if (attribute == cudaLaunchAttributeCooperative) {
        node->work.kernel.cooperative = value->cooperative != 0;
    }
    return attribute == cudaLaunchAttributeClusterDimension ? cudaErrorNotSupported : cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value) {
    DEVICE_CALL(runtime, set_attribute(runtime, node, attribute, value));
}
