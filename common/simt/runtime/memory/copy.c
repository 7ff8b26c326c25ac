/**
 * @file copy.c
 * @brief cudaMemcpy and cudaMemset in all their forms.
 *
 * Forms without a stream wait for the device first, so they also report what
 * an earlier kernel did wrong.
 */
#include <cuda_runtime_api.h>

#include "common/simt/runtime/array/array.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    struct work work = work_copy_bytes("cudaMemcpy", to, from, bytes, kind);
    SYNCHRONOUS_CALL(
        runtime, order_waited_for_copy(runtime, stream_submit(runtime, cudaStreamLegacy, &work)));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    struct work work = work_copy_bytes("cudaMemcpyAsync", to, from, bytes, kind);
    DEVICE_CALL(runtime, stream_submit(runtime, stream, &work));
}

/** @return whether a pointer is what it is said to be: memory of that device. */
static bool lies_on(struct runtime *runtime, const void *pointer, int device, const char *side) {
    int owner = simt_memory_device_of(runtime->memory, (uint64_t)(uintptr_t)pointer);
    if (owner >= 0 && owner != device) {
        runtime_explain(runtime, "cudaMemcpyPeer: the %s, %p, is memory of device %d, not of %d",
                        side, pointer, owner, device);
    }
    return owner < 0 || owner == device; /* what is no memory of a device is told as such */
}

static cudaError_t copy_peer(struct runtime *runtime, void *to, int to_device, const void *from,
                             int from_device, size_t bytes, cudaStream_t stream) {
    int devices = runtime->settings.devices;
    if (to_device < 0 || to_device >= devices || from_device < 0 || from_device >= devices) {
        return cudaErrorInvalidDevice;
    }
    if (!lies_on(runtime, to, to_device, "target") ||
        !lies_on(runtime, from, from_device, "source")) {
        return cudaErrorInvalidValue;
    }
    struct work work = work_copy_bytes("cudaMemcpyPeer", to, from, bytes, cudaMemcpyDeviceToDevice);
    return stream_submit(runtime, stream, &work);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
    SYNCHRONOUS_CALL(runtime, order_waited_for_copy(runtime, copy_peer(runtime, to, to_device, from,
                                                                       from_device, bytes, NULL)));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream) {
    DEVICE_CALL(runtime, copy_peer(runtime, to, to_device, from, from_device, bytes, stream));
}

static cudaError_t copy_rows(struct runtime *runtime, struct area to, struct area from,
                             size_t width, size_t height, enum cudaMemcpyKind kind,
                             cudaStream_t stream) {
    if (width > to.pitch || width > from.pitch) {
        return cudaErrorInvalidPitchValue;
    }
    struct work work = work_copy_bytes("cudaMemcpy2D", to.pointer, from.pointer, width, kind);
    work.copy.to = to;
    work.copy.from = from;
    work.copy.box.height = height;
    return stream_submit(runtime, stream, &work);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind) {
    struct area target = {.pointer = to, .pitch = to_pitch};
    struct area source = {.pointer = (void *)(uintptr_t)from, .pitch = from_pitch};
    SYNCHRONOUS_CALL(runtime, order_waited_for_copy(runtime, copy_rows(runtime, target, source,
                                                                       width, height, kind, NULL)));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
    struct area target = {.pointer = to, .pitch = to_pitch};
    struct area source = {.pointer = (void *)(uintptr_t)from, .pitch = from_pitch};
    DEVICE_CALL(runtime, copy_rows(runtime, target, source, width, height, kind, stream));
}

/** @return where a copy begins inside a pitched allocation, planes `ysize` rows apart. */
static struct area area_at(const struct cudaPitchedPtr *pitched, const struct cudaPos *position) {
    size_t slice = pitched->pitch * pitched->ysize;
    size_t offset = position->z * slice + position->y * pitched->pitch + position->x;
    struct area area = {.pointer = pitched->ptr, .pitch = pitched->pitch, .slice = slice};
    if (pitched->ptr != NULL) {
        area.pointer = (void *)((uintptr_t)pitched->ptr + offset);
    }
    return area;
}

cudaError_t work_copy_planes(const struct runtime *runtime, const char *call,
                             const struct cudaMemcpy3DParms *parameters, struct work *work) {
    if (parameters == NULL) {
        return cudaErrorInvalidValue;
    }
    if (parameters->srcArray != NULL || parameters->dstArray != NULL) {
        return array_planes_work(runtime, call, parameters, work);
    }
    *work = (struct work){.kind = WORK_COPY, .call = call};
    work->copy = (struct copy_work){
        .to = area_at(&parameters->dstPtr, &parameters->dstPos),
        .from = area_at(&parameters->srcPtr, &parameters->srcPos),
        .box = {.width = parameters->extent.width,
                .height = parameters->extent.height,
                .depth = parameters->extent.depth},
        .kind = parameters->kind,
    };
    return cudaSuccess;
}

static cudaError_t copy_planes(struct runtime *runtime, const struct cudaMemcpy3DParms *parameters,
                               cudaStream_t stream) {
    struct work work;
    CUDA_TRY(work_copy_planes(runtime, "cudaMemcpy3D", parameters, &work));
    return stream_submit(runtime, stream, &work);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters) {
    SYNCHRONOUS_CALL(runtime,
                     order_waited_for_copy(runtime, copy_planes(runtime, parameters, NULL)));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream) {
    DEVICE_CALL(runtime, copy_planes(runtime, parameters, stream));
}

static cudaError_t set(struct runtime *runtime, const char *call, struct area to, int value,
                       struct box box, cudaStream_t stream) {
    struct work work = {.kind = WORK_SET, .call = call};
    work.set = (struct set_work){.to = to, .box = box, .value = (unsigned)value, .element = 1};
    return stream_submit(runtime, stream, &work);
}

/** The host waits where the target is pinned or managed memory. */
static cudaError_t set_and_wait(struct runtime *runtime, const char *call, struct area to,
                                int value, struct box box) {
    cudaError_t error = set(runtime, call, to, value, box, cudaStreamLegacy);
    return host_block_find(runtime, to.pointer) != NULL ? order_waited_for_copy(runtime, error)
                                                        : error;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    struct area area = {.pointer = to};
    struct box box = {.width = bytes, .height = 1, .depth = 1};
    DEVICE_CALL(runtime, set_and_wait(runtime, "cudaMemset", area, value, box));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    struct area area = {.pointer = to};
    struct box box = {.width = bytes, .height = 1, .depth = 1};
    DEVICE_CALL(runtime, set(runtime, "cudaMemsetAsync", area, value, box, stream));
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    struct area area = {.pointer = to, .pitch = pitch};
    struct box box = {.width = width, .height = height, .depth = 1};
    DEVICE_CALL(runtime, set_and_wait(runtime, "cudaMemset2D", area, value, box));
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    struct area area = {.pointer = to, .pitch = pitch};
    struct box box = {.width = width, .height = height, .depth = 1};
    DEVICE_CALL(runtime, set(runtime, "cudaMemset2DAsync", area, value, box, stream));
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent) {
    struct cudaPos start = {0};
    struct area area = area_at(&pitched, &start);
    struct box box = {.width = extent.width, .height = extent.height, .depth = extent.depth};
    DEVICE_CALL(runtime, set_and_wait(runtime, "cudaMemset3D", area, value, box));
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitched, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
    struct cudaPos start = {0};
    struct area area = area_at(&pitched, &start);
    struct box box = {.width = extent.width, .height = extent.height, .depth = extent.depth};
    DEVICE_CALL(runtime, set(runtime, "cudaMemset3DAsync", area, value, box, stream));
}

/** Finds `bytes` bytes at an offset of a device variable. */
static cudaError_t symbol_span(struct runtime *runtime, const char *call, const void *symbol,
                               size_t offset, size_t bytes, void **memory) {
    uint64_t address = 0;
    size_t size = 0;
    CUDA_TRY(variable_find(runtime, symbol, &address, &size));
    if (offset > size || bytes > size - offset) {
        runtime_explain(runtime, "%s uses %zu bytes at offset %zu of a variable of %zu bytes", call,
                        bytes, offset, size);
        return cudaErrorInvalidValue;
    }
    *memory = (void *)(uintptr_t)(address + offset);
    return cudaSuccess;
}

static cudaError_t to_symbol(struct runtime *runtime, const void *symbol, const void *from,
                             size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                             cudaStream_t stream) {
    void *to = NULL;
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    CUDA_TRY(symbol_span(runtime, "cudaMemcpyToSymbol", symbol, offset, bytes, &to));
    struct work work = work_copy_bytes("cudaMemcpyToSymbol", to, from, bytes, kind);
    return stream_submit(runtime, stream, &work);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(runtime, order_waited_for_copy(runtime, to_symbol(runtime, symbol, from, bytes,
                                                                       offset, kind, NULL)));
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
    DEVICE_CALL(runtime, to_symbol(runtime, symbol, from, bytes, offset, kind, stream));
}

static cudaError_t from_symbol(struct runtime *runtime, void *to, const void *symbol, size_t bytes,
                               size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
    void *from = NULL;
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault) {
        return cudaErrorInvalidMemcpyDirection;
    }
    CUDA_TRY(symbol_span(runtime, "cudaMemcpyFromSymbol", symbol, offset, bytes, &from));
    struct work work = work_copy_bytes("cudaMemcpyFromSymbol", to, from, bytes, kind);
    return stream_submit(runtime, stream, &work);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(runtime, order_waited_for_copy(runtime, from_symbol(runtime, to, symbol, bytes,
                                                                         offset, kind, NULL)));
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
    DEVICE_CALL(runtime, from_symbol(runtime, to, symbol, bytes, offset, kind, stream));
}

static cudaError_t symbol_address(struct runtime *runtime, void **memory, const void *symbol) {
    uint64_t address = 0;
    size_t size = 0;
    cudaError_t error =
        memory == NULL ? cudaErrorInvalidValue : variable_find(runtime, symbol, &address, &size);
    if (error == cudaSuccess) {
        *memory = (void *)(uintptr_t)address;
    }
    return error;
}

cudaError_t cudaGetSymbolAddress(void **memory, const void *symbol) {
    DEVICE_CALL(runtime, symbol_address(runtime, memory, symbol));
}

static cudaError_t symbol_size(struct runtime *runtime, size_t *bytes, const void *symbol) {
    uint64_t address = 0;
    return bytes == NULL ? cudaErrorInvalidValue : variable_find(runtime, symbol, &address, bytes);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    DEVICE_CALL(runtime, symbol_size(runtime, bytes, symbol));
}
