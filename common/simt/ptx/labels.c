/* Labels: known only when the function has been read to its end. */
#include <string.h>

#include "common/simt/ptx/parser.h"

static bool fail_undeclared(struct ptx_parser *parser, uint32_t line, const char *name) {
    return ptx_fail_at(parser, line, STATUS_BAD_FORMAT, "'%.100s' is not declared", name);
}

static bool is_function(const struct ptx_parser *parser, const char *name) {
    const uint32_t *index = ptx_map_find(&parser->function_names, (uint64_t)(uintptr_t)name, 0);
    return index != NULL && *index < parser->visible_functions;
}

/*
 * The index of an unresolved label is the scope it was used in. A label that
 * names a table or a prototype, and a function, is a symbol.
 */
static bool resolve(struct ptx_parser *parser, uint32_t line, bool branch,
                    struct ptx_operand *operand) {
    if (operand->kind != PTX_OPERAND_LABEL) {
        return true;
    }
    const struct ptx_label *label =
        ptx_scopes_find_label(&parser->scopes, operand->symbol, operand->index);
    if (label == NULL && (branch || !is_function(parser, operand->symbol))) {
        return fail_undeclared(parser, line, operand->symbol);
    }
    if (branch) {
        operand->index = label->instruction;
    } else {
        operand->kind = PTX_OPERAND_SYMBOL;
        operand->index = 0;
    }
    return true;
}

static bool resolve_operand(struct ptx_parser *parser, uint32_t line, bool branch,
                            struct ptx_operand *operand) {
    for (size_t i = 0; i < operand->element_count; i++) {
        struct ptx_operand *element = &operand->elements[i];
        for (size_t k = 0; k < element->element_count; k++) { /* no deeper: see ptx_operand.c */
            PTX_TRY(resolve(parser, line, branch, &element->elements[k]));
        }
        PTX_TRY(resolve(parser, line, branch, element));
    }
    return resolve(parser, line, branch, operand);
}

/* The labels of the table become the instruction's targets. */
static bool take_targets(struct ptx_parser *parser, const struct ptx_label *table,
                         struct ptx_instruction *instruction) {
    size_t count = table->target_count;
    instruction->targets = ptx_memory_take(parser->memory, count, sizeof *instruction->targets);
    instruction->target_indices =
        ptx_memory_take(parser->memory, count, sizeof *instruction->target_indices);
    if (instruction->targets == NULL || instruction->target_indices == NULL) {
        return ptx_fail_memory(parser);
    }
    instruction->target_count = count;
    for (size_t i = 0; i < count; i++) {
        char *name = *(char **)ptx_list_at(&parser->targets, table->first_target + i);
        const struct ptx_label *label = ptx_scopes_find_label(&parser->scopes, name, table->scope);
        if (label == NULL) {
            return fail_undeclared(parser, instruction->text_line, name);
        }
        instruction->targets[i] = name;
        instruction->target_indices[i] = label->instruction;
    }
    return true;
}

/* brx.idx %r1, table; */
static bool resolve_table(struct ptx_parser *parser, struct ptx_instruction *instruction) {
    const struct ptx_operand *operand =
        instruction->operand_count == 2 ? &instruction->operands[1] : NULL;
    const struct ptx_label *table =
        operand != NULL && operand->kind == PTX_OPERAND_LABEL
            ? ptx_scopes_find_label(&parser->scopes, operand->symbol, operand->index)
            : NULL;
    if (table == NULL || !table->has_table) {
        return ptx_fail_at(parser, instruction->text_line, STATUS_BAD_FORMAT,
                           "brx without a table of branch targets");
    }
    return take_targets(parser, table, instruction);
}

bool ptx_resolve_labels(struct ptx_parser *parser, struct ptx_function *function) {
    for (size_t i = 0; i < function->instruction_count; i++) {
        struct ptx_instruction *instruction = &function->instructions[i];
        bool branch = strcmp(instruction->base, "bra") == 0;
        if (strcmp(instruction->base, "brx") == 0 && !resolve_table(parser, instruction)) {
            return false;
        }
        for (size_t k = 0; k < instruction->operand_count; k++) {
            PTX_TRY(
                resolve_operand(parser, instruction->text_line, branch, &instruction->operands[k]));
        }
    }
    return true;
}
