#include "common/device/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/simt/simt.h"

/* Advice after a kernel's fault. */
static const char *fault_advice(void) {
    struct simt_api simt;
    return simt_find(&simt) ? "; a kernel launched before this did it: simt's lines say where"
                            : "; a kernel launched before this did it: run the program on simt "
                              "(--config=simt) or under compute-sanitizer to see where";
}

const char *device_advice(cudaError_t code) {
    switch ((int)code) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
        return fault_advice();
    case cudaErrorInvalidConfiguration:
        return "; check the grid, the block (at most 1024 threads) and the shared memory";
    case cudaErrorLaunchOutOfResources:
        return "; the block needs more registers than there are: use fewer threads, or "
               "__launch_bounds__";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidKernelImage:
        return "; build for this GPU: --config=gpu, or --@rules_cuda//cuda:archs=...";
    default:
        return "";
    }
}

static enum status status_of(cudaError_t code) {
    switch ((int)code) {
    case cudaErrorMemoryAllocation:
        return STATUS_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        return STATUS_NO_DEVICE;
    default:
        return STATUS_DEVICE;
    }
}

enum status device_fail(struct error *error, cudaError_t code, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    (void)cudaGetLastError();
    return error_set(error, status_of(code), "%s: %s (%s)%s", what, cudaGetErrorString(code),
                     cudaGetErrorName(code), device_advice(code));
}
