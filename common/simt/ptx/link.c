/*
 * Several modules become one: nvcc -rdc=true leaves the PTX of each file, and symbols that one
 * declares and another defines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/ptx/map.h"
#include "common/simt/ptx/memory.h"
#include "common/simt/ptx/ptx.h"

/* A symbol of one module, variable or function. */
struct symbol {
    char *name;
    enum ptx_linkage linkage;
    bool function;
    size_t module;
    uint32_t place; /* in its module: among variables or functions */
    uint32_t final; /* in the linked module */
};

struct linker {
    struct ptx_module **modules;
    size_t count;
    bool (*known)(const char *name);
    struct ptx_module *linked;
    struct ptx_memory *memory; /* becomes the linked module's */
    struct ptx_names names;    /* of all modules, each once */
    struct ptx_list symbols;   /* of struct symbol: what is defined, or declared alone */
    struct ptx_map by_name;  /* shared symbols: (name, 0); names of all, for new ones: (name, 1) */
    struct ptx_map by_place; /* (module << 1 | function, place) -> symbol */
    struct ptx_map moved;    /* locations and lists of instructions that are done */
    struct error *error;
};

static uint64_t key_of(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static enum status out_of_memory(const struct linker *l) {
    return error_set(l->error, STATUS_OUT_OF_MEMORY, "out of memory for linking %zu files",
                     l->count);
}

/* A name for a file in messages: that of the source, where there is a line table. */
static const char *file_of(const struct linker *l, size_t module, char *text, size_t size) {
    const struct ptx_module *m = l->modules[module];
    const char *path = m->file_count > 1 ? m->files[1] : NULL;
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (path == NULL) {
        snprintf(text, size, "file %zu of %zu", module + 1, l->count);
    } else {
        snprintf(text, size, "%.90s", slash != NULL ? slash + 1 : path);
    }
    return text;
}

static enum status fail_twice(const struct linker *l, const struct symbol *a,
                              const struct symbol *b) {
    char first[100], second[100];
    return error_set(l->error, STATUS_BAD_FORMAT, "%s: defined twice, in %s and in %s", a->name,
                     file_of(l, a->module, first, sizeof first),
                     file_of(l, b->module, second, sizeof second));
}

/* The symbol that the linked module has of that name, or none yet. */
static struct symbol *find_shared(const struct linker *l, const char *name) {
    const uint32_t *number = ptx_map_find(&l->by_name, key_of(name), 0);
    return number != NULL ? ptx_list_at(&l->symbols, *number) : NULL;
}

/* A name that no symbol has: the symbol is that of one file alone. */
static char *own_name(struct linker *l, char *name, size_t module) {
    char longer[1024];
    while (name != NULL && ptx_map_find(&l->by_name, key_of(name), 1) != NULL) {
        int length = snprintf(longer, sizeof longer, "%.900s@%zu", name, module + 1);
        name = ptx_names_keep(&l->names, longer, (size_t)length);
    }
    return name;
}

static bool note_name(struct linker *l, const char *name) {
    return ptx_map_find(&l->by_name, key_of(name), 1) != NULL ||
           ptx_map_add(&l->by_name, key_of(name), 1, 0);
}

static bool note_place(struct linker *l, const struct symbol *symbol, uint32_t number) {
    uint64_t module = (uint64_t)symbol->module << 1 | symbol->function;
    return ptx_map_add(&l->by_place, module, symbol->place, number);
}

/* Adds a symbol that no other stands for. */
static enum status add_symbol(struct linker *l, const struct symbol *symbol) {
    uint32_t number = (uint32_t)l->symbols.count;
    struct symbol *added = ptx_list_add(&l->symbols);
    if (added == NULL) {
        return out_of_memory(l);
    }
    *added = *symbol;
    bool shared = symbol->linkage != PTX_LINKAGE_LOCAL;
    bool done = note_name(l, symbol->name) && note_place(l, symbol, number) &&
                (!shared || ptx_map_add(&l->by_name, key_of(symbol->name), 0, number));
    return done ? STATUS_OK : out_of_memory(l);
}

/* Two modules have a symbol: a definition stands for a declaration, .visible for .weak. */
static enum status merge(struct linker *l, struct symbol *known, const struct symbol *symbol) {
    uint32_t number = *ptx_map_find(&l->by_name, key_of(symbol->name), 0);
    if (known->function != symbol->function) {
        return error_set(l->error, STATUS_BAD_FORMAT, "%s: a function and a variable",
                         symbol->name);
    }
    if (known->linkage == PTX_LINKAGE_VISIBLE && symbol->linkage == PTX_LINKAGE_VISIBLE) {
        return fail_twice(l, known, symbol);
    }
    if (symbol->linkage > known->linkage) {
        *known = *symbol;
    }
    return note_place(l, symbol, number) ? STATUS_OK : out_of_memory(l);
}

static enum status add(struct linker *l, const char *name, struct symbol symbol) {
    symbol.name = ptx_names_keep(&l->names, name, strlen(name));
    if (symbol.name == NULL) {
        return out_of_memory(l);
    }
    if (symbol.linkage == PTX_LINKAGE_LOCAL) {
        symbol.name = own_name(l, symbol.name, symbol.module);
        return symbol.name != NULL ? add_symbol(l, &symbol) : out_of_memory(l);
    }
    struct symbol *known = find_shared(l, symbol.name);
    return known != NULL ? merge(l, known, &symbol) : add_symbol(l, &symbol);
}

/* A function that is declared and not defined is somebody else's, whatever its linkage. */
static enum ptx_linkage linkage_of(const struct ptx_function *function) {
    return function->external ? PTX_LINKAGE_EXTERN : function->linkage;
}

/* Collects the symbols of all modules: shared ones first, which keep their names. */
static enum status collect(struct linker *l, bool local) {
    for (size_t m = 0; m < l->count; m++) {
        const struct ptx_module *module = l->modules[m];
        for (size_t n = 0; n < module->variable_count; n++) {
            const struct ptx_variable *v = &module->variables[n];
            if ((v->linkage == PTX_LINKAGE_LOCAL) == local) {
                TRY(add(l, v->name,
                        (struct symbol){.linkage = v->linkage, .module = m, .place = (uint32_t)n}));
            }
        }
        for (size_t n = 0; n < module->function_count; n++) {
            const struct ptx_function *f = &module->functions[n];
            if ((linkage_of(f) == PTX_LINKAGE_LOCAL) == local) {
                TRY(add(l, f->name,
                        (struct symbol){.linkage = linkage_of(f),
                                        .function = true,
                                        .module = m,
                                        .place = (uint32_t)n}));
            }
        }
    }
    return STATUS_OK;
}

/* What is only declared must come from the launch (dynamic shared memory) or from the system. */
static enum status check_defined(const struct linker *l) {
    char file[100];
    for (size_t n = 0; n < l->symbols.count; n++) {
        const struct symbol *s = ptx_list_at(&l->symbols, n);
        bool dynamic =
            !s->function && l->modules[s->module]->variables[s->place].space == PTX_SHARED;
        if (s->linkage != PTX_LINKAGE_EXTERN || dynamic || (s->function && l->known(s->name))) {
            continue;
        }
        return error_set(l->error, STATUS_BAD_FORMAT, "%s: used in %s, defined in no file", s->name,
                         file_of(l, s->module, file, sizeof file));
    }
    return STATUS_OK;
}

/* Copies variables and functions to their places in the linked module. */
static enum status place_all(struct linker *l) {
    struct ptx_module *linked = l->linked;
    linked->variables = ptx_memory_take(l->memory, l->symbols.count + 1, sizeof *linked->variables);
    linked->functions = ptx_memory_take(l->memory, l->symbols.count + 1, sizeof *linked->functions);
    if (linked->variables == NULL || linked->functions == NULL) {
        return out_of_memory(l);
    }
    for (size_t n = 0; n < l->symbols.count; n++) {
        struct symbol *s = ptx_list_at(&l->symbols, n);
        const struct ptx_module *module = l->modules[s->module];
        if (s->function) {
            s->final = (uint32_t)linked->function_count++;
            linked->functions[s->final] = module->functions[s->place];
            linked->functions[s->final].name = s->name;
        } else {
            s->final = (uint32_t)linked->variable_count++;
            linked->variables[s->final] = module->variables[s->place];
            linked->variables[s->final].name = s->name;
        }
    }
    return STATUS_OK;
}

static const struct symbol *symbol_at(const struct linker *l, size_t module, bool function,
                                      size_t place) {
    const uint32_t *number =
        ptx_map_find(&l->by_place, (uint64_t)module << 1 | function, (uint64_t)place);
    return ptx_list_at(&l->symbols, *number);
}

/* The new name of what a module calls `name`, which is no variable of a function. */
static char *rename_symbol(const struct linker *l, size_t module, char *name) {
    const struct ptx_module *m = l->modules[module];
    for (size_t n = 0; n < m->variable_count; n++) {
        if (strcmp(m->variables[n].name, name) == 0) {
            return symbol_at(l, module, false, n)->name;
        }
    }
    for (size_t n = 0; n < m->function_count; n++) {
        if (strcmp(m->functions[n].name, name) == 0) {
            return symbol_at(l, module, true, n)->name;
        }
    }
    return name;
}

static void move_operand(const struct linker *l, size_t module, struct ptx_operand *operand) {
    if (operand->symbol != NULL && operand->table == PTX_IN_MODULE) {
        const struct symbol *s = symbol_at(l, module, false, operand->variable);
        operand->symbol = s->name;
        operand->variable = s->final;
    } else if (operand->symbol != NULL && operand->table == PTX_IN_NONE &&
               operand->kind == PTX_OPERAND_SYMBOL) {
        operand->symbol = rename_symbol(l, module, operand->symbol);
    }
    for (size_t n = 0; n < operand->element_count; n++) {
        move_operand(l, module, &operand->elements[n]);
    }
}

/* @return true when it was not there */
static bool is_new(struct linker *l, const void *pointer, bool *failed) {
    if (ptx_map_find(&l->moved, key_of(pointer), 0) != NULL) {
        return false;
    }
    *failed = *failed || !ptx_map_add(&l->moved, key_of(pointer), 0, 0);
    return true;
}

/* Places know files by number: those of a later module come behind the others. */
static void move_location(struct linker *l, const struct ptx_location *location, uint32_t files,
                          bool *failed) {
    while (location != NULL && is_new(l, location, failed)) {
        struct ptx_location *own = (struct ptx_location *)(uintptr_t)location;
        own->file += files;
        location = location->caller;
    }
}

static enum status move_functions(struct linker *l, size_t module, uint32_t files) {
    const struct ptx_module *m = l->modules[module];
    bool failed = false;
    for (size_t f = 0; f < m->function_count; f++) {
        const struct ptx_function *function = &m->functions[f];
        if (function->instructions == NULL || !is_new(l, function->instructions, &failed)) {
            continue; /* an alias has the instructions of another */
        }
        for (size_t n = 0; n < function->instruction_count; n++) {
            struct ptx_instruction *in = &function->instructions[n];
            in->file += in->line != 0 ? files : 0;
            move_location(l, in->location, files, &failed);
            for (size_t o = 0; o < in->operand_count; o++) {
                move_operand(l, module, &in->operands[o]);
            }
        }
    }
    return failed ? out_of_memory(l) : STATUS_OK;
}

static void move_relocations(const struct linker *l, size_t module) {
    const struct ptx_module *m = l->modules[module];
    for (size_t n = 0; n < m->variable_count; n++) {
        for (size_t r = 0; r < m->variables[n].relocation_count; r++) {
            struct ptx_relocation *relocation = &m->variables[n].relocations[r];
            relocation->symbol = rename_symbol(l, module, relocation->symbol);
        }
    }
}

static enum status move_all(struct linker *l) {
    struct ptx_module *linked = l->linked;
    for (size_t m = 0; m < l->count; m++) {
        linked->file_count += l->modules[m]->file_count;
    }
    linked->files = ptx_memory_take(l->memory, linked->file_count + 1, sizeof *linked->files);
    if (linked->files == NULL) {
        return out_of_memory(l);
    }
    uint32_t files = 0;
    for (size_t m = 0; m < l->count; m++) {
        const struct ptx_module *module = l->modules[m];
        for (size_t n = 0; n < module->file_count; n++) {
            linked->files[files + n] = module->files[n];
        }
        TRY(move_functions(l, m, files));
        move_relocations(l, m);
        files += (uint32_t)module->file_count;
    }
    return STATUS_OK;
}

static enum status link_all(struct linker *l) {
    const struct ptx_module *first = l->modules[0];
    l->linked = ptx_memory_take(l->memory, 1, sizeof *l->linked);
    if (l->linked == NULL) {
        return out_of_memory(l);
    }
    *l->linked = (struct ptx_module){.target = first->target,
                                     .version_major = first->version_major,
                                     .version_minor = first->version_minor,
                                     .memory = l->memory};
    TRY(collect(l, false));
    TRY(collect(l, true));
    TRY(check_defined(l));
    TRY(place_all(l));
    return move_all(l);
}

/* The linked module is made of the modules' parts; without one nothing is left of them. */
static void give_memory(const struct linker *l, enum status status) {
    for (size_t m = 0; m < l->count; m++) {
        struct ptx_memory *memory = l->modules[m]->memory;
        if (status == STATUS_OK) {
            ptx_memory_join(l->memory, memory);
        } else {
            ptx_memory_free(memory);
        }
        free(memory);
    }
    if (status != STATUS_OK) {
        ptx_memory_free(l->memory);
        free(l->memory);
    }
}

enum status ptx_link(struct ptx_module **linked, struct ptx_module **modules, size_t count,
                     bool (*known)(const char *name), struct error *error) {
    struct linker l = {.modules = modules,
                       .count = count,
                       .known = known,
                       .memory = calloc(1, sizeof *l.memory),
                       .names.list.item_size = sizeof(char *),
                       .symbols.item_size = sizeof(struct symbol),
                       .error = error};
    *linked = NULL;
    if (l.memory == NULL) {
        for (size_t m = 0; m < count; m++) {
            ptx_free(modules[m]);
        }
        return out_of_memory(&l);
    }
    l.names.memory = l.memory;
    enum status status = link_all(&l);
    struct ptx_module *made = l.linked;
    give_memory(&l, status);
    ptx_names_free(&l.names);
    ptx_list_free(&l.symbols);
    ptx_map_free(&l.by_name);
    ptx_map_free(&l.by_place);
    ptx_map_free(&l.moved);
    *linked = status == STATUS_OK ? made : NULL;
    return status;
}
