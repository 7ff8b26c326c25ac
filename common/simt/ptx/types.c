/* Queries on parsed types and modifiers. */
#include <string.h>

#include "common/simt/ptx/ptx.h"

struct type_row {
    const char *text;
    size_t length, size;
};

static const struct type_row types[] = {[PTX_NO_TYPE] = {"", 0, 0},
#define TYPE_ROW(name, text, size) [name] = {text, sizeof text - 1, size},
                                        PTX_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

static const size_t TYPE_COUNT = sizeof types / sizeof *types;

size_t ptx_type_size(enum ptx_type type) {
    return (size_t)type < TYPE_COUNT ? types[type].size : 0;
}

enum ptx_type ptx_type_find(const char *text, size_t length) {
    for (size_t i = PTX_NO_TYPE + 1; i < TYPE_COUNT; i++) {
        if (types[i].length == length && memcmp(types[i].text, text, length) == 0) {
            return (enum ptx_type)i;
        }
    }
    return PTX_NO_TYPE;
}

bool ptx_has_modifier(const struct ptx_instruction *instruction, const char *name) {
    for (size_t i = 0; i < instruction->modifier_count; i++) {
        if (ptx_is_same(instruction->modifiers[i], name)) {
            return true;
        }
    }
    return false;
}

bool ptx_is_one_of(const char *text, const char *const *names) {
    for (; *names != NULL; names++) {
        if (ptx_is_same(text, *names)) {
            return true;
        }
    }
    return false;
}

bool ptx_has_any_modifier(const struct ptx_instruction *instruction, const char *const *names) {
    bool has = false;
    for (size_t i = 0; i < instruction->modifier_count && !has; i++) {
        has = ptx_is_one_of(instruction->modifiers[i], names);
    }
    return has;
}

enum ptx_type ptx_modifier_type(const struct ptx_instruction *instruction, size_t n) {
    for (size_t i = 0; i < instruction->modifier_count; i++) {
        const char *text = instruction->modifiers[i];
        enum ptx_type type = ptx_type_find(text, strlen(text));
        if (type != PTX_NO_TYPE && n-- == 0) {
            return type;
        }
    }
    return PTX_NO_TYPE;
}

const struct ptx_function *ptx_find_function(const struct ptx_module *module, const char *name) {
    for (size_t i = 0; i < module->function_count; i++) {
        if (strcmp(module->functions[i].name, name) == 0) {
            return &module->functions[i];
        }
    }
    return NULL;
}

const struct ptx_variable *ptx_operand_variable(const struct ptx_module *module,
                                                const struct ptx_function *function,
                                                const struct ptx_operand *operand) {
    switch (operand->table) {
    case PTX_IN_MODULE:
        return &module->variables[operand->variable];
    case PTX_IN_PARAMETERS:
        return &function->parameters[operand->variable];
    case PTX_IN_RESULTS:
        return &function->results[operand->variable];
    case PTX_IN_LOCALS:
        return &function->locals[operand->variable];
    default:
        return NULL;
    }
}
