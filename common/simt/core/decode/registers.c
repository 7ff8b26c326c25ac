#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/simt/core/decode/decode_internal.h"

enum {
    MOST_REGISTERS = 255,      /* of a thread, on every GPU here */
    FEWEST_REGISTERS = 16,     /* that a limit leaves */
    REGISTER_FILE = 64 * 1024, /* of a multiprocessor */
    /* Fitted to ptxas: registers it adds, how far it moves loads up, and how many registers that
       may take. */
    ADDED = 4,
    WINDOW = 32,
    MOST_HOISTED = 8,
    FREE_TO_USE = 32,                 /* with as many, as many warps fit as there can be */
    MOST_SET_WORDS = 4 * 1024 * 1024, /* beyond, the function is too large to judge */
    SPILLS_OF_ONE = 256,              /* units of simt_instruction.spills */
    UNSURE = 8,                       /* registers that the estimate may be too high by */
    KEY_UNIT = 1 << 16                /* between the keys of neighbouring instructions */
};

/* An instruction's place in its block once loads have moved. */
struct place {
    uint64_t key;
    uint32_t number;
};

struct liveness {
    const struct simt_code *code;
    struct simt_blocks blocks;
    size_t words;         /* of a set of registers */
    uint64_t *in;         /* (blocks * words): live where a block begins */
    uint64_t *live;       /* (words): while a block is walked */
    uint8_t *cost;        /* (registers): 32-bit registers it takes */
    struct place *places; /* (instructions): block after block, in the order of the walk */
    bool *wanted;         /* (registers): scratch of hoist() */
    uint64_t *defined;    /* (registers): the same */
    uint32_t *pressure;   /* (instructions): registers in use where one runs */
};

static bool has(const uint64_t *set, uint32_t number) {
    return (set[number / 64] >> number % 64 & 1) != 0;
}

/* Live before instruction n, from what is live behind it; *cost changes with it.
 * @return what it costs where n runs */
static size_t step_back(const struct liveness *l, size_t n, size_t *cost) {
    const uint32_t *start = &l->code->uses.start[2 * n];
    size_t unread = 0; /* unused results take a register too */
    for (uint32_t w = start[1]; w < start[2]; w++) {
        uint32_t number = l->code->uses.list[w];
        if (has(l->live, number)) {
            l->live[number / 64] &= ~((uint64_t)1 << number % 64);
            *cost -= l->cost[number];
        } else {
            unread += l->cost[number];
        }
    }
    for (uint32_t r = start[0]; r < start[1]; r++) {
        uint32_t number = l->code->uses.list[r];
        if (!has(l->live, number)) {
            l->live[number / 64] |= (uint64_t)1 << number % 64;
            *cost += l->cost[number];
        }
    }
    return *cost + unread;
}

/* Live at the end of a block: what its successors need. @return what it costs */
static size_t enter_end(const struct liveness *l, size_t block) {
    size_t cost = 0;
    memset(l->live, 0, l->words * sizeof *l->live);
    for (uint32_t e = l->blocks.edge_start[block]; e < l->blocks.edge_start[block + 1]; e++) {
        const uint64_t *in = &l->in[l->blocks.edges[e] * l->words];
        for (size_t w = 0; w < l->words; w++) {
            l->live[w] |= in[w];
        }
    }
    for (size_t n = 0; n < l->code->function->register_count; n++) {
        cost += has(l->live, (uint32_t)n) ? l->cost[n] : 0;
    }
    return cost;
}

/* @return the most registers live at once in a block; `live` is what it begins with */
static size_t walk(const struct liveness *l, size_t block) {
    size_t cost = enter_end(l, block);
    size_t most = cost;
    for (size_t n = l->blocks.first[block + 1]; n-- > l->blocks.first[block];) {
        size_t here = step_back(l, l->places[n].number, &cost);
        l->pressure[l->places[n].number] = (uint32_t)(here > cost ? here : cost);
        most = here > most ? here : most;
        most = cost > most ? cost : most;
    }
    return most;
}

/* Walks backwards until nothing changes. @return the most registers live at once */
static size_t solve(const struct liveness *l) {
    size_t most = 0;
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t b = l->blocks.count; b-- > 0;) {
            uint64_t *in = &l->in[b * l->words];
            size_t here = walk(l, b);
            most = here > most ? here : most;
            if (memcmp(in, l->live, l->words * sizeof *in) != 0) {
                memcpy(in, l->live, l->words * sizeof *in);
                changed = true;
            }
        }
    }
    return most;
}

static bool is_load(const struct ptx_instruction *in) {
    return (strcmp(in->base, "ld") == 0 && !ptx_has_modifier(in, "param")) ||
           strcmp(in->base, "ldmatrix") == 0;
}

static bool orders_memory(const struct simt_instruction *i) {
    return i->flow == SIMT_FLOW_BARRIER || i->flow == SIMT_FLOW_CALL ||
           i->op_class == SIMT_CLASS_ATOMIC;
}

/* Marks what moves: loads, and what their addresses are made of. */
static void mark_moving(const struct liveness *l, size_t block, bool *moves) {
    memset(l->wanted, 0, l->code->function->register_count * sizeof *l->wanted);
    for (size_t n = l->blocks.first[block + 1]; n-- > l->blocks.first[block];) {
        const struct simt_instruction *i = &l->code->instructions[n];
        const uint32_t *start = &l->code->uses.start[2 * n];
        moves[n] = i->source != NULL && is_load(i->source);
        for (uint32_t w = start[1]; w < start[2]; w++) {
            moves[n] = moves[n] || l->wanted[l->code->uses.list[w]];
            l->wanted[l->code->uses.list[w]] = false;
        }
        moves[n] = moves[n] && !orders_memory(i);
        for (uint32_t r = start[0]; r < start[1] && moves[n]; r++) {
            l->wanted[l->code->uses.list[r]] = true;
        }
    }
}

static int compare_places(const void *left, const void *right) {
    const struct place *a = left;
    const struct place *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Where instruction n goes when it moves: behind what it reads, no further than the window. */
static uint64_t key_of(const struct liveness *l, size_t n, uint64_t floor) {
    const uint32_t *start = &l->code->uses.start[2 * n];
    uint64_t window = n > WINDOW ? (n - WINDOW) * (uint64_t)KEY_UNIT : 0;
    uint64_t key = floor > window ? floor : window;
    for (uint32_t r = start[0]; r < start[1]; r++) {
        uint64_t defined = l->defined[l->code->uses.list[r]];
        key = defined >= key ? defined + 1 : key;
    }
    return key < n * (uint64_t)KEY_UNIT ? key : n * (uint64_t)KEY_UNIT;
}

/* Moves the loads of a block up; none passes a barrier, or a store to memory of its kind. */
static void hoist(const struct liveness *l, size_t block, bool *moves) {
    size_t first = l->blocks.first[block];
    uint64_t shared = first * (uint64_t)KEY_UNIT;
    uint64_t other = shared;
    mark_moving(l, block, moves);
    memset(l->defined, 0, l->code->function->register_count * sizeof *l->defined);
    for (size_t n = first; n < l->blocks.first[block + 1]; n++) {
        const struct simt_instruction *i = &l->code->instructions[n];
        const uint32_t *start = &l->code->uses.start[2 * n];
        bool in_shared = i->source != NULL && ptx_has_modifier(i->source, "shared");
        uint64_t key = n * (uint64_t)KEY_UNIT;
        if (moves[n]) {
            bool load = is_load(i->source);
            key = key_of(l, n, !load ? first * (uint64_t)KEY_UNIT : in_shared ? shared : other);
        } else if (orders_memory(i)) {
            shared = other = key + 1;
        } else if (i->source != NULL && strcmp(i->source->base, "st") == 0) {
            *(in_shared ? &shared : &other) = key + 1;
        }
        l->places[n] = (struct place){.key = key, .number = (uint32_t)n};
        for (uint32_t w = start[1]; w < start[2]; w++) {
            l->defined[l->code->uses.list[w]] = key;
        }
    }
    qsort(&l->places[first], l->blocks.first[block + 1] - first, sizeof *l->places, compare_places);
}

static enum status prepare(struct liveness *l) {
    const struct ptx_function *function = l->code->function;
    size_t registers = function->register_count;
    TRY(simt_blocks_find(&l->blocks, l->code));
    l->words = registers / 64 + 1;
    size_t set_words;
    if (!checked_multiply(l->blocks.count, l->words, &set_words) || set_words > MOST_SET_WORDS) {
        return STATUS_UNSUPPORTED;
    }
    l->in = calloc(set_words, sizeof *l->in);
    l->live = calloc(l->words, sizeof *l->live);
    l->cost = calloc(registers + 1, sizeof *l->cost);
    l->places = calloc(l->code->count, sizeof *l->places);
    l->wanted = calloc(registers + 1, sizeof *l->wanted);
    l->defined = calloc(registers + 1, sizeof *l->defined);
    l->pressure = calloc(l->code->count + 1, sizeof *l->pressure);
    if (l->in == NULL || l->live == NULL || l->cost == NULL || l->places == NULL ||
        l->wanted == NULL || l->defined == NULL || l->pressure == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < registers; n++) {
        size_t bytes = ptx_type_size(function->registers[n].type);
        l->cost[n] = (uint8_t)ceil_div(bytes, 4);
    }
    for (size_t n = 0; n < l->code->count; n++) {
        l->places[n].number = (uint32_t)n;
    }
    return STATUS_OK;
}

/* What __launch_bounds__ or .maxnreg allow. */
static size_t limit_of(const struct ptx_function *function) {
    size_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t said = function->required_threads[axis] > 0 ? function->required_threads[axis]
                                                             : function->max_threads[axis];
        threads *= said > 0 ? said : 1;
    }
    size_t blocks = function->min_blocks > 0 ? function->min_blocks : 1;
    size_t limit = REGISTER_FILE / (ceil_div(threads, 128) * 128) / blocks / 8 * 8;
    if (function->max_registers > 0 && function->max_registers < limit) {
        limit = function->max_registers;
    }
    limit = limit > FEWEST_REGISTERS ? limit : FEWEST_REGISTERS;
    return limit < MOST_REGISTERS ? limit : MOST_REGISTERS;
}

/* What is live where the function begins may be read before it is written. */
static void list_unset(const struct liveness *l, struct simt_code *code) {
    size_t registers = code->function->register_count;
    code->unset = calloc(registers + 1, sizeof *code->unset);
    for (uint32_t n = 0; n < registers && code->unset != NULL; n++) {
        if (has(l->in, n)) {
            code->unset[code->unset_count++] = n;
        }
    }
}

/*
 * Where more registers are in use than there are, any value may be one that has none: as large a
 * share of what an instruction reads and writes passes through local memory. ptxas chooses values
 * that are seldom used, but has as much to do where all are.
 */
static void note_spills(const struct liveness *l, struct simt_code *code, size_t limit) {
    limit += UNSURE;
    for (size_t n = 0; n < code->count; n++) {
        size_t used = l->pressure[n] + ADDED, passing = 0;
        for (uint32_t u = code->uses.start[2 * n]; u < code->uses.start[2 * n + 2]; u++) {
            passing += l->cost[code->uses.list[u]];
        }
        size_t spills = used > limit ? SPILLS_OF_ONE * passing * (used - limit) / used : 0;
        code->instructions[n].spills = (uint16_t)(spills < UINT16_MAX ? spills : UINT16_MAX);
    }
}

static size_t estimate(struct liveness *l, struct simt_code *code, size_t limit, bool *moves) {
    size_t plain = solve(l) + ADDED;
    list_unset(l, code);
    note_spills(l, code, limit);
    for (size_t b = 0; b < l->blocks.count; b++) {
        hoist(l, b, moves);
    }
    size_t hoisted = solve(l) + ADDED;
    hoisted = hoisted > plain + MOST_HOISTED ? plain + MOST_HOISTED : hoisted;
    if (plain <= FREE_TO_USE && hoisted > FREE_TO_USE) {
        hoisted = FREE_TO_USE;
    }
    return hoisted > plain ? hoisted : plain;
}

enum status simt_estimate_registers(struct simt_code *code) {
    struct liveness l = {.code = code};
    enum status status = prepare(&l);
    bool *moves = calloc(code->count, sizeof *moves);
    size_t limit = limit_of(code->function);
    if (status == STATUS_OK && moves == NULL) {
        status = STATUS_OUT_OF_MEMORY;
    }
    if (status == STATUS_OK) {
        size_t registers = estimate(&l, code, limit, moves);
        code->estimated_registers = (uint32_t)(registers < limit ? registers : limit);
    } else if (status == STATUS_UNSUPPORTED) { /* too large to judge: surely uses all it gets */
        code->estimated_registers = (uint32_t)limit;
        status = STATUS_OK;
    }
    simt_blocks_free(&l.blocks);
    free(l.in);
    free(l.live);
    free(l.cost);
    free(l.places);
    free(l.wanted);
    free(l.defined);
    free(l.pressure);
    free(moves);
    return status;
}

/* Where the next number goes; list NULL: they are only counted. */
struct writer {
    uint32_t *list;
    size_t count;
};

static void put(struct writer *writer, uint32_t number) {
    if (writer->list != NULL) {
        writer->list[writer->count] = number;
    }
    writer->count++;
}

/* The registers of an operand, those inside of addresses and vectors too. */
static void put_operand(struct writer *writer, const struct ptx_operand *operand) {
    if (operand->kind == PTX_OPERAND_REGISTER ||
        (operand->kind == PTX_OPERAND_ADDRESS && operand->has_register)) {
        put(writer, operand->index);
    }
    for (size_t n = 0; n < operand->element_count; n++) {
        put_operand(writer, &operand->elements[n]);
    }
}

/* wgmma adds to its first operand, which is decoded as a source. */
static bool updates_first(const struct ptx_instruction *in) {
    return strcmp(in->base, "wgmma") == 0 && ptx_has_modifier(in, "mma_async");
}

static void put_reads(struct writer *writer, const struct ptx_instruction *in) {
    bool writes = (decode_has_destination(in) || updates_first(in)) && in->operand_count > 0;
    for (size_t n = writes && !updates_first(in) ? 1 : 0; n < in->operand_count; n++) {
        put_operand(writer, &in->operands[n]);
    }
    if (in->guarded) {
        put(writer, in->guard);
    }
    if (in->guarded && writes) {
        put_operand(writer, &in->operands[0]);
    }
}

/* Fills in `start` and, where the writer has one, the list. */
static void list_uses(struct simt_code *code, struct writer *writer) {
    uint32_t *start = code->uses.start;
    for (size_t n = 0; n < code->count; n++) {
        const struct ptx_instruction *in = code->instructions[n].source;
        start[2 * n] = (uint32_t)writer->count;
        if (in != NULL) {
            put_reads(writer, in);
        }
        start[2 * n + 1] = (uint32_t)writer->count;
        if (in != NULL && (decode_has_destination(in) || updates_first(in)) &&
            in->operand_count > 0) {
            put_operand(writer, &in->operands[0]);
        }
    }
    start[2 * code->count] = (uint32_t)writer->count;
}

enum status simt_uses_find(struct simt_code *code) {
    struct simt_uses *uses = &code->uses;
    uses->start = calloc(2 * code->count + 1, sizeof *uses->start);
    if (uses->start == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct writer writer = {0};
    list_uses(code, &writer);
    uses->list = calloc(writer.count + 1, sizeof *uses->list);
    if (uses->list == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    writer = (struct writer){.list = uses->list};
    list_uses(code, &writer);
    return STATUS_OK;
}

void simt_uses_free(struct simt_code *code) {
    free(code->uses.start);
    free(code->uses.list);
}
