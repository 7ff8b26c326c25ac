/**
 * @file stubs.c
 * @brief The functions that the library exports: each calls the implementation in this process or
 *        in the device's.
 */
#include <string.h>

/* All that is declared here and defined below is exported. */
#pragma GCC visibility push(default)
#include "common/simt/runtime/remote/ask.h"
#include "common/simt/runtime/remote/client.h"
#include "common/simt/runtime/remote/each.h"
#include "common/simt/runtime/remote/numbers.h"

/* What an argument adds to the call. */
#define PUT(v, p) PUT_1(v, STRIP p)
#define PUT_1(...) PUT_2(__VA_ARGS__)
#define PUT_2(v, kind, what) PUT_##kind(v, what)
#define PUT_IN(v, T) call_put(&call, &v, sizeof v);
#define PUT_INOUT(v, T) call_put_target(&call, v, sizeof *v);
#define PUT_POINTED(v, T) call_put_target(&call, v, sizeof *v);
#define PUT_FROM(v, bytes) call_put_source(&call, v, bytes);
#define PUT_TO(v, bytes) call_put_destination(&call, v, bytes);
#define PUT_HANDLE(v, T) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_NODE(v, T) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_NEW(v, T) call_put_number(&call, v != NULL);
#define PUT_NODES(v, count) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_NODES_OUT(v, room) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_EDGES_OUT(v, room) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_NODES_GIVEN(v, count) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_NODES_KEPT(v, count) call_put_number(&call, v != NULL);
#define PUT_TEXT(v, unused) call_put_text(&call, v);
#define PUT_TEXT_OUT(v, size) call_put_number(&call, v != NULL);
#define PUT_TEXT_KEPT(v, unused) call_put_number(&call, v != NULL);
#define PUT_ARGUMENTS(v, kernel) call_put_arguments(&call, v, kernel);
#define PUT_KERNEL_NODE(v, unused) call_put_kernel_node(&call, v);
#define PUT_KERNEL_NODE_OUT(v, unused) call_put_number(&call, v != NULL);
#define PUT_CONFIG(v, unused) call_put_config(&call, v);
#define PUT_PLANES(v, unused) call_put_target(&call, v, sizeof *v);
#define PUT_ACCESS(v, count) call_put_number(&call, (uint64_t)(uintptr_t)v);
#define PUT_POOL_VALUE(v, which) call_put_pool_value(&call, v, which);
#define PUT_POOL_VALUE_OUT(v, which) call_put_pool_value(&call, v, which);
#define PUT_RESOURCE(v, unused) call_put_target(&call, v, sizeof *v);
#define PUT_RESOURCE_OUT(v, unused) call_put_target(&call, v, sizeof *v);

/* What it takes from the answer. */
#define TAKE(v, p) TAKE_1(v, STRIP p)
#define TAKE_1(...) TAKE_2(__VA_ARGS__)
#define TAKE_2(v, kind, what) TAKE_##kind(v, what)
#define TAKE_IN(v, T)
#define TAKE_INOUT(v, T)                \
    if (v != NULL) {                    \
        call_take(&call, v, sizeof *v); \
    }
#define TAKE_POINTED(v, T)
#define TAKE_FROM(v, bytes)
#define TAKE_TO(v, bytes)
#define TAKE_HANDLE(v, T)
#define TAKE_NODE(v, T)
#define TAKE_NEW(v, T)                                        \
    if (v != NULL) {                                          \
        uint64_t number = call_take_number(&call);            \
        *v = number != UNTOUCHED ? (T)(uintptr_t)number : *v; \
    }
#define TAKE_NODES(v, count)
#define TAKE_NODES_OUT(v, room)
#define TAKE_EDGES_OUT(v, room)
#define TAKE_NODES_GIVEN(v, count)
#define TAKE_NODES_KEPT(v, count) call_take_nodes(&call, v);
#define TAKE_TEXT(v, unused)
#define TAKE_TEXT_OUT(v, size) call_take_text(&call, v, size);
#define TAKE_TEXT_KEPT(v, unused) call_take_kept_text(&call, v);
#define TAKE_ARGUMENTS(v, kernel)
#define TAKE_KERNEL_NODE(v, unused)
#define TAKE_KERNEL_NODE_OUT(v, unused) call_take_kernel_node(&call, v);
#define TAKE_CONFIG(v, unused)
#define TAKE_PLANES(v, unused)
#define TAKE_ACCESS(v, count)
#define TAKE_POOL_VALUE(v, which)
#define TAKE_POOL_VALUE_OUT(v, which) call_take_pool_value(&call, v, which);
#define TAKE_RESOURCE(v, unused)
#define TAKE_RESOURCE_OUT(v, unused) TAKE_INOUT(v, unused)

#define FUNCTION(name, count, ...)                                                \
    extern __typeof__(name) local_##name __asm__("simt_local_" #name);            \
    static cudaError_t remote_##name(PARAMETERS_##count(__VA_ARGS__)) {           \
        struct call call;                                                         \
        call_begin(&call, CALL_##name);                                           \
        EACH_##count(PUT, __VA_ARGS__) cudaError_t error = call_run(&call);       \
        EACH_##count(TAKE, __VA_ARGS__) return call_end(&call, error);            \
    }                                                                             \
    cudaError_t name(PARAMETERS_##count(__VA_ARGS__)) {                           \
        return client_is_on() ? remote_##name(LIST_##count(NAME_OF, __VA_ARGS__)) \
                              : local_##name(LIST_##count(NAME_OF, __VA_ARGS__)); \
    }

DEVICE_CALLS(FUNCTION)

/* nvcc's host code launches by this name. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

/* ---- The functions beside CUDA's that the library exports; see common/simt/simt.h ---- */

const char *simt_gpu_key(void);
void simt_read_totals(struct simt_totals *totals);
void simt_read_limits(struct simt_limits *limits);
bool simt_take_longest(struct simt_profile *profile);

const char *simt_gpu_key(void) {
    static _Thread_local char key[64];
    (void)simt_ask_gpu(key, sizeof key);
    return key;
}

void simt_read_totals(struct simt_totals *totals) {
    memset(totals, 0, sizeof *totals);
    (void)simt_ask_totals(totals);
}

void simt_read_limits(struct simt_limits *limits) {
    memset(limits, 0, sizeof *limits);
    (void)simt_ask_limits(limits);
}

bool simt_take_longest(struct simt_profile *profile) {
    memset(profile, 0, sizeof *profile);
    return simt_ask_longest(profile) == cudaSuccess;
}

bool simt_control_read_state(struct simt_device_state *state);

bool simt_control_read_state(struct simt_device_state *state) {
    memset(state, 0, sizeof *state);
    return simt_ask_state(state) == cudaSuccess;
}

bool simt_name(const void *pointer, const char *name) {
    return simt_ask_name(pointer, name) == cudaSuccess;
}
