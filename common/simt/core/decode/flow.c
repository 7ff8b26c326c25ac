/* Decodes instructions that the scheduler executes itself, and parameters of device functions. */
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/decode/decode_internal.h"

static enum status target_of(const struct ptx_operand *operand, struct simt_instruction *out) {
    if (operand->kind != PTX_OPERAND_LABEL) {
        return STATUS_UNSUPPORTED;
    }
    out->immediate = operand->index;
    return STATUS_OK;
}

const struct simt_parameter *decode_find_parameter(const struct decoder *d, const char *name) {
    for (size_t n = 0; n < d->code->parameter_count; n++) {
        if (strcmp(d->code->parameters[n].name, name) == 0) {
            return &d->code->parameters[n];
        }
    }
    return NULL;
}

/* Names of .param variables become numbers of the function's parameters. */
static enum status list_parameters(const struct decoder *d, const struct ptx_operand *list,
                                   uint32_t **out, uint32_t *count) {
    *count = (uint32_t)list->element_count;
    *out = calloc(list->element_count + 1, sizeof **out);
    if (*out == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < list->element_count; n++) {
        const char *name = list->elements[n].symbol;
        const struct simt_parameter *parameter =
            name != NULL ? decode_find_parameter(d, name) : NULL;
        if (parameter == NULL) {
            return STATUS_UNSUPPORTED;
        }
        (*out)[n] = (uint32_t)(parameter - d->code->parameters);
    }
    return STATUS_OK;
}

/* call (results), name or pointer, (arguments){, prototype}. */
static enum status decode_call(struct decoder *d, const struct ptx_instruction *in,
                               struct simt_instruction *out) {
    struct simt_call *call = &d->code->calls[d->code->call_count];
    out->immediate = (int64_t)d->code->call_count++;
    if (in->operand_count < 3) {
        return STATUS_UNSUPPORTED;
    }
    const struct ptx_operand *callee = &in->operands[1];
    if (callee->kind == PTX_OPERAND_REGISTER) {
        call->pointer = d->register_rows[callee->index];
    } else {
        call->callee = callee->symbol;
    }
    if (callee->kind != PTX_OPERAND_REGISTER && call->callee == NULL) {
        return STATUS_UNSUPPORTED;
    }
    enum status status = list_parameters(d, &in->operands[0], &call->results, &call->result_count);
    return status != STATUS_OK
               ? status
               : list_parameters(d, &in->operands[2], &call->arguments, &call->argument_count);
}

static enum simt_barrier_mode reduction_of(const struct ptx_instruction *in) {
    return ptx_has_modifier(in, "popc")  ? SIMT_BARRIER_POPC
           : ptx_has_modifier(in, "and") ? SIMT_BARRIER_AND
                                         : SIMT_BARRIER_OR;
}

/* barrier.cluster.arrive and .wait: simt_cluster_barrier_open(). */
static enum status decode_cluster_barrier(struct decoder *d, const struct ptx_instruction *in,
                                          struct simt_instruction *out) {
    bool waits = ptx_has_modifier(in, "wait");
    out->op_class = SIMT_CLASS_BARRIER;
    out->detail[SIMT_BARRIER_COUNTED] = 0;
    out->detail[SIMT_BARRIER_ALIGNED] = ptx_has_modifier(in, "aligned");
    out->detail[SIMT_BARRIER_MODE] = SIMT_BARRIER_SYNC;
    if (!waits) {
        out->next = SIMT_NEXT_PC;
        out->flow = SIMT_FLOW_NONE;
        out->run = simt_run_cluster_arrive;
        return ptx_has_modifier(in, "arrive") ? STATUS_OK : STATUS_UNSUPPORTED;
    }
    out->src_count = 1;
    return decode_constant(d, false, SIMT_CLUSTER_BARRIER, &out->src[0]);
}

/*
 * bar{.cta}.sync a{, b}; .arrive a, b; .red.popc.u32 d, a{, b}, {!}c; .red.and.pred p, ...; the
 * same with barrier, whose lanes need not come together unless it is .aligned.
 */
static enum status decode_barrier(struct decoder *d, const struct ptx_instruction *in,
                                  struct simt_instruction *out) {
    if (ptx_has_modifier(in, "cluster")) {
        return decode_cluster_barrier(d, in, out);
    }
    bool arrives = ptx_has_modifier(in, "arrive");
    bool reduces = ptx_has_modifier(in, "red");
    bool known = arrives || reduces || ptx_has_modifier(in, "sync");
    if (!known) {
        return STATUS_UNSUPPORTED;
    }
    out->op_class = SIMT_CLASS_BARRIER;
    enum status status = decode_operands(d, in, out);
    if (status == STATUS_OK && reduces && out->src_count == 0) {
        return STATUS_UNSUPPORTED;
    }
    uint32_t counts = out->src_count - (reduces ? 1u : 0u);
    out->detail[SIMT_BARRIER_COUNTED] = counts > 1;
    out->detail[SIMT_BARRIER_ALIGNED] =
        strcmp(in->base, "bar") == 0 || ptx_has_modifier(in, "aligned");
    out->detail[SIMT_BARRIER_MODE] = arrives   ? SIMT_BARRIER_ARRIVE
                                     : reduces ? reduction_of(in)
                                               : SIMT_BARRIER_SYNC;
    return status == STATUS_OK && (counts < 1 || (arrives && counts < 2)) ? STATUS_UNSUPPORTED
                                                                          : status;
}

/* mov from a register that ticks. */
static enum status decode_clock(struct decoder *d, const struct ptx_instruction *in,
                                struct simt_instruction *out, bool *known) {
    static const struct {
        const char *name;
        enum simt_clock clock;
    } clocks[] = {{"clock", SIMT_CLOCK_CYCLES},
                  {"clock64", SIMT_CLOCK_CYCLES},
                  {"clock_hi", SIMT_CLOCK_CYCLES_HIGH},
                  {"globaltimer", SIMT_CLOCK_NANOSECONDS},
                  {"globaltimer_lo", SIMT_CLOCK_NANOSECONDS},
                  {"globaltimer_hi", SIMT_CLOCK_NANOSECONDS_HIGH}};
    bool moves = strcmp(in->base, "mov") == 0 && in->operand_count == 2 &&
                 in->operands[0].kind == PTX_OPERAND_REGISTER &&
                 in->operands[1].kind == PTX_OPERAND_SPECIAL;
    for (size_t n = 0; moves && n < sizeof clocks / sizeof *clocks; n++) {
        if (strcmp(in->operands[1].special, clocks[n].name) == 0) {
            uint32_t index = in->operands[0].index;
            *known = true;
            out->next = SIMT_NEXT_FLOW;
            out->flow = SIMT_FLOW_CLOCK;
            out->op_class = SIMT_CLASS_MOVE;
            out->dst[out->dst_count++] = d->register_rows[index];
            out->detail[0] = clocks[n].clock;
            out->detail[1] = ptx_type_size(d->function->registers[index].type) == 8;
        }
    }
    return STATUS_OK;
}

static const struct {
    const char *base;
    enum simt_flow flow;
} flows[] = {
    {"bra", SIMT_FLOW_BRANCH}, {"brx", SIMT_FLOW_BRANCH_TABLE}, {"call", SIMT_FLOW_CALL},
    {"ret", SIMT_FLOW_RETURN}, {"exit", SIMT_FLOW_EXIT},        {"brkpt", SIMT_FLOW_TRAP},
    {"trap", SIMT_FLOW_TRAP},  {"bar", SIMT_FLOW_BARRIER},      {"barrier", SIMT_FLOW_BARRIER}};

enum status decode_flow(struct decoder *d, const struct ptx_instruction *in,
                        struct simt_instruction *out, bool *known) {
    enum simt_flow flow = SIMT_FLOW_NONE;
    for (size_t n = 0; n < sizeof flows / sizeof *flows; n++) {
        flow = ptx_is_same(in->base, flows[n].base) ? flows[n].flow : flow;
    }
    *known = flow != SIMT_FLOW_NONE && !ptx_has_modifier(in, "warp");
    if (!*known) {
        return decode_clock(d, in, out, known);
    }
    out->next = SIMT_NEXT_FLOW;
    out->flow = (uint8_t)flow;
    out->op_class = SIMT_CLASS_CONTROL;
    switch (flow) {
    case SIMT_FLOW_BRANCH:
        return in->operand_count == 1 ? target_of(&in->operands[0], out) : STATUS_UNSUPPORTED;
    case SIMT_FLOW_BRANCH_TABLE:
        if (in->operand_count != 2 || in->operands[0].kind != PTX_OPERAND_REGISTER) {
            return STATUS_UNSUPPORTED;
        }
        out->src[0] = d->register_rows[in->operands[0].index];
        return STATUS_OK;
    case SIMT_FLOW_CALL:
        return decode_call(d, in, out);
    case SIMT_FLOW_BARRIER:
        return decode_barrier(d, in, out);
    default:
        return STATUS_OK;
    }
}

/* detail: 0 bytes of an element, 1 byte inside its first word, 2 registers are wide, 3 sign. */
enum { ELEMENT_BYTES, FIRST_BYTE, WIDE, SIGNED };

static uint64_t extend(uint64_t value, uint32_t bytes, bool negative_possible) {
    unsigned shift = 64 - 8 * bytes;
    return negative_possible ? (uint64_t)((int64_t)(value << shift) >> shift)
                             : value << shift >> shift;
}

static void load_frame(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t bytes = i->detail[ELEMENT_BYTES];
    for (uint32_t e = 0; e < i->dst_count; e++) {
        uint32_t byte = i->detail[FIRST_BYTE] + e * bytes;
        uint32_t word = (uint32_t)i->immediate + byte / 4 * SIMT_ROW32;
        const union simt_row *low = simt_row(warp, word);
        const union simt_row *high = simt_row(warp, word + SIMT_ROW32);
        union simt_row *out = simt_row(warp, i->dst[e]);
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            if ((warp->mask >> lane & 1) == 0) {
                continue;
            }
            uint64_t value = low->u32[lane] >> 8 * (byte % 4);
            if (bytes == 8) {
                value |= (uint64_t)high->u32[lane] << 32;
            }
            value = extend(value, bytes, i->detail[SIGNED] != 0);
            if (i->detail[WIDE] >> e & 1) {
                out->u64[lane] = value;
            } else {
                out->u32[lane] = (uint32_t)value;
            }
        }
    }
}

static void store_frame(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t bytes = i->detail[ELEMENT_BYTES];
    for (uint32_t e = 0; e < i->src_count; e++) {
        uint32_t byte = i->detail[FIRST_BYTE] + e * bytes;
        uint32_t shift = 8 * (byte % 4);
        uint32_t keep = bytes >= 4 ? 0 : ~((((uint32_t)1 << 8 * bytes) - 1) << shift);
        uint32_t word = (uint32_t)i->immediate + byte / 4 * SIMT_ROW32;
        union simt_row *low = simt_row(warp, word);
        union simt_row *high = simt_row(warp, word + SIMT_ROW32);
        const union simt_row *in = simt_row(warp, i->src[e]);
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            if ((warp->mask >> lane & 1) == 0) {
                continue;
            }
            uint64_t value = i->detail[WIDE] >> e & 1 ? in->u64[lane] : in->u32[lane];
            low->u32[lane] = (low->u32[lane] & keep) | ((uint32_t)value << shift & ~keep);
            if (bytes == 8) {
                high->u32[lane] = (uint32_t)(value >> 32);
            }
        }
    }
}

/* Which of the values are 8-byte rows: a bit each. Immediates take the width of the type. */
static uint32_t wide_bits(const struct decoder *d, const struct ptx_operand *value, size_t bytes) {
    const struct ptx_operand *elements =
        value->kind == PTX_OPERAND_VECTOR ? value->elements : value;
    size_t count = value->kind == PTX_OPERAND_VECTOR ? value->element_count : 1;
    uint32_t bits = 0;
    for (size_t n = 0; n < count; n++) {
        size_t size = elements[n].kind == PTX_OPERAND_REGISTER
                          ? ptx_type_size(d->function->registers[elements[n].index].type)
                          : bytes;
        bits |= (size == 8 ? 1u : 0u) << n;
    }
    return bits;
}

enum status decode_frame_parameter(struct decoder *d, const struct ptx_instruction *in,
                                   struct simt_instruction *out, bool *known) {
    bool load = strcmp(in->base, "ld") == 0;
    bool store = strcmp(in->base, "st") == 0;
    *known = false;
    if ((!load && !store) || !ptx_has_modifier(in, "param") || in->operand_count < 2) {
        return STATUS_OK;
    }
    const struct ptx_operand *address = &in->operands[load ? 1 : 0];
    const struct simt_parameter *parameter =
        address->symbol != NULL ? decode_find_parameter(d, address->symbol) : NULL;
    if (parameter == NULL) {
        return STATUS_OK;
    }
    *known = true;
    TRY(decode_operands(d, in, out));
    enum ptx_type type = ptx_modifier_type(in, 0);
    size_t bytes = ptx_type_size(type);
    size_t count = load ? out->dst_count : out->src_count - 1u;
    int64_t offset = address->offset;
    if (bytes == 0 || bytes > 8 || offset < 0 ||
        (uint64_t)offset + count * bytes > 4 * (uint64_t)parameter->words) {
        return STATUS_UNSUPPORTED;
    }
    if (store) { /* the address came first among the sources */
        memmove(out->src, out->src + 1, count * sizeof *out->src);
    }
    out->src_count = (uint8_t)(store ? count : 0);
    out->immediate = parameter->offset;
    out->detail[ELEMENT_BYTES] = (uint32_t)bytes;
    out->detail[FIRST_BYTE] = (uint32_t)offset;
    out->detail[WIDE] = wide_bits(d, &in->operands[load ? 0 : 1], bytes);
    out->detail[SIGNED] = type >= PTX_S8 && type <= PTX_S64;
    out->run = load ? load_frame : store_frame;
    out->undefined = load ? SIMT_UNDEFINED_FRAME_LOAD : SIMT_UNDEFINED_FRAME_STORE;
    out->op_class = SIMT_CLASS_MOVE;
    return STATUS_OK;
}
