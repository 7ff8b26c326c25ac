#include "common/simt/random/random_expression.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct random_place random_place_kernel(unsigned functions) {
    return (struct random_place){
        .whole_block = true,
        .whole_warp = true,
        .in_kernel = true,
        .depth = 1,
        .functions = functions,
    };
}

void random_indent(struct random_writer *writer, const struct random_place *place) {
    for (unsigned i = 0; i < place->depth; i++) {
        random_text_add(&writer->text, "    ", 4);
    }
}

/* A place one block further in. */
static struct random_place inside(const struct random_place *place) {
    struct random_place inner = *place;
    inner.depth++;
    return inner;
}

/* Inside a branch or loop that lanes take differently. */
static struct random_place parted(const struct random_place *place) {
    struct random_place inner = inside(place);
    inner.whole_block = false;
    inner.whole_warp = false;
    return inner;
}

/* Statements where lanes have parted in ways that no mask describes. */
static void parted_statements(struct random_writer *writer, struct random_place place,
                              unsigned count, unsigned *next) {
    const char *mask = writer->mask;
    writer->mask = NULL;
    random_statements(writer, place, count, next);
    writer->mask = mask;
}

static const struct random_variable *variable(struct random_writer *writer) {
    return &writer->variables[random_below(writer, (unsigned)writer->variable_count)];
}

/* A variable of a type that is always in use. */
static const char *variable_of(struct random_writer *writer, char type) {
    const struct random_variable *chosen = variable(writer);
    while (chosen->type != type) {
        chosen = variable(writer);
    }
    return chosen->name;
}

/* A line: the place's indentation, then a filled template. */
static void line(struct random_writer *writer, const struct random_place *place,
                 const char *template) {
    random_indent(writer, place);
    random_fill(writer, template, 1);
    random_text_print(&writer->text, "\n");
}

static void assignment(struct random_writer *writer, const struct random_place *place) {
    const struct random_variable *target = variable(writer);
    random_indent(writer, place);
    random_text_print(&writer->text, "%s = ", target->name);
    random_expression(writer, target->type, 2 + random_below(writer, 2));
    random_text_print(&writer->text, ";\n");
}

static void cell_store(struct random_writer *writer, const struct random_place *place) {
    static const char *const lines[] = {"cells[$I & 7u] = $I;", "cells[$I & 7u] ^= $I;",
                                        "((u8 *)cells)[$I & 31u] += (u8)$I;",
                                        "((uint2 *)cells)[$I & 3u] = make_uint2($I, $I);"};
    line(writer, place, lines[random_below(writer, COUNT(lines))]);
}

static void global_atomic(struct random_writer *writer, const struct random_place *place) {
    static const char *const lines[] = {
        "atomicAdd(&out[ATOMICS + ($I & 3u)], (u64)$I);",
        "swap_add(&out[ATOMICS + ($I & 3u)], (u64)$I);",
        "atomicXor(&out[ATOMICS + 4u + ($I & 3u)], (u64)$I * 0x100000001ull);",
        "atomicMax(&out[ATOMICS + 8u + ($I & 1u)], (u64)$I);",
        "atomicMax((s64 *)&out[ATOMICS + 10u], (s64)$i);",
        "atomicOr(&out[ATOMICS + 12u], 1ull << ($I & 63u));",
        "atomicAdd((u32 *)&out[ATOMICS + 13u] + ($I & 1u), $I);",
        "atomicMax((u32 *)&out[ATOMICS + 14u], $I);",
        "atomicXor((u32 *)&out[ATOMICS + 15u] + ($I & 1u), $I);",
    };
    line(writer, place, lines[random_below(writer, COUNT(lines))]);
}

/* One of the warp templates that fits; the mask must be known. */
static void warp_operation(struct random_writer *writer, const struct random_place *place) {
    const bool full = place->whole_warp && random_chance(writer, 50);
    const struct random_template *table = full ? random_full_warp_templates : random_warp_templates;
    const size_t count = full ? random_full_warp_template_count : random_warp_template_count;
    const struct random_template *chosen;
    do {
        chosen = &table[random_below(writer, (unsigned)count)];
    } while (!random_fits(writer, chosen->text) ||
             (random_type_set(chosen->type) & ~writer->types) != 0);
    random_indent(writer, place);
    random_text_print(&writer->text, "%s = ", variable_of(writer, chosen->type));
    random_fill(writer, chosen->text, 1);
    random_text_print(&writer->text, ";\n");
}

/* if, with or without else; lanes may leave a loop or a function. */
static void branch(struct random_writer *writer, const struct random_place *place, unsigned *next) {
    struct random_place inner = parted(place);
    line(writer, place, "if ($?) {");
    parted_statements(writer, inner, 1 + random_below(writer, 2), next);
    if (place->in_loop && random_chance(writer, 40)) {
        line(writer, &inner, random_chance(writer, 50) ? "break;" : "continue;");
    } else if (place->returns != '\0' && random_chance(writer, 30)) {
        random_indent(writer, &inner);
        random_text_print(&writer->text, "return ");
        random_expression(writer, place->returns, 1);
        random_text_print(&writer->text, ";\n");
    }
    if (random_chance(writer, 50)) {
        line(writer, place, "} else {");
        parted_statements(writer, inner, 1 + random_below(writer, 2), next);
    }
    line(writer, place, "}");
}

static void switched(struct random_writer *writer, const struct random_place *place,
                     unsigned *next) {
    const unsigned cases = 2 + random_below(writer, 4);
    struct random_place inner = parted(place);
    line(writer, place, random_chance(writer, 50) ? "switch ($I & 7u) {" : "switch ($I % 5u) {");
    /* A break would end the switch, not the loop. */
    inner.in_loop = false;
    for (unsigned i = 0; i < cases; i++) {
        random_indent(writer, place);
        random_text_print(&writer->text, "case %u:\n", i);
        parted_statements(writer, inner, 1, next);
        if (random_chance(writer, 70)) {
            line(writer, &inner, "break;");
        }
    }
    line(writer, place, "default:");
    parted_statements(writer, inner, 1, next);
    line(writer, place, "}");
}

/* A loop whose lanes leave it at different times, by the count or by break. */
static void parted_loop(struct random_writer *writer, const struct random_place *place,
                        unsigned *next) {
    static const char *const heads[] = {
        "for (u32 i%u = 0u, n%u = ($I & 7u); i%u < n%u; i%u++) {",
        "for (u32 i%u = $I & 0x7fu; i%u != 0u; i%u >>= 1) {",
        "for (u32 i%u = $I & 0x1111u; i%u != 0u; i%u &= i%u - 1u) {",
        "for (s32 i%u = (s32)($I & 15u); i%u >= 0; i%u -= 3) {",
    };
    const unsigned id = (*next)++;
    struct random_place inner = parted(place);
    char head[128];
    inner.in_loop = true;
    (void)snprintf(head, sizeof head, heads[random_below(writer, COUNT(heads))], id, id, id, id,
                   id);
    line(writer, place, head);
    parted_statements(writer, inner, 1 + random_below(writer, 3), next);
    line(writer, place, "}");
}

/* A loop that all lanes at this place run equally often. */
static void common_loop(struct random_writer *writer, const struct random_place *place,
                        unsigned *next) {
    const unsigned id = (*next)++;
    struct random_place inner = inside(place);
    inner.in_loop = false;
    random_indent(writer, place);
    if (random_chance(writer, 50)) {
        random_text_print(&writer->text, "#pragma unroll 1\n");
        random_indent(writer, place);
    }
    random_text_print(&writer->text, "for (u32 i%u = 0u; i%u < %s; i%u++) {\n", id, id,
                      random_chance(writer, 50) ? "3u" : "(in[7] & 3u) + 1u", id);
    random_statements(writer, inner, 1 + random_below(writer, 2), next);
    line(writer, place, "}");
}

/* Statements for the lanes of mask m`id`, which is the mask of all that are here. */
static void masked_statements(struct random_writer *writer, struct random_place place, unsigned id,
                              unsigned *next) {
    const char *mask = writer->mask;
    char name[16];
    (void)snprintf(name, sizeof name, "m%u", id);
    writer->mask = name;
    warp_operation(writer, &place);
    random_statements(writer, place, 1, next);
    writer->mask = mask;
}

/* if, where both sides know which lanes took it. */
static void masked_branch(struct random_writer *writer, const struct random_place *place,
                          unsigned *next) {
    const unsigned id = (*next)++, other = (*next)++;
    struct random_place inner = parted(place);
    inner.in_loop = false;
    inner.returns = '\0';
    random_indent(writer, place);
    random_text_print(&writer->text, "const bool c%u = ", id);
    random_expression(writer, '?', 1);
    random_text_print(&writer->text, ";\n");
    random_indent(writer, place);
    random_text_print(&writer->text, "const u32 m%u = __ballot_sync(%s, c%u), m%u = %s & ~m%u;\n",
                      id, writer->mask, id, other, writer->mask, id);
    random_indent(writer, place);
    random_text_print(&writer->text, "if (c%u) {\n", id);
    masked_statements(writer, inner, id, next);
    if (random_chance(writer, 60)) {
        line(writer, place, "} else {");
        masked_statements(writer, inner, other, next);
    }
    line(writer, place, "}");
    random_indent(writer, place);
    random_text_print(&writer->text, "%s ^= m%u + m%u;\n", variable_of(writer, 'I'), id, other);
}

/* A loop whose lanes leave it at different times and say so. */
static void masked_loop(struct random_writer *writer, const struct random_place *place,
                        unsigned *next) {
    const unsigned id = (*next)++;
    struct random_place inner = parted(place);
    inner.in_loop = false;
    inner.returns = '\0';
    random_indent(writer, place);
    random_text_print(&writer->text, "u32 m%u = %s, n%u = ", id, writer->mask, id);
    random_fill(writer, "$I & 3u;\n", 1);
    random_indent(writer, place);
    random_text_print(&writer->text, "for (u32 i%u = 0u;; i%u++) {\n", id, id);
    random_indent(writer, &inner);
    random_text_print(&writer->text, "m%u = __ballot_sync(m%u, i%u < n%u);\n", id, id, id, id);
    random_indent(writer, &inner);
    random_text_print(&writer->text, "if (i%u >= n%u) {\n", id, id);
    line(writer, &inner, "    break;");
    line(writer, &inner, "}");
    masked_statements(writer, inner, id, next);
    line(writer, place, "}");
}

/* Every thread writes its own element and reads another's. */
static void exchange(struct random_writer *writer, const struct random_place *place,
                     unsigned *next) {
    static const char *const places[] = {"threadIdx.x", "threadIdx.x * 5u & 63u",
                                         "63u - threadIdx.x"};
    const char *at = places[random_below(writer, COUNT(places))];
    const unsigned id = (*next)++;
    const char type = random_type(writer);
    random_indent(writer, place);
    random_text_print(&writer->text, "__shared__ __align__(16) %s shared%u[64];\n",
                      random_type_name(type), id);
    random_indent(writer, place);
    random_text_print(&writer->text, "shared%u[%s] = ", id, at);
    random_expression(writer, type, 2);
    random_text_print(&writer->text, ";\n");
    line(writer, place, "__syncthreads();");
    random_indent(writer, place);
    random_text_print(&writer->text, "%s = shared%u[", variable_of(writer, type), id);
    random_fill(writer, random_chance(writer, 50) ? "$I & 63u" : "(threadIdx.x + $n) & 63u", 1);
    random_text_print(&writer->text, "];\n");
    /* Bits of floats may be a NaN's: only integers are looked at in pairs. */
    if (strchr("iIlL", type) != NULL && random_chance(writer, 40)) {
        random_indent(writer, place);
        random_text_print(&writer->text, "const uint2 pair%u = ((const uint2 *)shared%u)[", id, id);
        random_fill(writer, "$I & 31u];\n", 1);
        random_indent(writer, place);
        random_text_print(&writer->text, "%s += pair%u.x ^ pair%u.y;\n", variable_of(writer, 'I'),
                          id, id);
    }
    line(writer, place, "__syncthreads();");
}

/* Bins in shared memory: one commutative atomic operation between barriers. */
static void shared_atomics(struct random_writer *writer, const struct random_place *place,
                           unsigned *next) {
    static const struct {
        char type;
        const char *start, *operation;
    } kinds[] = {
        {'I', "7u", "atomicAdd"},    {'I', "~0u", "atomicMin"},        {'I', "0u", "atomicMax"},
        {'I', "~0u", "atomicAnd"},   {'I', "0u", "atomicOr"},          {'I', "5u", "atomicXor"},
        {'I', "9u", "atomicSub"},    {'i', "0x7fffffff", "atomicMin"}, {'i', "-5", "atomicMax"},
        {'i', "0", "atomicAdd"},     {'L', "1ull", "atomicAdd"},       {'L', "0ull", "atomicMax"},
        {'L', "~0ull", "atomicMin"}, {'L', "3ull", "atomicXor"},       {'L', "0ull", "atomicOr"},
    };
    const unsigned id = (*next)++;
    unsigned kind;
    do {
        kind = random_below(writer, COUNT(kinds));
    } while ((random_type_set(kinds[kind].type) & ~writer->types) != 0);
    const char type = kinds[kind].type;
    random_indent(writer, place);
    random_text_print(&writer->text, "__shared__ %s bins%u[8];\n", random_type_name(type), id);
    random_indent(writer, place);
    random_text_print(&writer->text, "if (threadIdx.x < 8u) bins%u[threadIdx.x] = %s;\n", id,
                      kinds[kind].start);
    line(writer, place, "__syncthreads();");
    random_indent(writer, place);
    random_fill(writer, random_chance(writer, 40) ? "if ($?) " : "", 1);
    random_text_print(&writer->text, "%s(&bins%u[", kinds[kind].operation, id);
    random_fill(writer, "$I & 7u], ", 1);
    random_expression(writer, type, 1);
    random_text_print(&writer->text, ");\n");
    line(writer, place, "__syncthreads();");
    random_indent(writer, place);
    random_text_print(&writer->text, "%s = bins%u[", variable_of(writer, type), id);
    random_fill(writer, "$I & 7u];\n", 1);
    line(writer, place, "__syncthreads();");
}

static void barrier_vote(struct random_writer *writer, const struct random_place *place) {
    static const char *const votes[] = {"(u32)__syncthreads_count($?);",
                                        "(u32)__syncthreads_and($?);",
                                        "(u32)__syncthreads_or($?);"};
    random_indent(writer, place);
    random_text_print(&writer->text, "%s = ", variable_of(writer, 'I'));
    random_fill(writer, votes[random_below(writer, COUNT(votes))], 1);
    random_text_print(&writer->text, "\n");
}

struct random_signature random_signature_of(uint64_t seed, unsigned number, random_types types) {
    struct random_writer chooser = {.rng = rng_create(seed * 16 + number + 1), .types = types};
    struct random_signature signature = {.result = random_type(&chooser)};
    for (size_t i = 0; i < RANDOM_PARAMETERS; i++) {
        signature.parameters[i] = random_type(&chooser);
    }
    return signature;
}

static void call(struct random_writer *writer, const struct random_place *place) {
    const unsigned number = random_below(writer, place->functions);
    const struct random_signature signature =
        random_signature_of(writer->seed, number, writer->types);
    random_indent(writer, place);
    random_text_print(&writer->text, "%s = f_%" PRIu64 "_%u(",
                      variable_of(writer, signature.result), writer->seed, number);
    for (size_t i = 0; i < RANDOM_PARAMETERS; i++) {
        random_expression(writer, signature.parameters[i], 1);
        random_text_print(&writer->text, ", ");
    }
    random_text_print(&writer->text, "in, cells);\n");
}

/* Statements that contain others. @return false when none was chosen */
static bool compound(struct random_writer *writer, const struct random_place *place,
                     unsigned *next) {
    if (place->depth > 3) {
        return false;
    }
    switch (random_below(writer, 14)) {
    case 0:
    case 1:
        branch(writer, place, next);
        return true;
    case 2:
        switched(writer, place, next);
        return true;
    case 3:
        parted_loop(writer, place, next);
        return true;
    case 4:
        common_loop(writer, place, next);
        return true;
    case 5:
    case 6:
        if (writer->mask != NULL) {
            masked_branch(writer, place, next);
        }
        return writer->mask != NULL;
    case 7:
        if (writer->mask != NULL) {
            masked_loop(writer, place, next);
        }
        return writer->mask != NULL;
    default:
        return false;
    }
}

/* Statements that all threads of the block run together. @return false when none was chosen */
static bool block_wide(struct random_writer *writer, const struct random_place *place,
                       unsigned *next) {
    if (!place->whole_block) {
        return false;
    }
    switch (random_below(writer, 9)) {
    case 0:
        exchange(writer, place, next);
        return true;
    case 1:
        shared_atomics(writer, place, next);
        return true;
    case 2:
        if (random_chance(writer, 50)) {
            barrier_vote(writer, place);
            return true;
        }
        return false;
    default:
        return false;
    }
}

static void simple(struct random_writer *writer, const struct random_place *place) {
    const unsigned kind = random_below(writer, 20);
    if (kind < 3 && writer->mask != NULL) {
        warp_operation(writer, place);
    } else if (kind < 5) {
        cell_store(writer, place);
    } else if (kind < 6 && place->in_kernel) {
        global_atomic(writer, place);
    } else if (kind < 8 && place->functions > 0) {
        call(writer, place);
    } else {
        assignment(writer, place);
    }
}

void random_statements(struct random_writer *writer, struct random_place place, unsigned count,
                       unsigned *next) {
    for (unsigned i = 0; i < count; i++) {
        if (!compound(writer, &place, next) && !block_wide(writer, &place, next)) {
            simple(writer, &place);
        }
    }
}
