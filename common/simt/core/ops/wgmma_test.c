/*
 * wgmma against sums of integers: every pair of formats, every N, layout and source of A.
 *
 * The PTX is written here. Matrices are laid out as TMA or a program does, row by row, with
 * swizzles in terms of rows and chunks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/simt/core/launch/module.h"
#include "common/testing/testing.h"

enum {
    M = 64,
    MOST_N = 256,
    MOST_K = 32,
    THREADS = 128,
    IMAGE = 32768,
    B_AT = 8192,
    TEXT = 1 << 16
};

struct format {
    const char *name;
    uint32_t bytes;
    bool is_signed;
    uint32_t numbers[4]; /* 0 to 3 */
    uint32_t minus;      /* the sign's bit; 0: of integers */
};

static const struct format f16 = {"f16", 2, true, {0, 0x3c00, 0x4000, 0x4200}, 0x8000};
static const struct format bf16 = {"bf16", 2, true, {0, 0x3f80, 0x4000, 0x4040}, 0x8000};
static const struct format tf32 = {
    "tf32", 4, true, {0, 0x3f800000, 0x40000000, 0x40400000}, 0x80000000};
static const struct format e4m3 = {"e4m3", 1, true, {0, 0x38, 0x40, 0x44}, 0x80};
static const struct format e5m2 = {"e5m2", 1, true, {0, 0x3c, 0x40, 0x42}, 0x80};
static const struct format s8 = {"s8", 1, true, {0, 1, 2, 3}, 0};
static const struct format u8 = {"u8", 1, false, {0, 1, 2, 3}, 0};

/* A product: what the instruction says, and how the operands lie. */
struct product {
    const struct format *a, *b;
    const char *d; /* f32, f16 or s32 */
    uint32_t n;
    uint32_t width; /* that the swizzle spans; 16: none */
    bool a_in_registers, a_transposed, b_transposed, negate_a, negate_b;
    bool replaces, adds; /* D: one of the two */
};

static uint32_t depth(const struct product *p) {
    return 32 / p->a->bytes;
}

/* Integers below zero are in two's complement. */
static uint32_t encoded(const struct format *f, int value) {
    if (f->minus == 0) {
        return (uint32_t)value & 0xff;
    }
    return f->numbers[abs(value)] | (value < 0 ? f->minus : 0);
}

/* The number at (row, k) of a matrix. */
static int number_at(const struct format *f, uint32_t row, uint32_t k, uint32_t salt) {
    int value = (int)((row * 37 + k * 101 + row * k * 13 + salt) % 97 % 7) - 3;
    return f->is_signed ? value : abs(value);
}

/* Which 16-byte chunk of row `row` holds chunk `chunk`: rows of `width` bytes. */
static uint32_t swizzled(uint32_t width, uint32_t row, uint32_t chunk) {
    switch (width) {
    case 128:
        return chunk ^ row % 8;
    case 64:
        return chunk ^ row / 2 % 4;
    case 32:
        return chunk ^ row / 4 % 2;
    default:
        return chunk;
    }
}

/* Where an element lies, behind the matrix's begin. */
static uint32_t offset_of(const struct product *p, uint32_t bytes, uint32_t rows, bool transposed,
                          uint32_t row, uint32_t k) {
    uint32_t w = p->width;
    if (!transposed && w == 16) { /* 8 x 16 bytes together; all rows of a chunk of K together */
        uint32_t chunk = k * bytes / 16;
        return chunk * rows * 16 + row * 16 + k * bytes % 16;
    }
    if (!transposed) {
        uint32_t chunk = k * bytes / 16;
        return row * w + swizzled(w, row, chunk) * 16 + k * bytes % 16;
    }
    uint32_t columns = w / bytes; /* of M or N in one line of w bytes */
    uint32_t line = row / columns * depth(p) + k;
    uint32_t chunk = row % columns * bytes / 16;
    return line * w + swizzled(w, line, chunk) * 16 + row * bytes % 16;
}

static uint64_t descriptor_of(const struct product *p, uint32_t at, uint32_t rows,
                              bool transposed) {
    uint64_t kinds[] = {[1] = 0, [2] = 3, [4] = 2, [8] = 1};
    uint64_t leading = 16, stride = 8 * p->width;
    if (!transposed && p->width == 16) {
        leading = (uint64_t)rows * 16;
    } else if (transposed && p->width == 16) { /* the two change places */
        leading = 8 * p->width;
        stride = (uint64_t)depth(p) * p->width;
    } else if (transposed) {
        leading = (uint64_t)depth(p) * p->width;
    }
    return kinds[p->width / 16] << 62 | (stride >> 4) << 32 | (leading >> 4) << 16 | at >> 4;
}

static void put_matrix(const struct product *p, const struct format *f, uint32_t rows,
                       bool transposed, uint32_t salt, unsigned char *to) {
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t k = 0; k < depth(p); k++) {
            uint32_t bits = encoded(f, number_at(f, row, k, salt));
            memcpy(to + offset_of(p, f->bytes, rows, transposed, row, k), &bits, f->bytes);
        }
    }
}

/* A in registers: register r of a thread holds row 16 warp + lane/4 + 8 (r%2), from K byte
 * lane%4 * 4 + 16 (r/2). */
static void put_registers(const struct product *p, uint32_t salt, uint32_t *to) {
    uint32_t bytes = p->a->bytes;
    for (uint32_t r = 0; r < 4; r++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            uint32_t row = t / 32 * 16 + t % 32 / 4 + 8 * (r % 2);
            uint32_t first = (t % 4 * 4 + 16 * (r / 2)) / bytes;
            to[r * THREADS + t] = 0;
            for (uint32_t e = 0; e < 4 / bytes; e++) {
                uint32_t bits = encoded(p->a, number_at(p->a, row, first + e, salt));
                to[r * THREADS + t] |= bits << 8 * bytes * e;
            }
        }
    }
}

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    text->at += length;
    text->left -= (size_t)length;
}

static uint32_t registers_of(const struct product *p) {
    return p->n / (strcmp(p->d, "f16") == 0 ? 4 : 2);
}

static void say_product(struct text *text, const struct product *p) {
    say(text, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {", p->n, depth(p), p->d, p->a->name,
        p->b->name);
    for (uint32_t n = 0; n < registers_of(p); n++) {
        say(text, "%s%%d%u", n > 0 ? ", " : "", n);
    }
    say(text, "}, %s, %%b, %%p", p->a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%a");
    if (strcmp(p->d, "s32") != 0) {
        say(text, ", %d, %d", p->negate_a ? -1 : 1, p->negate_b ? -1 : 1);
    }
    if (p->a->bytes == 2 && !p->a_in_registers) {
        say(text, ", %d", p->a_transposed);
    }
    if (p->a->bytes == 2) {
        say(text, ", %d", p->b_transposed);
    }
    say(text, ";\n");
}

/* `skip`: a warp that leaves the product out; 4: none. */
static char *write_kernel(const struct product *p, uint32_t skip) {
    char *all = malloc(TEXT);
    if (all == NULL) {
        return NULL;
    }
    struct text text = {all, TEXT};
    uint32_t d = registers_of(p);
    say(&text,
        ".version 8.5\n.target sm_90a\n.address_size 64\n"
        ".visible .entry product(.param .u64 image, .param .u64 registers, .param .u64 out,\n"
        ".param .u64 pa, .param .u64 pb, .param .u32 adds) {\n"
        ".shared .align 1024 .b8 tile[%d];\n.reg .b32 %%d<%u>, %%a<4>, %%t, %%n, %%s, %%x<4>;\n"
        ".reg .b64 %%a, %%b, %%i, %%r, %%o, %%w;\n.reg .pred %%p, %%q;\n",
        IMAGE, d);
    say(&text, "ld.param.u64 %%i, [image];\nld.param.u64 %%r, [registers];\n"
               "ld.param.u64 %%o, [out];\nld.param.u64 %%a, [pa];\nld.param.u64 %%b, [pb];\n"
               "ld.param.u32 %%n, [adds];\nsetp.ne.u32 %%p, %%n, 0;\nmov.u32 %%t, %%tid.x;\n"
               "mov.u32 %%s, tile;\nmul.wide.u32 %%w, %%t, 16;\nadd.u64 %%i, %%i, %%w;\n"
               "mad.lo.u32 %%s, %%t, 16, %%s;\nmul.wide.u32 %%w, %%t, 4;\nadd.u64 %%r, %%r, %%w;\n"
               "add.u64 %%o, %%o, %%w;\nmov.u32 %%n, 0;\n"
               "again:\nld.global.v4.u32 {%%x0, %%x1, %%x2, %%x3}, [%%i];\n"
               "st.shared.v4.u32 [%%s], {%%x0, %%x1, %%x2, %%x3};\n"
               "add.u64 %%i, %%i, 2048;\nadd.u32 %%s, %%s, 2048;\nadd.u32 %%n, %%n, 1;\n");
    say(&text, "setp.lt.u32 %%q, %%n, %d;\n@%%q bra again;\n", IMAGE / 2048);
    for (uint32_t n = 0; n < 4; n++) {
        say(&text, "ld.global.u32 %%a%u, [%%r+%u];\n", n, n * 4 * THREADS);
    }
    for (uint32_t n = 0; n < d; n++) {
        say(&text, "ld.global.u32 %%d%u, [%%o+%u];\n", n, n * 4 * THREADS);
    }
    say(&text, "fence.proxy.async.shared::cta;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n");
    if (skip < 4) {
        say(&text, "shr.u32 %%n, %%t, 5;\nsetp.eq.u32 %%q, %%n, %u;\n@%%q bra done;\n", skip);
    }
    say_product(&text, p);
    say(&text, "done:\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (uint32_t n = 0; n < d; n++) {
        say(&text, "st.global.u32 [%%o+%u], %%d%u;\n", n * 4 * THREADS, n);
    }
    say(&text, "ret;\n}\n");
    return all;
}

/* What D holds before, by row and column. */
static int before(uint32_t row, uint32_t column) {
    return (int)((row * 3 + column * 5) % 11) - 5;
}

static int expected(const struct product *p, uint32_t row, uint32_t column) {
    int sum = 0, sign = p->negate_a != p->negate_b ? -1 : 1;
    for (uint32_t k = 0; k < depth(p); k++) {
        sum += number_at(p->a, row, k, 1) * number_at(p->b, column, k, 50);
    }
    return sign * sum + (p->adds ? before(row, column) : 0);
}

/* D's element as its register keeps it. */
static uint32_t bits_of(const struct product *p, int value) {
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (strcmp(p->d, "s32") == 0) {
        return (uint32_t)value;
    }
    if (strcmp(p->d, "f32") == 0 || value == 0) {
        return value == 0 ? 0 : bits;
    }
    return (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10 & 0x7c00) |
           (bits >> 13 & 0x3ff);
}

/* Register r of thread t. */
static uint32_t word_of(const struct product *p, uint32_t r, uint32_t t,
                        int (*value)(const struct product *, uint32_t, uint32_t)) {
    uint32_t row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
    if (strcmp(p->d, "f16") == 0) {
        row += 8 * (r % 2);
        column += 8 * (r / 2);
        return bits_of(p, value(p, row, column)) | bits_of(p, value(p, row, column + 1)) << 16;
    }
    return bits_of(p, value(p, row + 8 * (r / 2 % 2), column + 8 * (r / 4) + r % 2));
}

static int value_before(const struct product *p, uint32_t row, uint32_t column) {
    (void)p;
    return before(row, column);
}

struct arguments {
    uint64_t image, registers, out, a, b;
    uint32_t adds;
};

/* Loads the kernel and uploads what it needs. */
static bool prepare(struct launch_testing *t, const struct product *p, uint32_t skip,
                    struct arguments *arguments) {
    static unsigned char image[IMAGE];
    static uint32_t registers[4 * THREADS], out[MOST_N / 2 * THREADS];
    char *text = write_kernel(p, skip);
    bool open = text != NULL && launch_testing_open_text(t, text);
    free(text);
    if (!open) {
        return false;
    }
    memset(image, 0, sizeof image);
    put_matrix(p, p->a, M, p->a_transposed, 1, image);
    put_matrix(p, p->b, p->n, p->b_transposed, 50, image + B_AT);
    put_registers(p, 1, registers);
    for (uint32_t n = 0; n < registers_of(p) * THREADS; n++) {
        out[n] = word_of(p, n / THREADS, n % THREADS, value_before);
    }
    *arguments =
        (struct arguments){.image = launch_testing_upload(t, image, sizeof image),
                           .registers = launch_testing_upload(t, registers, sizeof registers),
                           .out = launch_testing_upload(t, out, sizeof out),
                           .a = descriptor_of(p, 0, M, p->a_transposed),
                           .b = descriptor_of(p, B_AT, p->n, p->b_transposed),
                           .adds = p->adds};
    return true;
}

static void check(struct product product) {
    const struct product *p = &product;
    struct launch_testing t = {0};
    struct arguments arguments;
    if (prepare(&t, p, 4, &arguments) &&
        launch_testing_block_clean(&t, "product", THREADS, &arguments)) {
        const uint32_t *got = launch_testing_result(&t, arguments.out);
        uint32_t wrong = 0;
        for (uint32_t n = 0; n < registers_of(p) * THREADS; n++) {
            wrong += got[n] != word_of(p, n / THREADS, n % THREADS, expected);
        }
        if (wrong > 0) {
            TEST_FAIL("m64n%uk%u.%s.%s.%s, swizzle of %u bytes, A %s%s, B%s: %u registers wrong",
                      p->n, depth(p), p->d, p->a->name, p->b->name, p->width,
                      p->a_in_registers ? "in registers" : "in memory",
                      p->a_transposed ? ", transposed" : "", p->b_transposed ? " transposed" : "",
                      wrong);
        }
    } else {
        TEST_FAIL("m64n%u.%s.%s.%s did not run", p->n, p->d, p->a->name, p->b->name);
    }
    launch_testing_close(&t);
}

/* A product of 64 columns, swizzled by 128 bytes, unless it says otherwise. */
#define PRODUCT(...) product_of((struct product){__VA_ARGS__})

static struct product product_of(struct product p) {
    p.n = p.n == 0 ? 64 : p.n;
    p.width = p.width == 0 ? 128 : p.width;
    p.d = p.d == NULL ? "f32" : p.d;
    p.adds = !p.replaces;
    return p;
}

C_TEST(wgmma, formats) {
    const struct format *const eights[] = {&e4m3, &e5m2}, *const integers[] = {&s8, &u8};
    check(PRODUCT(.a = &f16, .b = &f16));
    check(PRODUCT(.a = &f16, .b = &f16, .d = "f16"));
    check(PRODUCT(.a = &bf16, .b = &bf16));
    check(PRODUCT(.a = &tf32, .b = &tf32));
    for (int n = 0; n < 4; n++) {
        check(PRODUCT(.a = eights[n / 2], .b = eights[n % 2]));
        check(PRODUCT(.a = eights[n / 2], .b = eights[n % 2], .d = "f16"));
        check(PRODUCT(.a = integers[n / 2], .b = integers[n % 2], .d = "s32"));
    }
}

C_TEST(wgmma, a_in_registers) {
    check(PRODUCT(.a = &f16, .b = &f16, .a_in_registers = true));
    check(PRODUCT(.a = &bf16, .b = &bf16, .a_in_registers = true, .b_transposed = true));
    check(PRODUCT(.a = &tf32, .b = &tf32, .a_in_registers = true));
    check(PRODUCT(.a = &e4m3, .b = &e5m2, .a_in_registers = true));
    check(PRODUCT(.a = &s8, .b = &u8, .d = "s32", .a_in_registers = true));
}

C_TEST(wgmma, every_n) {
    for (uint32_t n = 8; n <= MOST_N; n += 8) {
        check(PRODUCT(.a = &bf16, .b = &bf16, .n = n, .width = 64));
    }
}

C_TEST(wgmma, layouts) {
    for (uint32_t width = 16; width <= 128; width *= 2) {
        for (uint32_t n = 0; n < 4; n++) {
            check(PRODUCT(.a = &f16, .b = &f16, .width = width, .a_transposed = n % 2 != 0,
                          .b_transposed = n / 2 != 0));
        }
        check(PRODUCT(.a = &e4m3, .b = &e4m3, .width = width));
        check(PRODUCT(.a = &tf32, .b = &tf32, .width = width));
    }
}

C_TEST(wgmma, scales) {
    check(PRODUCT(.a = &f16, .b = &f16, .replaces = true));
    check(PRODUCT(.a = &f16, .b = &f16, .negate_a = true));
    check(PRODUCT(.a = &f16, .b = &f16, .negate_b = true));
    check(PRODUCT(.a = &tf32, .b = &tf32, .negate_a = true, .negate_b = true, .replaces = true));
}

static void expect_fault(const struct product *p, uint32_t skip, uint64_t in_descriptor,
                         enum simt_fault_kind kind, const char *words) {
    struct launch_testing t = {0};
    struct arguments arguments;
    if (prepare(&t, p, skip, &arguments)) {
        arguments.b |= in_descriptor;
        EXPECT_TRUE(!launch_testing_block(&t, "product", THREADS, &arguments));
        EXPECT_INT_EQ(kind, t.fault.kind);
        if (strstr(t.fault.text, words) == NULL) {
            TEST_FAIL("no \"%s\" in: %s", words, t.fault.text);
        }
    } else {
        TEST_FAIL("the kernel with \"%s\" was not loaded", words);
    }
    launch_testing_close(&t);
}

C_TEST(wgmma, faults) {
    const struct product product = PRODUCT(.a = &f16, .b = &f16), *p = &product;
    expect_fault(p, 2, 0, SIMT_FAULT_BARRIER, "warp 2 of the same warpgroup 0");
    expect_fault(p, 4, (uint64_t)3 << 49, SIMT_FAULT_UNSUPPORTED, "base offset 3");
    expect_fault(p, 4, 0x3f00, SIMT_FAULT_OUT_OF_BOUNDS, "shared");
}
