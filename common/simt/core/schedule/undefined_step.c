/*
 * Undefined values (memory/undefined.h) on their way through a warp's registers: before an
 * instruction runs, its results get the cells of its sources, or it is a fault.
 */
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/undefined.h"

/* An instruction about to run, and what its results become. */
struct step {
    struct simt_warp_run *w;
    const struct simt_frame *frame;
    const struct simt_instruction *i;
    struct simt_undefined_cell *cells;
    const uint32_t *reads, *writes; /* PTX registers */
    uint32_t read_count, write_count;
    uint32_t mask, active;  /* lanes of the fragment; those that the guard lets run */
    uint32_t guard;         /* lanes whose guard is undefined */
    uint32_t lanes, origin; /* of the sources */
};

static struct simt_undefined_cell *cell_of(const struct step *s, uint32_t ptx_register) {
    return &s->cells[s->frame->code->cells[ptx_register]];
}

/* Undefined lanes of an operand; 0 where it is no register. */
static uint32_t operand_lanes(struct step *s, const struct ptx_operand *operand) {
    bool has = operand->kind == PTX_OPERAND_REGISTER ||
               (operand->kind == PTX_OPERAND_ADDRESS && operand->has_register);
    uint32_t lanes = has ? cell_of(s, operand->index)->lanes & s->mask : 0;
    for (size_t n = 0; n < operand->element_count; n++) {
        lanes |= operand_lanes(s, &operand->elements[n]);
    }
    if (has && lanes != 0 && cell_of(s, operand->index)->lanes != 0) {
        s->origin = cell_of(s, operand->index)->origin;
    }
    return lanes;
}

/* Sources and results; simt_uses lists a guard behind the sources, and then the results again. */
static void list_registers(struct step *s, uint32_t pc) {
    const struct simt_uses *uses = &s->frame->code->uses;
    const uint32_t *start = &uses->start[2 * (size_t)pc];
    s->reads = &uses->list[start[0]];
    s->writes = &uses->list[start[1]];
    s->write_count = start[2] - start[1];
    s->read_count = start[1] - start[0];
    if (s->i->guard >= 0) {
        s->read_count -= 1 + s->write_count;
        const struct simt_undefined_cell *cell = cell_of(s, s->reads[s->read_count]);
        s->guard = cell->lanes & s->mask;
        s->origin = s->guard != 0 ? cell->origin : s->origin;
    }
}

static void read_sources(struct step *s) {
    for (uint32_t n = 0; n < s->read_count; n++) {
        const struct simt_undefined_cell *cell = cell_of(s, s->reads[n]);
        uint32_t lanes = cell->lanes & s->active;
        s->origin = lanes != 0 && s->lanes == 0 ? cell->origin : s->origin;
        s->lanes |= lanes;
    }
}

static void write_results(const struct step *s, uint32_t lanes) {
    uint32_t set = (lanes & s->active) | s->guard;
    for (uint32_t n = 0; n < s->write_count; n++) {
        struct simt_undefined_cell *cell = cell_of(s, s->writes[n]);
        cell->lanes = (cell->lanes & ~s->active) | set;
        cell->origin = set != 0 ? s->origin : cell->origin;
    }
}

static bool fail(const struct step *s, uint32_t lanes, enum simt_undefined_use use) {
    struct simt_warp *warp = &s->w->warp;
    simt_undefined_fail(warp, s->i, (uint32_t)__builtin_ctz(lanes),
                        simt_undefined_entry(warp->block->undefined, s->origin), use);
    return false;
}

static enum simt_undefined_use use_of(const struct simt_instruction *i) {
    if (i->op_class == SIMT_CLASS_ATOMIC || i->undefined == SIMT_UNDEFINED_STORE) {
        return SIMT_USE_UPDATE;
    }
    if (strcmp(i->source->base, "sust") == 0) {
        return SIMT_USE_STORE;
    }
    return i->op_class == SIMT_CLASS_CONTROL ? SIMT_USE_BRANCH : SIMT_USE_BARRIER;
}

static bool step_use(struct step *s) {
    const struct ptx_instruction *in = s->i->source;
    size_t address = s->write_count > 0 ? 1 : 0;
    read_sources(s);
    if (s->lanes != 0) {
        bool by_address = in->operand_count > address &&
                          in->operands[address].kind == PTX_OPERAND_ADDRESS &&
                          operand_lanes(s, &in->operands[address]) != 0;
        return fail(s, s->lanes, by_address ? SIMT_USE_ADDRESS : use_of(s->i));
    }
    write_results(s, 0);
    return true;
}

/* Loads and stores: of an address alone. Memory decides about the results. */
static bool step_access(struct step *s, size_t address) {
    const struct ptx_instruction *in = s->i->source;
    uint32_t lanes = operand_lanes(s, &in->operands[address]) & s->active;
    if (lanes != 0) {
        return fail(s, lanes, SIMT_USE_ADDRESS);
    }
    write_results(s, 0);
    return true;
}

static uint32_t bits_of(const struct step *s, size_t n) {
    const struct simt_instruction *i = s->i;
    uint32_t bits = s->w->warp.predicates[i->src[n]];
    return i->src_negated[n] ? ~bits : bits;
}

/* selp d, a, b, p. */
static void step_select(struct step *s) {
    const struct ptx_operand *operands = s->i->source->operands;
    uint32_t chosen = bits_of(s, 2);
    uint32_t lanes = operand_lanes(s, &operands[1]) & chosen;
    uint32_t origin = s->origin;
    uint32_t others = operand_lanes(s, &operands[2]) & ~chosen;
    s->origin = lanes != 0 ? origin : s->origin;
    write_results(s, lanes | others | operand_lanes(s, &operands[3]));
}

/* Lanes in which a source is zero. */
static uint32_t zeros_of(const struct step *s, size_t n) {
    const struct ptx_instruction *in = s->i->source;
    if (ptx_has_modifier(in, "pred")) {
        return ~bits_of(s, n);
    }
    const union simt_row *row = simt_row(&s->w->warp, s->i->src[n]);
    bool wide = ptx_has_modifier(in, "b64");
    uint32_t zeros = 0;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        zeros |= (uint32_t)((wide ? row->u64[lane] : row->u32[lane]) == 0) << lane;
    }
    return zeros;
}

/* A source that is zero, or for or true, decides alone. */
static void step_logic(struct step *s, bool is_or) {
    const struct ptx_operand *operands = s->i->source->operands;
    uint32_t a = operand_lanes(s, &operands[1]);
    uint32_t b = operand_lanes(s, &operands[2]);
    uint32_t a_decides = (is_or ? bits_of(s, 0) : zeros_of(s, 0)) & ~a;
    uint32_t b_decides = (is_or ? bits_of(s, 1) : zeros_of(s, 1)) & ~b;
    write_results(s, (a & ~b_decides) | (b & ~a_decides));
}

/* setp.lt.and p|q, a, b, c: c alone may decide. */
static void step_setp(struct step *s) {
    const struct ptx_instruction *in = s->i->source;
    uint32_t lanes = operand_lanes(s, &in->operands[1]) | operand_lanes(s, &in->operands[2]);
    if (in->operand_count > 3) {
        uint32_t c = operand_lanes(s, &in->operands[3]);
        uint32_t bits = bits_of(s, 2);
        uint32_t decides = ptx_has_modifier(in, "and")  ? ~bits & ~c
                           : ptx_has_modifier(in, "or") ? bits & ~c
                                                        : 0;
        lanes = (lanes & ~decides) | c;
    }
    write_results(s, lanes);
}

/* The handler, which knows the lanes, decides about the value; the predicate is always defined. */
static bool step_shuffle(struct step *s) {
    uint32_t lanes = operand_lanes(s, &s->i->source->operands[4]) & s->active;
    if (lanes != 0) {
        return fail(s, lanes, SIMT_USE_BARRIER);
    }
    if (s->write_count > 1) {
        cell_of(s, s->writes[1])->lanes &= ~s->active;
    }
    return true;
}

/* A defined lane may decide vote.all and vote.any alone. */
static void step_vote(struct step *s) {
    const struct ptx_instruction *in = s->i->source;
    uint32_t lanes = operand_lanes(s, &in->operands[1]) & s->active;
    uint32_t defined = s->active & ~lanes;
    bool decided = (ptx_has_modifier(in, "all") && (~bits_of(s, 0) & defined) != 0) ||
                   (ptx_has_modifier(in, "any") && (bits_of(s, 0) & defined) != 0);
    write_results(s, lanes != 0 && !decided ? UINT32_MAX : 0);
}

static uint32_t element_lanes(struct step *s, size_t operand, size_t element) {
    const struct ptx_operand *o = &s->i->source->operands[operand];
    return operand_lanes(s, o->kind == PTX_OPERAND_VECTOR ? &o->elements[element] : o);
}

static size_t element_count(const struct step *s, size_t operand) {
    const struct ptx_operand *o = &s->i->source->operands[operand];
    return o->kind == PTX_OPERAND_VECTOR ? o->element_count : 1;
}

/* Lane 4 g + t has numbers of lines g and g + 8 of A, of column g of B, and of lines g and g + 8 of
 * C and D, columns 2 t and 2 t + 1. Registers of A are of line g and g + 8 in turn; of C and D the
 * first half is of line g. */
static void step_mma(struct step *s) {
    uint32_t lines[2] = {0, 0}, columns = 0;
    size_t results = element_count(s, 0);
    for (size_t e = 0; e < element_count(s, 1); e++) {
        lines[e % 2] |= element_lanes(s, 1, e);
    }
    uint32_t b = operand_lanes(s, &s->i->source->operands[2]);
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        lines[0] |= (lines[0] >> lane & 1) != 0 ? (uint32_t)0xf << lane / 4 * 4 : 0;
        lines[1] |= (lines[1] >> lane & 1) != 0 ? (uint32_t)0xf << lane / 4 * 4 : 0;
        columns |= (b >> lane & 1) != 0 ? 0x11111111u << lane / 8 : 0;
    }
    for (size_t e = 0; e < results && e < s->write_count; e++) {
        uint32_t lanes = lines[2 * e >= results && results > 1] | columns | element_lanes(s, 3, e);
        struct simt_undefined_cell *cell = cell_of(s, s->writes[e]);
        cell->lanes = lanes;
        cell->origin = lanes != 0 ? s->origin : cell->origin;
    }
}

/* Cells of the words of a parameter that element e lies in. */
static struct simt_undefined_cell *frame_cell(const struct step *s, uint32_t e) {
    enum { ELEMENT_BYTES, FIRST_BYTE };
    uint32_t byte = s->i->detail[FIRST_BYTE] + e * s->i->detail[ELEMENT_BYTES];
    return &s->cells[(uint32_t)s->i->immediate / SIMT_ROW32 + byte / 4];
}

static void step_frame_load(struct step *s) {
    for (uint32_t e = 0; e < s->i->dst_count; e++) {
        const struct simt_undefined_cell *word = frame_cell(s, e);
        struct simt_undefined_cell *cell = &s->cells[s->i->dst[e] / SIMT_ROW32];
        *cell = (struct simt_undefined_cell){
            .lanes = (cell->lanes & ~s->active) | (word->lanes & s->active) | s->guard,
            .origin = (word->lanes & s->active) != 0 ? word->origin : cell->origin};
    }
}

static void step_frame_store(struct step *s) {
    for (uint32_t e = 0; e < s->i->src_count; e++) {
        const struct simt_undefined_cell cell = s->cells[s->i->src[e] / SIMT_ROW32];
        struct simt_undefined_cell *word = frame_cell(s, e);
        uint32_t lanes = (cell.lanes & s->active) | s->guard;
        bool whole = s->i->detail[0] >= 4; /* else other bytes of the word stay as they are */
        word->lanes = (whole ? word->lanes & ~s->active : word->lanes) | lanes;
        word->origin = lanes != 0 ? cell.origin : word->origin;
    }
}

/* Instructions that use nothing. */
static void step_results(struct step *s) {
    switch ((enum simt_undefined_rule)s->i->undefined) {
    case SIMT_UNDEFINED_SELECT:
        step_select(s);
        break;
    case SIMT_UNDEFINED_AND:
    case SIMT_UNDEFINED_OR:
        step_logic(s, s->i->undefined == SIMT_UNDEFINED_OR);
        break;
    case SIMT_UNDEFINED_SETP:
        step_setp(s);
        break;
    case SIMT_UNDEFINED_VOTE:
        step_vote(s);
        break;
    case SIMT_UNDEFINED_MMA:
        step_mma(s);
        break;
    case SIMT_UNDEFINED_FRAME_LOAD:
        step_frame_load(s);
        break;
    case SIMT_UNDEFINED_FRAME_STORE:
        step_frame_store(s);
        break;
    default:
        read_sources(s);
        write_results(s, s->i->undefined == SIMT_UNDEFINED_WARP && s->lanes != 0 ? UINT32_MAX
                                                                                 : s->lanes);
        break;
    }
}

static bool step_by_rule(struct step *s) {
    switch ((enum simt_undefined_rule)s->i->undefined) {
    case SIMT_UNDEFINED_USE:
        return step_use(s);
    case SIMT_UNDEFINED_LOAD:
    case SIMT_UNDEFINED_MATRIX_LOAD:
    case SIMT_UNDEFINED_TILE_LOAD:
        return step_access(s, 1);
    case SIMT_UNDEFINED_STORE:
    case SIMT_UNDEFINED_MATRIX_STORE:
    case SIMT_UNDEFINED_TILE_STORE:
        return step_access(s, 0);
    case SIMT_UNDEFINED_SHUFFLE:
        return step_shuffle(s);
    default:
        step_results(s);
        return true;
    }
}

/* What an undefined guard of an instruction without results would decide. */
static enum simt_undefined_use use_of_guard(const struct simt_instruction *i) {
    bool stores = i->undefined == SIMT_UNDEFINED_STORE || i->op_class == SIMT_CLASS_ATOMIC;
    return stores ? SIMT_USE_UPDATE : SIMT_USE_BRANCH;
}

/* @return whether an undefined value is left in a frame of the warp */
static bool has_undefined(const struct simt_warp_run *w) {
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        for (const struct simt_frame *f = w->fragments[n].frame; f != NULL; f = f->caller) {
            uint32_t lanes = 0;
            for (uint32_t c = 0; f->cells != NULL && c < simt_cell_count(f->code); c++) {
                lanes |= f->cells[c].lanes;
            }
            if (lanes != 0) {
                return true;
            }
        }
    }
    return false;
}

bool simt_undefined_step(struct simt_warp_run *w, const struct simt_fragment *f, uint32_t active) {
    enum { STEPS = 256 };
    const struct simt_instruction *i = &f->frame->code->instructions[f->pc];
    if (++w->undefined_steps % STEPS == 0 && !has_undefined(w)) {
        w->warp.attention &= ~(uint32_t)SIMT_ATTENTION_UNDEFINED;
    }
    if (f->frame->cells == NULL || i->source == NULL) {
        return true;
    }
    struct step s = {.w = w,
                     .frame = f->frame,
                     .i = i,
                     .cells = f->frame->cells,
                     .mask = f->mask,
                     .active = active};
    list_registers(&s, f->pc);
    if (s.guard != 0 && (s.write_count == 0 || i->next == SIMT_NEXT_FLOW)) {
        return fail(&s, s.guard, use_of_guard(i));
    }
    return (active == 0 && s.guard == 0) || step_by_rule(&s);
}

bool simt_undefined_arguments(struct simt_warp_run *w, const struct simt_fragment *f,
                              const struct simt_call *call, uint32_t active) {
    const struct simt_code *code = f->frame->code;
    struct step s = {.w = w, .frame = f->frame, .i = &code->instructions[f->pc]};
    for (uint32_t n = 0; n < call->argument_count && f->frame->cells != NULL; n++) {
        const struct simt_parameter *argument = &code->parameters[call->arguments[n]];
        for (uint32_t word = 0; word < argument->words; word++) {
            const struct simt_undefined_cell *cell =
                &f->frame->cells[argument->offset / SIMT_ROW32 + word];
            s.origin = cell->origin;
            if ((cell->lanes & active) != 0) {
                return fail(&s, cell->lanes & active, SIMT_USE_CALL);
            }
        }
    }
    for (uint32_t n = 0; n < call->result_count && f->frame->cells != NULL; n++) {
        const struct simt_parameter *result = &code->parameters[call->results[n]];
        for (uint32_t word = 0; word < result->words; word++) {
            f->frame->cells[result->offset / SIMT_ROW32 + word].lanes &= ~active;
        }
    }
    return true;
}

/* An instruction of a fragment that the lane is in; NULL: it has none. */
static const struct simt_fragment *fragment_of(const struct simt_warp_run *w, uint32_t lane) {
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        if ((w->fragments[n].mask >> lane & 1) != 0) {
            return &w->fragments[n];
        }
    }
    return NULL;
}

void simt_undefined_locate(struct simt_warp_run *w, const struct simt_instruction *shuffle) {
    struct simt_undefined_origin *origin =
        simt_undefined_last(w->warp.block->undefined, shuffle, w->warp.index);
    if (origin == NULL || origin->lanes == 0) {
        return;
    }
    uint32_t source = (uint32_t)origin->addresses[__builtin_ctz(origin->lanes)];
    const struct simt_fragment *f = fragment_of(w, source);
    origin->ended = ~w->warp.members;
    if (f != NULL) {
        origin->other = &f->frame->code->instructions[f->pc];
        origin->other_mask = f->mask;
    }
}

void simt_undefined_pass(const struct simt_frame *from, uint32_t from_number, struct simt_frame *to,
                         uint32_t to_number, uint32_t lanes) {
    const struct simt_parameter *a = &from->code->parameters[from_number];
    const struct simt_parameter *b = &to->code->parameters[to_number];
    if (from->cells == NULL && to->cells == NULL) {
        return;
    }
    if (to->cells == NULL) { /* without memory for them the callee's values are taken for defined */
        to->cells = calloc(simt_cell_count(to->code), sizeof *to->cells);
    }
    for (uint32_t word = 0; word < a->words && word < b->words && to->cells != NULL; word++) {
        struct simt_undefined_cell *out = &to->cells[b->offset / SIMT_ROW32 + word];
        const struct simt_undefined_cell none = {0};
        const struct simt_undefined_cell *in =
            from->cells != NULL ? &from->cells[a->offset / SIMT_ROW32 + word] : &none;
        out->lanes = (out->lanes & ~lanes) | (in->lanes & lanes);
        out->origin = (in->lanes & lanes) != 0 ? in->origin : out->origin;
    }
}
