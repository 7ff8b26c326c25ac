#include "common/simt/ptx/testing/check.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
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

enum { STATEMENT_LIMIT = 256 };

/* The statement so far, of which only the beginning matters, and the source line it is from. */
struct statement {
    char text[STATEMENT_LIMIT];
    size_t length;
    unsigned line;
};

static size_t find(const struct ptx_tally *tally, const char *name) {
    size_t i = 0;
    while (i < tally->used && strcmp(tally->names[i], name) != 0) {
        i++;
    }
    return i;
}

void ptx_tally_add(struct ptx_tally *tally, const char *name, size_t length) {
    char cut[sizeof tally->names[0]];
    snprintf(cut, sizeof cut, "%.*s", (int)length, name);
    size_t i = find(tally, cut);
    if (i == PTX_TALLY_LIMIT) {
        i--; /* the last entry collects the rest */
    }
    if (i == tally->used) {
        memcpy(tally->names[i], cut, sizeof cut);
        tally->used++;
    }
    tally->counts[i]++;
}

size_t ptx_tally_count(const struct ptx_tally *tally, const char *name) {
    size_t i = find(tally, name);
    return i < tally->used ? tally->counts[i] : 0;
}

size_t ptx_tally_total(const struct ptx_tally *tally) {
    size_t total = 0;
    for (size_t i = 0; i < tally->used; i++) {
        total += tally->counts[i];
    }
    return total;
}

static void append(struct statement *statement, char c) {
    if (isspace((unsigned char)c) && statement->length == 0) {
        return;
    }
    if (statement->length < STATEMENT_LIMIT - 1) {
        statement->text[statement->length++] = c;
        statement->text[statement->length] = '\0';
    }
}

static void clear(struct statement *statement) {
    statement->length = 0;
    statement->text[0] = '\0';
}

/* The statement is complete. */
static void count(struct ptx_tally *tally, const struct statement *statement) {
    const char *text = statement->text;
    if (*text == '@') {
        text += strcspn(text, " \t\n");
        text += strspn(text, " \t\n");
    }
    if (*text != '\0' && *text != '.') {
        ptx_tally_add(tally, text, strcspn(text, ". \t\n"));
        tally->without_line += statement->line == 0;
    }
}

/* Is everything so far one name, so that a colon makes it a label? */
static bool is_name(const struct statement *statement) {
    size_t length = strcspn(statement->text, " \t");
    return length > 0 && strchr(statement->text, '.') == NULL &&
           strspn(statement->text + length, " \t") + length == statement->length;
}

static bool is_header(const struct statement *statement) {
    return statement->text[0] == '.' &&
           (strstr(statement->text, ".entry") != NULL || strstr(statement->text, ".func") != NULL);
}

/* Lines that end where they end. */
static bool is_whole_line(const char *line, size_t length) {
    static const char *const words[] = {".loc", ".file", ".version", ".target", ".address_size"};
    size_t space = 0;
    while (space < length && (line[space] == ' ' || line[space] == '\t')) {
        space++;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if (length - space > size && memcmp(line + space, words[i], size) == 0) {
            return true;
        }
    }
    return false;
}

/* .loc FILE LINE COLUMN */
static void read_loc(struct statement *statement, const char *line, size_t length) {
    char copy[64];
    unsigned number;
    snprintf(copy, sizeof copy, "%.*s", (int)length, line);
    if (sscanf(copy, " .loc %*u %u", &number) == 1) {
        statement->line = number;
    }
}

/* next: the character behind c. */
static void take(struct ptx_tally *tally, struct statement *statement, char c, char next) {
    if (c == ';') {
        count(tally, statement);
        clear(statement);
    } else if (c == ':' && next != ':' && is_name(statement)) {
        clear(statement);
    } else if (c == '{' && is_header(statement)) {
        clear(statement);
        statement->line = 0;
    } else if (c == '{' && statement->length == 0) {
        clear(statement);
    } else if (c != '}' || statement->length > 0) {
        append(statement, c);
    }
}

static void take_line(struct ptx_tally *tally, struct statement *statement, const char *line,
                      size_t length) {
    if (is_whole_line(line, length)) {
        read_loc(statement, line, length);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        char next = i + 1 < length ? line[i + 1] : '\n';
        if (line[i] == '/' && next == '/') {
            break;
        }
        take(tally, statement, line[i], next);
    }
    append(statement, '\n');
}

void ptx_tally_text(struct ptx_tally *tally, const char *text, size_t size) {
    struct statement statement = {{0}, 0, 0};
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : size - at;
        take_line(tally, &statement, text + at, length);
        at += length + 1;
    }
}
