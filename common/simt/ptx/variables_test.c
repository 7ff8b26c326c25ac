/* Variables: spaces, sizes, initial values, addresses. */
#include <string.h>

#include "common/simt/ptx/ptx.h"
#include "common/simt/ptx/testing/testing.h"
#include "common/testing/testing.h"

/* The first variable of a module. */
static const struct ptx_variable *first_of(const struct ptx_module *module) {
    return module != NULL && module->variable_count > 0 ? &module->variables[0] : NULL;
}

static void expect_bytes(const char *text, const void *want, size_t size) {
    struct ptx_module *module = ptx_test_parse(text);
    const struct ptx_variable *variable = first_of(module);
    ASSERT_TRUE(variable != NULL && variable->data != NULL);
    EXPECT_INT_EQ(size, variable->bytes);
    if (variable->bytes == size && memcmp(want, variable->data, size) != 0) {
        TEST_FAIL("%s: other bytes", text);
    }
    ptx_free(module);
}

static const struct {
    const char *name;
    enum ptx_space space;
    enum ptx_type type;
    size_t alignment, elements, bytes;
    bool external, managed;
} of_every_space[] = {
    {"a", PTX_GLOBAL, PTX_B8, 4, 400, 400, false, false},
    {"b", PTX_CONST, PTX_U64, 8, 1, 8, false, false},
    {"c", PTX_GLOBAL, PTX_F32, 16, 8, 32, false, false},
    {"d", PTX_SHARED, PTX_B8, 16, 0, 0, true, false},
    {"e", PTX_SHARED, PTX_F64, 8, 1, 8, false, false},
    {"f", PTX_SHARED, PTX_F64, 8, 3, 24, false, false},
    {"g", PTX_GLOBAL, PTX_U16, 2, 1, 2, false, false},
    {"h", PTX_GLOBAL, PTX_U32, 4, 1, 4, false, true},
    {"i", PTX_GLOBAL, PTX_U32, 4, 1, 4, true, false},
    {"j", PTX_GLOBAL, PTX_B8, 1, 6, 6, false, false},
};

MODULE_TEST(ptx_variables, of_every_space,
            ptx_test_parse(".global .align 4 .b8 a[400];\n"
                           ".const .u64 b;\n"
                           ".visible .global .v4 .f32 c[2];\n"
                           ".extern .shared .align 16 .b8 d[];\n"
                           ".weak .shared .f64 e, f[3];\n"
                           ".common .global .u16 g;\n"
                           ".global .attribute(.managed) .align 4 .u32 h = 7;\n"
                           ".extern .global .u32 i;\n"
                           ".global .b8 j[2][3];\n")) {
    ASSERT_TRUE(module->variable_count == 10);
    const struct ptx_variable *v = module->variables;
    for (size_t i = 0; i < 10; i++) {
        EXPECT_STR_EQ(of_every_space[i].name, v[i].name);
        EXPECT_INT_EQ(of_every_space[i].space, v[i].space);
        EXPECT_INT_EQ(of_every_space[i].type, v[i].type);
        EXPECT_INT_EQ(of_every_space[i].alignment, v[i].alignment);
        EXPECT_INT_EQ(of_every_space[i].elements, v[i].elements);
        EXPECT_INT_EQ(of_every_space[i].bytes, v[i].bytes);
        EXPECT_INT_EQ(of_every_space[i].external, v[i].external);
        EXPECT_INT_EQ(of_every_space[i].managed, v[i].managed);
        EXPECT_TRUE((v[i].data != NULL) == (i == 7));
    }
}

MODULE_TEST(ptx_variables, locals_of_a_function,
            ptx_test_body(".local .align 8 .b8 __local_depot0[24];\n"
                          ".extern .shared .align 4 .b8 dynamic[];\n"
                          ".global .u32 kept;\n"
                          "{ .param .b32 q; st.param.b32 [q], 1; }")) {
    const struct ptx_function *k = ptx_find_function(module, "k");
    ASSERT_TRUE(k->local_count == 4);
    EXPECT_STR_EQ("tile", k->locals[0].name);
    EXPECT_INT_EQ(PTX_LOCAL, k->locals[1].space);
    EXPECT_INT_EQ(24, k->locals[1].bytes);
    EXPECT_TRUE(k->locals[2].external);
    EXPECT_INT_EQ(0, k->locals[2].elements);
    EXPECT_INT_EQ(PTX_PARAM, k->locals[3].space);
    EXPECT_INT_EQ(2, module->variable_count);
    EXPECT_STR_EQ("kept", module->variables[1].name);
}

C_TEST(ptx_variables, integers) {
    static const unsigned char bytes[7] = {1, 255, 0x10, 0, 0, 0, 0};
    expect_bytes(".global .b8 x[7] = {1, -1, 0x10};", bytes, sizeof bytes);
    static const int64_t wide[3] = {109, -1, 4612811918334230528};
    expect_bytes(".global .u64 x[3] = {109, 18446744073709551615, 4612811918334230528};", wide,
                 sizeof wide);
    static const int16_t narrow[2] = {-300, 300};
    expect_bytes(".const .s16 x[2] = {-300, 300};", narrow, sizeof narrow);
}

C_TEST(ptx_variables, floats) {
    static const float floats[4] = {1.0f, -0.1f, 2.0f, -3.0f};
    expect_bytes(".global .f32 x[4] = {0f3F800000, -0.1, 2, -3};", floats, sizeof floats);
    static const double doubles[3] = {1.5, 0.25, -7.0};
    expect_bytes(".global .f64 x[3] = {0d3FF8000000000000, 0f3E800000, -7};", doubles,
                 sizeof doubles);
    static const float one = 1.5f;
    expect_bytes(".global .align 4 .f32 x = 0f3FC00000;", &one, sizeof one);
}

C_TEST(ptx_variables, rows_that_are_not_full) {
    static const int32_t want[2][2][3] = {{{1, 2, 0}, {3, 0, 0}}, {{4, 5, 6}, {0, 0, 0}}};
    expect_bytes(".global .s32 x[2][2][3] = {{{1, 2}, {3}}, {{4, 5, 6}}};", want, sizeof want);
    expect_bytes(".global .s32 x[2][2][3] = {1, 2, 0, 3, 0, 0, 4, 5, 6};", want, sizeof want);
}

MODULE_TEST(ptx_variables, addresses,
            ptx_test_parse(".global .u64 x[4] = {7, generic($str$1)+8, counter-4, f};\n"
                           ".global .u64 y = generic(x);")) {
    const struct ptx_variable *x = first_of(module);
    ASSERT_TRUE(x->relocation_count == 3);
    EXPECT_INT_EQ(7, x->data[0]);
    EXPECT_INT_EQ(8, x->relocations[0].offset);
    EXPECT_STR_EQ("$str$1", x->relocations[0].symbol);
    EXPECT_INT_EQ(8, x->relocations[0].addend);
    EXPECT_TRUE(x->relocations[0].generic);
    EXPECT_INT_EQ(16, x->relocations[1].offset);
    EXPECT_INT_EQ(-4, x->relocations[1].addend);
    EXPECT_TRUE(!x->relocations[1].generic);
    EXPECT_STR_EQ("f", x->relocations[2].symbol);
    const struct ptx_variable *y = &module->variables[1];
    ASSERT_TRUE(y->relocation_count == 1);
    EXPECT_STR_EQ("x", y->relocations[0].symbol);
}

/* A packed structure: nvcc writes the address byte by byte. */
C_TEST(ptx_variables, addresses_in_bytes) {
    struct ptx_module *module = ptx_test_parse(
        ".global .align 1 .u8 x[10] = {97, 0XFF(generic(s)+2), 0xFF00(generic(s)+2), "
        "0xFF0000(generic(s)+2), 0xFF000000(generic(s)+2), 0xFF00000000(generic(s)+2), "
        "0xFF0000000000(generic(s)+2), 0xFF000000000000(generic(s)+2), "
        "0xFF00000000000000(generic(s)+2), 3};");
    const struct ptx_variable *x = first_of(module);
    ASSERT_TRUE(x != NULL && x->relocation_count == 1);
    EXPECT_INT_EQ(1, x->relocations[0].offset);
    EXPECT_INT_EQ(2, x->relocations[0].addend);
    EXPECT_STR_EQ("s", x->relocations[0].symbol);
    EXPECT_INT_EQ(97, x->data[0]);
    EXPECT_INT_EQ(3, x->data[9]);
    ptx_free(module);
}

C_TEST(ptx_variables, refuses_bad_initial_values) {
    ptx_test_bad(".global .b8 x[2] = {1, 2, 3};", "PTX line 4: 'x' has 2 elements and more values");
    ptx_test_bad(".global .b8 x[2][2] = {{1, 2, 3}};",
                 "PTX line 4: a row has more values than elements");
    ptx_test_bad(".global .b8 x[2] = {{1}};", "PTX line 4: expected a number, found '{'");
    ptx_test_bad(".global .b8 x[2] = {1 2};", "PTX line 4: expected ',' or '}', found '2'");
    ptx_test_bad(".global .b8 x[2] = 1;", "PTX line 4: expected '{', found '1'");
    ptx_test_bad(".shared .u32 x = 1;", "PTX line 4: 'x' cannot have an initial value");
    ptx_test_refused(".global .u32 x = f;", STATUS_UNSUPPORTED,
                     "PTX line 4: 'x' holds addresses of 4 bytes, not 8");
    ptx_test_refused(".global .u8 x[9] = {0xFF(s), 0xFF0000(s)};", STATUS_UNSUPPORTED,
                     "PTX line 4: 'x' holds parts of addresses");
    ptx_test_refused(".global .u8 x[9] = {0xFF(s), 0xFF00(t)};", STATUS_UNSUPPORTED,
                     "PTX line 4: 'x' holds parts of addresses");
    ptx_test_refused(".global .u8 x[9] = {0xFF(s), 5};", STATUS_UNSUPPORTED,
                     "PTX line 4: 'x' holds parts of addresses");
    ptx_test_refused(".global .u8 x[9] = {0xFF(s)};", STATUS_UNSUPPORTED,
                     "PTX line 4: 'x' holds parts of addresses");
    ptx_test_refused(".global .b128 x = 1;", STATUS_UNSUPPORTED,
                     "PTX line 4: an initial value that 'x' cannot hold");
    ptx_test_refused(".global .u32 x = 1.5;", STATUS_UNSUPPORTED,
                     "PTX line 4: an initial value that 'x' cannot hold");
    ptx_test_refused(".global .f16 x = 0f3F800000;", STATUS_UNSUPPORTED,
                     "PTX line 4: an initial value that 'x' cannot hold");
    ptx_test_refused(".global .b8 x[300000000] = {1};", STATUS_UNSUPPORTED,
                     "PTX line 4: more than 268435456 bytes of initial values");
}

C_TEST(ptx_variables, refuses_bad_declarations) {
    ptx_test_bad(".global .u64 x[0x8000000000][0x8000000000];",
                 "PTX line 4: 'x' is larger than any memory");
    ptx_test_bad(".global .u64 x[1099511627776];", "PTX line 4: 'x' is larger than any memory");
    ptx_test_bad(".global .b8 x[];", "PTX line 4: 'x' has no size");
    ptx_test_bad(".global .b8 x; .global .u32 x;", "PTX line 4: 'x' is declared twice");
    ptx_test_bad(".global .align 3 .b8 x;", "PTX line 4: alignment 3 is not a power of two");
    ptx_test_refused(".global .texref x;", STATUS_UNSUPPORTED,
                     "PTX line 4: a variable of type '.texref' is not supported");
    ptx_test_refused(".global .pred x;", STATUS_UNSUPPORTED,
                     "PTX line 4: a variable of type '.pred' is not supported");
    ptx_test_bad(".global x;", "PTX line 4: expected a type, found 'x'");
}
