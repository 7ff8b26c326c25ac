#include "common/simt/ptx/testing/check.h"

#include <string.h>

enum { MAX_LEVEL = 3 };

static bool table_holds(const struct ptx_module *module, const struct ptx_function *function,
                        const struct ptx_operand *operand) {
    switch (operand->table) {
    case PTX_IN_NONE:
        return operand->variable == 0;
    case PTX_IN_MODULE:
        return operand->variable < module->variable_count;
    case PTX_IN_PARAMETERS:
        return operand->variable < function->parameter_count;
    case PTX_IN_RESULTS:
        return operand->variable < function->result_count;
    case PTX_IN_LOCALS:
        return operand->variable < function->local_count;
    }
    return false;
}

static const char *check_operand(const struct ptx_module *module,
                                 const struct ptx_function *function,
                                 const struct ptx_operand *operand, int level) {
    bool uses_register = operand->kind == PTX_OPERAND_REGISTER || operand->has_register;
    if (uses_register && operand->index >= function->register_count) {
        return "a register out of range";
    }
    if (operand->kind == PTX_OPERAND_LABEL && operand->index > function->instruction_count) {
        return "a label out of range";
    }
    if (operand->kind == PTX_OPERAND_SPECIAL && operand->special == NULL) {
        return "a special register without name";
    }
    if (operand->kind == PTX_OPERAND_SYMBOL && operand->symbol == NULL) {
        return "a symbol without name";
    }
    if (operand->kind == PTX_OPERAND_PAIR && operand->element_count != 2) {
        return "a pair that is none";
    }
    if (!table_holds(module, function, operand)) {
        return "a variable out of range";
    }
    const struct ptx_variable *variable = ptx_operand_variable(module, function, operand);
    if (variable != NULL && strcmp(variable->name, operand->symbol) != 0) {
        return "a symbol that is another variable's";
    }
    const char *problem = operand->element_count > 0 && level == MAX_LEVEL ? "too deep" : NULL;
    for (size_t i = 0; i < operand->element_count && problem == NULL; i++) {
        problem = check_operand(module, function, &operand->elements[i], level + 1);
    }
    return problem;
}

static const char *check_instruction(const struct ptx_module *module,
                                     const struct ptx_function *function,
                                     const struct ptx_instruction *instruction) {
    if (instruction->guarded && (instruction->guard >= function->register_count ||
                                 function->registers[instruction->guard].type != PTX_PRED)) {
        return "a guard that is no predicate";
    }
    if (strncmp(instruction->opcode, instruction->base, strlen(instruction->base)) != 0 ||
        instruction->modifier_count > PTX_MAX_MODIFIERS || instruction->text_line == 0) {
        return "an opcode without its base";
    }
    for (size_t i = 0; i < instruction->target_count; i++) {
        if (instruction->target_indices[i] > function->instruction_count) {
            return "a branch target out of range";
        }
    }
    if (strcmp(instruction->base, "call") == 0 && instruction->operand_count < 3) {
        return "a call of less than three operands";
    }
    const char *problem = NULL;
    for (size_t i = 0; i < instruction->operand_count && problem == NULL; i++) {
        problem = check_operand(module, function, &instruction->operands[i], 0);
    }
    return problem;
}

static const char *check_variable(const struct ptx_variable *variable) {
    unsigned char sum = 0;
    if (variable->name == NULL ||
        variable->bytes != variable->elements * ptx_type_size(variable->type)) {
        return "a variable whose size is not its elements'";
    }
    for (size_t i = 0; variable->data != NULL && i < variable->bytes; i += 4093) {
        sum ^= variable->data[i]; /* is there: a sanitizer sees it */
    }
    for (size_t i = 0; i < variable->relocation_count; i++) {
        const struct ptx_relocation *relocation = &variable->relocations[i];
        if (relocation->symbol == NULL || variable->bytes < 8 ||
            relocation->offset > variable->bytes - 8) {
            return "a relocation out of range";
        }
    }
    return variable->data == NULL && sum != 0 ? "initial values without place" : NULL;
}

static const char *check_variables(const struct ptx_variable *variables, size_t count) {
    const char *problem = NULL;
    for (size_t i = 0; i < count && problem == NULL; i++) {
        problem = check_variable(&variables[i]);
    }
    return problem;
}

static const char *check_parameters(const struct ptx_function *function) {
    for (size_t i = 0; i < function->parameter_count; i++) {
        const struct ptx_variable *parameter = &function->parameters[i];
        if (parameter->offset + parameter->bytes > function->parameter_bytes ||
            parameter->offset % parameter->alignment != 0) {
            return "a parameter out of place";
        }
    }
    return NULL;
}

static const char *check_function(const struct ptx_module *module,
                                  const struct ptx_function *function) {
    const char *problem = check_parameters(function);
    if (problem == NULL) {
        problem = check_variables(function->locals, function->local_count);
    }
    for (size_t i = 0; i < function->instruction_count && problem == NULL; i++) {
        problem = check_instruction(module, function, &function->instructions[i]);
    }
    return problem;
}

const char *ptx_check(const struct ptx_module *module) {
    const char *problem = check_variables(module->variables, module->variable_count);
    for (size_t i = 0; i < module->function_count && problem == NULL; i++) {
        problem = check_function(module, &module->functions[i]);
    }
    return problem;
}
