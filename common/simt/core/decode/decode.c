#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/core/decode/decode_internal.h"

enum { MAX_FRAME_BYTES = 1 << 24 };

/* Registers first, so that what starts as zeros lies together. */
static enum status place_registers(struct decoder *d) {
    const struct ptx_function *function = d->function;
    d->register_rows = calloc(function->register_count + 1, sizeof *d->register_rows);
    if (d->register_rows == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    d->code->predicates = SIMT_FIRST_PREDICATE;
    for (size_t n = 0; n < function->register_count; n++) {
        enum ptx_type type = function->registers[n].type;
        size_t size = ptx_type_size(type);
        if (type == PTX_PRED) {
            d->register_rows[n] = d->code->predicates++;
        } else {
            d->register_rows[n] = decode_take_rows(d, size > 8    ? 2 * SIMT_ROW64
                                                      : size == 8 ? SIMT_ROW64
                                                                  : SIMT_ROW32);
        }
        if (d->code->row_bytes > MAX_FRAME_BYTES) {
            return STATUS_UNSUPPORTED;
        }
    }
    return STATUS_OK;
}

/*
 * A .param variable of a device function or a call gets rows of its own. Every
 * call sequence declares its own param0, retval0 ...: those of one name share
 * rows, as many as the largest needs, because sequences do not overlap.
 */
static void add_parameter(struct decoder *d, const struct ptx_variable *variable, size_t shared) {
    uint32_t words = (uint32_t)ceil_div(variable->bytes, 4);
    struct simt_parameter *parameters = d->code->parameters;
    for (size_t n = shared; n < d->code->parameter_count; n++) {
        if (strcmp(parameters[n].name, variable->name) == 0) {
            parameters[n].words = words > parameters[n].words ? words : parameters[n].words;
            return;
        }
    }
    parameters[d->code->parameter_count++] =
        (struct simt_parameter){.name = variable->name, .words = words};
}

static enum status place_parameters(struct decoder *d) {
    const struct ptx_function *f = d->function;
    size_t most = f->parameter_count + f->result_count + f->local_count + 1;
    d->code->parameters = calloc(most, sizeof *d->code->parameters);
    if (d->code->parameters == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < f->parameter_count && !f->entry; n++) {
        add_parameter(d, &f->parameters[n], most);
    }
    for (size_t n = 0; n < f->result_count; n++) {
        add_parameter(d, &f->results[n], most);
    }
    size_t own = d->code->parameter_count;
    for (size_t n = 0; n < f->local_count; n++) {
        if (f->locals[n].space == PTX_PARAM) {
            add_parameter(d, &f->locals[n], own);
        }
    }
    for (size_t n = 0; n < d->code->parameter_count; n++) {
        d->code->parameters[n].offset =
            decode_take_rows(d, d->code->parameters[n].words * SIMT_ROW32);
    }
    return STATUS_OK;
}

/* Next aligned offset behind `bytes` bytes from `base`. */
static size_t aligned_end(size_t base, size_t bytes, const struct ptx_variable *variable) {
    size_t alignment = variable->alignment > 0 ? variable->alignment : 1;
    return ceil_div(base + bytes, alignment) * alignment - base;
}

size_t simt_shared_bytes(const struct ptx_function *function, size_t base) {
    size_t bytes = 0;
    for (size_t n = 0; n < function->local_count; n++) {
        const struct ptx_variable *variable = &function->locals[n];
        if (variable->space == PTX_SHARED && !variable->external) {
            bytes = aligned_end(base, bytes, variable) + variable->bytes;
        }
    }
    return bytes;
}

static void place(struct decoder *d, const struct ptx_variable *variable, size_t base,
                  size_t *bytes) {
    *bytes = aligned_end(base, *bytes, variable);
    d->placed[d->placed_count++] = (struct placed_variable){
        .name = variable->name, .space = variable->space, .offset = base + *bytes};
    *bytes += variable->bytes;
}

static enum status place_variables(struct decoder *d) {
    const struct ptx_function *f = d->function;
    d->placed = calloc(f->local_count + f->parameter_count + 1, sizeof *d->placed);
    if (d->placed == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < f->local_count; n++) {
        const struct ptx_variable *variable = &f->locals[n];
        if (variable->space == PTX_SHARED && variable->external) {
            d->placed[d->placed_count++] = (struct placed_variable){
                .name = variable->name, .space = PTX_SHARED, .offset = d->linker->dynamic_shared};
        } else if (variable->space == PTX_SHARED) {
            place(d, variable, d->linker->shared_base, &d->code->static_shared_bytes);
        } else if (variable->space == PTX_LOCAL) {
            place(d, variable, 0, &d->code->local_bytes);
        }
    }
    for (size_t n = 0; n < f->parameter_count && f->entry; n++) {
        d->placed[d->placed_count++] = (struct placed_variable){
            .name = f->parameters[n].name, .space = PTX_PARAM, .offset = f->parameters[n].offset};
    }
    return STATUS_OK;
}

static bool decode_by_family(const struct decoder *d, const struct ptx_instruction *in,
                             struct simt_instruction *out) {
    static simt_decode_family *const families[] = {
        simt_decode_memory,       simt_decode_convert,    simt_decode_compare,
        simt_decode_integer,      simt_decode_float,      simt_decode_half,
        simt_decode_warp,         simt_decode_mma,        simt_decode_wmma_memory,
        simt_decode_matrix,       simt_decode_async_copy, simt_decode_mbarrier,
        simt_decode_packed,       simt_decode_texture,    simt_decode_surface,
        simt_decode_bulk_copy,    simt_decode_wgmma,      simt_decode_cluster,
        simt_decode_remote_store, simt_decode_volta_mma,  simt_decode_tensormap};
    const struct simt_decoding decoding = {.source = in, .function = d->function};
    for (size_t n = 0; n < sizeof families / sizeof *families; n++) {
        if (families[n](&decoding, out)) {
            return true;
        }
    }
    return false;
}

/* Loads that L1 does not answer. */
static bool bypasses_l1(const struct ptx_instruction *in) {
    static const char *const modifiers[] = {"cg",      "cv",   "volatile", "relaxed",
                                            "acquire", "mmio", NULL};
    return ptx_has_any_modifier(in, modifiers);
}

/* What becomes of undefined sources; the default is that results are undefined. */
static enum simt_undefined_rule undefined_rule(const struct ptx_instruction *in,
                                               const struct simt_instruction *out) {
    static const struct {
        const char *base, *modifier; /* NULL: any */
        enum simt_undefined_rule rule;
    } rules[] = {
        {"ld", NULL, SIMT_UNDEFINED_LOAD},
        {"ldu", NULL, SIMT_UNDEFINED_LOAD},
        {"st", NULL, SIMT_UNDEFINED_STORE},
        {"sust", NULL, SIMT_UNDEFINED_USE},
        {"atom", NULL, SIMT_UNDEFINED_USE},
        {"red", NULL, SIMT_UNDEFINED_USE},
        {"selp", NULL, SIMT_UNDEFINED_SELECT},
        {"and", NULL, SIMT_UNDEFINED_AND},
        {"or", "pred", SIMT_UNDEFINED_OR},
        {"setp", NULL, SIMT_UNDEFINED_SETP},
        {"shfl", NULL, SIMT_UNDEFINED_SHUFFLE},
        {"vote", NULL, SIMT_UNDEFINED_VOTE},
        {"match", NULL, SIMT_UNDEFINED_WARP},
        {"redux", NULL, SIMT_UNDEFINED_WARP},
        {"movmatrix", NULL, SIMT_UNDEFINED_WARP},
        {"mma", "m8n8k4", SIMT_UNDEFINED_WARP}, /* of its own layout */
        {"mma", "sp", SIMT_UNDEFINED_WARP},
        {"mma", "sp::ordered_metadata", SIMT_UNDEFINED_WARP},
        {"mma", NULL, SIMT_UNDEFINED_MMA},
        {"ldmatrix", NULL, SIMT_UNDEFINED_MATRIX_LOAD},
        {"stmatrix", NULL, SIMT_UNDEFINED_MATRIX_STORE},
        {"wmma", "load", SIMT_UNDEFINED_TILE_LOAD},
        {"wmma", "store", SIMT_UNDEFINED_TILE_STORE},
        {"wmma", NULL, SIMT_UNDEFINED_WARP},
        {"cp", NULL, SIMT_UNDEFINED_USE},
        {"mbarrier", NULL, SIMT_UNDEFINED_USE},
    };
    for (size_t n = 0; n < sizeof rules / sizeof *rules; n++) {
        if (ptx_is_same(in->base, rules[n].base) &&
            (rules[n].modifier == NULL || ptx_has_modifier(in, rules[n].modifier))) {
            return rules[n].rule;
        }
    }
    return out->next == SIMT_NEXT_FLOW ? SIMT_UNDEFINED_USE : SIMT_UNDEFINED_RESULT;
}

static enum status decode_one(struct decoder *d, const struct ptx_instruction *in,
                              struct simt_instruction *out) {
    *out = (struct simt_instruction){.source = in, .guard = -1, .pred_dst = {-1, -1}};
    out->bypasses_l1 = bypasses_l1(in);
    if (in->guarded) {
        out->guard = (int32_t)d->register_rows[in->guard];
        out->guard_negated = in->guard_negated;
    }
    bool known = false;
    TRY(decode_flow(d, in, out, &known));
    if (known) {
        out->undefined = SIMT_UNDEFINED_USE;
        return STATUS_OK;
    }
    TRY(decode_frame_parameter(d, in, out, &known));
    if (known) {
        return STATUS_OK;
    }
    TRY(decode_operands(d, in, out));
    known = decode_by_family(d, in, out);
    out->undefined = (uint8_t)undefined_rule(in, out);
    return known ? STATUS_OK : STATUS_UNSUPPORTED;
}

/* Addresses depend on who asks first, lines on who prints first, conditions on who sets them last.
 */
static bool calls_system(const struct ptx_instruction *in) {
    static const char *const names[] = {"malloc", "free", "vprintf", "cudaGraphSetConditional",
                                        NULL};
    bool calls = false;
    for (size_t n = 0; n < in->operand_count; n++) {
        const struct ptx_operand *operand = &in->operands[n];
        calls =
            calls || (operand->kind == PTX_OPERAND_SYMBOL && ptx_is_one_of(operand->symbol, names));
    }
    return calls;
}

/* Blocks may communicate through this access, and no check watches it: how often a block spins on
 * another block's flag depends on when that block runs. */
static bool communicates(const struct ptx_instruction *in) {
    static const char *const orders[] = {"volatile", "acquire", "relaxed", "release", NULL};
    bool moves = strcmp(in->base, "ld") == 0 || strcmp(in->base, "st") == 0;
    return moves && ptx_has_any_modifier(in, orders) && !ptx_has_modifier(in, "shared") &&
           !ptx_has_modifier(in, "local");
}

/* atom returns the old value, and float sums round: both depend on the order of blocks. */
static bool depends_on_order(const struct ptx_instruction *in) {
    if (strcmp(in->base, "call") == 0) {
        return calls_system(in);
    }
    bool bulk = strcmp(in->base, "cp") == 0 && ptx_has_modifier(in, "reduce");
    bool atomic = bulk || strcmp(in->base, "atom") == 0 || strcmp(in->base, "red") == 0;
    if (bulk && ptx_has_modifier(in, "tensor")) {
        return true; /* the map says the type */
    }
    if (!atomic || ptx_has_modifier(in, "shared")) {
        return communicates(in);
    }
    enum ptx_type type = ptx_modifier_type(in, 0);
    bool integer = type >= PTX_B8 && type <= PTX_S64;
    return !integer || strcmp(in->base, "atom") == 0;
}

/* Names of templates, and paths, may be as long as a message: then only their beginning, or end. */
enum { MOST_NAME = 160, MOST_PATH = 120 };

static enum status unsupported(const struct ptx_module *module, const struct ptx_function *function,
                               const struct ptx_instruction *in, enum status status,
                               struct error *error) {
    const char *file = in->file < module->file_count ? module->files[in->file] : NULL;
    const char *cut = strlen(function->name) > MOST_NAME ? "..." : "";
    size_t length = file != NULL ? strlen(file) : 0;
    if (status != STATUS_UNSUPPORTED) {
        return error_set(error, status, "%.*s%s: %s", MOST_NAME, function->name, cut,
                         status_message(status));
    }
    if (file == NULL) {
        return error_set(error, status, "%.*s%s uses %s, which simt does not run", MOST_NAME,
                         function->name, cut, in->opcode);
    }
    bool long_path = length > MOST_PATH;
    return error_set(error, status, "%.*s%s uses %s at %s%s:%u, which simt does not run", MOST_NAME,
                     function->name, cut, in->opcode, long_path ? "..." : "",
                     long_path ? file + length - MOST_PATH : file, in->line);
}

static enum status decode_all(struct decoder *d, const struct ptx_module *module,
                              struct error *error) {
    struct simt_code *code = d->code;
    const struct ptx_function *function = d->function;
    code->instructions =
        aligned_alloc(_Alignof(struct simt_instruction),
                      (function->instruction_count + 1) * sizeof *code->instructions);
    code->rank = calloc(function->instruction_count + 1, sizeof *code->rank);
    code->leader = calloc(function->instruction_count + 1, sizeof *code->leader);
    code->calls = calloc(function->instruction_count + 1, sizeof *code->calls);
    code->lists = calloc(function->instruction_count + 1, sizeof *code->lists);
    if (code->instructions == NULL || code->rank == NULL || code->leader == NULL ||
        code->calls == NULL || code->lists == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memset(code->instructions, 0, (function->instruction_count + 1) * sizeof *code->instructions);
    code->count = function->instruction_count;
    for (size_t n = 0; n < code->count; n++) {
        const struct ptx_instruction *in = &function->instructions[n];
        enum status status = decode_one(d, in, &code->instructions[n]);
        if (status != STATUS_OK) {
            return unsupported(module, function, in, status, error);
        }
        code->order_sensitive = code->order_sensitive || depends_on_order(in);
    }
    /* Text may end without ret: control that falls off the end returns. */
    code->instructions[code->count] = (struct simt_instruction){.guard = -1,
                                                                .next = SIMT_NEXT_FLOW,
                                                                .flow = SIMT_FLOW_RETURN,
                                                                .op_class = SIMT_CLASS_CONTROL};
    code->count++;
    return STATUS_OK;
}

/* Lays out the frame: registers first, then parameters and variables. */
static enum status place_all(struct decoder *d) {
    TRY(place_registers(d));
    d->code->register_bytes = d->code->row_bytes;
    TRY(place_parameters(d));
    return place_variables(d);
}

/* Rows have numbers of rows of 4-byte lanes; predicates follow the last row of the frame. */
static enum status number_cells(struct decoder *d) {
    const struct ptx_function *function = d->function;
    d->code->cells = calloc(function->register_count + 1, sizeof *d->code->cells);
    if (d->code->cells == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < function->register_count; n++) {
        bool predicate = function->registers[n].type == PTX_PRED;
        d->code->cells[n] = predicate ? d->code->row_bytes / SIMT_ROW32 + d->register_rows[n]
                                      : d->register_rows[n] / SIMT_ROW32;
    }
    return STATUS_OK;
}

/* Decodes into d->code; the caller frees it on failure. */
static enum status decode_function(struct decoder *d, const struct ptx_module *module,
                                   struct error *error) {
    enum status placed = place_all(d);
    if (placed != STATUS_OK) {
        return error_set(error, placed, "%s: %s", d->function->name, status_message(placed));
    }
    TRY(decode_all(d, module, error));
    TRY(number_cells(d));
    TRY(decode_origins(d, module));
    TRY(simt_order_blocks(d->code));
    TRY(simt_uses_find(d->code));
    simt_find_bases(d->code);
    TRY(simt_estimate_registers(d->code));
    TRY(simt_join_accesses(d->code));
    return simt_set_costs(d->code);
}

enum status simt_decode(struct simt_code **code, const struct ptx_module *module,
                        const struct ptx_function *function, const struct simt_linker *linker,
                        struct error *error) {
    struct decoder d = {.function = function, .linker = linker};
    *code = NULL;
    d.code = calloc(1, sizeof *d.code);
    if (d.code == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", function->name);
    }
    d.code->function = function;
    enum status status = decode_function(&d, module, error);
    free(d.register_rows);
    free(d.placed);
    if (status != STATUS_OK) {
        simt_code_free(d.code);
        return status;
    }
    *code = d.code;
    return STATUS_OK;
}

void simt_code_free(struct simt_code *code) {
    if (code == NULL) {
        return;
    }
    for (size_t n = 0; n < code->call_count; n++) {
        free(code->calls[n].arguments);
        free(code->calls[n].results);
    }
    free(code->calls);
    for (size_t n = 0; n < code->list_count; n++) {
        free(code->lists[n]);
    }
    free(code->lists);
    free(code->origins);
    simt_uses_free(code);
    free(code->instructions);
    free(code->sums);
    free(code->rank);
    free(code->leader);
    free(code->fills);
    free(code->parameters);
    free(code->cells);
    free(code->unset);
    free(code);
}
