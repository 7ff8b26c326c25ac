#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/remote/client.h"
#include "common/simt/runtime/remote/server.h"
#include "common/simt/runtime/state.h"

/* Most elements that a program may name or ask for in one call. */
enum { MOST_NODES = 1 << 20, MOST_TEXT = 4096, MOST_ATTRIBUTES = 64 };

struct scratch {
    struct scratch *next;
    max_align_t memory[];
};

static void fail(struct frame *frame, cudaError_t error) {
    frame->good = false;
    frame->error = error;
}

void *frame_scratch(struct frame *frame, size_t count, size_t bytes) {
    size_t all;
    struct scratch *scratch = NULL;
    if (checked_multiply(count, bytes, &all) && checked_add(all, sizeof *scratch + 1, &all)) {
        scratch = calloc(1, all);
    }
    if (scratch == NULL) {
        fail(frame, cudaErrorMemoryAllocation);
        return NULL;
    }
    scratch->next = frame->scratch;
    frame->scratch = scratch;
    return scratch->memory;
}

void frame_free(struct frame *frame) {
    while (frame->scratch != NULL) {
        struct scratch *scratch = frame->scratch;
        frame->scratch = scratch->next;
        free(scratch);
    }
}

/* ---- What a program sent ---- */

void frame_take(struct frame *frame, void *value, size_t bytes) {
    if (!packet_take(frame->request, &frame->at, value, bytes)) {
        memset(value, 0, bytes);
        fail(frame, cudaErrorInvalidValue);
    }
}

bool frame_take_target(struct frame *frame, void *target, size_t bytes) {
    unsigned char there = 0;
    frame_take(frame, &there, sizeof there);
    if (there != 0) {
        frame_take(frame, target, bytes);
    } else {
        memset(target, 0, bytes);
    }
    return there != 0;
}

uint64_t frame_take_number(struct frame *frame) {
    uint64_t number;
    frame_take(frame, &number, sizeof number);
    return number;
}

/* A handle is an address that the key hides; NULL and the special streams are themselves. */
static uint64_t turn_handle(const struct server *server, uint64_t number) {
    return number <= (uint64_t)(uintptr_t)cudaStreamPerThread ? number : number ^ server->key;
}

void *frame_take_handle(struct frame *frame) {
    return (void *)(uintptr_t)turn_handle(frame->server, frame_take_number(frame));
}

/** @return the node of a handle, or NULL: graphs' functions follow it at once. */
static cudaGraphNode_t find_node(const struct runtime *runtime, uint64_t handle) {
    cudaGraphNode_t node = (cudaGraphNode_t)(uintptr_t)handle;
    for (const struct CUgraph_st *g = runtime->graphs; g != NULL; g = g->next) {
        if (graph_has_node(g, node)) {
            return node;
        }
    }
    for (const struct capture *c = runtime->captures; c != NULL; c = c->next) {
        if (graph_has_node(c->graph, node)) {
            return node;
        }
    }
    return NULL;
}

cudaGraphNode_t frame_take_node(struct frame *frame) {
    uint64_t number = frame_take_number(frame);
    return find_node(frame->server->runtime, turn_handle(frame->server, number));
}

void *frame_pull(struct frame *frame, uint64_t address, size_t count, size_t bytes) {
    if (address == 0 || count == 0) {
        return NULL;
    }
    void *elements = count <= MOST_NODES ? frame_scratch(frame, count, bytes) : NULL;
    if (elements == NULL || !program_read(frame->server->runtime, elements,
                                          (void *)(uintptr_t)address, count * bytes)) {
        fail(frame, cudaErrorInvalidValue);
        return NULL;
    }
    return elements;
}

cudaGraphNode_t *frame_pull_nodes(struct frame *frame, uint64_t address, size_t count) {
    const uint64_t *numbers = frame_pull(frame, address, count, sizeof *numbers);
    cudaGraphNode_t *nodes = numbers != NULL ? frame_scratch(frame, count, sizeof *nodes) : NULL;
    for (size_t i = 0; nodes != NULL && i < count; i++) {
        nodes[i] = find_node(frame->server->runtime, turn_handle(frame->server, numbers[i]));
    }
    return nodes;
}

void *frame_room(struct frame *frame, uint64_t address, size_t *room, size_t bytes) {
    if (address == 0 || room == NULL) {
        return NULL;
    }
    *room = *room < MOST_NODES ? *room : MOST_NODES;
    return frame_scratch(frame, *room, bytes);
}

char *frame_text(struct frame *frame, uint64_t wanted, int *size) {
    *size = *size < MOST_TEXT ? *size : MOST_TEXT;
    return wanted != 0 ? frame_scratch(frame, *size > 0 ? (size_t)*size : 1, 1) : NULL;
}

const char *frame_take_text(struct frame *frame) {
    uint32_t length = 0;
    unsigned char there = 0;
    frame_take(frame, &there, sizeof there);
    if (there == 0) {
        return NULL;
    }
    frame_take(frame, &length, sizeof length);
    char *text = length <= PACKET_BYTES ? frame_scratch(frame, (size_t)length + 1, 1) : NULL;
    if (text == NULL) {
        fail(frame, cudaErrorInvalidValue);
        return NULL;
    }
    frame_take(frame, text, length);
    return text;
}

unsigned char *frame_take_arguments(struct frame *frame, uint32_t *bytes) {
    unsigned char there = 0;
    *bytes = 0;
    frame_take(frame, &there, sizeof there);
    if (there == 0) {
        return NULL;
    }
    frame_take(frame, bytes, sizeof *bytes);
    unsigned char *block = *bytes <= PACKET_BYTES ? frame_scratch(frame, *bytes, 1) : NULL;
    if (block == NULL) {
        fail(frame, cudaErrorInvalidValue);
        return NULL;
    }
    frame_take(frame, block, *bytes);
    return block;
}

/** The arguments as cudaLaunchKernel() takes them; NULL where the block is not the kernel's. */
void **frame_point(struct frame *frame, const unsigned char *block, uint32_t bytes,
                   const void *function) {
    struct runtime *runtime = frame->server->runtime;
    struct kernel *kernel = block != NULL ? kernel_find(runtime, function) : NULL;
    if (kernel == NULL || kernel_prepare(runtime, kernel) != cudaSuccess ||
        kernel->info.parameter_bytes != bytes) {
        return NULL;
    }
    const struct simt_kernel_info *info = &kernel->info;
    void **arguments = frame_scratch(frame, info->parameter_count + 1, sizeof *arguments);
    for (size_t i = 0; arguments != NULL && i < info->parameter_count; i++) {
        arguments[i] = (void *)(uintptr_t)(block + info->parameter_offsets[i]);
    }
    return arguments;
}

const cudaLaunchConfig_t *frame_take_config(struct frame *frame) {
    cudaLaunchConfig_t *config = frame_scratch(frame, 1, sizeof *config);
    if (config == NULL || !frame_take_target(frame, config, sizeof *config)) {
        return NULL;
    }
    config->stream =
        (cudaStream_t)(uintptr_t)turn_handle(frame->server, (uint64_t)(uintptr_t)config->stream);
    if (config->attrs == NULL) {
        return config;
    }
    if (config->numAttrs > MOST_ATTRIBUTES) {
        fail(frame, cudaErrorInvalidValue);
        return NULL;
    }
    config->attrs = frame_scratch(frame, config->numAttrs, sizeof *config->attrs);
    if (config->attrs != NULL) {
        frame_take(frame, config->attrs, config->numAttrs * sizeof *config->attrs);
    }
    return config;
}

static cudaArray_t turn_array(const struct server *server, cudaArray_t handle) {
    return (cudaArray_t)(uintptr_t)turn_handle(server, (uint64_t)(uintptr_t)handle);
}

bool frame_take_planes(struct frame *frame, struct cudaMemcpy3DParms *planes) {
    bool there = frame_take_target(frame, planes, sizeof *planes);
    planes->srcArray = turn_array(frame->server, planes->srcArray);
    planes->dstArray = turn_array(frame->server, planes->dstArray);
    return there;
}

static void turn_resource(const struct server *server, struct cudaResourceDesc *resource) {
    if (resource->resType == cudaResourceTypeArray) {
        resource->res.array.array = turn_array(server, resource->res.array.array);
    }
}

bool frame_take_resource(struct frame *frame, struct cudaResourceDesc *resource) {
    bool there = frame_take_target(frame, resource, sizeof *resource);
    turn_resource(frame->server, resource);
    return there;
}

/* ---- What it gets ---- */

void frame_give(struct frame *frame, const void *value, size_t bytes) {
    if (!packet_put(frame->reply, value, bytes)) {
        fail(frame, cudaErrorUnknown);
    }
}

void frame_give_handle(struct frame *frame, const void *object) {
    uint64_t number = (uint64_t)(uintptr_t)object;
    number = number != UNTOUCHED ? turn_handle(frame->server, number) : number;
    frame_give(frame, &number, sizeof number);
}

void frame_give_text(struct frame *frame, const char *text, size_t size) {
    size_t most = size > 0 ? size - 1 : MOST_TEXT;
    bool there = frame->error == cudaSuccess && text != NULL;
    uint32_t length = there ? (uint32_t)strnlen(text, most) : 0;
    length += there && size > 0; /* into a buffer of the program's goes the end, too */
    frame_give(frame, &length, sizeof length);
    if (length > 0) {
        frame_give(frame, text, length);
    }
}

static void hide_nodes(const struct server *server, uint64_t *numbers, const cudaGraphNode_t *nodes,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        numbers[i] = turn_handle(server, (uint64_t)(uintptr_t)nodes[i]);
    }
}

void frame_give_nodes(struct frame *frame, const cudaGraphNode_t *nodes, const size_t *count) {
    enum { MOST = 4096 };
    bool there = frame->error == cudaSuccess && nodes != NULL && count != NULL;
    uint32_t given = there ? (uint32_t)(*count < MOST ? *count : MOST) : 0;
    uint64_t *numbers = frame_scratch(frame, given, sizeof *numbers);
    if (numbers != NULL) {
        hide_nodes(frame->server, numbers, nodes, given);
        frame_give(frame, &given, sizeof given);
        frame_give(frame, numbers, given * sizeof *numbers);
    }
}

void frame_push(struct frame *frame, uint64_t address, const void *from, const size_t *count,
                size_t bytes) {
    if (frame->error == cudaSuccess && from != NULL && count != NULL) {
        (void)program_write(frame->server->runtime, (void *)(uintptr_t)address, from,
                            *count * bytes);
    }
}

void frame_push_nodes(struct frame *frame, uint64_t address, cudaGraphNode_t *nodes,
                      const size_t *count) {
    if (frame->error == cudaSuccess && nodes != NULL && count != NULL) {
        hide_nodes(frame->server, (uint64_t *)(void *)nodes, nodes, *count);
        frame_push(frame, address, nodes, count, sizeof *nodes);
    }
}

void frame_give_kernel_node(struct frame *frame, struct cudaKernelNodeParams *parameters) {
    struct runtime *runtime = frame->server->runtime;
    if (parameters == NULL || frame->error != cudaSuccess) {
        return;
    }
    const struct kernel *kernel = kernel_find(runtime, parameters->func);
    uint32_t bytes = kernel != NULL ? (uint32_t)kernel->info.parameter_bytes : 0;
    unsigned char *block = frame_scratch(frame, bytes, 1);
    for (size_t i = 0; kernel != NULL && block != NULL && i < kernel->info.parameter_count; i++) {
        memcpy(block + kernel->info.parameter_offsets[i], parameters->kernelParams[i],
               kernel->info.parameter_sizes[i]);
    }
    parameters->kernelParams = NULL;
    frame_give(frame, parameters, sizeof *parameters);
    frame_give(frame, &bytes, sizeof bytes);
    frame_give(frame, block, block != NULL ? bytes : 0);
}

void frame_give_resource(struct frame *frame, const struct cudaResourceDesc *resource) {
    struct cudaResourceDesc given = *resource;
    turn_resource(frame->server, &given);
    frame_give(frame, &given, sizeof given);
}
