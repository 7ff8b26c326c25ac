/* Bodies that are read when they are asked for: what is wrong in one is said then, and of it alone.
 */
#include <stdio.h>
#include <string.h>

#include "common/simt/ptx/ptx.h"
#include "common/simt/ptx/testing/testing.h"
#include "common/testing/testing.h"

static struct ptx_module *parse_late(const char *text) {
    struct error error = {0};
    struct ptx_module *module;
    enum status status = ptx_parse_late(&module, text, strlen(text), &error);
    if (status != STATUS_OK) {
        TEST_FAIL("refused: %s", error_text(&error, status));
    }
    return module;
}

static void expect_body(struct ptx_module *module, const char *name, size_t instructions) {
    struct error error = {0};
    const struct ptx_function *function = ptx_find_function(module, name);
    ASSERT_TRUE(function != NULL);
    EXPECT_STATUS(STATUS_OK, ptx_read_body(module, function, &error));
    EXPECT_INT_EQ(instructions, function->instruction_count);
    EXPECT_TRUE(function->unread == NULL);
}

static void expect_refused(struct ptx_module *module, const char *name, const char *message) {
    struct error error = {0};
    const struct ptx_function *function = ptx_find_function(module, name);
    ASSERT_TRUE(function != NULL);
    EXPECT_STATUS(STATUS_BAD_FORMAT, ptx_read_body(module, function, &error));
    EXPECT_STR_EQ(message, error.message);
}

C_TEST(ptx_late, a_body_is_read_once_and_when_it_is_asked_for) {
    struct ptx_module *module = parse_late(PTX_TEST_HEADER ".entry k(.param .u32 p) {\n"
                                                           ".reg .b32 r; ld.param.u32 r, [p]; ret;"
                                                           "}\n.entry other { ret; }\n");
    ASSERT_TRUE(module != NULL);
    const struct ptx_function *kernel = ptx_find_function(module, "k");
    EXPECT_INT_EQ(4, kernel->parameter_bytes);
    EXPECT_TRUE(kernel->unread != NULL && kernel->instruction_count == 0);
    expect_body(module, "k", 2);
    EXPECT_TRUE(ptx_find_function(module, "other")->unread != NULL);
    const struct ptx_instruction *instructions = kernel->instructions;
    expect_body(module, "k", 2);
    EXPECT_TRUE(instructions == kernel->instructions);
    EXPECT_INT_EQ(5, instructions[0].text_line);
    ptx_free(module);
}

C_TEST(ptx_late, a_refused_body_leaves_the_others) {
    struct ptx_module *module = parse_late(
        PTX_TEST_HEADER ".entry bad(.param .u32 p) {\n.reg .b32 r;\n{ .reg .b32 x; L: add.u32 r, x,"
                        " y; }\n}\n.entry worse {\nadd.u32 ?;\n}\n"
                        ".entry good(.param .u32 p) { .reg .b32 r, x; L: bra L; }\n");
    ASSERT_TRUE(module != NULL);
    for (int round = 0; round < 2; round++) {
        expect_refused(module, "bad", "PTX line 6: 'y' is not declared");
        expect_refused(module, "worse", "PTX line 9: a character that PTX does not have");
        expect_body(module, "good", 1);
    }
    ptx_free(module);
}

C_TEST(ptx_late, braces_in_comments_and_strings_are_none) {
    struct ptx_module *module = parse_late(
        PTX_TEST_HEADER ".global .u32 v;\n.entry k { // }\n/* } */ .pragma \"}\"; { { ret; } "
                        "}\nld.global.u32 _, [v]; }\n.entry l { ret; }\n");
    ASSERT_TRUE(module != NULL);
    expect_body(module, "l", 1);
    expect_body(module, "k", 2);
    ptx_free(module);
}

/* The module's variables must all be known when it is loaded. */
C_TEST(ptx_late, a_body_that_declares_for_the_module_is_read_at_once) {
    struct ptx_module *module =
        parse_late(PTX_TEST_HEADER ".entry a {\n.extern .shared .b8 e[];\nret; }\n"
                                   ".entry b { .global .u32 g; ret; }\n"
                                   ".entry c {.const .u32 h; ret; }\n.entry d { .shared .u32 s; }");
    ASSERT_TRUE(module != NULL);
    EXPECT_INT_EQ(2, module->variable_count);
    EXPECT_TRUE(ptx_find_function(module, "b")->unread == NULL);
    EXPECT_TRUE(ptx_find_function(module, "c")->unread == NULL);
    EXPECT_TRUE(ptx_find_function(module, "d")->unread != NULL);
    ptx_free(module);
}

C_TEST(ptx_late, a_declaration_behind_a_number_is_seen) {
    struct ptx_module *module =
        parse_late(PTX_TEST_HEADER ".entry k { .loc 1 2 0x3.global .u32 g; ret; }\n");
    ASSERT_TRUE(module != NULL);
    EXPECT_INT_EQ(1, module->variable_count);
    ptx_free(module);
}

C_TEST(ptx_late, what_is_declared_behind_a_body_is_not_seen_in_it) {
    struct ptx_module *module = parse_late(
        PTX_TEST_HEADER ".entry label { bra v; v: ret; }\n.entry variable { ld.u32 _, [v]; }\n"
                        ".entry function { call f; }\n.global .u32 v;\n.func f { ret; }\n"
                        ".entry both { ld.u32 _, [v]; call f; }\n");
    ASSERT_TRUE(module != NULL);
    expect_body(module, "both", 2);
    expect_body(module, "label", 2);
    EXPECT_TRUE(ptx_find_function(module, "label")->instructions[0].operands[0].kind ==
                PTX_OPERAND_LABEL);
    expect_refused(module, "variable", "PTX line 5: 'v' is not declared");
    expect_refused(module, "function", "PTX line 6: 'f' is not declared");
    ptx_free(module);
}

/* The registers of one body are almost all that a module of this length may have. */
C_TEST(ptx_late, an_alias_has_the_body_of_its_function) {
    struct ptx_module *module = parse_late(
        PTX_TEST_HEADER ".func f { .reg .b32 r<40000>; ret; }\n.alias g, f;\n.alias h, f;\n");
    ASSERT_TRUE(module != NULL);
    expect_body(module, "g", 1);
    expect_body(module, "f", 1);
    expect_body(module, "h", 1);
    EXPECT_TRUE(ptx_find_function(module, "f")->instructions ==
                ptx_find_function(module, "g")->instructions);
    EXPECT_STR_EQ("h", ptx_find_function(module, "h")->name);
    ptx_free(module);
}

C_TEST(ptx_late, a_body_without_an_end_is_refused_at_once) {
    static const char *const texts[] = {"{ ret;", "{ /* } ", "{ .pragma \"}\n}"};
    static const char *const messages[] = {
        "PTX line 4: expected a statement, found the end of the text",
        "PTX line 4: a comment that does not end", "PTX line 4: a string that does not end"};
    for (size_t n = 0; n < 3; n++) {
        char text[200];
        struct error error = {0};
        struct ptx_module *module;
        snprintf(text, sizeof text, "%s.entry k %s", PTX_TEST_HEADER, texts[n]);
        EXPECT_STATUS(STATUS_BAD_FORMAT, ptx_parse_late(&module, text, strlen(text), &error));
        EXPECT_STR_EQ(messages[n], error.message);
        EXPECT_TRUE(module == NULL);
    }
}
