/* Instructions and functions, construct by construct. */
#include "common/simt/ptx/ptx.h"

#include <stdio.h>
#include <string.h>

#include "common/simt/ptx/testing/testing.h"
#include "common/testing/fixture.h"

/* Where the registers of ptx_test_body() begin. */
enum { P = 0, RS = 4, R = 8, RD = 16, F = 20, FD = 28, REGISTERS = 32 };

/* The first instruction of a body, with the module that owns it. */
struct one {
    struct ptx_module *module;
    const struct ptx_instruction *instruction;
    const struct ptx_operand *operands;
};

static bool parse_one(struct one *one, const char *statements, size_t operand_count) {
    one->module = ptx_test_body(statements);
    one->instruction = one->module != NULL ? ptx_test_instruction(one->module, 0) : NULL;
    one->operands = NULL;
    if (one->instruction == NULL || one->instruction->operand_count != operand_count) {
        TEST_FAIL("%s: not an instruction of %zu operands", statements, operand_count);
        ptx_free(one->module);
        return false;
    }
    one->operands = one->instruction->operands;
    return true;
}

/* A test that sees `one`. */
#define ONE_TEST(name, statement, operand_count)                                       \
    FIXTURE_TEST(ptx, name, struct one, one, parse_one(one, statement, operand_count), \
                 ptx_free(one->module))

static void expect_register(const struct ptx_operand *operand, size_t index) {
    EXPECT_INT_EQ(PTX_OPERAND_REGISTER, operand->kind);
    EXPECT_INT_EQ(index, operand->index);
}

static void expect_integer(const struct ptx_operand *operand, int64_t value) {
    EXPECT_INT_EQ(PTX_OPERAND_IMMEDIATE, operand->kind);
    EXPECT_INT_EQ(PTX_IMMEDIATE_INTEGER, operand->immediate_type);
    EXPECT_INT_EQ(value, operand->bits);
}

MODULE_TEST(ptx, reads_the_header, ptx_test_parse("")) {
    EXPECT_INT_EQ(9, module->version_major);
    EXPECT_INT_EQ(0, module->version_minor);
    EXPECT_STR_EQ("sm_75", module->target);
    EXPECT_INT_EQ(0, module->function_count);
    ptx_free(NULL);
}

ONE_TEST(splits_an_opcode_into_base_and_modifiers,
         "ld.global.nc.L1::no_allocate.v2.u32 {%r1, _}, [%rd1+-8];", 2) {
    EXPECT_STR_EQ("ld.global.nc.L1::no_allocate.v2.u32", one->instruction->opcode);
    EXPECT_STR_EQ("ld", one->instruction->base);
    EXPECT_INT_EQ(5, one->instruction->modifier_count);
    EXPECT_STR_EQ("global", one->instruction->modifiers[0]);
    EXPECT_STR_EQ("L1::no_allocate", one->instruction->modifiers[2]);
    EXPECT_TRUE(ptx_has_modifier(one->instruction, "nc"));
    EXPECT_TRUE(!ptx_has_modifier(one->instruction, "n"));
    EXPECT_INT_EQ(PTX_U32, ptx_modifier_type(one->instruction, 0));
    EXPECT_INT_EQ(PTX_NO_TYPE, ptx_modifier_type(one->instruction, 1));
    EXPECT_INT_EQ(11, one->instruction->text_line);
    EXPECT_TRUE(!one->instruction->guarded);
}

ONE_TEST(reads_vectors_and_addresses, "ld.global.v4.f32 {%f0, %f1, _, %f3}, [%rd1+-8];", 2) {
    EXPECT_INT_EQ(PTX_OPERAND_VECTOR, one->operands[0].kind);
    EXPECT_INT_EQ(4, one->operands[0].element_count);
    expect_register(&one->operands[0].elements[1], F + 1);
    EXPECT_INT_EQ(PTX_OPERAND_DISCARD, one->operands[0].elements[2].kind);
    EXPECT_INT_EQ(PTX_OPERAND_ADDRESS, one->operands[1].kind);
    EXPECT_TRUE(one->operands[1].has_register);
    EXPECT_INT_EQ(RD + 1, one->operands[1].index);
    EXPECT_INT_EQ(-8, one->operands[1].offset);
    EXPECT_TRUE(one->operands[1].symbol == NULL);
}

C_TEST(ptx, reads_addresses_of_symbols) {
    struct one one;
    ASSERT_TRUE(parse_one(&one, "st.shared.u32 [tile + 16], %r0;", 2));
    EXPECT_INT_EQ(PTX_OPERAND_ADDRESS, one.operands[0].kind);
    EXPECT_TRUE(!one.operands[0].has_register);
    EXPECT_STR_EQ("tile", one.operands[0].symbol);
    EXPECT_INT_EQ(16, one.operands[0].offset);
    EXPECT_INT_EQ(PTX_IN_LOCALS, one.operands[0].table);
    ptx_free(one.module);
    ASSERT_TRUE(parse_one(&one, "ld.param.u32 %r0, [p1];", 2));
    EXPECT_INT_EQ(PTX_IN_PARAMETERS, one.operands[1].table);
    EXPECT_INT_EQ(1, one.operands[1].variable);
    ptx_free(one.module);
    ASSERT_TRUE(parse_one(&one, "ld.shared.u32 %r0, [0x40-4];", 2));
    EXPECT_INT_EQ(PTX_OPERAND_ADDRESS, one.operands[1].kind);
    EXPECT_TRUE(one.operands[1].symbol == NULL && !one.operands[1].has_register);
    EXPECT_INT_EQ(60, one.operands[1].offset);
    ptx_free(one.module);
}

ONE_TEST(reads_coordinates_inside_brackets,
         "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
         "::bytes [tile], [%rd1, {%r1, 7}], [%rd2];",
         3) {
    const struct ptx_operand *tensor = &one->operands[1];
    EXPECT_INT_EQ(PTX_OPERAND_ADDRESS, tensor->kind);
    EXPECT_INT_EQ(1, tensor->element_count);
    EXPECT_INT_EQ(PTX_OPERAND_VECTOR, tensor->elements[0].kind);
    expect_register(&tensor->elements[0].elements[0], R + 1);
    expect_integer(&tensor->elements[0].elements[1], 7);
    EXPECT_TRUE(ptx_has_modifier(one->instruction, "mbarrier::complete_tx::bytes"));
}

C_TEST(ptx, reads_integers) {
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"42", 42},
        {"-1", -1},
        {"0x1F", 31},
        {"0XffU", 255},
        {"017", 15},
        {"0b101", 5},
        {"4294967295U", 4294967295},
        {"-2147483648", INT32_MIN},
        {"18446744073709551615", -1},
        {"~0", -1},
        {"!0", 1},
        {"0x8000000000000000", INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char statement[64];
        struct one one;
        snprintf(statement, sizeof statement, "mov.b64 %%rd0, %s;", cases[i].text);
        ASSERT_TRUE(parse_one(&one, statement, 2));
        expect_integer(&one.operands[1], cases[i].value);
        ptx_free(one.module);
    }
}

C_TEST(ptx, reads_floats) {
    static const struct {
        const char *text;
        enum ptx_immediate_type type;
        uint64_t bits;
    } cases[] = {
        {"0f3F800000", PTX_IMMEDIATE_F32, 0x3f800000},
        {"0Fff800000", PTX_IMMEDIATE_F32, 0xff800000},
        {"-0f3F800000", PTX_IMMEDIATE_F32, 0xbf800000},
        {"0d3FF8000000000000", PTX_IMMEDIATE_F64, 0x3ff8000000000000},
        {"0D7FF0000000000000", PTX_IMMEDIATE_F64, 0x7ff0000000000000},
        {"1.5", PTX_IMMEDIATE_F64, 0x3ff8000000000000},
        {"-25e-2", PTX_IMMEDIATE_F64, 0xbfd0000000000000},
        {"2.0E+0", PTX_IMMEDIATE_F64, 0x4000000000000000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char statement[64];
        struct one one;
        snprintf(statement, sizeof statement, "mov.f64 %%fd0, %s;", cases[i].text);
        ASSERT_TRUE(parse_one(&one, statement, 2));
        EXPECT_INT_EQ(PTX_OPERAND_IMMEDIATE, one.operands[1].kind);
        EXPECT_INT_EQ(cases[i].type, one.operands[1].immediate_type);
        EXPECT_INT_EQ(cases[i].bits, one.operands[1].bits);
        ptx_free(one.module);
    }
}

ONE_TEST(reads_a_register_that_is_a_vector, ".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1];", 2) {
    EXPECT_INT_EQ(PTX_OPERAND_VECTOR, one->operands[0].kind);
    EXPECT_INT_EQ(4, one->operands[0].element_count);
    for (size_t n = 0; n < one->operands[0].element_count; n++) {
        expect_register(&one->operands[0].elements[n], REGISTERS + n);
    }
}

ONE_TEST(reads_elements_of_a_register, ".reg .v2 .f32 u, v; fma.rn.f32 v.y, u.x, %f1, v.r;", 4) {
    expect_register(&one->operands[0], REGISTERS + 3);
    expect_register(&one->operands[1], REGISTERS);
    expect_register(&one->operands[2], F + 1);
    expect_register(&one->operands[3], REGISTERS + 2);
}

C_TEST(ptx, reads_special_registers) {
    static const char *const names[] = {
        "tid.x",
        "ntid.y",
        "ctaid.z",
        "laneid",
        "lanemask_lt",
        "clock64",
        "clock",
        "envreg31",
        "globaltimer_hi",
        "cluster_ctarank",
        "pm3",
        "smid",
        "tid",
        "dynamic_smem_size",
        "reserved_smem_offset_1",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char statement[64];
        struct one one;
        snprintf(statement, sizeof statement, "mov.u32 %%r0, %%%s;", names[i]);
        ASSERT_TRUE(parse_one(&one, statement, 2));
        EXPECT_INT_EQ(PTX_OPERAND_SPECIAL, one.operands[1].kind);
        EXPECT_STR_EQ(names[i], one.operands[1].special);
        ptx_free(one.module);
    }
    struct one one;
    ASSERT_TRUE(parse_one(&one, "mov.u32 %r0, WARP_SZ;", 2));
    EXPECT_INT_EQ(PTX_OPERAND_SPECIAL, one.operands[1].kind);
    EXPECT_STR_EQ("WARP_SZ", one.operands[1].special);
    ptx_free(one.module);
}

C_TEST(ptx, reads_guards_pairs_and_negations) {
    struct one one;
    ASSERT_TRUE(parse_one(&one, "@!%p3 setp.lt.and.f32 %p1|%p2, %f1, 0f00000000, !%p0;", 4));
    EXPECT_TRUE(one.instruction->guarded && one.instruction->guard_negated);
    EXPECT_INT_EQ(P + 3, one.instruction->guard);
    EXPECT_INT_EQ(PTX_OPERAND_PAIR, one.operands[0].kind);
    expect_register(&one.operands[0].elements[0], P + 1);
    expect_register(&one.operands[0].elements[1], P + 2);
    expect_register(&one.operands[3], P + 0);
    EXPECT_TRUE(one.operands[3].negated);
    EXPECT_TRUE(!one.operands[1].negated);
    ptx_free(one.module);
    ASSERT_TRUE(parse_one(&one, "@%p1 shfl.sync.up.b32 %r1|_, %r2, 1, 0, -1;", 5));
    EXPECT_TRUE(one.instruction->guarded && !one.instruction->guard_negated);
    EXPECT_INT_EQ(PTX_OPERAND_DISCARD, one.operands[0].elements[1].kind);
    ptx_free(one.module);
    ASSERT_TRUE(parse_one(&one, "vadd.u32.u32.u32 %r1, %r2.b3, %r3.h1;", 3));
    expect_register(&one.operands[1], R + 2);
    EXPECT_STR_EQ("b3", one.operands[1].special);
    EXPECT_STR_EQ("h1", one.operands[2].special);
    ptx_free(one.module);
}

ONE_TEST(reads_matrix_operands,
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n"
         "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3},\n"
         "{%r4, %r5}, {%f0, %f1, %f2, %f3};",
         4) {
    EXPECT_STR_EQ("m16n8k16", one->instruction->modifiers[2]);
    EXPECT_INT_EQ(PTX_F32, ptx_modifier_type(one->instruction, 3));
    EXPECT_INT_EQ(PTX_F16, ptx_modifier_type(one->instruction, 1));
    EXPECT_INT_EQ(2, one->operands[2].element_count);
    expect_register(&one->operands[2].elements[1], R + 5);
}

MODULE_TEST(ptx, expands_registers, ptx_test_body(".reg .f16x2 pair;\nret;")) {
    const struct ptx_function *k = ptx_find_function(module, "k");
    ASSERT_TRUE(k != NULL);
    EXPECT_INT_EQ(REGISTERS + 1, k->register_count);
    EXPECT_STR_EQ("%p0", k->registers[P].name);
    EXPECT_INT_EQ(PTX_PRED, k->registers[P].type);
    EXPECT_STR_EQ("%r7", k->registers[R + 7].name);
    EXPECT_INT_EQ(PTX_B32, k->registers[R + 7].type);
    EXPECT_STR_EQ("%fd3", k->registers[FD + 3].name);
    EXPECT_STR_EQ("pair", k->registers[REGISTERS].name);
    EXPECT_INT_EQ(PTX_F16X2, k->registers[REGISTERS].type);
}

MODULE_TEST(ptx, gives_registers_of_inner_scopes_their_own_index,
            ptx_test_body("{ .reg.b32 x, y<2>;\n"
                          "mov.b32 x, 1;\n"
                          "{ .reg .b64 x; mov.b64 x, 2; }\n"
                          "mov.b32 x, y1; }\n"
                          "{ .reg .b32 x; mov.b32 x, %r1; }\n")) {
    const struct ptx_function *k = &module->functions[module->function_count - 1];
    static const size_t want[] = {REGISTERS, REGISTERS + 3, REGISTERS, REGISTERS + 4};
    ASSERT_TRUE(k->instruction_count == 4);
    for (size_t i = 0; i < 4; i++) {
        expect_register(&k->instructions[i].operands[0], want[i]);
        EXPECT_STR_EQ("x", k->registers[want[i]].name);
    }
    EXPECT_INT_EQ(PTX_B64, k->registers[REGISTERS + 3].type);
    expect_register(&k->instructions[2].operands[1], REGISTERS + 2);
}

MODULE_TEST(ptx, resolves_labels_in_their_scopes,
            ptx_test_body("L: bra END;\n"       /* 0 */
                          "{ L: bra L;\n"       /* 1 */
                          "  @%p0 bra.uni M;\n" /* 2 */
                          "  M: { bra L; }\n"   /* 3 */
                          "}\n"
                          "{ bra L; M: bra M; }\n" /* 4, 5 */
                          "END:")) {
    const struct ptx_function *k = &module->functions[module->function_count - 1];
    static const uint32_t want[] = {6, 1, 3, 1, 0, 5};
    ASSERT_TRUE(k->instruction_count == 6);
    for (size_t i = 0; i < 6; i++) {
        EXPECT_INT_EQ(PTX_OPERAND_LABEL, k->instructions[i].operands[0].kind);
        EXPECT_INT_EQ(want[i], k->instructions[i].operands[0].index);
    }
    EXPECT_STR_EQ("END", k->instructions[0].operands[0].symbol);
}

MODULE_TEST(ptx, resolves_branch_tables,
            ptx_test_body("brx.idx.uni %r1, $L_brx_0;\n"
                          "A: ret;\n"
                          "$L_brx_0: .branchtargets A, B, A;\n"
                          "{ B: ret; .reg .b32 i;\n"
                          "t: .branchtargets B;\n"
                          "brx.idx i, t; }\n"
                          "B: ret;")) {
    const struct ptx_instruction *outer = ptx_test_instruction(module, 0);
    ASSERT_TRUE(outer->target_count == 3);
    EXPECT_STR_EQ("B", outer->targets[1]);
    EXPECT_INT_EQ(1, outer->target_indices[0]);
    EXPECT_INT_EQ(4, outer->target_indices[1]);
    EXPECT_INT_EQ(1, outer->target_indices[2]);
    const struct ptx_instruction *inner = ptx_test_instruction(module, 3);
    ASSERT_TRUE(inner->target_count == 1);
    EXPECT_INT_EQ(2, inner->target_indices[0]);
    EXPECT_TRUE(ptx_test_instruction(module, 1)->targets == NULL);
}

MODULE_TEST(ptx, reads_call_sequences,
            ptx_test_body("{ // callseq 0, 0\n"
                          ".reg .b32 temp_param_reg;\n"
                          ".param .b32 param0;\n"
                          "st.param.b32 [param0+0], %r1;\n"
                          ".param .align 8 .b8 retval0[24];\n"
                          "call.uni (retval0), \nhelper, \n(\nparam0\n);\n"
                          "} // callseq 0\n"
                          "{ .param .b64 param0;\n"
                          "st.param.b64 [param0], %rd1;\n"
                          "call helper, (param0, 5);\n"
                          "call helper; }\n")) {
    const struct ptx_function *k = &module->functions[module->function_count - 1];
    ASSERT_TRUE(k->instruction_count == 5 && k->local_count == 4);
    const struct ptx_instruction *call = &k->instructions[1];
    ASSERT_TRUE(call->operand_count == 3);
    EXPECT_INT_EQ(PTX_OPERAND_VECTOR, call->operands[0].kind);
    const struct ptx_variable *result =
        ptx_operand_variable(module, k, &call->operands[0].elements[0]);
    ASSERT_TRUE(result != NULL);
    EXPECT_STR_EQ("retval0", result->name);
    EXPECT_INT_EQ(24, result->bytes);
    EXPECT_INT_EQ(8, result->alignment);
    EXPECT_INT_EQ(PTX_OPERAND_SYMBOL, call->operands[1].kind);
    EXPECT_STR_EQ("helper", call->operands[1].symbol);
    EXPECT_INT_EQ(PTX_IN_NONE, call->operands[1].table);
    const struct ptx_variable *first =
        ptx_operand_variable(module, k, &call->operands[2].elements[0]);
    const struct ptx_variable *second =
        ptx_operand_variable(module, k, &k->instructions[3].operands[2].elements[0]);
    EXPECT_TRUE(first != second);
    EXPECT_INT_EQ(PTX_B32, first->type);
    EXPECT_INT_EQ(PTX_B64, second->type);
    EXPECT_INT_EQ(0, k->instructions[3].operands[0].element_count);
    expect_integer(&k->instructions[3].operands[2].elements[1], 5);
    EXPECT_INT_EQ(0, k->instructions[4].operands[2].element_count);
}

MODULE_TEST(ptx, reads_calls_through_registers,
            ptx_test_body("{ .param .b64 param0; .param .b32 retval0;\n"
                          "prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _);\n"
                          "call (retval0), \n%rd3, \n(\nparam0\n)\n, prototype_0;\n}")) {
    const struct ptx_instruction *call = ptx_test_instruction(module, 0);
    ASSERT_TRUE(call->operand_count == 4);
    expect_register(&call->operands[1], RD + 3);
    EXPECT_INT_EQ(PTX_OPERAND_SYMBOL, call->operands[3].kind);
    EXPECT_STR_EQ("prototype_0", call->operands[3].symbol);
}

MODULE_TEST(ptx, takes_addresses_of_functions_and_variables,
            ptx_test_body("mov.u64 %rd1, helper;\n"
                          "mov.u64 %rd1, counter+4;\n"
                          "mov.u64 %rd1, k;\n")) {
    const struct ptx_operand *helper = &ptx_test_instruction(module, 0)->operands[1];
    EXPECT_INT_EQ(PTX_OPERAND_SYMBOL, helper->kind);
    EXPECT_STR_EQ("helper", helper->symbol);
    EXPECT_INT_EQ(PTX_IN_NONE, helper->table);
    const struct ptx_operand *counter = &ptx_test_instruction(module, 1)->operands[1];
    EXPECT_INT_EQ(PTX_OPERAND_SYMBOL, counter->kind);
    EXPECT_INT_EQ(PTX_IN_MODULE, counter->table);
    EXPECT_INT_EQ(4, counter->offset);
    EXPECT_STR_EQ("k", ptx_test_instruction(module, 2)->operands[1].symbol);
}

MODULE_TEST(ptx, lays_out_parameters,
            ptx_test_parse(".visible .entry k(.param .u8 a, .param .align 8 .b8 b[24],\n"
                           ".param .u16 c, .param .u64 .ptr .global .align 16 d, .param .b32 e)\n"
                           "{ ret; }\n.entry none { ret; }\n.entry empty() { }\n")) {
    ASSERT_TRUE(module->function_count == 3);
    const struct ptx_function *k = &module->functions[0];
    static const size_t want[] = {0, 8, 32, 40, 48};
    ASSERT_TRUE(k->parameter_count == 5);
    for (size_t i = 0; i < 5; i++) {
        EXPECT_INT_EQ(want[i], k->parameters[i].offset);
        EXPECT_INT_EQ(PTX_PARAM, k->parameters[i].space);
    }
    EXPECT_INT_EQ(52, k->parameter_bytes);
    EXPECT_INT_EQ(24, k->parameters[1].elements);
    EXPECT_INT_EQ(PTX_U64, k->parameters[3].type);
    EXPECT_TRUE(k->entry && !k->external);
    EXPECT_INT_EQ(0, module->functions[1].parameter_count);
    EXPECT_INT_EQ(0, module->functions[2].instruction_count);
}

MODULE_TEST(
    ptx, reads_functions_and_their_declarations,
    ptx_test_parse(".extern .func  (.param .b32 func_retval0) vprintf\n"
                   "(\n.param .b64 vprintf_param_0,\n.param .b64 vprintf_param_1\n)\n;\n"
                   ".func (.param .align 8 .b8 func_retval0[16]) f(.param .b32 f_param_0);\n"
                   ".func __assertfail(.param .b64 a) .noreturn;\n"
                   ".func (.param .align 8 .b8 func_retval0[16]) f(.param .b32 f_param_0)\n"
                   "{ .reg .b32 %r<2>; ld.param.u32 %r1, [f_param_0];\n"
                   "st.param.b32 [func_retval0+8], %r1; ret; }\n"
                   ".weak .func g { ret; }\n"
                   ".alias other, g;\n")) {
    EXPECT_INT_EQ(5, module->function_count);
    const struct ptx_function *f = ptx_find_function(module, "f");
    ASSERT_TRUE(f != NULL);
    EXPECT_TRUE(!f->external && !f->entry);
    EXPECT_INT_EQ(3, f->instruction_count);
    EXPECT_INT_EQ(1, f->result_count);
    EXPECT_INT_EQ(16, f->results[0].bytes);
    EXPECT_INT_EQ(PTX_IN_RESULTS, f->instructions[1].operands[0].table);
    const struct ptx_function *vprintf_ = ptx_find_function(module, "vprintf");
    ASSERT_TRUE(vprintf_ != NULL);
    EXPECT_TRUE(vprintf_->external);
    EXPECT_INT_EQ(16, vprintf_->parameter_bytes);
    EXPECT_TRUE(ptx_find_function(module, "__assertfail")->external);
    const struct ptx_function *other = ptx_find_function(module, "other");
    ASSERT_TRUE(other != NULL);
    EXPECT_INT_EQ(1, other->instruction_count);
    EXPECT_TRUE(ptx_find_function(module, "missing") == NULL);
}

MODULE_TEST(ptx, reads_launch_bounds,
            ptx_test_parse(".visible .entry k()\n"
                           ".maxntid 256, 2, 1\n.minnctapersm 2\n.maxnreg 40\n"
                           ".explicitcluster\n.reqnctapercluster 2\n"
                           "{ ret; }\n"
                           ".entry r() .reqntid 32 .pragma \"x\"; { ret; }\n")) {
    const struct ptx_function *k = ptx_find_function(module, "k");
    EXPECT_INT_EQ(256, k->max_threads[0]);
    EXPECT_INT_EQ(2, k->max_threads[1]);
    EXPECT_INT_EQ(1, k->max_threads[2]);
    EXPECT_INT_EQ(2, k->min_blocks);
    EXPECT_INT_EQ(40, k->max_registers);
    EXPECT_INT_EQ(2, k->cluster[0]);
    EXPECT_INT_EQ(1, k->cluster[1]);
    EXPECT_INT_EQ(0, k->required_threads[0]);
    const struct ptx_function *r = ptx_find_function(module, "r");
    EXPECT_INT_EQ(32, r->required_threads[0]);
    EXPECT_INT_EQ(1, r->required_threads[1]);
    EXPECT_INT_EQ(0, r->max_threads[0]);
}

MODULE_TEST(ptx, follows_source_lines,
            ptx_test_parse(".entry k() {\n"
                           "bar.sync 0;\n"
                           ".loc 1 10 5\n"
                           "bar.sync 0; membar.gl;\n"
                           ".loc 2 70 3, function_name $L__info_string0, inlined_at 1 12 9\n"
                           "bar.sync 0;\n"
                           ".loc 3 90 3, function_name $L__info_string1, inlined_at 2 70 3\n"
                           "bar.sync 0;\n"
                           "}\n"
                           ".entry next() { ret; }\n"
                           ".file 1 \"/a dir/k.cu\"\n.file 3 \"x.h\", 1700000000, 55\n"
                           ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90\n.b8 0\n}\n")) {
    const struct ptx_instruction *in = module->functions[0].instructions;
    ASSERT_TRUE(module->functions[0].instruction_count == 5);
    EXPECT_INT_EQ(0, in[0].line);
    EXPECT_TRUE(in[0].location == NULL);
    EXPECT_INT_EQ(5, in[0].text_line);
    EXPECT_INT_EQ(10, in[2].line);
    EXPECT_INT_EQ(1, in[2].file);
    EXPECT_TRUE(in[2].location->caller == NULL);
    EXPECT_INT_EQ(70, in[3].line);
    ASSERT_TRUE(in[3].location->caller != NULL);
    EXPECT_INT_EQ(12, in[3].location->caller->line);
    ASSERT_TRUE(in[4].location->caller != NULL && in[4].location->caller->caller != NULL);
    EXPECT_INT_EQ(2, in[4].location->caller->file);
    EXPECT_INT_EQ(12, in[4].location->caller->caller->line);
    EXPECT_TRUE(in[4].location->caller->caller->caller == NULL);
    EXPECT_INT_EQ(0, module->functions[1].instructions[0].line);
    ASSERT_TRUE(module->file_count == 4);
    EXPECT_STR_EQ("/a dir/k.cu", module->files[1]);
    EXPECT_TRUE(module->files[2] == NULL);
    EXPECT_STR_EQ("x.h", module->files[3]);
}

MODULE_TEST(ptx, skips_comments_and_pragmas,
            ptx_test_body("// ld.global; }\n"
                          "/* { ;\n */ mov.u32 %r1, /* in between */ 3;\n"
                          ".pragma \"nounroll\";;\n"
                          "mov .u32 %r1 , 4 ;")) {
    const struct ptx_instruction *second = ptx_test_instruction(module, 1);
    ASSERT_TRUE(second != NULL && ptx_test_instruction(module, 2) == NULL);
    EXPECT_INT_EQ(13, ptx_test_instruction(module, 0)->text_line);
    EXPECT_STR_EQ("mov.u32", second->opcode);
    EXPECT_INT_EQ(15, second->text_line);
}

C_TEST(ptx, knows_types) {
    EXPECT_INT_EQ(PTX_BF16X2, ptx_type_find("bf16x2 and more", 6));
    EXPECT_INT_EQ(PTX_BF16, ptx_type_find("bf16x2", 4));
    EXPECT_INT_EQ(PTX_NO_TYPE, ptx_type_find("f128", 4));
    EXPECT_INT_EQ(PTX_NO_TYPE, ptx_type_find("", 0));
    EXPECT_INT_EQ(16, ptx_type_size(PTX_B128));
    EXPECT_INT_EQ(4, ptx_type_size(PTX_F16X2));
    EXPECT_INT_EQ(0, ptx_type_size(PTX_PRED));
    EXPECT_INT_EQ(0, ptx_type_size(PTX_NO_TYPE));
}
