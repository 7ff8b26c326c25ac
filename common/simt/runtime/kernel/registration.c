/**
 * @file registration.c
 * @brief What nvcc's host code calls before main(), and around `<<< >>>`.
 *
 * Declarations: crt/host_runtime.h and crt/device_functions.h of the toolkit,
 * in C++; the functions' addresses are all that nvcc's code needs.
 */

#include <cuda_runtime_api.h>

#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/remote/client.h"
#include "common/simt/runtime/state.h"

/** Configurations pushed by `<<< >>>` and not yet taken by the launch, innermost last. */
struct call_stack {
    struct {
        dim3 grid, block;
        size_t shared;
        cudaStream_t stream;
    } calls[16];
    size_t count;
};

static struct call_stack *the_call_stack(void) {
    static _Thread_local struct call_stack stack;
    return &stack;
}

void **__cudaRegisterFatBinary(const struct fatbin_wrapper *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const void *host, char *device, const char *name,
                            int thread_limit, void *tid, void *bid, void *block, void *grid,
                            int *warp_size);
void __cudaRegisterVar(void **handle, const void *host, char *device, const char *name,
                       int external, size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       cudaStream_t *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);

EXPORTED void **__cudaRegisterFatBinary(const struct fatbin_wrapper *wrapper) {
    struct runtime *runtime = runtime_lock();
    struct module *module = module_add(runtime, wrapper);
    runtime_unlock(runtime);
    return (void **)module;
}

EXPORTED void __cudaRegisterFatBinaryEnd(void **handle) {
    struct runtime *runtime = runtime_lock();
    struct module *module = module_find(runtime, handle);
    runtime_unlock(runtime);
    if (module != NULL) {
        client_add_module(module);
    }
}

EXPORTED void __cudaUnregisterFatBinary(void **handle) {
    struct runtime *runtime = runtime_lock();
    struct module *module = module_find(runtime, handle);
    runtime_unlock(runtime);
    if (module != NULL) {
        client_drop_module(module);
        runtime = runtime_lock();
        module_remove(runtime, module);
        runtime_unlock(runtime);
    }
}

EXPORTED void __cudaRegisterFunction(void **handle, const void *host, char *device,
                                     const char *name, int thread_limit, void *tid, void *bid,
                                     void *block, void *grid, int *warp_size) {
    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid;
    (void)warp_size;
    struct runtime *runtime = runtime_lock();
    struct module *module = module_find(runtime, handle);
    if (module != NULL) {
        module_add_kernel(module, host, name, NULL);
    }
    runtime_unlock(runtime);
}

static void register_variable(void **handle, const void *host, void **managed, const char *name,
                              size_t bytes) {
    struct runtime *runtime = runtime_lock();
    struct module *module = module_find(runtime, handle);
    if (module != NULL) {
        module_add_variable(module, host, managed, name, bytes);
    }
    runtime_unlock(runtime);
}

EXPORTED void __cudaRegisterVar(void **handle, const void *host, char *device, const char *name,
                                int external, size_t bytes, int constant, int global) {
    (void)device, (void)external, (void)constant, (void)global;
    register_variable(handle, host, NULL, name, bytes);
}

EXPORTED void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                       int external, size_t bytes, int constant, int global) {
    (void)device, (void)external, (void)constant, (void)global;
    register_variable(handle, host, host, name, bytes);
}

/** Loads a module, here or in the device's process. */
static bool load(struct module *module) {
    if (client_is_on()) {
        return client_load_module(module);
    }
    struct runtime *runtime = runtime_enter();
    cudaError_t error = module_prepare(runtime, module);
    return runtime_leave(runtime, error) == cudaSuccess;
}

EXPORTED char __cudaInitModule(void **handle) {
    struct runtime *runtime = runtime_lock();
    struct module *module = module_find(runtime, handle);
    runtime_unlock(runtime);
    if (module == NULL || !load(module)) {
        /* The host is about to follow the variable's pointer. */
        runtime_give_up("the program uses __managed__ variables of code that cannot be loaded");
    }
    return 1;
}

EXPORTED unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                              cudaStream_t stream) {
    struct call_stack *stack = the_call_stack();
    if (stack->count == sizeof stack->calls / sizeof *stack->calls) {
        return 1;
    }
    size_t top = stack->count++;
    stack->calls[top].grid = grid;
    stack->calls[top].block = block;
    stack->calls[top].shared = shared;
    stack->calls[top].stream = stream;
    return 0;
}

EXPORTED cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                cudaStream_t *stream) {
    struct call_stack *stack = the_call_stack();
    if (stack->count == 0) {
        *runtime_last_error() = cudaErrorMissingConfiguration;
        return cudaErrorMissingConfiguration;
    }
    size_t top = --stack->count;
    *grid = stack->calls[top].grid;
    *block = stack->calls[top].block;
    *shared = stack->calls[top].shared;
    *stream = stack->calls[top].stream;
    return cudaSuccess;
}

static cudaError_t get_kernel(struct runtime *runtime, cudaKernel_t *handle, const void *function) {
    struct kernel *kernel = kernel_find(runtime, function);
    *handle = kernel != NULL ? (cudaKernel_t)(uintptr_t)kernel->host : NULL;
    return kernel != NULL ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

EXPORTED cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    struct runtime *runtime = runtime_lock();
    return runtime_leave(runtime, get_kernel(runtime, kernel, function));
}

EXPORTED cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    return __cudaGetKernel(kernel, function);
}

EXPORTED cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) {
    return __cudaGetKernel((cudaKernel_t *)function, symbol);
}
