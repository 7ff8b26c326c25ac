#include "common/simt/runtime/remote/ask.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/mirror.h"
#include "common/simt/runtime/state.h"

static cudaError_t totals_of(const struct runtime *runtime, struct simt_totals *totals) {
    const struct report *report = &runtime->report;
    if (totals == NULL) {
        return cudaErrorInvalidValue;
    }
    *totals = (struct simt_totals){
        .copies_to_device = report->copies_to_device,
        .copies_to_host = report->copies_to_host,
        .copies_on_device = report->copies_on_device,
        .sets = report->sets,
        .bytes_to_device = report->bytes_to_device,
        .bytes_to_host = report->bytes_to_host,
        .bytes_on_device = report->bytes_on_device,
        .bytes_set = report->bytes_set,
        .allocations = report->allocations,
        .releases = report->releases,
        .nanoseconds = runtime_longest_clock(runtime),
    };
    for (const struct kernel_total *kernel = report->kernels; kernel != NULL;
         kernel = kernel->next) {
        totals->launches += kernel->launches;
        simt_counters_add(&totals->counters, &kernel->counters);
    }
    return cudaSuccess;
}

/* These leave the last error alone: they are no functions of CUDA. */
#define ASK(runtime, call)                     \
    struct runtime *runtime = runtime_enter(); \
    cudaError_t error = (call);                \
    runtime_unlock(runtime);                   \
    return error

cudaError_t simt_ask_totals(struct simt_totals *totals) {
    ASK(runtime, totals_of(runtime, totals));
}

static cudaError_t limits_of(const struct runtime *runtime, struct simt_limits *limits) {
    if (limits == NULL) {
        return cudaErrorInvalidValue;
    }
    simt_model_limits(limits, runtime->settings.gpu);
    return cudaSuccess;
}

cudaError_t simt_ask_limits(struct simt_limits *limits) {
    ASK(runtime, limits_of(runtime, limits));
}

static cudaError_t take_longest(struct runtime *runtime, struct simt_profile *profile) {
    if (profile == NULL) {
        return cudaErrorInvalidValue;
    }
    struct simt_profile *longest =
        runtime->controlled ? &runtime->controller_longest : &runtime->longest;
    *profile = *longest;
    *longest = (struct simt_profile){.nanoseconds = 0};
    return profile->nanoseconds > 0 ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t simt_ask_longest(struct simt_profile *profile) {
    ASK(runtime, take_longest(runtime, profile));
}

/* What any device does from here on is later than what is read, and what is at work ends no
 * earlier: one that is behind would work in no time. */
static void meet(struct runtime *runtime, double clock) {
    runtime_meet(runtime, clock);
    runtime->clock = clock;
    for (int d = 0; d < runtime->settings.devices; d++) {
        runtime->others[d].clock = clock;
    }
}

static cudaError_t state_of(struct runtime *runtime, struct simt_device_state *state) {
    if (state == NULL || !runtime->controlled) {
        return cudaErrorNotPermitted;
    }
    const double clock = runtime_longest_clock(runtime);
    meet(runtime, clock);
    *state = (struct simt_device_state){
        .nanoseconds = clock - runtime->controller_nanoseconds,
        .calls = runtime->calls,
        .faults = runtime->faults,
        .sent = runtime->sent,
        .fetched = runtime->fetched,
        .unfinished = runtime->flights.count,
    };
    return totals_of(runtime, &state->totals);
}

cudaError_t simt_ask_state(struct simt_device_state *state) {
    ASK(runtime, state_of(runtime, state));
}

static cudaError_t tell_gpu(const struct runtime *runtime, char *key, int size) {
    if (key == NULL || size < 1) {
        return cudaErrorInvalidValue;
    }
    snprintf(key, (size_t)size, "%s", runtime->settings.gpu->key);
    return cudaSuccess;
}

cudaError_t simt_ask_gpu(char *key, int size) {
    ASK(runtime, tell_gpu(runtime, key, size));
}

static cudaError_t give_name(struct runtime *runtime, const void *pointer, const char *name) {
    enum status status = simt_memory_name(runtime->memory, (uint64_t)(uintptr_t)pointer, name);
    return runtime_error_of(status);
}

cudaError_t simt_ask_name(const void *pointer, const char *name) {
    ASK(runtime, give_name(runtime, pointer, name));
}

static cudaError_t layout_of(struct runtime *runtime, struct simt_kernel_layout *layout,
                             const void *function) {
    struct kernel *kernel = kernel_find(runtime, function);
    if (layout == NULL || kernel == NULL) {
        return layout == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    CUDA_TRY(kernel_prepare(runtime, kernel));
    const struct simt_kernel_info *info = &kernel->info;
    if (info->parameter_count > SIMT_MOST_PARAMETERS) {
        return cudaErrorNotSupported;
    }
    layout->bytes = (uint32_t)info->parameter_bytes;
    layout->count = (uint32_t)info->parameter_count;
    for (size_t i = 0; i < info->parameter_count; i++) {
        layout->parameters[i].offset = (uint32_t)info->parameter_offsets[i];
        layout->parameters[i].bytes = (uint32_t)info->parameter_sizes[i];
    }
    return cudaSuccess;
}

cudaError_t simt_ask_layout(struct simt_kernel_layout *layout, const void *function) {
    QUERY_CALL(runtime, layout_of(runtime, layout, function)); /* a launch asks */
}

static cudaError_t place_of(const struct runtime *runtime, struct simt_place *place,
                            const void *address) {
    if (place == NULL) {
        return cudaErrorInvalidValue;
    }
    simt_memory_describe(runtime->memory, (uint64_t)(uintptr_t)address, place->text,
                         sizeof place->text);
    return cudaSuccess;
}

cudaError_t simt_ask_place(struct simt_place *place, const void *address) {
    ASK(runtime, place_of(runtime, place, address));
}

static cudaError_t give_page(struct runtime *runtime, const void *address, bool writes) {
    return mirror_fault(runtime, address, writes) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t simt_ask_page(const void *address, unsigned writes) {
    struct runtime *runtime = runtime_lock(); /* also when the program has finished */
    cudaError_t error = give_page(runtime, address, writes != 0);
    runtime_unlock(runtime);
    return error;
}

/* Modules. */

static cudaError_t add_module(struct runtime *runtime, simt_module_handle *handle,
                              struct fatbin_wrapper wrapper, const void *data, size_t bytes) {
    struct module *module = handle != NULL ? module_add_copy(runtime, &wrapper, data, bytes) : NULL;
    if (module == NULL) {
        return cudaErrorInvalidValue;
    }
    *handle = module;
    return cudaSuccess;
}

cudaError_t simt_add_module(simt_module_handle *module, struct fatbin_wrapper wrapper,
                            const void *data, size_t bytes) {
    ASK(runtime, add_module(runtime, module, wrapper, data, bytes));
}

static cudaError_t add_file(struct runtime *runtime, struct module *module, const void *data,
                            size_t bytes) {
    if (module_find(runtime, module) == NULL || module->wrapper != &module->copied ||
        module->core != NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!module_add_file(runtime, module, data, bytes)) {
        runtime_say("file %zu of the program does not reach the device", module->file_count + 1);
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t simt_add_file(simt_module_handle module, const void *data, size_t bytes) {
    ASK(runtime, add_file(runtime, module, data, bytes));
}

static cudaError_t drop_module(struct runtime *runtime, struct module *module) {
    if (module_find(runtime, module) == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    module_remove(runtime, module);
    return cudaSuccess;
}

cudaError_t simt_drop_module(simt_module_handle module) {
    ASK(runtime, drop_module(runtime, module));
}

static cudaError_t add_kernel(struct runtime *runtime, struct module *module, const void *host,
                              const char *name, const char *spelt) {
    if (module_find(runtime, module) == NULL || name == NULL) {
        return cudaErrorInvalidValue;
    }
    module_add_kernel(module, host, name, spelt);
    return cudaSuccess;
}

cudaError_t simt_add_kernel(simt_module_handle module, const void *host, const char *name,
                            const char *spelt) {
    ASK(runtime, add_kernel(runtime, module, host, name, spelt));
}

static cudaError_t add_variable(struct runtime *runtime, struct module *module, const void *host,
                                void **managed, const char *name, size_t bytes) {
    if (module_find(runtime, module) == NULL || name == NULL) {
        return cudaErrorInvalidValue;
    }
    module_add_variable(module, host, managed, name, bytes);
    return cudaSuccess;
}

cudaError_t simt_add_variable(simt_module_handle module, const void *host, void **managed,
                              const char *name, size_t bytes) {
    ASK(runtime, add_variable(runtime, module, host, managed, name, bytes));
}

static cudaError_t load_module(struct runtime *runtime, struct module *module) {
    return module_find(runtime, module) != NULL ? module_prepare(runtime, module)
                                                : cudaErrorInvalidValue;
}

cudaError_t simt_load_module(simt_module_handle module) {
    ASK(runtime, load_module(runtime, module));
}

cudaError_t simt_finish(unsigned refused) {
    struct runtime *runtime = runtime_lock();
    runtime->refused = runtime->refused || refused;
    runtime_unlock(runtime);
    runtime_finish();
    return runtime->findings > 0 ? cudaErrorLaunchFailure : cudaSuccess;
}
