/**
 * @file graph_nodes.c
 * @brief Copies as nodes, and new parameters for nodes of graphs and of executable graphs.
 *
 * Each set_* makes the work that its parameters say and gives it to a node: of the executable
 * graph, where one is given.
 */
#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
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

cudaError_t graph_replace(struct runtime *runtime, cudaGraphExec_t executable, cudaGraphNode_t node,
                          struct work *work) {
    cudaError_t error = graph_find_node(runtime, executable, &node);
    if (error == cudaSuccess && node->work.kind != work->kind) {
        error = cudaErrorInvalidValue;
    }
    if (error == cudaSuccess) {
        error = work_check_recorded(runtime, work);
    }
    if (error != cudaSuccess) {
        work_free(work);
        return error;
    }
    work_free(&node->work);
    graph_give_work(node, work);
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
    return graph_replace(runtime, executable, node, &work);
}

static cudaError_t set_copy(struct runtime *runtime, cudaGraphExec_t executable,
                            cudaGraphNode_t node, const struct cudaMemcpy3DParms *parameters) {
    struct work work;
    CUDA_TRY(work_copy_planes(runtime, "cudaGraphMemcpyNodeSetParams", parameters, &work));
    return graph_replace(runtime, executable, node, &work);
}

static cudaError_t set_memset(struct runtime *runtime, cudaGraphExec_t executable,
                              cudaGraphNode_t node, const struct cudaMemsetParams *parameters) {
    struct work work;
    CUDA_TRY(graph_set_work("cudaGraphMemsetNodeSetParams", parameters, &work));
    return graph_replace(runtime, executable, node, &work);
}

static cudaError_t set_host(struct runtime *runtime, cudaGraphExec_t executable,
                            cudaGraphNode_t node, const struct cudaHostNodeParams *parameters) {
    if (parameters == NULL) {
        return cudaErrorInvalidValue;
    }
    struct work work = {.kind = WORK_HOST, .call = "cudaGraphHostNodeSetParams"};
    work.host = (struct host_work){.function = parameters->fn, .data = parameters->userData};
    return graph_replace(runtime, executable, node, &work);
}

/** @p name sets the parameters of a graph's node, @p exec_name those of an executable graph's. */
#define SETS_PARAMETERS(name, exec_name, set, T)                                               \
    cudaError_t name(cudaGraphNode_t node, const struct T *parameters) {                       \
        DEVICE_CALL(runtime, set(runtime, NULL, node, parameters));                            \
    }                                                                                          \
    cudaError_t exec_name(cudaGraphExec_t executable, cudaGraphNode_t node,                    \
                          const struct T *parameters) {                                        \
        DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue                        \
                                                : set(runtime, executable, node, parameters)); \
    }

SETS_PARAMETERS(cudaGraphKernelNodeSetParams, cudaGraphExecKernelNodeSetParams, set_kernel,
                cudaKernelNodeParams)
SETS_PARAMETERS(cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams, set_copy,
                cudaMemcpy3DParms)
SETS_PARAMETERS(cudaGraphMemsetNodeSetParams, cudaGraphExecMemsetNodeSetParams, set_memset,
                cudaMemsetParams)
SETS_PARAMETERS(cudaGraphHostNodeSetParams, cudaGraphExecHostNodeSetParams, set_host,
                cudaHostNodeParams)

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                           size_t bytes, enum cudaMemcpyKind kind) {
    struct work work = work_copy_bytes("cudaGraphMemcpyNodeSetParams1D", to, from, bytes, kind);
    DEVICE_CALL(runtime, graph_replace(runtime, NULL, node, &work));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void *to, const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind) {
    struct work work = work_copy_bytes("cudaGraphExecMemcpyNodeSetParams1D", to, from, bytes, kind);
    DEVICE_CALL(runtime, executable == NULL ? cudaErrorInvalidValue
                                            : graph_replace(runtime, executable, node, &work));
}

static cudaError_t get_host(const struct CUgraphNode_st *node,
                            struct cudaHostNodeParams *parameters) {
    if (node == NULL || parameters == NULL || node->work.kind != WORK_HOST) {
        return cudaErrorInvalidValue;
    }
    *parameters = (struct cudaHostNodeParams){.fn = node->work.host.function,
                                              .userData = node->work.host.data};
    return cudaSuccess;
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                       struct cudaHostNodeParams *parameters) {
    DEVICE_CALL(runtime, get_host(node, parameters));
}

/** Cooperative launches and clusters change what runs; the others are hints. */
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
    return attribute == cudaLaunchAttributeClusterDimension
               ? cluster_take(value, &node->work.kernel)
               : cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value) {
    DEVICE_CALL(runtime, set_attribute(runtime, node, attribute, value));
}
