/**
 * @file names.h
 * @brief Gives the implementation's functions names of their own in the object files.
 *
 * The source defines cudaMalloc(); the linker sees simt_local_cudaMalloc, and the library's
 * cudaMalloc is the function of stubs.c that chooses between it and a device process. Every file of
 * the implementation includes this (through state.h); one that does not fails to link. The client,
 * which calls the library's functions, defines SIMT_CLIENT before.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_NAMES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_NAMES_H_

#include "common/simt/runtime/remote/ask.h"
#include "common/simt/runtime/remote/calls.h"

#ifndef SIMT_CLIENT
#define LOCAL_NAME(name, ...) extern __typeof__(name) name __asm__("simt_local_" #name);
DEVICE_CALLS(LOCAL_NAME)
#undef LOCAL_NAME
#endif

#endif
