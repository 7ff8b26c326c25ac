#include "common/simt/runtime/stream/work.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/runtime/collective/communicator.h"
#include "common/simt/runtime/gpu/link.h"
#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/graph/condition.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/graph/memory_nodes.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/mirror.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

struct work work_copy_bytes(const char *call, void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind) {
    struct work work = {.kind = WORK_COPY, .call = call};
    work.copy = (struct copy_work){.to = {.pointer = to},
                                   .from = {.pointer = (void *)(uintptr_t)from},
                                   .box = {.width = bytes, .height = 1, .depth = 1},
                                   .kind = kind};
    return work;
}

static bool is_empty(const struct box *box) {
    return box->width == 0 || box->height == 0 || box->depth == 0;
}

/** @return false when the bytes from first to last do not fit a size_t. */
static bool span_of(const struct area *area, const struct box *box, size_t *bytes) {
    size_t rows, planes;
    return checked_multiply(box->height - 1, area->pitch, &rows) &&
           checked_multiply(box->depth - 1, area->slice, &planes) &&
           checked_add(rows, planes, &rows) && checked_add(rows, box->width, bytes);
}

/**
 * @brief Checks memory that must be usable by the device.
 * @param uses "writes" or "reads"
 */
static cudaError_t check_device(struct runtime *runtime, const char *call, const char *uses,
                                const void *pointer, size_t bytes) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    struct simt_allocation allocation = {0};
    if (!simt_memory_find(runtime->memory, address, &allocation)) {
        bool device = simt_memory_is_device(runtime->memory, pointer);
        runtime_explain(runtime, "%s %s %zu bytes at %p, which is %s", call, uses, bytes, pointer,
                        device ? "no device memory that was allocated"
                               : "ordinary host memory, not device memory");
        return cudaErrorInvalidValue;
    }
    size_t offset = (size_t)(address - allocation.address);
    if (allocation.freed && !(allocation.kept && runtime->recording)) {
        runtime_explain(runtime, "%s %s %zu bytes at %p in freed memory: %s of %zu bytes", call,
                        uses, bytes, pointer, allocation.what, allocation.bytes);
        return cudaErrorInvalidValue;
    }
    if (bytes > allocation.bytes - offset) {
        runtime_explain(
            runtime, "%s %s %zu bytes at %p, but only %zu are left of the %zu bytes of %s", call,
            uses, bytes, pointer, allocation.bytes - offset, allocation.bytes, allocation.what);
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

/** Checks one side of a copy; @p device: the direction says that it is device memory. */
static cudaError_t check_side(struct runtime *runtime, const struct work *work,
                              const struct area *area, const char *uses, bool device) {
    const struct box *box = &work->copy.box;
    size_t bytes = 0;
    if ((box->height > 1 || box->depth > 1) && area->pitch < box->width) {
        return cudaErrorInvalidPitchValue;
    }
    if (area->pointer == NULL || !span_of(area, box, &bytes)) {
        return cudaErrorInvalidValue;
    }
    if (device || simt_memory_is_device(runtime->memory, area->pointer)) {
        return check_device(runtime, work->call, uses, area->pointer, bytes);
    }
    return cudaSuccess;
}

static cudaError_t check_copy(struct runtime *runtime, const struct work *work) {
    const struct copy_work *copy = &work->copy;
    if ((unsigned)copy->kind > cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if (is_empty(&copy->box)) {
        return cudaSuccess;
    }
    bool to_device = copy->kind == cudaMemcpyHostToDevice || copy->kind == cudaMemcpyDeviceToDevice;
    bool from_device =
        copy->kind == cudaMemcpyDeviceToHost || copy->kind == cudaMemcpyDeviceToDevice;
    cudaError_t error = check_side(runtime, work, &copy->to, "writes", to_device);
    return error != cudaSuccess ? error
                                : check_side(runtime, work, &copy->from, "reads", from_device);
}

static cudaError_t check_set(struct runtime *runtime, const struct work *work) {
    const struct set_work *set = &work->set;
    size_t bytes = 0;
    if (is_empty(&set->box)) {
        return cudaSuccess;
    }
    if ((set->box.height > 1 || set->box.depth > 1) && set->to.pitch < set->box.width) {
        return cudaErrorInvalidValue;
    }
    if (set->to.pointer == NULL || !span_of(&set->to, &set->box, &bytes)) {
        return cudaErrorInvalidValue;
    }
    return check_device(runtime, work->call, "writes", set->to.pointer, bytes);
}

static cudaError_t check_graphs(struct runtime *runtime, const struct work *work) {
    struct CUgraph_st *const *graphs;
    size_t count = work_graphs(work, &graphs);
    for (size_t n = 0; n < count; n++) {
        CUDA_TRY(graph_check(runtime, graphs[n]));
    }
    return cudaSuccess;
}

cudaError_t work_check(struct runtime *runtime, const struct work *work) {
    switch (work->kind) {
    case WORK_COPY:
        return check_copy(runtime, work);
    case WORK_SET:
        return check_set(runtime, work);
    case WORK_KERNEL:
        return launch_check(runtime, &work->kernel);
    case WORK_HOST:
        return work->host.function != NULL ? cudaSuccess : cudaErrorInvalidValue;
    case WORK_GRAPH:
    case WORK_CONDITION:
        return check_graphs(runtime, work);
    case WORK_RECORD:
    case WORK_WAIT:
        return event_check(runtime, work->event);
    case WORK_COLLECTIVE:
        return collective_check(runtime, work->collective);
    case WORK_ALLOCATE:
    case WORK_RELEASE:
    case WORK_EMPTY:
        break;
    }
    return cudaSuccess;
}

cudaError_t work_check_recorded(struct runtime *runtime, const struct work *work) {
    runtime->recording = true;
    cudaError_t error = work_check(runtime, work);
    runtime->recording = false;
    return error;
}

/** @return where the emulator finds a byte that kernels may use. */
static unsigned char *mapped(const struct runtime *runtime, const void *pointer) {
    return simt_memory_host(runtime->memory, (uint64_t)(uintptr_t)pointer);
}

/** Marks rows of device memory as written, and L2 as holding them. */
static void mark(struct runtime *runtime, const struct area *area, const struct box *box) {
    if (!simt_memory_is_device(runtime->memory, area->pointer)) {
        return;
    }
    uint64_t base = (uint64_t)(uintptr_t)area->pointer;
    for (size_t plane = 0; plane < box->depth; plane++) {
        for (size_t row = 0; row < box->height; row++) {
            uint64_t address = base + plane * area->slice + row * area->pitch;
            simt_memory_mark(runtime->memory, address, box->width);
            simt_memory_touched(runtime->memory, address, box->width);
        }
    }
}

/** Marks rows of device memory as written where those they were copied from are. */
static void mark_copy(struct runtime *runtime, const struct copy_work *copy) {
    if (!simt_memory_is_device(runtime->memory, copy->to.pointer)) {
        return;
    }
    uint64_t to = (uint64_t)(uintptr_t)copy->to.pointer;
    uint64_t from = (uint64_t)(uintptr_t)copy->from.pointer;
    for (size_t plane = 0; plane < copy->box.depth; plane++) {
        for (size_t row = 0; row < copy->box.height; row++) {
            simt_memory_mark_copy(
                runtime->memory, to + plane * copy->to.slice + row * copy->to.pitch,
                from + plane * copy->from.slice + row * copy->from.pitch, copy->box.width);
        }
    }
}

/** Host memory that the device does not reach by itself. */
static bool is_pageable(struct runtime *runtime, const void *host) {
    return host_block_find(runtime, host) == NULL;
}

static int device_of(const struct runtime *runtime, const void *pointer) {
    return simt_memory_device_of(runtime->memory, (uint64_t)(uintptr_t)pointer);
}

/** Counts a copy and its modelled time. Host to host takes no device time. */
static void account_copy(struct runtime *runtime, const struct copy_work *copy, bool graph) {
    bool to = simt_memory_is_device(runtime->memory, copy->to.pointer);
    bool from = simt_memory_is_device(runtime->memory, copy->from.pointer);
    size_t bytes = copy->box.width * copy->box.height * copy->box.depth;
    struct report *report = &runtime->report;
    struct simt_cost cost = {.kind = to && from ? SIMT_COST_DEVICE_COPY : SIMT_COST_BUS_COPY,
                             .graph = graph,
                             .pageable =
                                 is_pageable(runtime, to ? copy->from.pointer : copy->to.pointer),
                             .bytes = bytes};
    if (!to && !from) {
        return;
    }
    if (to && from) {
        report->copies_on_device++;
        report->bytes_on_device += bytes;
        if (device_of(runtime, copy->to.pointer) != device_of(runtime, copy->from.pointer)) {
            runtime->clock += simt_link_copy(runtime->settings.gpu, bytes);
            return;
        }
    } else if (to) {
        report->copies_to_device++;
        report->bytes_to_device += bytes;
        runtime->sent += runtime->controlled ? 0 : bytes;
    } else {
        report->copies_to_host++;
        report->bytes_to_host += bytes;
        runtime->fetched += runtime->controlled ? 0 : bytes;
    }
    simt_model_advance(&runtime->clock, runtime->settings.gpu, &cost);
}

/** Within the program: from and to memory that the device may have. */
static void copy_in_program(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    unsigned char *between = malloc(bytes);
    if (between != NULL && mirror_read(runtime, between, from, bytes)) {
        (void)mirror_write(runtime, to, between, bytes);
    }
    free(between);
}

/** Copies bytes that lie side by side; what the program has not got is not copied. */
static void copy_run(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    bool to_device = simt_memory_is_device(runtime->memory, to);
    bool from_device = simt_memory_is_device(runtime->memory, from);
    if (to_device && from_device) {
        memmove(mapped(runtime, to), mapped(runtime, from), bytes);
    } else if (to_device) {
        (void)mirror_read(runtime, mapped(runtime, to), from, bytes);
    } else if (from_device) {
        (void)mirror_write(runtime, to, mapped(runtime, from), bytes);
    } else {
        copy_in_program(runtime, to, from, bytes);
    }
}

static void run_copy(struct runtime *runtime, const struct copy_work *copy, bool graph) {
    const struct area *to = &copy->to;
    const struct area *from = &copy->from;
    if (is_empty(&copy->box)) {
        return;
    }
    struct box box = copy->box;
    if (to->pitch == box.width && from->pitch == box.width) {
        box.width *= box.height;
        box.height = 1;
    }
    for (size_t plane = 0; plane < box.depth; plane++) {
        for (size_t row = 0; row < box.height; row++) {
            copy_run(runtime, (char *)to->pointer + plane * to->slice + row * to->pitch,
                     (const char *)from->pointer + plane * from->slice + row * from->pitch,
                     box.width);
        }
    }
    mark_copy(runtime, copy);
    account_copy(runtime, copy, graph);
}

static void fill_row(unsigned char *row, size_t width, unsigned value, unsigned element) {
    if (element == 1) {
        memset(row, (int)(value & 0xff), width);
        return;
    }
    for (size_t i = 0; i + element <= width; i += element) {
        memcpy(row + i, &value, element);
    }
}

static void run_set(struct runtime *runtime, const struct set_work *set, bool graph) {
    if (is_empty(&set->box)) {
        return;
    }
    unsigned char *to = mapped(runtime, set->to.pointer);
    size_t span = 0;
    if (span_of(&set->to, &set->box, &span)) {
        mirror_use(runtime, set->to.pointer, span);
    }
    for (size_t plane = 0; plane < set->box.depth; plane++) {
        for (size_t row = 0; row < set->box.height; row++) {
            fill_row(to + plane * set->to.slice + row * set->to.pitch, set->box.width, set->value,
                     set->element);
        }
    }
    mark(runtime, &set->to, &set->box);
    struct simt_cost cost = {.kind = SIMT_COST_SET,
                             .graph = graph,
                             .bytes = set->box.width * set->box.height * set->box.depth};
    runtime->report.sets++;
    runtime->report.bytes_set += cost.bytes;
    simt_model_advance(&runtime->clock, runtime->settings.gpu, &cost);
}

/** Work that uses no device memory by itself. @return whether it is such work */
static bool run_without_memory(struct runtime *runtime, const struct work *work,
                               cudaError_t *error) {
    switch (work->kind) {
    case WORK_HOST:
        program_call(runtime, work->host.function, work->host.data);
        return true;
    case WORK_GRAPH:
        conditions_begin(&runtime->conditions, work->graph); /* none are in a child graph */
        *error = graph_run(runtime, work->graph);
        return true;
    case WORK_CONDITION:
        *error = condition_run(runtime, work);
        return true;
    case WORK_RECORD:
        event_record_now(runtime, work->event);
        return true;
    case WORK_WAIT:
        event_wait_now(runtime, work->event);
        return true;
    case WORK_COLLECTIVE:
        *error = collective_run(runtime, work->collective);
        return true;
    case WORK_ALLOCATE:
    case WORK_RELEASE:
        *error = memory_node_run(runtime, work);
        return true;
    default:
        return false;
    }
}

cudaError_t work_run(struct runtime *runtime, const struct work *work, bool graph) {
    cudaError_t error = cudaSuccess;
    if (runtime->pending != cudaSuccess) {
        return cudaSuccess; /* the next call that waits reports it */
    }
    order_note(runtime, work);
    if (run_without_memory(runtime, work, &error)) {
        return error;
    }
    mirror_begin(runtime);
    if (work->kind == WORK_COPY) {
        run_copy(runtime, &work->copy, graph);
    } else if (work->kind == WORK_SET) {
        run_set(runtime, &work->set, graph);
    } else if (work->kind == WORK_KERNEL) {
        error = launch_run(runtime, &work->kernel, graph);
    }
    mirror_end(runtime);
    return error;
}

static cudaError_t duplicate_collective(struct work *work) {
    size_t bytes = collective_work_bytes(work->collective);
    struct collective_work *copy = malloc(bytes);
    if (copy == NULL) {
        work->kind = WORK_EMPTY;
        return cudaErrorMemoryAllocation;
    }
    memcpy(copy, work->collective, bytes);
    work->collective = copy;
    return cudaSuccess;
}

size_t work_graphs(const struct work *work, struct CUgraph_st *const **graphs) {
    bool is_child = work->kind == WORK_GRAPH, has_bodies = work->kind == WORK_CONDITION;
    *graphs = is_child ? &work->graph : has_bodies ? work->condition.bodies : NULL;
    return is_child ? 1 : has_bodies ? work->condition.size : 0;
}

/** Of a conditional node: copies of its bodies. */
static cudaError_t duplicate_bodies(struct work *copy) {
    struct condition_work *to = &copy->condition;
    struct CUgraph_st *const *from = to->bodies;
    to->bodies = calloc(to->size, sizeof *to->bodies);
    bool made = to->bodies != NULL;
    for (unsigned n = 0; made && n < to->size; n++) {
        to->bodies[n] = graph_copy(from[n]);
        made = to->bodies[n] != NULL;
    }
    if (!made) {
        work_free(copy);
    }
    return made ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t work_duplicate(struct work *copy, const struct work *work) {
    *copy = *work;
    if (work->kind == WORK_GRAPH) {
        copy->graph = graph_copy(work->graph);
        copy->kind = copy->graph != NULL ? WORK_GRAPH : WORK_EMPTY;
        return copy->graph != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    if (work->kind == WORK_COLLECTIVE) {
        return duplicate_collective(copy);
    }
    if (work->kind == WORK_CONDITION) {
        return duplicate_bodies(copy);
    }
    if (work->kind != WORK_KERNEL) {
        return cudaSuccess;
    }
    size_t bytes = work->kernel.kernel->info.parameter_bytes;
    copy->kernel.parameters = malloc(bytes + 1);
    if (copy->kernel.parameters == NULL) {
        copy->kind = WORK_EMPTY;
        return cudaErrorMemoryAllocation;
    }
    memcpy(copy->kernel.parameters, work->kernel.parameters, bytes);
    return cudaSuccess;
}

void work_free(struct work *work) {
    if (work->kind == WORK_KERNEL) {
        free(work->kernel.parameters);
    } else if (work->kind == WORK_GRAPH) {
        graph_free(work->graph);
    } else if (work->kind == WORK_COLLECTIVE) {
        free(work->collective);
    } else if (work->kind == WORK_CONDITION) {
        for (unsigned n = 0; work->condition.bodies != NULL && n < work->condition.size; n++) {
            graph_free(work->condition.bodies[n]);
        }
        free(work->condition.bodies);
    }
    work->kind = WORK_EMPTY;
}
