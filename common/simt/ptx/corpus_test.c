/* What nvcc makes of the .cu files of testdata for five architectures: all of it parses, and counts
 * of instructions equal those of a scanner that knows nothing of the parser. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/simt/ptx/ptx.h"
#include "common/simt/ptx/testing/check.h"
#include "common/testing/testing.h"

/* A file of the corpus, and opcodes that its source cannot do without. */
struct corpus {
    const char *name;
    const char *opcodes[16];
};

static const struct corpus corpus[] = {
    {"async", {"bar", "barrier", "fence", "membar", "atom", "bra"}},
    {"atomics", {"atom", "red", "fence", "ld", "st"}},
    {"calls", {"call", "trap", "brkpt", "nanosleep", "clz", "popc", "div"}},
    {"control", {"bra", "brx", "setp", "exit", "atom", "vote", "prefetch", "bfe", "bfi", "not"}},
    {"data", {"call", "ld", "st", "mov", "cvta"}},
    {"half", {"cvt", "dp4a", "dp2a", "prmt", "shf", "sad", "addc", "subc", "brev", "ex2"}},
    {"math", {"fma", "sin", "cos", "lg2", "ex2", "rcp", "rsqrt", "sqrt", "tanh", "copysign"}},
    {"reduce", {"shfl", "bar", "atom", "membar", "max"}},
    {"sgemm", {"fma", "bar", "mad", "ld", "st"}},
    {"tensor", {"wmma", "mma", "ldmatrix"}},
    {"warp", {"vote", "match", "shfl", "activemask", "bar", "atom"}},
};

/* Opcodes that come only with newer architectures. */
struct newer {
    const char *name;
    unsigned architecture;
    const char *opcode;
};

static const struct newer newer[] = {
    {"async", 80, "cp"},
    {"async", 80, "mbarrier"},
    {"warp", 80, "redux"},
    {"warp", 90, "mapa"},
};

enum { CORPUS_COUNT = sizeof corpus / sizeof *corpus, NEWER_COUNT = sizeof newer / sizeof *newer };

static void tally_module(struct ptx_tally *tally, const struct ptx_module *module) {
    for (size_t f = 0; f < module->function_count; f++) {
        const struct ptx_function *function = &module->functions[f];
        for (size_t i = 0; i < function->instruction_count; i++) {
            const char *base = function->instructions[i].base;
            ptx_tally_add(tally, base, strlen(base));
        }
    }
}

static void expect_equal(const struct ptx_tally *want, const struct ptx_tally *got,
                         const char *path) {
    EXPECT_INT_EQ(ptx_tally_total(want), ptx_tally_total(got));
    EXPECT_INT_EQ(want->used, got->used);
    for (size_t i = 0; i < want->used; i++) {
        size_t count = ptx_tally_count(got, want->names[i]);
        if (count != want->counts[i]) {
            TEST_FAIL("%s: %zu times %s in the text, %zu parsed", path, want->counts[i],
                      want->names[i], count);
        }
    }
}

static void expect_opcodes(const struct corpus *file, unsigned architecture,
                           const struct ptx_tally *tally) {
    for (size_t i = 0; i < 16 && file->opcodes[i] != NULL; i++) {
        if (ptx_tally_count(tally, file->opcodes[i]) == 0) {
            TEST_FAIL("%s for compute_%u has no %s", file->name, architecture, file->opcodes[i]);
        }
    }
    for (size_t i = 0; i < NEWER_COUNT; i++) {
        if (strcmp(newer[i].name, file->name) == 0 && newer[i].architecture <= architecture &&
            ptx_tally_count(tally, newer[i].opcode) == 0) {
            TEST_FAIL("%s for compute_%u has no %s", file->name, architecture, newer[i].opcode);
        }
    }
}

/* The corpus has a line table; for some instructions the compiler says line 0. */
static void expect_lines(const struct ptx_module *module, size_t want_without, const char *path) {
    size_t without = 0;
    for (size_t f = 0; f < module->function_count; f++) {
        const struct ptx_function *function = &module->functions[f];
        for (size_t i = 0; i < function->instruction_count; i++) {
            const struct ptx_instruction *instruction = &function->instructions[i];
            bool named =
                instruction->file < module->file_count && module->files[instruction->file] != NULL;
            if (instruction->line > 0 && !named) {
                TEST_FAIL("%s, PTX line %u: a file without name", path,
                          (unsigned)instruction->text_line);
            }
            without += instruction->line == 0;
        }
    }
    EXPECT_INT_EQ(want_without, without);
}

static void read_bodies(struct ptx_module *module, const char *path) {
    for (size_t f = module->function_count; f-- > 0;) {
        struct error error = {0};
        enum status status = ptx_read_body(module, &module->functions[f], &error);
        if (status != STATUS_OK) {
            TEST_FAIL("%s: %s", path, error_text(&error, status));
        }
    }
}

/* Bodies read late, the last one first, are the same. */
static void check_late(const char *path, const struct ptx_tally *want, const char *text,
                       size_t size) {
    struct error error = {0};
    struct ptx_module *module;
    enum status status = ptx_parse_late(&module, text, size, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", path, error_text(&error, status));
        return;
    }
    struct ptx_tally got = {.used = 0};
    tally_module(&got, module);
    EXPECT_INT_EQ(0, ptx_tally_total(&got));
    read_bodies(module, path);
    const char *problem = ptx_check(module);
    if (problem != NULL) {
        TEST_FAIL("%s: %s", path, problem);
    }
    tally_module(&got, module);
    expect_equal(want, &got, path);
    expect_lines(module, want->without_line, path);
    ptx_free(module);
}

static void check_text(const char *path, const struct corpus *file, unsigned architecture,
                       const char *text, size_t size) {
    struct error error = {0};
    struct ptx_module *module;
    enum status status = ptx_parse(&module, text, size, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", path, error_text(&error, status));
        return;
    }
    char target[16];
    snprintf(target, sizeof target, "sm_%u", architecture);
    EXPECT_STR_EQ(target, module->target);
    const char *problem = ptx_check(module);
    if (problem != NULL) {
        TEST_FAIL("%s: %s", path, problem);
    }
    struct ptx_tally want = {.used = 0}, got = {.used = 0};
    ptx_tally_text(&want, text, size);
    tally_module(&got, module);
    EXPECT_TRUE(ptx_tally_total(&want) > 100);
    expect_equal(&want, &got, path);
    expect_opcodes(file, architecture, &want);
    expect_lines(module, want.without_line, path);
    ptx_free(module);
    check_late(path, &want, text, size);
}

static void check_architecture(unsigned architecture) {
    for (size_t i = 0; i < CORPUS_COUNT; i++) {
        char path[256];
        char *text;
        size_t size;
        struct error error = {0};
        snprintf(path, sizeof path, "common/simt/testdata/%s_%u.ptx", corpus[i].name, architecture);
        enum status status = file_read(path, (size_t)1 << 26, &text, &size, &error);
        if (status != STATUS_OK) {
            TEST_FAIL("%s", error_text(&error, status));
            continue;
        }
        check_text(path, &corpus[i], architecture, text, size);
        free(text);
    }
}

C_TEST(ptx_corpus, compute_75) {
    check_architecture(75);
}

C_TEST(ptx_corpus, compute_80) {
    check_architecture(80);
}

C_TEST(ptx_corpus, compute_86) {
    check_architecture(86);
}

C_TEST(ptx_corpus, compute_89) {
    check_architecture(89);
}

C_TEST(ptx_corpus, compute_90) {
    check_architecture(90);
}

/* The scanner that the tests above trust, on a text one can count by hand. */
C_TEST(ptx_tally, counts_statements) {
    static const char text[] = ".version 9.0\n"
                               ".func helper(.param .b32 a);\n"
                               ".global .b8 x[3] = {1, 2};\n"
                               ".visible .entry k()\n"
                               "{\n"
                               "  .reg .b32 %r<3>; // a comment; with a semicolon\n"
                               "  .loc 1 2 3\n"
                               "L1:\n"
                               "  { // callseq\n"
                               "  .param .b32 p;\n"
                               "  call.uni\n  helper,\n  (p)\n  ;\n"
                               "  }\n"
                               "  p0 : .callprototype _ (.param .b32 _);\n"
                               "  mov.b32 {lo, hi}, %r1; mov.b32 %r1, %r2;\n"
                               "  @!%p1 bra L1;\n"
                               "  .loc 1 0 3\n"
                               "  ld.global.L1::no_allocate.u32 %r1, [x];\n"
                               "}\n"
                               ".section .debug_str {\n  L: .b8 1\n}\n";
    struct ptx_tally tally = {.used = 0};
    ptx_tally_text(&tally, text, sizeof text - 1);
    EXPECT_INT_EQ(5, ptx_tally_total(&tally));
    EXPECT_INT_EQ(1, tally.without_line);
    EXPECT_INT_EQ(2, ptx_tally_count(&tally, "mov"));
    EXPECT_INT_EQ(1, ptx_tally_count(&tally, "call"));
    EXPECT_INT_EQ(1, ptx_tally_count(&tally, "bra"));
    EXPECT_INT_EQ(1, ptx_tally_count(&tally, "ld"));
}
