/**
 * @file error.c
 * @brief The last error, and errors in words.
 */
#include <cuda_runtime_api.h>

#include "common/simt/runtime/error/error_list.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/unsupported/unsupported_list.h"

static const char *const UNKNOWN = "unrecognized error code";

EXPORTED cudaError_t cudaGetLastError(void) {
    cudaError_t error = *runtime_last_error();
    *runtime_last_error() = cudaSuccess;
    return error;
}

EXPORTED cudaError_t cudaPeekAtLastError(void) {
    return *runtime_last_error();
}

EXPORTED const char *cudaGetErrorName(cudaError_t error) {
    switch ((int)error) {
#define NAME_CASE(name, text) \
    case name:                \
        return #name;
        ERROR_LIST(NAME_CASE)
#undef NAME_CASE
    default:
        return UNKNOWN;
    }
}

EXPORTED const char *cudaGetErrorString(cudaError_t error) {
    switch ((int)error) {
#define TEXT_CASE(name, text) \
    case name:                \
        return text;
        ERROR_LIST(TEXT_CASE)
#undef TEXT_CASE
    default:
        return UNKNOWN;
    }
}

int unsupported_call(const char *name, bool *said) {
    struct runtime *runtime = runtime_lock(); /* there may be no device in this process */
    if (!*said) {
        *said = true;
        fflush(stdout);
        fprintf(stderr, "simt: %s is not supported by the emulator\n", name);
    }
    return (int)runtime_leave(runtime, cudaErrorNotSupported);
}
