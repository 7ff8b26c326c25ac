#include "common/simt/runtime/graph/memory_nodes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

enum { ALIGNMENT = 256, PIECE = 32 << 20 };

static const char by_node[] = "cudaGraphAddMemAllocNode";
static const char by_capture[] = "cudaMallocAsync in a graph";

static uint64_t address_of(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

/** @return bytes that graphs have allocated on a device, in the pieces in which an H100 gives them.
 */
static size_t allocated(const struct runtime *runtime, int device) {
    size_t bytes = 0;
    for (size_t n = 0; n < runtime->graph_memory.count; n++) {
        struct simt_allocation allocation;
        bool found = simt_memory_find(runtime->memory,
                                      address_of(runtime->graph_memory.pointers[n]), &allocation);
        bool counts = found && !allocation.freed && allocation.device == device;
        bytes += counts ? (allocation.bytes + PIECE - 1) / PIECE * PIECE : 0;
    }
    return bytes;
}

static bool remember(struct graph_memory *all, void *pointer) {
    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 16 : 2 * all->capacity;
        void **pointers = realloc(all->pointers, capacity * sizeof *pointers);
        if (pointers == NULL) {
            return false;
        }
        all->pointers = pointers;
        all->capacity = capacity;
    }
    all->pointers[all->count++] = pointer;
    return true;
}

/** An address for memory that is not there yet. */
static cudaError_t reserve(struct runtime *runtime, int device, size_t bytes, const char *what,
                           void **pointer) {
    uint64_t address = 0;
    simt_memory_select(runtime->memory, device);
    enum status status = simt_memory_alloc(runtime->memory, bytes, ALIGNMENT, what, &address);
    simt_memory_select(runtime->memory, runtime->device);
    if (status != STATUS_OK) {
        return runtime_error_of(status);
    }
    *pointer = (void *)(uintptr_t)address;
    bool kept = remember(&runtime->graph_memory, *pointer);
    simt_memory_keep(runtime->memory, address, kept);
    status = simt_memory_release(runtime->memory, address);
    return kept ? runtime_error_of(status) : cudaErrorMemoryAllocation;
}

static cudaError_t add(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                       const cudaGraphNode_t *after, size_t count, int device, size_t bytes,
                       void **pointer) {
    struct work work = {.kind = WORK_ALLOCATE, .call = by_node};
    if (pointer == NULL || bytes == 0 || device < 0 || device >= runtime->settings.devices) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(graph_takes_after(runtime, graph, after, count));
    CUDA_TRY(reserve(runtime, device, bytes, by_node, pointer));
    work.memory = (struct memory_work){.pointer = *pointer, .bytes = bytes, .device = device};
    cudaError_t error = graph_add_checked(runtime, node, graph, after, count, &work);
    if (error != cudaSuccess) {
        memory_nodes_sweep(runtime);
    }
    return error;
}

cudaError_t simt_add_allocation(cudaGraphNode_t *node, cudaGraph_t graph,
                                const cudaGraphNode_t *after, size_t count, int device,
                                size_t bytes, void **pointer) {
    DEVICE_CALL(runtime, add(runtime, node, graph, after, count, device, bytes, pointer));
}

/** Work that frees a graph's memory. */
static cudaError_t release_work(struct runtime *runtime, const char *call, void *pointer,
                                struct work *work) {
    struct simt_allocation allocation = {0};
    if (!simt_memory_find(runtime->memory, address_of(pointer), &allocation) ||
        allocation.address != address_of(pointer) || !allocation.kept) {
        runtime_explain(runtime,
                        "%s: %p is no memory that a node of a graph allocates; a graph frees no "
                        "other",
                        call, pointer);
        return cudaErrorInvalidValue;
    }
    *work = (struct work){.kind = WORK_RELEASE, .call = call};
    work->memory = (struct memory_work){.pointer = pointer, .device = allocation.device};
    return cudaSuccess;
}

static cudaError_t add_release(struct runtime *runtime, cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *after, size_t count, void *pointer) {
    struct work work;
    CUDA_TRY(release_work(runtime, "cudaGraphAddMemFreeNode", pointer, &work));
    return graph_add_checked(runtime, node, graph, after, count, &work);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *after, size_t count, void *pointer) {
    DEVICE_CALL(runtime, add_release(runtime, node, graph, after, count, pointer));
}

cudaError_t memory_node_capture(struct runtime *runtime, struct CUstream_st *stream, void **pointer,
                                size_t bytes) {
    struct work work = {.kind = WORK_ALLOCATE, .call = "cudaMallocAsync"};
    if (pointer == NULL || bytes == 0) {
        return capture_spoil(stream->capture, cudaErrorInvalidValue);
    }
    cudaError_t error = capture_allows_use(runtime, stream);
    if (error == cudaSuccess) {
        error = reserve(runtime, stream->device, bytes, by_capture, pointer);
    }
    if (error == cudaSuccess) {
        work.memory =
            (struct memory_work){.pointer = *pointer, .bytes = bytes, .device = stream->device};
        return capture_add(stream, &work);
    }
    return capture_spoil(stream->capture, error);
}

cudaError_t memory_node_capture_release(struct runtime *runtime, struct CUstream_st *stream,
                                        void *pointer) {
    struct work work;
    cudaError_t error = capture_allows_use(runtime, stream);
    if (error == cudaSuccess) {
        error = release_work(runtime, "cudaFreeAsync", pointer, &work);
    }
    return error == cudaSuccess ? capture_add(stream, &work)
                                : capture_spoil(stream->capture, error);
}

static cudaError_t allocate(struct runtime *runtime, const struct work *work) {
    enum status status = simt_memory_again(runtime->memory, address_of(work->memory.pointer));
    if (status != STATUS_OK) {
        runtime_explain(runtime, "%s: a graph cannot allocate %zu bytes at %p%s", work->call,
                        work->memory.bytes, work->memory.pointer,
                        status == STATUS_OUT_OF_MEMORY ? ": the device has no more memory"
                                                       : ": they are allocated already");
        return status == STATUS_OUT_OF_MEMORY ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
    }
    struct graph_memory_use *use = &runtime->graph_memory.use[work->memory.device];
    size_t now = allocated(runtime, work->memory.device);
    use->bytes = now > use->bytes ? now : use->bytes;
    use->high = use->bytes > use->high ? use->bytes : use->high;
    runtime->report.allocations++;
    return cudaSuccess;
}

cudaError_t memory_node_run(struct runtime *runtime, const struct work *work) {
    if (work->kind == WORK_ALLOCATE) {
        return allocate(runtime, work);
    }
    if (simt_memory_release(runtime->memory, address_of(work->memory.pointer)) != STATUS_OK) {
        runtime_explain(runtime, "%s: a graph frees %p, which is not allocated", work->call,
                        work->memory.pointer);
        return cudaErrorInvalidValue;
    }
    runtime->report.releases++;
    return cudaSuccess;
}

const void *memory_node_pointer(const struct work *work) {
    return work->kind == WORK_ALLOCATE || work->kind == WORK_RELEASE ? work->memory.pointer : NULL;
}

/** @return whether a graph has a node that allocates memory. @param pointer this one; NULL: any,
 * and nodes that free some count */
static bool has_node(const struct CUgraph_st *graph, const void *pointer) {
    bool found = false;
    for (size_t i = 0; !found && i < graph->all.count; i++) {
        const struct work *work = &graph->all.nodes[i]->work;
        struct CUgraph_st *const *inside;
        size_t count = work_graphs(work, &inside);
        found = pointer == NULL ? memory_node_pointer(work) != NULL
                                : work->kind == WORK_ALLOCATE && work->memory.pointer == pointer;
        for (size_t n = 0; !found && n < count; n++) {
            found = has_node(inside[n], pointer);
        }
    }
    return found;
}

bool memory_nodes_are_in(const struct CUgraph_st *graph) {
    return has_node(graph, NULL);
}

cudaError_t memory_nodes_allow_executable(struct runtime *runtime, const struct CUgraph_st *graph) {
    const struct CUgraphExec_st *executable = runtime->executables;
    while (executable != NULL && executable->source != graph) {
        executable = executable->next;
    }
    if (executable == NULL || !memory_nodes_are_in(graph)) {
        return cudaSuccess;
    }
    runtime_explain(runtime,
                    "cudaGraphInstantiate: the graph allocates memory and has an executable "
                    "graph already: CUDA allows one at a time");
    return cudaErrorNotSupported;
}

cudaError_t memory_nodes_begin(struct runtime *runtime, const struct CUgraph_st *graph) {
    for (size_t i = 0; i < graph->all.count; i++) {
        const struct work *work = &graph->all.nodes[i]->work;
        struct simt_allocation allocation;
        if (work->kind != WORK_ALLOCATE ||
            !simt_memory_find(runtime->memory, address_of(work->memory.pointer), &allocation) ||
            allocation.freed) {
            continue;
        }
        if (!graph->frees_first) {
            runtime_explain(runtime,
                            "cudaGraphLaunch: memory that an earlier launch of the graph has "
                            "allocated (%p, %zu bytes) is not freed; free it, or make the graph "
                            "executable with cudaGraphInstantiateFlagAutoFreeOnLaunch",
                            work->memory.pointer, allocation.bytes);
            return cudaErrorInvalidValue;
        }
        if (simt_memory_release(runtime->memory, allocation.address) == STATUS_OK) {
            runtime->report.releases++;
        }
    }
    return cudaSuccess;
}

static bool is_needed(const struct runtime *runtime, const void *pointer) {
    bool found = false;
    for (const struct CUgraph_st *g = runtime->graphs; !found && g != NULL; g = g->next) {
        found = has_node(g, pointer);
    }
    for (const struct CUgraphExec_st *e = runtime->executables; !found && e != NULL; e = e->next) {
        found = has_node(e->graph, pointer);
    }
    for (const struct capture *c = runtime->captures; !found && c != NULL; c = c->next) {
        found = has_node(c->graph, pointer);
    }
    return found;
}

void memory_nodes_sweep(struct runtime *runtime) {
    struct graph_memory *all = &runtime->graph_memory;
    size_t kept = 0; /* also what another program has */
    for (size_t n = 0; n < all->count; n++) {
        struct simt_allocation allocation;
        bool own = simt_memory_find(runtime->memory, address_of(all->pointers[n]), &allocation);
        if (!own || !allocation.freed || is_needed(runtime, all->pointers[n])) {
            all->pointers[kept++] = all->pointers[n];
        } else {
            simt_memory_keep(runtime->memory, address_of(all->pointers[n]), false);
        }
    }
    all->count = kept;
}

static cudaError_t ask(const struct CUgraphNode_st *node, int *device, size_t *bytes,
                       void **pointer) {
    if (node == NULL || device == NULL || bytes == NULL || pointer == NULL ||
        memory_node_pointer(&node->work) == NULL) {
        return cudaErrorInvalidValue;
    }
    *device = node->work.memory.device;
    *bytes = node->work.memory.bytes;
    *pointer = node->work.memory.pointer;
    return cudaSuccess;
}

cudaError_t simt_ask_allocation(cudaGraphNode_t node, int *device, size_t *bytes, void **pointer) {
    DEVICE_CALL(runtime, ask(node, device, bytes, pointer));
}

static bool is_device(const struct runtime *runtime, int device) {
    return device >= 0 && device < runtime->settings.devices;
}

static cudaError_t ask_use(const struct runtime *runtime, int device, int attribute,
                           unsigned long long *value) {
    if (value == NULL || !is_device(runtime, device)) {
        return value == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    if (attribute < 0 || attribute > cudaGraphMemAttrReservedMemHigh) {
        return cudaErrorInvalidValue;
    }
    bool high =
        attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
    const struct graph_memory_use *use = &runtime->graph_memory.use[device];
    *value = high ? use->high : use->bytes;
    return cudaSuccess;
}

cudaError_t simt_ask_graph_memory(int device, int attribute, unsigned long long *value) {
    DEVICE_CALL(runtime, ask_use(runtime, device, attribute, value));
}

/** The high marks may be set to zero only: they begin anew. */
static cudaError_t set_use(struct runtime *runtime, int device, int attribute,
                           unsigned long long value) {
    if (!is_device(runtime, device)) {
        return cudaErrorInvalidDevice;
    }
    if (value != 0 || (attribute != cudaGraphMemAttrUsedMemHigh &&
                       attribute != cudaGraphMemAttrReservedMemHigh)) {
        return cudaErrorInvalidValue;
    }
    struct graph_memory_use *use = &runtime->graph_memory.use[device];
    use->high = use->bytes;
    return cudaSuccess;
}

cudaError_t simt_set_graph_memory(int device, int attribute, unsigned long long value) {
    DEVICE_CALL(runtime, set_use(runtime, device, attribute, value));
}

static cudaError_t trim(struct runtime *runtime, int device) {
    if (!is_device(runtime, device)) {
        return cudaErrorInvalidDevice;
    }
    runtime->graph_memory.use[device].bytes = allocated(runtime, device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
    DEVICE_CALL(runtime, trim(runtime, device));
}
