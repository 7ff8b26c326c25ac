#include "common/simt/core/decode/decode_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* Cycles until a result can be used: Volta and later, by published microbenchmarks. */
    LATENCY_ARITHMETIC = 4,
    LATENCY_PREDICATE = 6,
    LATENCY_CONVERT = 10,
    LATENCY_DOUBLE = 8,
    LATENCY_SPECIAL = 18,
    LATENCY_SHARED = 29,
    LATENCY_SHUFFLE = 23,
    LATENCY_CONSTANT = 8,
    LATENCY_TENSOR = 32,
    LATENCY_BRANCH = 8,
    LATENCY_BARRIER = 20,
    MOST_LATENCY = 255,
    WIDE = 8 /* bytes: two registers */
};

/* What is not one machine instruction. The first entry that fits counts. */
static const struct {
    const char *base;
    const char *modifiers[2]; /* all needed; NULL: any */
    uint8_t machine;
} expansions[] = {
    {"cvta", {NULL}, 0},
    {"isspacep", {NULL}, 2},
    {"div", {"f64", NULL}, 20},
    {"div", {"full", NULL}, 6},
    {"div", {"approx", NULL}, 3},
    {"div", {"f32", NULL}, 10},
    {"div", {"u64", NULL}, 75},
    {"div", {"s64", NULL}, 80},
    {"div", {NULL}, 20},
    {"rem", {"u64", NULL}, 75},
    {"rem", {"s64", NULL}, 80},
    {"rem", {NULL}, 22},
    {"rcp", {"f64", NULL}, 12},
    {"rcp", {"rn", NULL}, 7},
    {"sqrt", {"f64", NULL}, 20},
    {"sqrt", {"rn", NULL}, 9},
    {"rsqrt", {"f64", NULL}, 14},
    {"tanh", {NULL}, 1},
    {"sin", {NULL}, 2},
    {"cos", {NULL}, 2},
    {"ex2", {"ftz", NULL}, 1},
    {"lg2", {"ftz", NULL}, 1},
    {"rcp", {"ftz", NULL}, 1},
    {"sqrt", {"ftz", NULL}, 2},
    {"rsqrt", {"ftz", NULL}, 1},
    /* Without .ftz, subnormal values are scaled before and after. */
    {"ex2", {NULL}, 4},
    {"lg2", {NULL}, 4},
    {"rcp", {NULL}, 3},
    {"sqrt", {NULL}, 4},
    {"rsqrt", {NULL}, 4},
    {"mul", {"lo", "s64"}, 4},
    {"mul", {"lo", "u64"}, 4},
    {"mad", {"lo", "s64"}, 4},
    {"mad", {"lo", "u64"}, 4},
    {"bfind", {"64", NULL}, 4},
    {"wmma", {"mma", NULL}, 4},
    {"mma", {"m8n8k4", "f16"}, 4},
    {"wmma", {"load", NULL}, 8},
    {"wmma", {"store", NULL}, 8},
    {"call", {NULL}, 8},
    {"match", {NULL}, 4},
};

static bool is(const struct ptx_instruction *in, const char *base) {
    return ptx_is_same(in->base, base);
}

static bool has_all(const struct ptx_instruction *in, const char *const modifiers[2]) {
    return (modifiers[0] == NULL || ptx_has_modifier(in, modifiers[0])) &&
           (modifiers[1] == NULL || ptx_has_modifier(in, modifiers[1]));
}

/* Moves between registers vanish; those under a predicate select, and special registers are read by
 * an instruction. */
static uint8_t machine_of_move(const struct ptx_instruction *in) {
    bool reads_special = in->operand_count > 1 && in->operands[1].kind == PTX_OPERAND_SPECIAL;
    return is(in, "mov") && (reads_special || in->guarded) ? 1 : 0;
}

static bool is_two_registers(const struct ptx_instruction *in) {
    static const char *const bases[] = {"shl", "shr", "and", "or", "xor", "not", "selp", "neg"};
    for (size_t n = 0; n < sizeof bases / sizeof *bases; n++) {
        if (is(in, bases[n])) {
            return ptx_type_size(ptx_modifier_type(in, 0)) == WIDE;
        }
    }
    return false;
}

static uint8_t machine_of(const struct simt_instruction *i) {
    const struct ptx_instruction *in = i->source;
    if (in == NULL) {
        return 1;
    }
    if (i->op_class == SIMT_CLASS_MOVE && !is(in, "cvta")) {
        return machine_of_move(in);
    }
    if (i->joined == SIMT_JOINED_RIDER) {
        return 0;
    }
    for (size_t n = 0; n < sizeof expansions / sizeof *expansions; n++) {
        if (is(in, expansions[n].base) && has_all(in, expansions[n].modifiers)) {
            return expansions[n].machine;
        }
    }
    return is_two_registers(in) ? 2 : 1;
}

static uint32_t latency_of_class(uint8_t op_class) {
    switch ((enum simt_class)op_class) {
    case SIMT_CLASS_PREDICATE:
        return LATENCY_PREDICATE;
    case SIMT_CLASS_CONVERT:
        return LATENCY_CONVERT;
    case SIMT_CLASS_DOUBLE:
        return LATENCY_DOUBLE;
    case SIMT_CLASS_SPECIAL:
        return LATENCY_SPECIAL;
    case SIMT_CLASS_SHARED:
        return LATENCY_SHARED;
    case SIMT_CLASS_WARP:
        return LATENCY_SHUFFLE;
    case SIMT_CLASS_CONSTANT:
        return LATENCY_CONSTANT;
    case SIMT_CLASS_TENSOR:
        return LATENCY_TENSOR;
    case SIMT_CLASS_CONTROL:
        return LATENCY_BRANCH;
    case SIMT_CLASS_BARRIER:
        return LATENCY_BARRIER;
    default:
        return LATENCY_ARITHMETIC;
    }
}

/* Several machine instructions that make one result wait for each other. */
static uint8_t latency_of(const struct simt_instruction *i) {
    if (i->machine == 0 && i->joined != SIMT_JOINED_RIDER) {
        return 0;
    }
    uint32_t chain = i->machine > 1 ? (i->machine - 1u) * LATENCY_ARITHMETIC : 0;
    uint32_t latency = latency_of_class(i->op_class) + chain;
    return (uint8_t)(latency < MOST_LATENCY ? latency : MOST_LATENCY);
}

/* A load of a tensor core's fragment that does not say where from is one of global memory. */
static bool is_fragment_load(const struct simt_instruction *i) {
    return i->op_class == SIMT_CLASS_TENSOR && strcmp(i->source->base, "wmma") == 0 &&
           ptx_has_modifier(i->source, "load") && !ptx_has_modifier(i->source, "shared");
}

static bool is_load(const struct simt_instruction *i) {
    bool memory = i->op_class == SIMT_CLASS_GLOBAL || i->op_class == SIMT_CLASS_LOCAL ||
                  i->op_class == SIMT_CLASS_ATOMIC;
    return i->dst_count > 0 && (memory || is_fragment_load(i));
}

static bool waits_for_cluster(const struct simt_instruction *i) {
    return i->op_class == SIMT_CLASS_BARRIER && ptx_has_modifier(i->source, "wait") &&
           ptx_has_modifier(i->source, "cluster");
}

/* Whether another instruction reads what instruction `n` writes. */
static bool is_used(const struct simt_code *code, size_t n) {
    const struct simt_uses *uses = &code->uses;
    for (size_t other = 0; other < code->function->instruction_count; other++) {
        for (uint32_t r = uses->start[2 * other]; r < uses->start[2 * other + 1]; r++) {
            for (uint32_t w = uses->start[2 * n + 1]; w < uses->start[2 * n + 2]; w++) {
                if (other != n && uses->list[r] == uses->list[w]) {
                    return true;
                }
            }
        }
    }
    return false;
}

static uint8_t timing_of(const struct simt_code *code, size_t n) {
    const struct simt_instruction *i = &code->instructions[n];
    if (i->source == NULL) {
        return 0;
    }
    uint32_t used = i->op_class == SIMT_CLASS_ATOMIC && is_used(code, n) ? SIMT_TIMING_USED : 0;
    uint32_t load = is_load(i) ? SIMT_TIMING_LOAD : 0;
    uint32_t copy = strcmp(i->source->base, "cp") == 0 ? SIMT_TIMING_COPY : 0;
    uint32_t cluster = waits_for_cluster(i) ? SIMT_TIMING_CLUSTER : 0;
    return (uint8_t)(load | copy | cluster | used);
}

enum status simt_set_costs(struct simt_code *code) {
    code->sums = calloc(code->count + 1, sizeof *code->sums);
    if (code->sums == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t n = 0; n < code->count; n++) {
        struct simt_instruction *i = &code->instructions[n];
        struct simt_sums *next = &code->sums[n + 1];
        i->machine = machine_of(i);
        i->latency = latency_of(i);
        i->timing = timing_of(code, n);
        *next = code->sums[n];
        next->classes[i->op_class]++;
        next->machine += i->machine;
        next->flops += i->flops;
        next->spills += i->spills;
    }
    return STATUS_OK;
}
