/**
 * @file ipc.c
 * @brief Memory of one program that another one uses: with a device process that both share.
 *
 * All programs see a device's memory at the same addresses, so a handle is the address, the number
 * of the allocation, and a key that only this device process has.
 */
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/state.h"

struct handle {
    char magic[8];
    uint64_t key[2], address, serial;
};

static const char MAGIC[8] = {'s', 'i', 'm', 't', '-', 'i', 'p', 'c'};

bool runtime_is_shared(const struct runtime *runtime, const char *call) {
    if (runtime->selected == NULL) {
        runtime_say("%s: programs share memory and events when each runs with "
                    "SIMT_DEVICE=shared:NAME, with the same NAME",
                    call);
    }
    return runtime->selected != NULL;
}

static cudaError_t get_memory(struct runtime *runtime, cudaIpcMemHandle_t *handle, void *memory) {
    struct simt_allocation allocation = {0};
    uint64_t address = (uint64_t)(uintptr_t)memory;
    if (handle == NULL || !simt_memory_find(runtime->memory, address, &allocation) ||
        allocation.freed || allocation.host || allocation.address != address) {
        return cudaErrorInvalidValue;
    }
    struct handle made = {
        .key = {runtime->key[0], runtime->key[1]}, .address = address, .serial = allocation.serial};
    memcpy(made.magic, MAGIC, sizeof made.magic);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &made, sizeof made);
    return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory) {
    DEVICE_CALL(runtime, runtime_is_shared(runtime, __func__) ? get_memory(runtime, handle, memory)
                                                              : cudaErrorNotSupported);
}

static cudaError_t open_memory(struct runtime *runtime, void **memory, cudaIpcMemHandle_t given,
                               unsigned flags) {
    struct handle handle;
    memcpy(&handle, &given, sizeof handle);
    if (memory == NULL || flags != cudaIpcMemLazyEnablePeerAccess) {
        return cudaErrorInvalidValue;
    }
    if (memcmp(handle.magic, MAGIC, sizeof MAGIC) != 0 ||
        memcmp(handle.key, runtime->key, sizeof handle.key) != 0) {
        runtime_explain(runtime, "cudaIpcOpenMemHandle: the handle is none of this device process: "
                                 "both programs need SIMT_DEVICE=shared:NAME with the same NAME");
        return cudaErrorInvalidResourceHandle;
    }
    enum status status = simt_memory_share(runtime->memory, handle.address, handle.serial);
    if (status != STATUS_OK) {
        return status == STATUS_INVALID_ARGUMENT ? cudaErrorDeviceUninitialized
                                                 : cudaErrorInvalidResourceHandle;
    }
    int device = simt_memory_device_of(runtime->memory, handle.address);
    simt_memory_allow(runtime->memory, runtime->device, device, true);
    *memory = (void *)(uintptr_t)handle.address;
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags) {
    DEVICE_CALL(runtime, runtime_is_shared(runtime, __func__)
                             ? open_memory(runtime, memory, handle, flags)
                             : cudaErrorNotSupported);
}

static cudaError_t close_memory(struct runtime *runtime, void *memory) {
    enum status status = simt_memory_unshare(runtime->memory, (uint64_t)(uintptr_t)memory);
    return status == STATUS_OK ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaIpcCloseMemHandle(void *memory) {
    WAITING_CALL(runtime, flights_wait_for_device(runtime), close_memory(runtime, memory));
}
