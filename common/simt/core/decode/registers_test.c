/* Registers a thread, judged from PTX: what is known to be alive at once, and what limits it. */
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

/* Opens a module of a kernel "k" with such a body. @return false: it was refused */
static bool open_kernel(struct launch_testing *t, const char *bounds, const char *body) {
    char text[8192];
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_75\n.address_size 64\n"
             ".visible .entry k(.param .u64 p, .param .u32 n) %s {\n"
             ".reg .pred %%p<8>;\n.reg .b32 %%r<64>;\n.reg .f64 %%d<16>;\n.reg .b64 %%a<8>;\n"
             "ld.param.u64 %%a0, [p];\nld.param.u32 %%r0, [n];\n%s\n}\n",
             bounds, body);
    return launch_testing_open_text(t, text);
}

/* @return the estimate for it; 0: it was refused */
static uint32_t registers_of(const char *bounds, const char *body) {
    struct launch_testing t;
    struct simt_kernel_info info = {0};
    struct error error = {0};
    if (open_kernel(&t, bounds, body)) {
        EXPECT_OK(simt_kernel_info(t.module, "k", &info, &error));
    }
    launch_testing_close(&t);
    return info.registers;
}

/* @return 256ths of accesses that its want of registers costs a warp */
static uint64_t spills_of(const char *bounds, const char *body) {
    struct launch_testing t;
    struct {
        uint64_t p;
        uint32_t n;
    } parameters = {0};
    if (open_kernel(&t, bounds, body)) {
        parameters.p = launch_testing_upload(&t, NULL, 256);
        EXPECT_TRUE(launch_testing_block_clean(&t, "k", 1, &parameters));
    }
    launch_testing_close(&t);
    return t.counters.spills;
}

/* Body that makes @p count values, then stores them all: they are alive together. */
static const char *values(char *text, size_t size, int count, const char *type,
                          const char *letter) {
    size_t used = 0;
    for (int n = 0; n < count; n++) {
        used +=
            (size_t)snprintf(text + used, size - used, "mov.%s %%%s%d, 0;\n", type, letter, n + 1);
    }
    for (int n = 0; n < count; n++) {
        used += (size_t)snprintf(text + used, size - used, "st.global.%s [%%a0], %%%s%d;\n", type,
                                 letter, n + 1);
    }
    snprintf(text + used, size - used, "ret;\n");
    return text;
}

C_TEST(registers, each_value_alive_takes_one) {
    char text[4096];
    uint32_t few = registers_of("", values(text, sizeof text, 2, "b32", "r"));
    EXPECT_TRUE(few > 0);
    EXPECT_INT_EQ(few + 10, registers_of("", values(text, sizeof text, 12, "b32", "r")));
    EXPECT_INT_EQ(few + 40, registers_of("", values(text, sizeof text, 42, "b32", "r")));
}

C_TEST(registers, doubles_take_two) {
    char text[4096];
    uint32_t few = registers_of("", values(text, sizeof text, 2, "f64", "d"));
    EXPECT_INT_EQ(few + 2 * 10, registers_of("", values(text, sizeof text, 12, "f64", "d")));
}

C_TEST(registers, predicates_take_none) {
    static const char with[] = "setp.lt.u32 %p1, %r0, 1;\nsetp.lt.u32 %p2, %r0, 2;\n"
                               "@%p1 st.global.u32 [%a0], %r0;\n@%p2 st.global.u32 [%a0], %r0;\n"
                               "ret;\n";
    static const char without[] = "st.global.u32 [%a0], %r0;\nst.global.u32 [%a0], %r0;\nret;\n";
    EXPECT_INT_EQ(registers_of("", without), registers_of("", with));
}

C_TEST(registers, values_one_after_the_other_share) {
    char text[4096];
    size_t used = 0;
    for (int n = 1; n < 40; n++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "add.u32 %%r%d, %%r0, %d;\nst.global.u32 [%%a0], %%r%d;\n", n, n, n);
    }
    snprintf(text + used, sizeof text - used, "ret;\n");
    static const char two[] = "add.u32 %r1, %r0, 1;\nst.global.u32 [%a0], %r1;\n"
                              "add.u32 %r2, %r0, 2;\nst.global.u32 [%a0], %r2;\nret;\n";
    EXPECT_INT_EQ(registers_of("", two), registers_of("", text));
}

/* What a loop needs after its end is alive all through it. */
C_TEST(registers, values_live_through_loops) {
    static const char format[] = "%s"
                                 "loop:\n"
                                 "add.u32 %%r1, %%r1, 1;\n"
                                 "mul.lo.u32 %%r2, %%r1, 3;\n"
                                 "add.u32 %%r3, %%r2, %%r1;\n"
                                 "st.global.u32 [%%a0], %%r3;\n"
                                 "setp.lt.u32 %%p1, %%r1, %%r0;\n"
                                 "@%%p1 bra loop;\n"
                                 "%s"
                                 "ret;\n";
    char without[1024], with[1024];
    snprintf(without, sizeof without, format, "", "");
    snprintf(
        with, sizeof with, format,
        "add.u32 %r10, %r0, 1;\nadd.u32 %r11, %r0, 2;\nadd.u32 %r12, %r0, 3;\n",
        "st.global.u32 [%a0], %r10;\nst.global.u32 [%a0], %r11;\nst.global.u32 [%a0], %r12;\n");
    EXPECT_INT_EQ(registers_of("", without) + 3, registers_of("", with));
}

C_TEST(registers, bounds_limit_them) {
    char text[4096];
    values(text, sizeof text, 60, "b32", "r");
    EXPECT_TRUE(registers_of("", text) > 60);
    EXPECT_INT_EQ(40, registers_of(".maxnreg 40", text));
    EXPECT_INT_EQ(64, registers_of(".maxntid 1024", text)); /* 65536 registers for 1024 threads */
    EXPECT_INT_EQ(40, registers_of(".maxntid 256\n.minnctapersm 6", text));
    EXPECT_INT_EQ(16, registers_of(".maxntid 1024\n.minnctapersm 32", text));
    EXPECT_INT_EQ(registers_of("", text), registers_of(".maxntid 128", text));
}

/* A limit is no gift: what finds no register goes to memory and comes back. */
C_TEST(registers, too_few_cost_accesses_to_memory) {
    char text[4096];
    values(text, sizeof text, 60, "b32", "r");
    EXPECT_INT_EQ(0, spills_of("", text));
    EXPECT_INT_EQ(0, spills_of(".maxnreg 72", text));
    uint64_t few = spills_of(".maxnreg 56", text), more = spills_of(".maxnreg 24", text);
    EXPECT_TRUE(few > 0 && few < 60 * 256);
    EXPECT_TRUE(more > 2 * few && more < 4 * 60 * 256);
    EXPECT_INT_EQ(more, spills_of(".maxntid 512\n.minnctapersm 5", text));
}
