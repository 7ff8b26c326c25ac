#include "common/simt/runtime/kernel/modules.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"
#include "common/simt/fatbin/fatbin.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"

enum { WRAPPER_MAGIC = 0x466243b1, WRAPPER_VERSION = 1, FATBIN_HEADER = 16 };

struct module *module_add(struct runtime *runtime, const struct fatbin_wrapper *wrapper) {
    struct module *module = calloc(1, sizeof *module);
    if (module != NULL) {
        module->wrapper = wrapper;
        module->next = runtime->modules;
        runtime->modules = module;
    }
    return module;
}

void module_add_kernel(struct module *module, const void *host, const char *name,
                       const char *spelt) {
    struct kernel *kernel = calloc(1, sizeof *kernel);
    char *copy = strdup(name);
    char *readable = spelt != NULL ? strdup(spelt) : report_source_name(name);
    if (kernel == NULL || copy == NULL || readable == NULL) {
        free(kernel);
        free(copy);
        free(readable);
        return;
    }
    *kernel = (struct kernel){.module = module,
                              .host = host,
                              .name = copy,
                              .readable = readable,
                              .carveout = -1,
                              .next = module->kernels};
    module->kernels = kernel;
}

void module_add_variable(struct module *module, const void *host, void **managed, const char *name,
                         size_t bytes) {
    struct variable *variable = calloc(1, sizeof *variable);
    char *copy = strdup(name);
    if (variable == NULL || copy == NULL) {
        free(variable);
        free(copy);
        return;
    }
    *variable = (struct variable){.module = module,
                                  .host = host,
                                  .managed = managed,
                                  .name = copy,
                                  .bytes = bytes,
                                  .next = module->variables};
    module->variables = variable;
}

/** The program has no use for a managed variable of a module that is unloaded. */
static void withdraw_managed(struct runtime *runtime, struct variable *v) {
    struct host_block *block = v->memory != NULL ? host_block_find(runtime, v->memory) : NULL;
    if (block != NULL) {
        host_block_release(runtime, block);
    }
    v->memory = NULL;
}

/** Unloads a module from the core; its kernels stay registered. */
static void unload(struct runtime *runtime, struct module *module) {
    if (module->core == NULL) {
        return;
    }
    for (struct variable *v = module->variables; v != NULL; v = v->next) {
        withdraw_managed(runtime, v);
    }
    for (struct kernel *k = module->kernels; k != NULL; k = k->next) {
        k->known = false;
        k->refused = cudaSuccess;
    }
    simt_module_unload(module->core);
    module->core = NULL;
}

void module_remove(struct runtime *runtime, struct module *module) {
    struct module **link = &runtime->modules;
    while (*link != module) {
        link = &(*link)->next;
    }
    *link = module->next;
    unload(runtime, module);
    while (module->kernels != NULL) {
        struct kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        free(kernel->name);
        free(kernel->readable);
        free(kernel);
    }
    while (module->variables != NULL) {
        struct variable *variable = module->variables;
        module->variables = variable->next;
        free(variable->name);
        free(variable);
    }
    free(module->copy);
    free(module);
}

struct module *module_find(struct runtime *runtime, const void *handle) {
    struct module *module = runtime->modules;
    while (module != NULL && module != handle) {
        module = module->next;
    }
    return module;
}

struct kernel *kernel_find(struct runtime *runtime, const void *function) {
    for (struct module *m = runtime->modules; m != NULL; m = m->next) {
        for (struct kernel *k = m->kernels; k != NULL; k = k->next) {
            if (k->host == function) {
                return k;
            }
        }
    }
    return NULL;
}

/**
 * Finds the PTX behind a module's wrapper, and machine code where there is some.
 * @param unpacked receives the text's memory where it was compressed; the caller frees it
 */
static enum status find_ptx(const struct runtime *runtime, struct module *module,
                            struct fatbin_ptx *ptx, char **unpacked, struct error *error) {
    const struct fatbin_wrapper *wrapper = module->wrapper;
    if (wrapper->magic != WRAPPER_MAGIC) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the program's device code begins with 0x%x, not 0x%x",
                         (unsigned)wrapper->magic, (unsigned)WRAPPER_MAGIC);
    }
    if (wrapper->version != WRAPPER_VERSION) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the program was linked with nvcc -rdc=true (relocatable device code); "
                         "build it without, one translation unit a kernel");
    }
    /* What the header says is all there is to go by: the data has no other end. */
    uint64_t bytes;
    memcpy(&bytes, (const char *)wrapper->data + 8, sizeof bytes);
    unsigned highest = (unsigned)(runtime->settings.gpu->major * 10 + runtime->settings.gpu->minor);
    fatbin_find_code(wrapper->data, FATBIN_HEADER + bytes, highest, &module->code);
    enum status status = fatbin_find_ptx(wrapper->data, FATBIN_HEADER + bytes, highest, ptx, error);
    struct fatbin_packed packed;
    if (status == STATUS_UNSUPPORTED &&
        fatbin_find_packed(wrapper->data, FATBIN_HEADER + bytes, highest, &packed)) {
        status = fatbin_unpack(&packed, unpacked, &ptx->size, error);
        ptx->text = *unpacked;
        ptx->architecture = status == STATUS_OK ? packed.architecture : 0;
    }
    return status;
}

/** @param unpacked the caller frees, on failure too */
static enum status find_and_load(struct runtime *runtime, struct module *module, char **unpacked,
                                 struct error *error) {
    struct fatbin_ptx ptx = {0};
    struct ptx_module *parsed = NULL;
    enum status found = find_ptx(runtime, module, &ptx, unpacked, error);
    module->architecture = ptx.architecture;
    TRY(found);
    TRY(ptx_parse(&parsed, ptx.text, ptx.size, error));
    return simt_module_load(&module->core, parsed, runtime->memory, error);
}

static enum status load(struct runtime *runtime, struct module *module, struct error *error) {
    char *unpacked = NULL;
    enum status status = find_and_load(runtime, module, &unpacked, error);
    free(unpacked);
    return status;
}

/** Gives the program memory of its own for a managed variable. @return it, or NULL */
static void *mirror_managed(struct runtime *runtime, void *device, size_t bytes) {
    void *memory = program_allocate(runtime, bytes);
    if (memory == NULL || !program_write(runtime, memory, device, bytes) ||
        host_block_add_variable(runtime, memory, bytes, device) != cudaSuccess) {
        return NULL;
    }
    return memory;
}

static void publish_managed(struct runtime *runtime, struct module *module) {
    for (struct variable *v = module->variables; v != NULL; v = v->next) {
        uint64_t address = 0;
        size_t bytes = 0;
        if (v->managed == NULL ||
            simt_module_variable(module->core, v->name, &address, &bytes) != STATUS_OK) {
            continue;
        }
        simt_memory_mark(runtime->memory, address, bytes);
        v->memory = mirror_managed(runtime, simt_memory_host(runtime->memory, address), bytes);
        (void)program_write(runtime, v->managed, &v->memory, sizeof v->memory);
    }
}

cudaError_t module_prepare(struct runtime *runtime, struct module *module) {
    if (module->core != NULL || module->failure != cudaSuccess) {
        return module->failure;
    }
    struct error error = {0};
    enum status status = load(runtime, module, &error);
    if (status != STATUS_OK) {
        runtime_say("%s", error_text(&error, status));
        module->failure = status == STATUS_UNSUPPORTED && module->architecture == 0
                              ? cudaErrorNoKernelImageForDevice
                              : runtime_error_of(status);
        return module->failure;
    }
    publish_managed(runtime, module);
    return cudaSuccess;
}

/** Says a line that begins with the name of a function; the kernel's is made readable. */
static void say_of_function(const struct kernel *kernel, const char *line) {
    size_t length = strcspn(line, " :");
    if (strlen(kernel->name) == length && strncmp(kernel->name, line, length) == 0) {
        runtime_say("%s%s", kernel->readable, line + length);
        return;
    }
    char *mangled = strndup(line, length);
    char *name = mangled != NULL ? report_source_name(mangled) : NULL;
    runtime_say("%s%s", name != NULL ? name : "", name != NULL ? line + length : line);
    free(name);
    free(mangled);
}

cudaError_t kernel_prepare(struct runtime *runtime, struct kernel *kernel) {
    cudaError_t error = module_prepare(runtime, kernel->module);
    if (error != cudaSuccess || kernel->known) {
        return error;
    }
    if (kernel->refused != cudaSuccess) {
        return kernel->refused;
    }
    struct error explanation = {0};
    enum status status =
        simt_kernel_info(kernel->module->core, kernel->name, &kernel->info, &explanation);
    if (status != STATUS_OK) {
        say_of_function(kernel, error_text(&explanation, status));
        kernel->refused = runtime_error_of(status);
        return kernel->refused;
    }
    if (kernel->module->code.bytes != NULL) { /* the count of ptxas is better than an estimate */
        uint32_t registers =
            cubin_registers(kernel->module->code.bytes, kernel->module->code.size, kernel->name);
        kernel->info.registers = registers > 0 ? registers : kernel->info.registers;
    }
    kernel->known = true;
    return cudaSuccess;
}

static struct variable *find_variable(struct runtime *runtime, const void *symbol) {
    for (struct module *m = runtime->modules; m != NULL; m = m->next) {
        for (struct variable *v = m->variables; v != NULL; v = v->next) {
            if (v->host == symbol || (v->managed != NULL && v->memory == symbol)) {
                return v;
            }
        }
    }
    return NULL;
}

cudaError_t variable_find(struct runtime *runtime, const void *symbol, uint64_t *address,
                          size_t *bytes) {
    struct variable *variable = find_variable(runtime, symbol);
    if (variable == NULL || symbol == NULL) {
        return cudaErrorInvalidSymbol;
    }
    CUDA_TRY(module_prepare(runtime, variable->module));
    enum status status =
        simt_module_variable(variable->module->core, variable->name, address, bytes);
    return status == STATUS_OK ? cudaSuccess : cudaErrorInvalidSymbol;
}

void modules_unload(struct runtime *runtime) {
    for (struct module *m = runtime->modules; m != NULL; m = m->next) {
        unload(runtime, m);
    }
}
