/*
 * Operands become rows: registers, constants, special registers and addresses
 * are laid out in the frame, so that handlers see nothing but rows.
 */
#include "common/simt/core/decode/decode_internal.h"

#include <stdlib.h>
#include <string.h>

bool decode_has_destination(const struct ptx_instruction *i) {
    static const char *const without[] = {"st",
                                          "red",
                                          "bar",
                                          "barrier",
                                          "bra",
                                          "brx",
                                          "call",
                                          "ret",
                                          "exit",
                                          "trap",
                                          "brkpt",
                                          "membar",
                                          "fence",
                                          "prefetch",
                                          "prefetchu",
                                          "cp",
                                          "nanosleep",
                                          "pmevent",
                                          "setmaxnreg",
                                          "stmatrix",
                                          "discard",
                                          "applypriority",
                                          "griddepcontrol",
                                          "wgmma",
                                          "sust",
                                          "tensormap",
                                          NULL};
    static const char *const with_state[] = {"arrive",   "arrive_drop",   "test_wait",
                                             "try_wait", "pending_count", NULL};
    if (strcmp(i->base, "bar") == 0 || strcmp(i->base, "barrier") == 0) {
        return ptx_has_modifier(i, "red");
    }
    if (strcmp(i->base, "mbarrier") == 0 && i->modifier_count > 0) {
        return ptx_is_one_of(i->modifiers[0], with_state);
    }
    if (strcmp(i->base, "wmma") == 0) {
        return !ptx_has_modifier(i, "store");
    }
    return !ptx_is_one_of(i->base, without);
}

static enum ptx_type last_type(const struct ptx_instruction *i) {
    enum ptx_type type = PTX_NO_TYPE;
    enum ptx_type next;
    for (size_t n = 0; (next = ptx_modifier_type(i, n)) != PTX_NO_TYPE; n++) {
        type = next;
    }
    return type;
}

/* Sources of these are 32 bits wide whatever the type says, from the given source on. */
static const struct {
    const char *base;
    size_t from;
} narrow_sources[] = {{"shl", 1},     {"shr", 1},      {"bfe", 1},   {"bfi", 2},   {"shf", 0},
                      {"shfl", 0},    {"vote", 0},     {"redux", 0}, {"match", 1}, {"bar", 0},
                      {"barrier", 0}, {"wmma", 1},     {"cp", 2},    {"prmt", 0},  {"lop3", 0},
                      {"fns", 0},     {"nanosleep", 0}};

bool decode_source_is_wide(const struct ptx_instruction *i, size_t source) {
    for (size_t n = 0; n < sizeof narrow_sources / sizeof *narrow_sources; n++) {
        if (ptx_is_same(i->base, narrow_sources[n].base) && source >= narrow_sources[n].from) {
            return false;
        }
    }
    if (strcmp(i->base, "mbarrier") == 0 &&
        i->modifier_count > 0) { /* a state, else a count or a parity */
        return ptx_has_modifier(i, "pending_count") ||
               (strstr(i->modifiers[0], "_wait") != NULL && source == 1 &&
                !ptx_has_modifier(i, "parity"));
    }
    bool widening = ptx_has_modifier(i, "wide");
    if (widening && source < 2) {
        return false;
    }
    size_t size = ptx_type_size(last_type(i));
    if (widening) {
        return size >= 4; /* the addend of mad.wide has the type of the result */
    }
    if (strcmp(i->base, "slct") == 0 && source < 2) {
        size = ptx_type_size(ptx_modifier_type(i, 0));
    }
    return size >= 8;
}

/* Takes room for one more fill; the same constant is kept once. */
static enum status add_fill(struct decoder *d, bool wide, uint8_t special, uint64_t value,
                            uint32_t *offset) {
    struct simt_code *code = d->code;
    if (!wide) {
        value &= UINT32_MAX;
    }
    for (size_t n = 0; n < code->fill_count; n++) {
        const struct simt_fill *fill = &code->fills[n];
        if (fill->wide == wide && fill->special == special && fill->value == value) {
            *offset = fill->offset;
            return STATUS_OK;
        }
    }
    if (code->fill_count == d->fill_capacity) {
        size_t capacity = d->fill_capacity == 0 ? 32 : 2 * d->fill_capacity;
        struct simt_fill *fills = realloc(code->fills, capacity * sizeof *fills);
        if (fills == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        code->fills = fills;
        d->fill_capacity = capacity;
    }
    *offset = decode_take_rows(d, wide ? SIMT_ROW64 : SIMT_ROW32);
    code->fills[code->fill_count++] =
        (struct simt_fill){.offset = *offset, .wide = wide, .special = special, .value = value};
    return STATUS_OK;
}

uint32_t decode_take_rows(struct decoder *d, uint32_t bytes) {
    uint32_t offset = d->code->row_bytes;
    d->code->row_bytes += bytes;
    return offset;
}

enum status decode_constant(struct decoder *d, bool wide, uint64_t value, uint32_t *offset) {
    return add_fill(d, wide, SIMT_CONSTANT_VALUE, value, offset);
}

/* Special registers that hold the same in every launch are constants. */
static const struct {
    const char *name;
    uint8_t special;
    uint64_t value;
} specials[] = {
    {"tid.x", SIMT_TID_X, 0},
    {"tid.y", SIMT_TID_Y, 0},
    {"tid.z", SIMT_TID_Z, 0},
    {"ntid.x", SIMT_NTID_X, 0},
    {"ntid.y", SIMT_NTID_Y, 0},
    {"ntid.z", SIMT_NTID_Z, 0},
    {"ctaid.x", SIMT_CTAID_X, 0},
    {"ctaid.y", SIMT_CTAID_Y, 0},
    {"ctaid.z", SIMT_CTAID_Z, 0},
    {"nctaid.x", SIMT_NCTAID_X, 0},
    {"nctaid.y", SIMT_NCTAID_Y, 0},
    {"nctaid.z", SIMT_NCTAID_Z, 0},
    {"laneid", SIMT_LANEID, 0},
    {"warpid", SIMT_WARPID, 0},
    {"nwarpid", SIMT_NWARPID, 0},
    {"lanemask_eq", SIMT_LANEMASK_EQ, 0},
    {"lanemask_lt", SIMT_LANEMASK_LT, 0},
    {"lanemask_le", SIMT_LANEMASK_LE, 0},
    {"lanemask_gt", SIMT_LANEMASK_GT, 0},
    {"lanemask_ge", SIMT_LANEMASK_GE, 0},
    {"dynamic_smem_size", SIMT_DYNAMIC_SHARED, 0},
    {"total_smem_size", SIMT_TOTAL_SHARED, 0},
    {"envreg1", SIMT_ENVREG1, 0},
    {"envreg2", SIMT_ENVREG2, 0},
    {"reserved_smem_offset_begin", SIMT_RESERVED_SHARED, 0},
    {"reserved_smem_offset_0", SIMT_RESERVED_SHARED, 0},
    {"reserved_smem_offset_1", SIMT_RESERVED_SHARED, 16},
    {"reserved_smem_offset_end", SIMT_RESERVED_SHARED, SIMT_RESERVED_BYTES},
    {"reserved_smem_offset_cap", SIMT_CONSTANT_VALUE, SIMT_RESERVED_BYTES},
    {"WARP_SZ", SIMT_CONSTANT_VALUE, SIMT_LANES},
    {"smid", SIMT_SMID, 0},
    {"nsmid", SIMT_NSMID, 0},
    {"gridid", SIMT_CONSTANT_VALUE, 0},
    {"tid.w", SIMT_CONSTANT_VALUE, 0},
    {"ntid.w", SIMT_CONSTANT_VALUE, 1},
    {"ctaid.w", SIMT_CONSTANT_VALUE, 0},
    {"nctaid.w", SIMT_CONSTANT_VALUE, 1},
    {"clusterid.x", SIMT_CLUSTERID_X, 0},
    {"clusterid.y", SIMT_CLUSTERID_Y, 0},
    {"clusterid.z", SIMT_CLUSTERID_Z, 0},
    {"nclusterid.x", SIMT_NCLUSTERID_X, 0},
    {"nclusterid.y", SIMT_NCLUSTERID_Y, 0},
    {"nclusterid.z", SIMT_NCLUSTERID_Z, 0},
    {"cluster_ctaid.x", SIMT_CLUSTER_CTAID_X, 0},
    {"cluster_ctaid.y", SIMT_CLUSTER_CTAID_Y, 0},
    {"cluster_ctaid.z", SIMT_CLUSTER_CTAID_Z, 0},
    {"cluster_nctaid.x", SIMT_CLUSTER_NCTAID_X, 0},
    {"cluster_nctaid.y", SIMT_CLUSTER_NCTAID_Y, 0},
    {"cluster_nctaid.z", SIMT_CLUSTER_NCTAID_Z, 0},
    {"cluster_ctarank", SIMT_CLUSTER_RANK, 0},
    {"cluster_nctarank", SIMT_CLUSTER_SIZE, 0},
};

static enum status special_row(struct decoder *d, const char *name, bool wide, uint32_t *offset) {
    for (size_t n = 0; n < sizeof specials / sizeof *specials; n++) {
        if (strcmp(name, specials[n].name) == 0) {
            d->code->reserves_shared =
                d->code->reserves_shared || specials[n].special == SIMT_RESERVED_SHARED;
            return add_fill(d, wide, specials[n].special, specials[n].value, offset);
        }
    }
    return STATUS_UNSUPPORTED;
}

/* The row of a variable's address in its own space: own variables first, then the module's. */
static enum status symbol_row(struct decoder *d, const char *symbol, int64_t addend, bool wide,
                              uint32_t *offset) {
    for (size_t n = 0; n < d->placed_count; n++) {
        const struct placed_variable *variable = &d->placed[n];
        if (strcmp(variable->name, symbol) == 0) {
            uint8_t special =
                variable->space == PTX_LOCAL ? SIMT_LOCAL_ADDRESS : SIMT_CONSTANT_VALUE;
            return add_fill(d, wide, special, variable->offset + (uint64_t)addend, offset);
        }
    }
    uint64_t address = 0;
    switch (d->linker->find(d->linker->context, symbol, &address)) {
    case SIMT_SYMBOL_NONE:
        return STATUS_UNSUPPORTED;
    case SIMT_SYMBOL_DYNAMIC_SHARED:
        address = d->linker->dynamic_shared;
        break;
    case SIMT_SYMBOL_ADDRESS:
    case SIMT_SYMBOL_SHARED:
        break;
    }
    return decode_constant(d, wide, address + (uint64_t)addend, offset);
}

bool decode_variable_offset(const struct decoder *d, const char *symbol, uint64_t *offset) {
    for (size_t n = 0; n < d->placed_count; n++) {
        if (strcmp(d->placed[n].name, symbol) == 0) {
            *offset = d->placed[n].offset;
            return true;
        }
    }
    switch (d->linker->find(d->linker->context, symbol, offset)) {
    case SIMT_SYMBOL_DYNAMIC_SHARED:
        *offset = d->linker->dynamic_shared;
        return true;
    case SIMT_SYMBOL_SHARED:
        return true;
    case SIMT_SYMBOL_NONE:
    case SIMT_SYMBOL_ADDRESS:
        break;
    }
    return false;
}

/* Float immediates carry their bits; a double's immediate in an fp32 operation is converted. */
static uint64_t immediate_bits(const struct ptx_operand *operand, bool wide) {
    if (operand->immediate_type == PTX_IMMEDIATE_F64 && !wide) {
        double value;
        float narrow;
        uint32_t bits;
        memcpy(&value, &operand->bits, sizeof value);
        narrow = (float)value;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    return operand->bits;
}

/* The row of an address's base; the byte offset goes to the instruction. */
static enum status address_row(struct decoder *d, const struct ptx_operand *operand,
                               struct simt_instruction *out, uint32_t *row) {
    out->immediate = operand->offset;
    if (operand->has_register) {
        *row = d->register_rows[operand->index];
        return STATUS_OK;
    }
    if (operand->symbol != NULL && decode_find_parameter(d, operand->symbol) == NULL) {
        return symbol_row(d, operand->symbol, 0, true, row);
    }
    return decode_constant(d, true, 0, row); /* a parameter in the frame needs no address */
}

static enum status add_source(struct decoder *d, const struct ptx_operand *operand, bool wide,
                              struct simt_instruction *out) {
    if (out->src_count == d->source_limit) {
        return STATUS_UNSUPPORTED;
    }
    size_t n = out->src_count++;
    uint32_t *slot = &d->sources[n];
    if (n < SIMT_MAX_OPERANDS) {
        out->src_negated[n] = operand->negated;
    }
    switch (operand->kind) {
    case PTX_OPERAND_REGISTER:
        *slot = d->register_rows[operand->index];
        return STATUS_OK;
    case PTX_OPERAND_IMMEDIATE:
        if (ptx_has_modifier(d->source, "pred")) {
            *slot = operand->bits != 0 ? SIMT_PREDICATE_TRUE : SIMT_PREDICATE_FALSE;
            return STATUS_OK;
        }
        return decode_constant(d, wide, immediate_bits(operand, wide), slot);
    case PTX_OPERAND_SPECIAL:
        if (ptx_has_modifier(d->source, "pred")) {
            *slot = SIMT_PREDICATE_IN_CLUSTER;
            return strcmp(operand->special, "is_explicit_cluster") == 0 ? STATUS_OK
                                                                        : STATUS_UNSUPPORTED;
        }
        return special_row(d, operand->special, wide, slot);
    case PTX_OPERAND_SYMBOL:
        return symbol_row(d, operand->symbol, operand->offset, wide, slot);
    case PTX_OPERAND_ADDRESS:
        return address_row(d, operand, out, slot);
    default:
        return STATUS_UNSUPPORTED;
    }
}

static enum status add_sources(struct decoder *d, const struct ptx_operand *operand, bool wide,
                               struct simt_instruction *out) {
    if (operand->kind == PTX_OPERAND_ADDRESS) {
        TRY(add_source(d, operand, wide, out));
        for (size_t n = 0; n < operand->element_count; n++) { /* [texture, {x, y}] */
            TRY(add_sources(d, &operand->elements[n], false, out));
        }
        return STATUS_OK;
    }
    if (operand->kind != PTX_OPERAND_VECTOR) {
        return add_source(d, operand, wide, out);
    }
    for (size_t n = 0; n < operand->element_count; n++) {
        TRY(add_source(d, &operand->elements[n], wide, out));
    }
    return STATUS_OK;
}

/* One destination: a row, a predicate, or the row for discarded results. */
static enum status add_destination(struct decoder *d, const struct ptx_operand *operand,
                                   struct simt_instruction *out) {
    if (operand->kind == PTX_OPERAND_DISCARD) {
        if (out->dst_count == SIMT_MAX_VECTOR) {
            return STATUS_UNSUPPORTED;
        }
        if (d->discard_row == 0) {
            d->discard_row = decode_take_rows(d, SIMT_ROW64) + 1;
        }
        out->dst[out->dst_count++] = d->discard_row - 1;
        return STATUS_OK;
    }
    if (operand->kind != PTX_OPERAND_REGISTER) {
        return STATUS_UNSUPPORTED;
    }
    if (d->function->registers[operand->index].type == PTX_PRED) {
        int slot = out->pred_dst[0] < 0 ? 0 : 1;
        out->pred_dst[slot] = (int32_t)d->register_rows[operand->index];
        return STATUS_OK;
    }
    if (out->dst_count == SIMT_MAX_VECTOR) {
        return STATUS_UNSUPPORTED;
    }
    out->dst[out->dst_count++] = d->register_rows[operand->index];
    return STATUS_OK;
}

static enum status add_destinations(struct decoder *d, const struct ptx_operand *operand,
                                    struct simt_instruction *out) {
    if (operand->kind != PTX_OPERAND_VECTOR && operand->kind != PTX_OPERAND_PAIR) {
        return add_destination(d, operand, out);
    }
    for (size_t n = 0; n < operand->element_count; n++) {
        bool nothing = operand->kind == PTX_OPERAND_PAIR && n > 0 &&
                       operand->elements[n].kind == PTX_OPERAND_DISCARD;
        TRY(nothing ? STATUS_OK : add_destination(d, &operand->elements[n], out));
    }
    return STATUS_OK;
}

enum { MOST_SOURCES = 144 }; /* wgmma: 128 accumulators and ten more */

/* Sources that an operand is made of: a vector's elements, an address and its coordinates. */
static size_t count_elements(const struct ptx_operand *operand) {
    size_t count = operand->kind == PTX_OPERAND_VECTOR ? 0 : 1;
    for (size_t n = 0; n < operand->element_count; n++) {
        count += count_elements(&operand->elements[n]);
    }
    return count;
}

static size_t count_sources(const struct ptx_instruction *in, size_t first) {
    size_t count = 0;
    for (size_t n = first; n < in->operand_count; n++) {
        count += count_elements(&in->operands[n]);
    }
    return count;
}

/* Where the sources go: into the instruction, or where there are many into a list of their own. */
static enum status take_sources(struct decoder *d, size_t count, struct simt_instruction *out) {
    d->sources = out->src;
    d->source_limit = SIMT_MAX_OPERANDS;
    if (count <= SIMT_MAX_OPERANDS) {
        return STATUS_OK;
    }
    if (count > MOST_SOURCES) {
        return STATUS_UNSUPPORTED;
    }
    uint32_t *list = calloc(count, sizeof *list);
    if (list == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    d->code->lists[d->code->list_count++] = list;
    d->sources = list;
    d->source_limit = count;
    out->long_src = list;
    return STATUS_OK;
}

enum status decode_operands(struct decoder *d, const struct ptx_instruction *in,
                            struct simt_instruction *out) {
    size_t first = 0;
    d->source = in;
    if (decode_has_destination(in) && in->operand_count > 0) {
        TRY(add_destinations(d, &in->operands[0], out));
        first = 1;
    }
    TRY(take_sources(d, count_sources(in, first), out));
    for (size_t n = first; n < in->operand_count; n++) {
        bool wide = decode_source_is_wide(in, n - first);
        TRY(add_sources(d, &in->operands[n], wide, out));
    }
    return STATUS_OK;
}
