/* Text that is wrong, or more than the parser takes: one line that says where and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/ptx/ptx.h"
#include "common/simt/ptx/testing/testing.h"
#include "common/testing/testing.h"

C_TEST(ptx_refusals, header) {
    struct error error = {0};
    struct ptx_module *module;
    EXPECT_STATUS(STATUS_BAD_FORMAT, ptx_parse(&module, "", 0, &error));
    EXPECT_STR_EQ("PTX line 1: expected '.version', found the end of the text", error.message);
    static const char machine_code[] = "\177ELF\1\1";
    error = (struct error){0};
    EXPECT_STATUS(STATUS_BAD_FORMAT,
                  ptx_parse(&module, machine_code, sizeof machine_code - 1, &error));
    EXPECT_STR_EQ("PTX line 1: a character that PTX does not have", error.message);
    EXPECT_STATUS(STATUS_BAD_FORMAT, ptx_parse(&module, ".version 9.0", 12, NULL));
    static const char narrow[] = ".version 9.0\n.target sm_75\n.address_size 32\n";
    error = (struct error){0};
    EXPECT_STATUS(STATUS_UNSUPPORTED, ptx_parse(&module, narrow, sizeof narrow - 1, &error));
    EXPECT_STR_EQ("PTX line 4: addresses of 32 bits, not 64", error.message);
}

C_TEST(ptx_refusals, names_that_are_not_declared) {
    ptx_test_body_bad("add.u32 %r1, %r2, %r9;", "PTX line 11: register '%r9' is not declared");
    ptx_test_body_bad("\nbra NOWHERE;", "PTX line 12: 'NOWHERE' is not declared");
    ptx_test_body_bad("{ IN: ret; }\nbra IN;", "PTX line 12: 'IN' is not declared");
    ptx_test_body_bad("{ .reg .b32 x; }\nmov.b32 %r1, x;", "PTX line 12: 'x' is not declared");
    ptx_test_body_bad("ld.global.u32 %r1, [nothing];", "PTX line 11: 'nothing' is not declared");
    ptx_test_body_bad("call unknown;", "PTX line 11: 'unknown' is not declared");
    ptx_test_body_bad("brx.idx %r1, nothing;",
                      "PTX line 11: brx without a table of branch targets");
    ptx_test_body_bad("t: .branchtargets NOWHERE; brx.idx %r1, t;",
                      "PTX line 11: 'NOWHERE' is not declared");
    ptx_test_bad(".alias a, b;", "PTX line 4: function 'b' is not defined");
}

C_TEST(ptx_refusals, names_that_are_declared_twice) {
    ptx_test_body_bad(".reg .b64 %r1;", "PTX line 11: '%r1' is declared twice");
    ptx_test_body_bad("L: ret; L: ret;", "PTX line 11: 'L' is declared twice");
    ptx_test_bad(".entry k() { }\n.entry k() { }", "PTX line 5: 'k' is declared twice");
    ptx_test_bad(".entry k(.param .u32 a, .param .u32 a) { }", "PTX line 4: 'a' is declared twice");
}

C_TEST(ptx_refusals, statements) {
    ptx_test_body_bad("add.u32 %r1, %r2", "PTX line 12: expected ';', found '}'");
    ptx_test_body_bad("add.u32 %r1,, %r2;", "PTX line 11: expected an operand, found ','");
    ptx_test_body_bad("@%r1 bra L;", "PTX line 11: a guard that is no predicate");
    ptx_test_body_bad("mov.u32 %r1, 99999999999999999999;",
                      "PTX line 11: expected a number of at most 64 bits, found "
                      "'99999999999999999999'");
    ptx_test_body_bad("mov.f32 %f1, 0f3F80;",
                      "PTX line 11: expected a number of at most 64 bits, found '0f3F80'");
    ptx_test_body_bad("ld.u32 %r1, [%rd1+0x7fffffffffffffff+1];",
                      "PTX line 11: an offset of more than 64 bits");
    ptx_test_body_bad("ld.u32 %r1, [%tid.x];",
                      "PTX line 11: an address that is neither register nor symbol");
    ptx_test_body_bad("ld.u32 %r1, [%rd1;", "PTX line 11: expected ']', found ';'");
    ptx_test_body_bad("mov.u32 %r1, -tile;", "PTX line 11: '-' before what it does not apply to");
    ptx_test_body_bad("mov.v2.u32 {{%r1}, %r2}, %rd1;",
                      "PTX line 11: expected an operand, found '{'");
    ptx_test_body_bad("call %tid.x;", "PTX line 11: a call of what is no function");
    ptx_test_body_bad(".maxntid 3;",
                      "PTX line 11: expected a directive of a function's body, found "
                      "'.maxntid'");
    ptx_test_body_bad("mov.u32 %r1, \"text\";", "PTX line 11: expected an operand, found 'text'");
    ptx_test_body_bad(".pragma \"text;\n", "PTX line 11: a string that does not end");
    ptx_test_body_bad("/* comment", "PTX line 11: a comment that does not end");
    ptx_test_body_bad("mov.u32 %r1, \xc3\xa9;", "PTX line 11: a character that PTX does not have");
}

C_TEST(ptx_refusals, what_is_not_supported) {
    ptx_test_body_refused(".reg .v4 .f32 v<2>;", STATUS_UNSUPPORTED,
                          "PTX line 11: a range of registers that are vectors");
    ptx_test_body_bad(".reg .v2 .f32 v; mov.f32 v.z, 0f00000000;",
                      "PTX line 11: expected an element of a vector, found '.z'");
    ptx_test_refused(".func (.reg .b32 r) f(.reg .b32 a) { }", STATUS_UNSUPPORTED,
                     "PTX line 4: parameters in registers");
    ptx_test_refused(".entry k() .surprise { }", STATUS_UNSUPPORTED,
                     "PTX line 4: '.surprise' before a function's body");
    ptx_test_bad("unexpected", "PTX line 4: expected a directive, a variable or a function, found "
                               "'unexpected'");
}

/* A long text made of one part repeated. */
static char *repeat(const char *begin, const char *part, size_t count, const char *end) {
    size_t size = strlen(begin) + strlen(part) * count + strlen(end) + 1;
    char *text = malloc(size);
    if (text == NULL) {
        abort();
    }
    size_t at = (size_t)snprintf(text, size, "%s", begin);
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s", part);
    }
    snprintf(text + at, size - at, "%s", end);
    return text;
}

static void expect_body_refused(const char *begin, const char *part, size_t count, const char *end,
                                const char *message) {
    char *text = repeat(begin, part, count, end);
    ptx_test_body_refused(text, STATUS_UNSUPPORTED, message);
    free(text);
}

C_TEST(ptx_refusals, what_is_too_much) {
    expect_body_refused("", "{", 100000, "", "PTX line 11: braces more than 64 deep");
    expect_body_refused("ld", ".v4", 17, " %r1;",
                        "PTX line 11: an instruction of more than 16 modifiers");
    expect_body_refused("", "abcdefgh", 33, " %r1;",
                        "PTX line 11: an opcode of more than 256 characters");
    expect_body_refused("add %r1", ", %r1", 64, ";",
                        "PTX line 11: an instruction of more than 64 operands");
    expect_body_refused("mov {%r1", ", %r1", 1024, "};",
                        "PTX line 11: a vector of more than 1024 elements");
    ptx_test_body_refused(".reg .b32 %many<4000000000>;", STATUS_UNSUPPORTED,
                          "PTX line 11: more registers than the text can use");
    ptx_test_refused(".global .b8 x[1][1][1][1][1][1][1][1][1];", STATUS_UNSUPPORTED,
                     "PTX line 4: an array of more than 8 dimensions");
    ptx_test_bad(".file 70000 \"x\"",
                 "PTX line 4: 70000 is more than 65536, the most allowed here");
}

/* Scopes beside each other, as inline assembly in an unrolled loop makes them, have no limit. */
C_TEST(ptx_refusals, many_scopes_are_fine) {
    char *text = repeat("",
                        "{ .reg .b32 t; .reg .pred p; AGAIN: setp.eq.b32 p, t, 1; "
                        "@p bra AGAIN; }\n",
                        2000, "ret;");
    struct ptx_module *module = ptx_test_body(text);
    free(text);
    ASSERT_TRUE(module != NULL);
    const struct ptx_instruction *last = ptx_test_instruction(module, 3999);
    ASSERT_TRUE(last != NULL);
    EXPECT_INT_EQ(3998, last->operands[0].index);
    ptx_free(module);
}

/* Cut anywhere, the text is refused with a line or is a whole module. */
C_TEST(ptx_refusals, every_prefix) {
    static const char text[] = PTX_TEST_HEADER
        ".global .u64 x[2] = {generic(y)+8, 2};\n"
        ".visible .entry k(.param .u64 p) .maxntid 32 {\n"
        ".reg .b32 %r<2>; .reg .pred %p<2>; .loc 1 2 3, function_name L, inlined_at 1 1 1\n"
        "A: @!%p1 ld.v2.u32 {%r0, %r1}, [x+8]; { bra A; } }\n"
        ".file 1 \"k.cu\" .section .debug_str { L: .b8 1 }\n";
    size_t whole = 0;
    for (size_t size = 0; size < sizeof text; size++) {
        char *copy = malloc(size > 0 ? size : 1);
        struct error error = {0};
        struct ptx_module *module;
        ASSERT_TRUE(copy != NULL);
        memcpy(copy, text, size);
        if (ptx_parse(&module, copy, size, &error) == STATUS_OK) {
            whole++;
        } else {
            EXPECT_TRUE(module == NULL);
            EXPECT_TRUE(strncmp(error.message, "PTX line ", 9) == 0);
        }
        ptx_free(module);
        free(copy);
    }
    EXPECT_TRUE(whole > 5 && whole < 120);
}
