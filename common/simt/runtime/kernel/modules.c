#include "common/simt/runtime/kernel/modules.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"
#include "common/simt/fatbin/fatbin.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"

enum { FATBIN_HEADER = 16 };

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

void modules_select(struct runtime *runtime, int before, int device) {
    for (struct module *m = runtime->modules; m != NULL; m = m->next) {
        m->cores[before] = m->core;
        m->core = m->cores[device];
    }
}

/** Unloads a module from all devices. */
static void unload_everywhere(struct runtime *runtime, struct module *module) {
    unload(runtime, module);
    module->cores[runtime->device] = NULL;
    for (int d = 0; d < SIMT_MOST_DEVICES; d++) {
        module->core = module->cores[d];
        unload(runtime, module);
    }
}

void module_remove(struct runtime *runtime, struct module *module) {
    struct module **link = &runtime->modules;
    while (*link != module) {
        link = &(*link)->next;
    }
    *link = module->next;
    flights_finish(runtime);
    unload_everywhere(runtime, module);
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
    for (size_t n = 0; n < module->file_count; n++) {
        free(module->file_copies[n]);
    }
    free(module->file_copies);
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

/* What the header says is all there is to go by: the data has no other end. */
static size_t fatbin_bytes(const void *data) {
    uint64_t bytes;
    memcpy(&bytes, (const char *)data + 8, sizeof bytes);
    return (size_t)(FATBIN_HEADER + bytes);
}

static unsigned highest_architecture(const struct runtime *runtime) {
    return (unsigned)(runtime->settings.gpu->major * 10 + runtime->settings.gpu->minor);
}

/**
 * Finds the PTX in a fat binary.
 * @param unpacked receives the text's memory where it was compressed; the caller frees it
 */
static enum status find_ptx(const struct runtime *runtime, const void *data, struct fatbin_ptx *ptx,
                            char **unpacked, struct error *error) {
    unsigned highest = highest_architecture(runtime);
    enum status status = fatbin_find_ptx(data, fatbin_bytes(data), highest, ptx, error);
    struct fatbin_packed packed;
    if (status == STATUS_UNSUPPORTED &&
        fatbin_find_packed(data, fatbin_bytes(data), highest, &packed)) {
        status = fatbin_unpack(&packed, unpacked, &ptx->size, error);
        ptx->text = *unpacked;
        ptx->architecture = status == STATUS_OK ? packed.architecture : 0;
    }
    return status;
}

typedef enum status parse_ptx(struct ptx_module **module, const char *text, size_t size,
                              struct error *error);

/**
 * Finds and parses the PTX in a fat binary.
 * @param parse ptx_parse() or ptx_parse_late()
 * @return STATUS_NOT_FOUND, with a line, when it has none for this GPU
 */
static enum status read_fatbin(const struct runtime *runtime, const void *data,
                               struct module *module, parse_ptx *parse, struct ptx_module **parsed,
                               struct error *error) {
    struct fatbin_ptx ptx = {0};
    char *unpacked = NULL;
    enum status status = find_ptx(runtime, data, &ptx, &unpacked, error);
    if (status == STATUS_OK) {
        module->architecture = ptx.architecture;
        status = parse(parsed, ptx.text, ptx.size, error);
    } else if (status == STATUS_UNSUPPORTED) {
        status = STATUS_NOT_FOUND;
    }
    if (status == STATUS_OK && (*parsed)->parser != NULL) {
        (*parsed)->text = unpacked; /* its bodies are yet to be read */
    } else {
        free(unpacked);
    }
    return status;
}

/** The modules of a program that nvcc -rdc=true linked. */
struct parsed_files {
    struct ptx_module *modules[MODULE_MOST_FILES];
    size_t count;
};

/**
 * Reads all files. One without PTX is left out: nvcc adds such ones of its own.
 * @param files the caller frees the modules, on failure too
 */
static enum status read_files(const struct runtime *runtime, struct module *module,
                              struct parsed_files *files, struct error *error) {
    for (const void *const *data = module->wrapper->files; *data != NULL; data++) {
        if (files->count == MODULE_MOST_FILES) {
            return error_set(error, STATUS_UNSUPPORTED, "a program of more than %d files",
                             MODULE_MOST_FILES);
        }
        enum status status =
            read_fatbin(runtime, *data, module, ptx_parse, &files->modules[files->count], error);
        if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
            return status;
        }
        struct fatbin_packed newer; /* nvcc adds the runtime of the device, for the newest GPU */
        bool none = status == STATUS_NOT_FOUND &&
                    !fatbin_find_packed(*data, fatbin_bytes(*data), FATBIN_ANY_GPU, &newer);
        files->count += status == STATUS_OK;
        module->without_ptx += none;
    }
    return files->count > 0 ? STATUS_OK : STATUS_NOT_FOUND;
}

/** Links the files of a program to one module. */
static enum status link_files(const struct runtime *runtime, struct module *module,
                              struct ptx_module **linked, struct error *error) {
    struct parsed_files *files = calloc(1, sizeof *files);
    if (files == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = read_files(runtime, module, files, error);
    if (status == STATUS_OK) {
        status = simt_module_link(linked, files->modules, files->count, error);
    } else {
        for (size_t n = 0; n < files->count; n++) {
            ptx_free(files->modules[n]);
        }
    }
    free(files);
    return status;
}

/** Parses what a wrapper stands for. */
static enum status read_wrapper(const struct runtime *runtime, struct module *module,
                                struct ptx_module **parsed, struct error *error) {
    const struct fatbin_wrapper *wrapper = module->wrapper;
    if (wrapper->magic != FATBIN_WRAPPER_MAGIC) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the program's device code begins with 0x%x, not 0x%x",
                         (unsigned)wrapper->magic, (unsigned)FATBIN_WRAPPER_MAGIC);
    }
    if (wrapper->version != FATBIN_WRAPPER_FILE && wrapper->version != FATBIN_WRAPPER_LINKED) {
        return error_set(error, STATUS_UNSUPPORTED, "device code of version %u, not 1 or 2",
                         (unsigned)wrapper->version);
    }
    fatbin_find_code(wrapper->data, fatbin_bytes(wrapper->data), highest_architecture(runtime),
                     &module->code);
    return wrapper->version == FATBIN_WRAPPER_LINKED
               ? link_files(runtime, module, parsed, error)
               : read_fatbin(runtime, wrapper->data, module, ptx_parse_late, parsed, error);
}

static enum status load(struct runtime *runtime, struct module *module, struct error *error) {
    struct ptx_module *parsed = NULL;
    module->architecture = 0;
    module->without_ptx = 0;
    if (!module_fetch(runtime, module)) {
        return error_set(error, STATUS_BAD_FORMAT, "the program's device code cannot be read");
    }
    enum status status = read_wrapper(runtime, module, &parsed, error);
    if (status != STATUS_OK) { /* not found: what simt lacks is PTX */
        return status == STATUS_NOT_FOUND ? STATUS_UNSUPPORTED : status;
    }
    return simt_module_load(&module->core, parsed, runtime->memory, error);
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

/** Says a line that begins with the name of a symbol, which is made readable: a kernel's as the
 *  module knows it, another's where this program can tell. */
static void say_of_symbol(const struct module *module, const char *line) {
    size_t length = strcspn(line, " :");
    for (const struct kernel *k = module->kernels; k != NULL; k = k->next) {
        if (strlen(k->name) == length && strncmp(k->name, line, length) == 0) {
            runtime_say("%s%s", k->readable, line + length);
            return;
        }
    }
    char *mangled = strndup(line, length);
    char *name = mangled != NULL ? report_source_name(mangled) : NULL;
    runtime_say("%s%s", name != NULL ? name : "", name != NULL ? line + length : line);
    free(name);
    free(mangled);
}

/** Where something is missing, so may be the PTX of its file. */
static void say_what_is_missing(const struct module *module, const char *line) {
    if (module->without_ptx > 0 && strstr(line, "defined in no file") != NULL) {
        runtime_say("a file of the program has no PTX and was left out; build all "
                    "with -gencode arch=compute_%u,code=compute_%u",
                    module->architecture, module->architecture);
    }
}

/** Whether another device has the module's managed variables. */
static bool has_managed_elsewhere(const struct module *module) {
    const struct variable *v = module->variables;
    while (v != NULL && v->memory == NULL) {
        v = v->next;
    }
    return v != NULL;
}

cudaError_t module_prepare(struct runtime *runtime, struct module *module) {
    if (module->core != NULL || module->failure != cudaSuccess) {
        return module->failure;
    }
    if (has_managed_elsewhere(module)) {
        runtime_say("a __managed__ variable is used on two devices: simt has it on one alone; take "
                    "cudaMallocManaged()");
        return cudaErrorNotSupported;
    }
    struct error error = {0};
    enum status status = load(runtime, module, &error);
    if (status != STATUS_OK) {
        say_of_symbol(module, error_text(&error, status));
        say_what_is_missing(module, error_text(&error, status));
        module->failure = status == STATUS_UNSUPPORTED && module->architecture == 0
                              ? cudaErrorNoKernelImageForDevice
                              : runtime_error_of(status);
        return module->failure;
    }
    publish_managed(runtime, module);
    return cudaSuccess;
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
        say_of_symbol(kernel->module, error_text(&explanation, status));
        kernel->refused = runtime_error_of(status);
        return kernel->refused;
    }
    /* The count of ptxas is better than an estimate, but a program may bring machine code of
     * something else, while its PTX is what runs here. */
    if (kernel->module->code.bytes != NULL && !runtime->has_controller) {
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
