#include "common/simt/core/launch/module.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/core/schedule/warp.h"

static const struct simt_placed *find_placed(const struct simt_module *module, const char *name) {
    for (size_t n = 0; n < module->ptx->variable_count; n++) {
        if (strcmp(module->placed[n].variable->name, name) == 0) {
            return &module->placed[n];
        }
    }
    return NULL;
}

static enum status place_global(struct simt_module *module, struct simt_placed *placed) {
    const struct ptx_variable *variable = placed->variable;
    size_t bytes = variable->bytes > 0 ? variable->bytes : 1;
    TRY(simt_memory_alloc(module->memory, bytes, 256, variable->name, &placed->address));
    void *host = simt_memory_host(module->memory, placed->address);
    if (variable->data != NULL) {
        memcpy(host, variable->data, variable->bytes);
    } else {
        memset(host, 0, bytes);
    }
    simt_memory_mark(module->memory, placed->address, bytes); /* CUDA zeroes what has no value */
    return STATUS_OK;
}

static enum status place_variables(struct simt_module *module) {
    for (size_t n = 0; n < module->ptx->variable_count; n++) {
        struct simt_placed *placed = &module->placed[n];
        placed->variable = &module->ptx->variables[n];
        if (placed->variable->space != PTX_SHARED) { /* those are placed for each kernel */
            TRY(place_global(module, placed));
        }
    }
    return STATUS_OK;
}

/* What a pointer to a device function holds; 0: there is none of that name. */
static uint64_t function_address(const struct ptx_module *ptx, const char *name) {
    const struct ptx_function *function = ptx_find_function(ptx, name);
    bool known = function != NULL && !function->entry && !function->external;
    return known ? SIMT_CODE_WINDOW + 16 * ((uint64_t)(function - ptx->functions) + 1) : 0;
}

/* Initial values that are addresses of other variables, or of functions. */
static enum status relocate(struct simt_module *module, struct error *error) {
    for (size_t n = 0; n < module->ptx->variable_count; n++) {
        const struct ptx_variable *variable = &module->ptx->variables[n];
        for (size_t r = 0; r < variable->relocation_count; r++) {
            const struct ptx_relocation *relocation = &variable->relocations[r];
            const struct simt_placed *target = find_placed(module, relocation->symbol);
            uint64_t address = target != NULL ? target->address
                                              : function_address(module->ptx, relocation->symbol);
            if (address == 0 || relocation->offset + sizeof(uint64_t) > variable->bytes) {
                return error_set(error, STATUS_UNSUPPORTED,
                                 "variable %s holds the address of %s, which simt does not have",
                                 variable->name, relocation->symbol);
            }
            uint64_t value = address + (uint64_t)relocation->addend;
            memcpy(simt_memory_host(module->memory, module->placed[n].address + relocation->offset),
                   &value, sizeof value);
        }
    }
    return STATUS_OK;
}

enum status simt_module_link(struct ptx_module **linked, struct ptx_module **modules, size_t count,
                             struct error *error) {
    return ptx_link(linked, modules, count, simt_system_has, error);
}

enum status simt_module_load(struct simt_module **module, struct ptx_module *ptx,
                             struct simt_memory *memory, struct error *error) {
    struct simt_module *m = calloc(1, sizeof *m);
    *module = NULL;
    if (m == NULL) {
        ptx_free(ptx);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a module");
    }
    m->ptx = ptx;
    m->memory = memory;
    m->placed = calloc(ptx->variable_count + 1, sizeof *m->placed);
    m->kernels = calloc(ptx->function_count + 1, sizeof *m->kernels);
    enum status status =
        m->placed != NULL && m->kernels != NULL ? place_variables(m) : STATUS_OUT_OF_MEMORY;
    if (status != STATUS_OK) {
        error_set(error, status, "cannot place the variables of a module: %s",
                  status_message(status));
    } else {
        status = relocate(m, error);
    }
    if (status != STATUS_OK) {
        simt_module_unload(m);
        return status;
    }
    *module = m;
    return STATUS_OK;
}

static void free_kernel(struct simt_kernel *kernel) {
    if (kernel == NULL) {
        return;
    }
    for (size_t n = 0; n < kernel->code_count; n++) {
        simt_code_free(kernel->codes[n]);
    }
    free(kernel->codes);
    free(kernel->parameter_offsets);
    free(kernel->parameter_sizes);
    free(kernel);
}

void simt_module_unload(struct simt_module *m) {
    if (m == NULL) {
        return;
    }
    for (size_t n = 0; n < m->ptx->function_count && m->kernels != NULL; n++) {
        free_kernel(m->kernels[n]);
    }
    for (size_t n = 0; n < m->ptx->variable_count && m->placed != NULL; n++) {
        if (m->placed[n].variable != NULL && m->placed[n].variable->space != PTX_SHARED &&
            m->placed[n].address != 0) {
            enum status status = simt_memory_release(m->memory, m->placed[n].address);
            (void)status; /* the memory may be gone already at the end of the program */
        }
    }
    free(m->placed);
    free(m->kernels);
    ptx_free(m->ptx);
    free(m);
}

enum status simt_module_variable(const struct simt_module *module, const char *name,
                                 uint64_t *address, size_t *bytes) {
    const struct simt_placed *placed = find_placed(module, name);
    if (placed == NULL || placed->variable->space == PTX_SHARED) {
        return STATUS_NOT_FOUND;
    }
    *address = placed->address;
    *bytes = placed->variable->bytes;
    return STATUS_OK;
}

/* --- kernels: the functions they reach, decoded --- */

struct build {
    struct simt_module *module;
    struct simt_kernel *kernel;
    const struct ptx_function **functions; /* reached so far; [0] is the kernel */
    size_t count;
};

/* NULL: a call through a pointer. */
static const char *callee_of(const struct ptx_instruction *in) {
    bool named = in->operand_count > 1 && in->operands[1].kind == PTX_OPERAND_SYMBOL;
    return named ? in->operands[1].symbol : NULL;
}

static void reach(struct build *b, const char *name) {
    const struct ptx_function *function =
        name != NULL ? ptx_find_function(b->module->ptx, name) : NULL;
    if (function == NULL || function->external) {
        return;
    }
    for (size_t n = 0; n < b->count; n++) {
        if (b->functions[n] == function) {
            return;
        }
    }
    b->functions[b->count++] = function;
}

/* A pointer may hold the address of any function. */
static void reach_any(struct build *b) {
    for (size_t n = 0; n < b->module->ptx->function_count; n++) {
        if (!b->module->ptx->functions[n].entry) {
            reach(b, b->module->ptx->functions[n].name);
        }
    }
}

/* Kernels that start kernels. */
static enum status refuse_launch(const struct build *b, const struct ptx_instruction *in,
                                 struct error *error) {
    struct ptx_place place;
    char where[300] = "";
    if (ptx_source_lines(b->module->ptx, in, &place, 1) > 0) {
        snprintf(where, sizeof where, " at %s:%u", place.file, place.line);
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "%s starts a kernel from a kernel%s (dynamic parallelism), which simt does "
                     "not do: start it from the host",
                     b->kernel->function->name, where);
}

static enum status reach_all(struct build *b, struct error *error) {
    for (size_t f = 0; f < b->count; f++) {
        TRY(ptx_read_body(b->module->ptx, b->functions[f], error));
        for (size_t n = 0; n < b->functions[f]->instruction_count; n++) {
            const struct ptx_instruction *in = &b->functions[f]->instructions[n];
            const char *callee = strcmp(in->base, "call") == 0 ? callee_of(in) : "";
            if (callee == NULL) {
                reach_any(b);
            } else if (simt_system_starts_kernels(callee)) {
                return refuse_launch(b, in, error);
            } else if (callee[0] != '\0') {
                reach(b, callee);
            }
        }
    }
    return STATUS_OK;
}

static bool names(const struct ptx_operand *operand, const char *name) {
    bool named = operand->symbol != NULL && strcmp(operand->symbol, name) == 0;
    for (size_t n = 0; n < operand->element_count && !named; n++) {
        named = names(&operand->elements[n], name);
    }
    return named;
}

/* Whether one of the kernel's functions names a variable. */
static bool is_named(const struct build *b, const char *name) {
    for (size_t f = 0; f < b->count; f++) {
        for (size_t n = 0; n < b->functions[f]->instruction_count; n++) {
            const struct ptx_instruction *in = &b->functions[f]->instructions[n];
            for (size_t o = 0; o < in->operand_count; o++) {
                if (names(&in->operands[o], name)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* A kernel has those of the module's shared variables that it uses. Their places are only asked for
 * while it is decoded. @return bytes that they take */
static size_t place_shared(const struct build *b) {
    size_t bytes = 0;
    for (size_t n = 0; n < b->module->ptx->variable_count; n++) {
        struct simt_placed *placed = &b->module->placed[n];
        const struct ptx_variable *variable = placed->variable;
        if (variable->space == PTX_SHARED && !variable->external && is_named(b, variable->name)) {
            size_t alignment = variable->alignment > 0 ? variable->alignment : 1;
            placed->address = ceil_div(bytes, alignment) * alignment;
            bytes = placed->address + variable->bytes;
        }
    }
    return bytes;
}

static enum simt_symbol_kind find_symbol(void *context, const char *symbol, uint64_t *address) {
    const struct build *b = context;
    const struct simt_placed *placed = find_placed(b->module, symbol);
    if (placed == NULL) {
        *address = function_address(b->module->ptx, symbol);
        return *address != 0 ? SIMT_SYMBOL_ADDRESS : SIMT_SYMBOL_NONE;
    }
    *address = placed->address;
    if (placed->variable->space != PTX_SHARED) {
        return SIMT_SYMBOL_ADDRESS;
    }
    return placed->variable->external ? SIMT_SYMBOL_DYNAMIC_SHARED : SIMT_SYMBOL_SHARED;
}

/* Every call knows its function's code; those without one are left to the system. */
static void link_calls(const struct build *b) {
    for (size_t f = 0; f < b->kernel->code_count; f++) {
        struct simt_code *code = b->kernel->codes[f];
        code->address = function_address(b->module->ptx, b->functions[f]->name);
        code->linked = b->kernel->codes;
        code->linked_count = b->kernel->code_count;
        for (size_t n = 0; n < code->call_count; n++) {
            for (size_t to = 0; to < b->count; to++) {
                const char *callee = code->calls[n].callee;
                if (callee != NULL && strcmp(b->functions[to]->name, callee) == 0) {
                    code->calls[n].code = b->kernel->codes[to];
                }
            }
        }
    }
}

static bool has_async_reads(const struct simt_code *code) {
    for (size_t n = 0; n < code->function->instruction_count; n++) {
        const struct ptx_instruction *in = &code->function->instructions[n];
        bool stores = strcmp(in->base, "cp") == 0 && ptx_has_modifier(in, "bulk") &&
                      ptx_has_modifier(in, "shared::cta");
        if (stores || strcmp(in->base, "wgmma") == 0) {
            return true;
        }
    }
    return false;
}

static bool is_pipelined(const struct simt_code *code) {
    for (size_t n = 0; n < code->function->instruction_count; n++) {
        const struct ptx_instruction *in = &code->function->instructions[n];
        bool waits = strcmp(in->base, "mbarrier") == 0 &&
                     (ptx_has_modifier(in, "try_wait") || ptx_has_modifier(in, "test_wait"));
        if (waits || strcmp(in->base, "wgmma") == 0) {
            return true;
        }
    }
    return false;
}

static bool controls_grids(const struct simt_code *code) {
    for (size_t n = 0; n < code->function->instruction_count; n++) {
        if (strcmp(code->function->instructions[n].base, "griddepcontrol") == 0) {
            return true;
        }
    }
    return false;
}

static bool sets_conditions(const struct simt_code *code) {
    bool found = false;
    for (size_t n = 0; !found && n < code->function->instruction_count; n++) {
        const struct ptx_instruction *in = &code->function->instructions[n];
        for (size_t o = 0; !found && o < in->operand_count; o++) {
            const char *symbol = in->operands[o].symbol;
            found = symbol != NULL && strcmp(symbol, "cudaGraphSetConditional") == 0;
        }
    }
    return found;
}

static bool has_atomics(const struct simt_code *code) {
    for (size_t n = 0; n < code->count; n++) {
        if (code->instructions[n].op_class == SIMT_CLASS_ATOMIC) {
            return true;
        }
    }
    return false;
}

static bool is_fence(const struct ptx_instruction *in) {
    return strcmp(in->base, "membar") == 0 ||
           (strcmp(in->base, "fence") == 0 && !ptx_has_modifier(in, "proxy") &&
            !ptx_has_modifier(in, "mbarrier_init"));
}

static bool has_fence(const struct simt_code *code) {
    for (size_t n = 0; n < code->function->instruction_count; n++) {
        if (is_fence(&code->function->instructions[n])) {
            return true;
        }
    }
    return false;
}

/* Whether it sees what other blocks store while it runs: also without a loop that waits for it. By
 * others than these loads a kernel cannot rely on that. Without a fence nothing orders those that
 * merely go past L1. */
static bool sees_others(const struct simt_instruction *i, bool fences) {
    static const char *const ways[] = {"volatile", "relaxed", "acquire", "mmio", "cv", NULL};
    static const char *const shared[] = {"shared", "shared::cta", "shared::cluster", NULL};
    const struct ptx_instruction *in = i->source;
    if (i->op_class == SIMT_CLASS_ATOMIC) {
        return (i->timing & SIMT_TIMING_USED) != 0 && !ptx_has_any_modifier(in, shared);
    }
    return i->op_class == SIMT_CLASS_GLOBAL && (i->timing & SIMT_TIMING_LOAD) != 0 &&
           (ptx_has_any_modifier(in, ways) || (fences && ptx_has_modifier(in, "cg")));
}

static bool may_wait(const struct simt_kernel *kernel) {
    bool fences = false, sees = false;
    for (size_t f = 0; f < kernel->code_count; f++) {
        fences = fences || has_fence(kernel->codes[f]);
    }
    for (size_t f = 0; f < kernel->code_count; f++) {
        const struct simt_code *code = kernel->codes[f];
        for (size_t n = 0; n < code->function->instruction_count && !sees; n++) {
            sees = sees_others(&code->instructions[n], fences);
        }
    }
    return sees;
}

/* What the extern shared arrays that the kernel uses ask for, at least 16. */
static size_t dynamic_alignment(const struct build *b) {
    size_t alignment = 16;
    for (size_t f = 0; f < b->count; f++) {
        const struct ptx_function *function = b->functions[f];
        for (size_t n = 0; n < function->instruction_count; n++) {
            const struct ptx_instruction *in = &function->instructions[n];
            for (size_t o = 0; o < in->operand_count; o++) {
                const char *symbol = in->operands[o].symbol;
                const struct simt_placed *placed =
                    symbol != NULL ? find_placed(b->module, symbol) : NULL;
                if (placed != NULL && placed->variable->external &&
                    placed->variable->space == PTX_SHARED &&
                    placed->variable->alignment > alignment) {
                    alignment = placed->variable->alignment;
                }
            }
        }
    }
    return alignment;
}

static enum status decode_functions(struct build *b, struct error *error) {
    struct simt_kernel *kernel = b->kernel;
    struct simt_linker linker = {.context = b, .find = find_symbol};
    size_t base = place_shared(b), shared = base;
    for (size_t n = 0; n < b->count; n++) {
        shared = ceil_div(shared, 16) * 16;
        shared += simt_shared_bytes(b->functions[n], shared);
    }
    kernel->static_shared_bytes = shared;
    size_t alignment = dynamic_alignment(b);
    kernel->dynamic_shared = linker.dynamic_shared = ceil_div(shared, alignment) * alignment;
    for (size_t n = 0; n < b->count; n++) {
        linker.shared_base = ceil_div(base, 16) * 16;
        TRY(simt_decode(&kernel->codes[n], b->module->ptx, b->functions[n], &linker, error));
        kernel->site_count = simt_number_sites(kernel->codes[n], kernel->site_count);
        kernel->codes[n]->first = kernel->instruction_count;
        kernel->instruction_count += (uint32_t)kernel->codes[n]->count;
        kernel->code_count++;
        base = linker.shared_base + kernel->codes[n]->static_shared_bytes;
        kernel->order_sensitive = kernel->order_sensitive || kernel->codes[n]->order_sensitive;
        kernel->has_atomics = kernel->has_atomics || has_atomics(kernel->codes[n]);
        kernel->is_pipelined = kernel->is_pipelined || is_pipelined(kernel->codes[n]);
        kernel->controls_grids = kernel->controls_grids || controls_grids(kernel->codes[n]);
        kernel->sets_conditions = kernel->sets_conditions || sets_conditions(kernel->codes[n]);
        kernel->has_async_reads = kernel->has_async_reads || has_async_reads(kernel->codes[n]);
        kernel->reserves_shared = kernel->reserves_shared || kernel->codes[n]->reserves_shared;
    }
    kernel->may_wait = may_wait(kernel);
    kernel->code = kernel->codes[0];
    size_t local = kernel->code->local_bytes + (b->count > 1 ? SIMT_CALL_STACK_BYTES : 0);
    kernel->local_bytes = ceil_div(local, 16) * 16;
    link_calls(b);
    return STATUS_OK;
}

static enum status list_parameters(struct simt_kernel *kernel) {
    size_t count = kernel->function->parameter_count;
    kernel->parameter_offsets = calloc(count + 1, sizeof *kernel->parameter_offsets);
    kernel->parameter_sizes = calloc(count + 1, sizeof *kernel->parameter_sizes);
    if (kernel->parameter_offsets == NULL || kernel->parameter_sizes == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < count; n++) {
        kernel->parameter_offsets[n] = kernel->function->parameters[n].offset;
        kernel->parameter_sizes[n] = kernel->function->parameters[n].bytes;
    }
    return STATUS_OK;
}

static enum status build_kernel(struct simt_module *module, const struct ptx_function *function,
                                struct simt_kernel **kernel, struct error *error) {
    struct build b = {.module = module};
    size_t most = module->ptx->function_count + 1;
    *kernel = b.kernel = calloc(1, sizeof *b.kernel);
    b.functions = calloc(most, sizeof *b.functions);
    enum status status = b.kernel != NULL && b.functions != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        b.kernel->function = function;
        b.kernel->codes = calloc(most, sizeof *b.kernel->codes);
        status = b.kernel->codes != NULL ? list_parameters(b.kernel) : STATUS_OUT_OF_MEMORY;
    }
    if (status != STATUS_OK) {
        error_set(error, status, "%s: out of memory", function->name);
    } else {
        b.functions[b.count++] = function;
        status = reach_all(&b, error);
        status = status == STATUS_OK ? decode_functions(&b, error) : status;
    }
    free(b.functions);
    return status;
}

enum status simt_module_kernel(struct simt_module *module, const char *name,
                               const struct simt_kernel **kernel, struct error *error) {
    const struct ptx_function *function = ptx_find_function(module->ptx, name);
    if (function == NULL || !function->entry) {
        return error_set(error, STATUS_NOT_FOUND, "there is no kernel %s", name);
    }
    struct simt_kernel **slot = &module->kernels[function - module->ptx->functions];
    if (*slot == NULL) {
        enum status status = build_kernel(module, function, slot, error);
        if (status != STATUS_OK) {
            free_kernel(*slot);
            *slot = NULL;
            return status;
        }
    }
    *kernel = *slot;
    return STATUS_OK;
}

static uint32_t most_threads(const struct ptx_function *function) {
    const uint32_t *said =
        function->required_threads[0] > 0 ? function->required_threads : function->max_threads;
    uint32_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        threads *= said[axis] > 0 ? said[axis] : 1;
    }
    return said[0] > 0 ? threads : 1024;
}

/* The kernel has the registers of the neediest function it calls. */
static uint32_t most_registers(const struct simt_kernel *kernel) {
    uint32_t most = 0;
    for (size_t n = 0; n < kernel->code_count; n++) {
        uint32_t registers = kernel->codes[n]->estimated_registers;
        most = registers > most ? registers : most;
    }
    return most;
}

enum status simt_kernel_info(struct simt_module *module, const char *name,
                             struct simt_kernel_info *info, struct error *error) {
    const struct simt_kernel *kernel;
    TRY(simt_module_kernel(module, name, &kernel, error));
    *info = (struct simt_kernel_info){
        .order_sensitive = kernel->order_sensitive,
        .static_shared_bytes = kernel->static_shared_bytes,
        .local_bytes = kernel->local_bytes,
        .parameter_bytes = kernel->function->parameter_bytes,
        .registers = most_registers(kernel),
        .max_threads = most_threads(kernel->function),
        .cluster = {kernel->function->cluster[0], kernel->function->cluster[1],
                    kernel->function->cluster[2]},
        .controls_grids = kernel->controls_grids,
        .sets_conditions = kernel->sets_conditions,
        .parameter_count = kernel->function->parameter_count,
        .parameter_offsets = kernel->parameter_offsets,
        .parameter_sizes = kernel->parameter_sizes,
    };
    for (size_t n = 0; n < module->ptx->variable_count; n++) {
        const struct ptx_variable *variable = &module->ptx->variables[n];
        info->constant_bytes += variable->space == PTX_CONST ? variable->bytes : 0;
    }
    return STATUS_OK;
}
