#include "common/simt/runtime/remote/ask.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/mirror.h"
#include "common/simt/runtime/memory/program_memory.h"
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

static cudaError_t state_of(const struct runtime *runtime, struct simt_device_state *state) {
    if (state == NULL || !runtime->controlled) {
        return cudaErrorNotPermitted;
    }
    *state = (struct simt_device_state){
        .nanoseconds = runtime_longest_clock(runtime) - runtime->controller_nanoseconds,
        .calls = runtime->calls,
        .faults = runtime->faults,
        .sent = runtime->sent,
        .fetched = runtime->fetched,
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

enum { FATBIN_HEADER = 16 };

/** Whether the header's size is that of the copy, so that nothing behind it is read. */
static bool has_its_size(const unsigned char *copy, size_t bytes) {
    uint64_t told;
    if (bytes < FATBIN_HEADER) {
        return bytes == 0;
    }
    memcpy(&told, copy + 8, sizeof told);
    return told == bytes - FATBIN_HEADER;
}

/** @return a copy of a fat binary of the program's, which its own header ends; NULL: there is none.
 */
static void *copy_fatbin(struct runtime *runtime, const void *data, size_t bytes) {
    enum { MOST = 1 << 30 };
    unsigned char *copy = bytes <= MOST ? calloc(1, bytes + FATBIN_HEADER) : NULL;
    if (copy != NULL &&
        (!(bytes == 0 || program_read(runtime, copy, data, bytes)) || !has_its_size(copy, bytes))) {
        free(copy);
        return NULL;
    }
    return copy;
}

static cudaError_t add_module(struct runtime *runtime, simt_module_handle *handle,
                              struct fatbin_wrapper wrapper, const void *data, size_t bytes) {
    static const void *const no_files[] = {NULL};
    void *copy = handle != NULL ? copy_fatbin(runtime, data, bytes) : NULL;
    struct module *module = copy != NULL ? module_add(runtime, NULL) : NULL;
    if (module == NULL) {
        free(copy);
        return cudaErrorInvalidValue;
    }
    module->copied = wrapper;
    module->copied.data = copy;
    module->copied.files = no_files;
    module->wrapper = &module->copied;
    module->copy = copy;
    *handle = module;
    return cudaSuccess;
}

cudaError_t simt_add_module(simt_module_handle *module, struct fatbin_wrapper wrapper,
                            const void *data, size_t bytes) {
    ASK(runtime, add_module(runtime, module, wrapper, data, bytes));
}

/** Adds to the list that stands for the program's, with NULL at its end. */
static bool keep_file(struct module *module, void *copy) {
    void **copies =
        realloc(module->file_copies, (module->file_count + 2) * sizeof *module->file_copies);
    if (copies == NULL) {
        return false;
    }
    copies[module->file_count++] = copy;
    copies[module->file_count] = NULL;
    module->file_copies = copies;
    module->copied.files = (const void *const *)copies;
    return true;
}

static cudaError_t add_file(struct runtime *runtime, struct module *module, const void *data,
                            size_t bytes) {
    if (module_find(runtime, module) == NULL || module->copy == NULL || module->core != NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    /* One more than load() accepts, which says so. */
    void *copy = bytes > 0 && module->file_count <= MODULE_MOST_FILES
                     ? copy_fatbin(runtime, data, bytes)
                     : NULL;
    if (copy == NULL || !keep_file(module, copy)) {
        runtime_say("file %zu of the program does not reach the device", module->file_count + 1);
        free(copy);
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
