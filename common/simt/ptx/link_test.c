/* Files of one program become one module: symbols meet by name. */
#include <stdio.h>
#include <string.h>

#include "common/base/status.h"
#include "common/simt/ptx/ptx.h"
#include "common/testing/testing.h"

enum { MOST_FILES = 3 };

#define HEAD ".version 9.0\n.target sm_75\n.address_size 64\n"

static bool has_printf(const char *name) {
    return strcmp(name, "vprintf") == 0;
}

/* Parses and links texts. @return the status of the linker, with its line in *error */
static enum status link_texts(const char *const *texts, struct ptx_module **linked,
                              struct error *error) {
    struct ptx_module *modules[MOST_FILES] = {NULL};
    size_t count = 0;
    *linked = NULL;
    for (; count < MOST_FILES && texts[count] != NULL; count++) {
        TRY(ptx_parse(&modules[count], texts[count], strlen(texts[count]), error));
    }
    return ptx_link(linked, modules, count, has_printf, error);
}

/* Links what must link. */
static struct ptx_module *link_good(const char *const *texts) {
    struct ptx_module *linked = NULL;
    struct error error = {0};
    enum status status = link_texts(texts, &linked, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    return linked;
}

static const struct ptx_variable *find_variable(const struct ptx_module *module, const char *name) {
    for (size_t n = 0; n < module->variable_count; n++) {
        if (strcmp(module->variables[n].name, name) == 0) {
            return &module->variables[n];
        }
    }
    return NULL;
}

/* The variable that the first operand of that kind in an instruction names. */
static const struct ptx_variable *variable_of(const struct ptx_module *module, const char *function,
                                              size_t instruction) {
    const struct ptx_function *f = ptx_find_function(module, function);
    const struct ptx_instruction *in = f != NULL ? &f->instructions[instruction] : NULL;
    for (size_t n = 0; in != NULL && n < in->operand_count; n++) {
        const struct ptx_variable *v = ptx_operand_variable(module, f, &in->operands[n]);
        if (v != NULL) {
            return v;
        }
    }
    return NULL;
}

/* Two files: each has a string and a function of its own, of the same names. */
static const char USER[] =
    HEAD ".file 1 \"/home/someone/user.cu\"\n"
         ".extern .func (.param .b32 r) twice (.param .b32 x);\n"
         ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
         ".extern .global .align 4 .u32 counter;\n"
         ".extern .shared .align 4 .b8 dynamic[];\n"
         ".global .align 1 .b8 $str[2] = {65, 0};\n"
         ".func own () { .reg .b32 %r<2>; ld.global.u32 %r1, [$str]; ret; }\n"
         ".visible .entry user () {\n"
         "  .reg .b32 %r<3>;\n"
         "  .loc 1 7 0\n"
         "  ld.global.u32 %r1, [counter];\n"
         "  ld.global.u32 %r2, [$str];\n"
         "  st.shared.u32 [dynamic], %r2;\n"
         "  call own;\n"
         "  ret;\n}\n";

static const char MAKER[] =
    HEAD ".file 1 \"/home/someone/maker.cu\"\n"
         ".global .align 4 .u32 first;\n"
         ".visible .global .align 4 .u32 counter = 5;\n"
         ".extern .shared .align 4 .b8 dynamic[];\n"
         ".global .align 1 .b8 $str[2] = {66, 0};\n"
         ".visible .global .align 8 .u64 table[2] = {own, $str};\n"
         ".func own () { .reg .b32 %r<2>; ld.global.u32 %r1, [$str]; ret; }\n"
         ".visible .func (.param .b32 r) twice (.param .b32 x) {\n"
         "  .reg .b32 %r<2>;\n"
         "  .loc 1 9 0\n"
         "  ld.global.u32 %r1, [$str];\n"
         "  ret;\n}\n";

C_TEST(link, declarations_find_definitions) {
    const char *const texts[] = {USER, MAKER, NULL};
    struct ptx_module *linked = link_good(texts);
    ASSERT_TRUE(linked != NULL);
    const struct ptx_variable *counter = variable_of(linked, "user", 0);
    ASSERT_TRUE(counter != NULL && counter->data != NULL);
    EXPECT_INT_EQ(5, counter->data[0]);
    EXPECT_TRUE(!counter->external);
    EXPECT_TRUE(!ptx_find_function(linked, "twice")->external);
    EXPECT_TRUE(ptx_find_function(linked, "vprintf")->external);
    EXPECT_TRUE(ptx_find_function(linked, "user")->entry);
    EXPECT_TRUE(find_variable(linked, "dynamic")->external);
    EXPECT_INT_EQ(6, linked->variable_count); /* counter dynamic table, first, two strings */
    EXPECT_INT_EQ(5, linked->function_count); /* twice vprintf user, two of one's own */
    ptx_free(linked);
}

C_TEST(link, symbols_of_one_file_stay_its_own) {
    const char *const texts[] = {USER, MAKER, NULL};
    struct ptx_module *linked = link_good(texts);
    ASSERT_TRUE(linked != NULL);
    const struct ptx_variable *a = variable_of(linked, "user", 1);
    const struct ptx_variable *b = variable_of(linked, "twice", 0);
    ASSERT_TRUE(a != NULL && b != NULL);
    EXPECT_INT_EQ(65, a->data[0]);
    EXPECT_INT_EQ(66, b->data[0]);
    EXPECT_TRUE(strcmp(a->name, b->name) != 0);
    const struct ptx_variable *table = find_variable(linked, "table");
    ASSERT_TRUE(table != NULL && table->relocation_count == 2);
    EXPECT_STR_EQ(b->name, table->relocations[1].symbol);
    const struct ptx_function *own = ptx_find_function(linked, table->relocations[0].symbol);
    ASSERT_TRUE(own != NULL);
    EXPECT_TRUE(variable_of(linked, own->name, 0) == b);
    const struct ptx_instruction *call = &ptx_find_function(linked, "user")->instructions[3];
    EXPECT_TRUE(variable_of(linked, call->operands[1].symbol, 0) == a);
    ptx_free(linked);
}

C_TEST(link, lines_are_those_of_their_files) {
    const char *const texts[] = {USER, MAKER, NULL};
    struct ptx_module *linked = link_good(texts);
    ASSERT_TRUE(linked != NULL);
    uint32_t line = 0;
    const struct ptx_function *user = ptx_find_function(linked, "user");
    const struct ptx_function *twice = ptx_find_function(linked, "twice");
    EXPECT_STR_EQ("/home/someone/user.cu", ptx_source_line(linked, &user->instructions[0], &line));
    EXPECT_INT_EQ(7, line);
    EXPECT_STR_EQ("/home/someone/maker.cu",
                  ptx_source_line(linked, &twice->instructions[0], &line));
    EXPECT_INT_EQ(9, line);
    ptx_free(linked);
}

C_TEST(link, weak_definitions_are_one) {
    static const char weak[] = HEAD ".weak .global .align 4 .u32 v = 1;\n"
                                    ".weak .func f () { ret; }\n";
    static const char strong[] = HEAD ".visible .global .align 4 .u32 v = 2;\n"
                                      ".weak .func f () { ret; }\n";
    const char *const texts[] = {weak, strong, weak, NULL};
    struct ptx_module *linked = link_good(texts);
    ASSERT_TRUE(linked != NULL);
    EXPECT_INT_EQ(1, linked->variable_count);
    EXPECT_INT_EQ(1, linked->function_count);
    EXPECT_INT_EQ(2, find_variable(linked, "v")->data[0]);
    ptx_free(linked);
}

/* Texts that do not link, and what is said. */
static void expect_line(const char *first, const char *second, const char *line) {
    const char *const texts[] = {first, second, NULL};
    struct ptx_module *linked = NULL;
    EXPECT_ERROR(STATUS_BAD_FORMAT, line, link_texts(texts, &linked, &error));
    EXPECT_TRUE(linked == NULL);
}

C_TEST(link, what_does_not_fit_is_one_line) {
    static const char file[] = ".file 1 \"/home/someone/a.cu\"\n";
    char named[400];
    snprintf(named, sizeof named, HEAD "%s.visible .func f () { ret; }\n", file);
    expect_line(named, HEAD ".visible .func f () { ret; }\n",
                "f: defined twice, in a.cu and in file 2 of 2");
    expect_line(HEAD ".visible .global .u32 v;\n", HEAD ".visible .global .u32 v;\n",
                "v: defined twice, in file 1 of 2 and in file 2 of 2");
    snprintf(named, sizeof named, HEAD "%s.extern .func f ();\n", file);
    expect_line(named, HEAD ".func f () { ret; }\n", "f: used in a.cu, defined in no file");
    expect_line(HEAD, HEAD ".extern .const .align 4 .b8 c[8];\n",
                "c: used in file 2 of 2, defined in no file");
    expect_line(HEAD ".visible .global .u32 v;\n", HEAD ".visible .func v () { ret; }\n",
                "v: a function and a variable");
}
