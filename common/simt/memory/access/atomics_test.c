/*
 * atom and red against plain code that does one lane after another, and from
 * several host threads at once.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/memory/access/memory_harness.h"

enum { WORDS = 16 };

/* What one update makes of an integer of the given width. */
static uint64_t plain(const char *op, bool is_signed, uint32_t bytes, uint64_t old, uint64_t b,
                      uint64_t c) {
    int64_t signed_old = bytes == 4 ? (int32_t)old : (int64_t)old;
    int64_t signed_b = bytes == 4 ? (int32_t)b : (int64_t)b;
    bool less = is_signed ? signed_old < signed_b : old < b;
    if (strcmp(op, "add") == 0) {
        return old + b;
    }
    if (strcmp(op, "min") == 0) {
        return less ? old : b;
    }
    if (strcmp(op, "max") == 0) {
        return less ? b : old;
    }
    if (strcmp(op, "inc") == 0) {
        return old >= b ? 0 : old + 1;
    }
    if (strcmp(op, "dec") == 0) {
        return old == 0 || old > b ? b : old - 1;
    }
    if (strcmp(op, "and") == 0) {
        return old & b;
    }
    if (strcmp(op, "or") == 0) {
        return old | b;
    }
    if (strcmp(op, "xor") == 0) {
        return old ^ b;
    }
    if (strcmp(op, "cas") == 0) {
        return old == b ? c : old;
    }
    return b;
}

struct form {
    const char *op, *type;
    uint32_t bytes;
    bool is_signed;
};

static const struct form forms[] = {
    {"add", "u32", 4, false},  {"add", "s32", 4, true},  {"add", "u64", 8, false},
    {"add", "s64", 8, true},   {"min", "u32", 4, false}, {"min", "s32", 4, true},
    {"min", "u64", 8, false},  {"min", "s64", 8, true},  {"max", "u32", 4, false},
    {"max", "s32", 4, true},   {"max", "u64", 8, false}, {"max", "s64", 8, true},
    {"inc", "u32", 4, false},  {"dec", "u32", 4, false}, {"and", "b32", 4, false},
    {"and", "b64", 8, false},  {"or", "b32", 4, false},  {"or", "b64", 8, false},
    {"xor", "b32", 4, false},  {"xor", "b64", 8, false}, {"exch", "b32", 4, false},
    {"exch", "b64", 8, false}, {"cas", "b16", 2, false}, {"cas", "b32", 4, false},
    {"cas", "b64", 8, false}};

static uint64_t narrow(uint64_t value, uint32_t bytes) {
    return bytes == 8 ? value : value & (((uint64_t)1 << 8 * bytes) - 1);
}

static uint64_t get(const union simt_row *row, uint32_t bytes, uint32_t lane) {
    return bytes == 8 ? row->u64[lane] : row->u32[lane];
}

static void put(union simt_row *row, uint32_t bytes, uint32_t lane, uint64_t value) {
    if (bytes == 8) {
        row->u64[lane] = value;
    } else {
        row->u32[lane] = (uint32_t)value;
    }
}

struct target {
    const char *space;
    uint64_t first; /* address the instruction uses */
    unsigned char *host;
};

static void expect_results(struct harness *h, const struct form *f, int file,
                           const uint64_t want[SIMT_LANES], const char *opcode) {
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        if (get(harness_row(h, file), f->bytes, n) != want[n]) {
            TEST_FAIL("%s: lane %u", opcode, n);
        }
    }
}

static void expect_words(const struct target *target, const struct form *f,
                         const uint64_t want[WORDS], const char *opcode) {
    for (size_t w = 0; w < WORDS; w++) {
        uint64_t got = 0;
        memcpy(&got, target->host + w * f->bytes, f->bytes);
        if (got != want[w]) {
            TEST_FAIL("%s: word %zu", opcode, w);
        }
    }
}

/* One instruction on random words with random operands, few of them so that lanes meet. */
static void check_form(struct harness *h, struct rng *rng, const struct form *f,
                       const struct target *target, bool reduction) {
    int file = f->bytes == 8 ? R64 + 1 : f->bytes == 4 ? R32 : R16;
    struct harness_operands o = {.dst = {file}, .address = R64, .src = {file + 1}, .src_count = 1};
    uint64_t memory[WORDS], want[SIMT_LANES];
    uint32_t mask = (uint32_t)rng_u64(rng) | 1;
    char opcode[64];
    o.dst_count = reduction ? 0 : 1;
    o.compare = strcmp(f->op, "cas") == 0 ? file + 2 : 0;
    for (size_t w = 0; w < WORDS; w++) {
        memory[w] = narrow(rng_below(rng, 5) - 2, f->bytes);
        memcpy(target->host + w * f->bytes, &memory[w], f->bytes);
    }
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        size_t word = rng_below(rng, WORDS);
        uint64_t b = narrow(rng_below(rng, 5) - 2, f->bytes);
        uint64_t c = narrow(rng_u64(rng), f->bytes);
        harness_row(h, R64)->u64[n] = target->first + word * f->bytes;
        put(harness_row(h, file), f->bytes, n, 77);
        put(harness_row(h, file + 1), f->bytes, n, b);
        put(harness_row(h, file + 2), f->bytes, n, c);
        want[n] = 77;
        if ((mask >> n & 1) != 0) {
            want[n] = reduction ? 77 : memory[word];
            memory[word] =
                narrow(plain(f->op, f->is_signed, f->bytes, memory[word], b, c), f->bytes);
        }
    }
    harness_mask(h, mask);
    snprintf(opcode, sizeof opcode, "%s%s.%s.%s", reduction ? "red" : "atom", target->space, f->op,
             f->type);
    if (!harness_run(h, opcode, &o)) {
        TEST_FAIL("%s: %s", opcode, h->block.fault.text);
        return;
    }
    expect_results(h, f, file, want, opcode);
    expect_words(target, f, memory, opcode);
}

static void run_integers(enum simt_check check) {
    struct harness h;
    struct rng rng = rng_create(5);
    ASSERT_TRUE(harness_create(&h, check));
    uint64_t global = harness_alloc(&h, 256);
    simt_memory_mark(h.memory, global, 256);
    const struct target targets[] = {{".global", global, harness_host(&h, global)},
                                     {"", global, harness_host(&h, global)},
                                     {".shared", 64, h.block.shared + 64},
                                     {"", SIMT_SHARED_WINDOW + 64, h.block.shared + 64}};
    if (h.block.shadow != NULL) {
        simt_shadow_mark(h.block.shadow, 0, HARNESS_SHARED);
    }
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        for (size_t t = 0; t < 4; t++) {
            for (size_t round = 0; round < 20; round++) {
                check_form(&h, &rng, &forms[f], &targets[t], round % 2 == 0);
            }
        }
    }
    harness_free(&h);
}

C_TEST(atomics, integers_equal_one_lane_after_another) {
    run_integers(SIMT_CHECK_BOUNDS);
    run_integers(SIMT_CHECK_FULL);
}

static float sum_in_order(float start, const float values[SIMT_LANES]) {
    for (size_t n = 0; n < SIMT_LANES; n++) {
        start += values[n];
    }
    return start;
}

HARNESS_TEST(atomics, floats_add_in_lane_order, SIMT_CHECK_BOUNDS) {
    struct rng rng = rng_create(6);
    uint64_t global = harness_alloc(h, 256);
    const struct harness_operands f32 = {.address = R64, .src = {R32}, .src_count = 1};
    const struct harness_operands f64 = {.address = R64, .src = {R64 + 1}, .src_count = 1};
    double want = 0.25, got;
    float sum;
    memcpy(harness_host(h, global), &want, 8);
    memset(harness_host(h, global) + 8, 0, 8);
    for (size_t n = 0; n < SIMT_LANES; n++) {
        harness_row(h, R32)->f32[n] = rng_normal(&rng);
        harness_row(h, R64 + 1)->f64[n] = rng_normal(&rng) * 1e-3;
        want += harness_row(h, R64 + 1)->f64[n];
    }
    harness_addresses(h, R64, global, 0);
    EXPECT_TRUE(harness_run(h, "red.global.add.f64", &f64));
    memcpy(&got, harness_host(h, global), 8);
    EXPECT_TRUE(got == want);
    harness_addresses(h, R64, global + 8, 0);
    EXPECT_TRUE(harness_run(h, "red.global.add.f32", &f32));
    memcpy(&sum, harness_host(h, global) + 8, 4);
    EXPECT_TRUE(sum == sum_in_order(0.0f, harness_row(h, R32)->f32));
}

/* fp32 sums flush subnormals in global memory and keep them in shared memory. */
HARNESS_TEST(atomics, subnormals, SIMT_CHECK_BOUNDS) {
    const float tiny = 0x1p-140f;
    float got;
    uint64_t global = harness_alloc(h, 256);
    const struct harness_operands o = {.address = R64, .src = {R32}, .src_count = 1};
    harness_row(h, R32)->f32[0] = -tiny;
    harness_mask(h, 1);
    harness_addresses(h, R64, global, 0);
    memset(harness_host(h, global), 0, 4);
    EXPECT_TRUE(harness_run(h, "red.global.add.f32", &o));
    memcpy(&got, harness_host(h, global), 4);
    EXPECT_TRUE(got == 0.0f);
    harness_addresses(h, R64, 0, 0);
    EXPECT_TRUE(harness_run(h, "red.shared.add.f32", &o));
    memcpy(&got, h->block.shared, 4);
    EXPECT_TRUE(got == -tiny);
}

/* Halves with known sums: 1 + 2^-10 is the next fp16, 1 + 2^-11 rounds to even. */
HARNESS_TEST(atomics, halves, SIMT_CHECK_BOUNDS) {
    static const struct {
        const char *opcode;
        uint32_t old, b, want;
        int data;
    } rows[] = {{"red.global.add.noftz.f16", 0x3c00, 0x1400, 0x3c01, R16},
                {"red.global.add.noftz.f16", 0x3c00, 0x1000, 0x3c00, R16},
                {"red.global.add.noftz.f16", 0x3c01, 0x1000, 0x3c02, R16},
                {"red.global.add.noftz.f16", 0x0001, 0x0001, 0x0002, R16},
                {"red.global.add.noftz.f16", 0x7bff, 0x7bff, 0x7c00, R16},
                {"red.global.add.noftz.f16x2", 0x3c003c00, 0xbc003c00, 0x00004000, R32},
                {"red.global.add.noftz.bf16", 0x3f80, 0x3c00, 0x3f81, R16},
                {"red.global.add.noftz.bf16", 0x3f80, 0x3b80, 0x3f80, R16},
                {"red.global.add.noftz.bf16", 0x3f81, 0x3b80, 0x3f82, R16},
                {"red.global.add.noftz.bf16x2", 0x40003f80, 0x40003f80, 0x40804000, R32}};
    uint64_t global = harness_alloc(h, 256);
    harness_mask(h, 1);
    harness_addresses(h, R64, global, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct harness_operands o = {.address = R64, .src = {rows[i].data}, .src_count = 1};
        uint32_t got = 0;
        memcpy(harness_host(h, global), &rows[i].old, 4);
        harness_row(h, rows[i].data)->u32[0] = rows[i].b;
        EXPECT_TRUE(harness_run(h, rows[i].opcode, &o));
        memcpy(&got, harness_host(h, global), 4);
        EXPECT_INT_EQ(rows[i].want, got);
    }
}

HARNESS_TEST(atomics, vectors, SIMT_CHECK_BOUNDS) {
    float got[4], old[4];
    uint64_t global = harness_alloc(h, 256);
    const float start[4] = {1, 2, 3, 4};
    const struct harness_operands o = {.dst = {R32 + 4, R32 + 5, R32 + 6, R32 + 7},
                                       .dst_count = 4,
                                       .address = R64,
                                       .src = {R32, R32 + 1, R32 + 2, R32 + 3},
                                       .src_count = 4};
    memcpy(harness_host(h, global), start, sizeof start);
    harness_mask(h, 3);
    harness_addresses(h, R64, global, 0);
    for (int e = 0; e < 4; e++) {
        harness_row(h, R32 + e)->f32[0] = 10.0f * (float)e;
        harness_row(h, R32 + e)->f32[1] = 0.5f;
    }
    EXPECT_TRUE(harness_run(h, "atom.global.add.v4.f32", &o));
    memcpy(got, harness_host(h, global), sizeof got);
    for (int e = 0; e < 4; e++) {
        old[e] = harness_row(h, R32 + 4 + e)->f32[1];
        EXPECT_NEAR(start[e] + 10.0 * e + 0.5, got[e], 0);
        EXPECT_NEAR(start[e] + 10.0 * e, old[e], 0);
    }
}

HARNESS_TEST(atomics, forms_that_do_not_exist_are_refused, SIMT_CHECK_BOUNDS) {
    static const char *const opcodes[] = {
        "atom.global.min.f32", "atom.global.add.f16", "atom.global.inc.s32", "atom.global.xor.f32",
        "atom.global.mul.u32", "atom.global.add.b32", "atom.const.add.u32"};
    struct harness_instruction in;
    const struct harness_operands o = {
        .dst = {R32}, .dst_count = 1, .address = R64, .src = {R32}, .src_count = 1};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        EXPECT_TRUE(!harness_decode(h, &in, opcodes[i], &o));
    }
    EXPECT_TRUE(harness_decode(h, &in, "atom.acq_rel.gpu.global.add.u32", &o));
    EXPECT_TRUE(!harness_decode(h, &in, "atom.global.cas.b32", &o));
}

enum { THREADS = 4, ROUNDS = 2000 };

struct crew {
    struct harness h;
    uint64_t global;
};

/* Each host thread runs a block of its own on the memory of all. */
static void *hammer(void *argument) {
    struct crew *crew = argument;
    const struct harness_operands add = {.address = R64, .src = {R32}, .src_count = 1};
    const struct harness_operands most = {
        .address = R64, .offset = 8, .src = {R32 + 1}, .src_count = 1};
    const struct harness_operands sum = {
        .address = R64, .offset = 16, .src = {R64 + 1}, .src_count = 1};
    harness_addresses(&crew->h, R64, crew->global, 0);
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        harness_row(&crew->h, R32)->u32[n] = n;
        harness_row(&crew->h, R64 + 1)->f64[n] = 1;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        harness_row(&crew->h, R32 + 1)->u32[round % 32] = round;
        (void)harness_run(&crew->h, "red.global.add.u32", &add);
        (void)harness_run(&crew->h, "red.max.u32", &most);
        (void)harness_run(&crew->h, "red.global.add.f64", &sum);
    }
    return NULL;
}

C_TEST(atomics, several_host_threads) {
    static struct crew crews[THREADS];
    pthread_t threads[THREADS];
    struct simt_memory *own[THREADS];
    uint32_t words[3];
    double sum;
    for (size_t n = 0; n < THREADS; n++) {
        ASSERT_TRUE(harness_create(&crews[n].h, SIMT_CHECK_BOUNDS));
    }
    uint64_t global = harness_alloc(&crews[0].h, 256);
    for (size_t n = 0; n < THREADS; n++) {
        own[n] = crews[n].h.memory;
        crews[n].h.run.memory = own[0];
        crews[n].global = global;
        EXPECT_INT_EQ(0, pthread_create(&threads[n], NULL, hammer, &crews[n]));
    }
    for (size_t n = 0; n < THREADS; n++) {
        pthread_join(threads[n], NULL);
    }
    memcpy(words, harness_host(&crews[0].h, global), sizeof words);
    memcpy(&sum, harness_host(&crews[0].h, global) + 16, sizeof sum);
    EXPECT_INT_EQ(THREADS * ROUNDS * 496, words[0]);
    EXPECT_INT_EQ(ROUNDS - 1, words[2]);
    EXPECT_NEAR(THREADS * ROUNDS * 32.0, sum, 0);
    for (size_t n = 0; n < THREADS; n++) {
        EXPECT_INT_EQ(SIMT_FAULT_NONE, crews[n].h.block.fault.kind);
        harness_free(&crews[n].h);
    }
}
