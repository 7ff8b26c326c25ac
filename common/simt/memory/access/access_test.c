/*
 * Every space, type, width, vector and mask against a straightforward copy,
 * lane by lane.
 */
#include "common/simt/memory/access/access.h"

#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/memory/access/memory_harness.h"

enum { BUFFER = 2048, GUARD_ROW = R64 + 15 };

struct type_case {
    const char *name;
    uint32_t bytes;
    bool is_signed;
};

static const struct type_case types[] = {
    {"b8", 1, false},  {"u8", 1, false},   {"s8", 1, true},   {"b16", 2, false},
    {"u16", 2, false}, {"s16", 2, true},   {"f16", 2, false}, {"bf16", 2, false},
    {"b32", 4, false}, {"u32", 4, false},  {"s32", 4, true},  {"f32", 4, false},
    {"b64", 8, false}, {"u64", 8, false},  {"s64", 8, true},  {"f16x2", 4, false},
    {"f64", 8, false}, {"b128", 16, false}};

struct space_case {
    const char *name;  /* as a modifier, with its dot; "" is generic */
    uint64_t window;   /* added to the offset for generic addresses */
    enum ptx_space in; /* where the bytes are */
    bool narrow;       /* the address is in a 32-bit register */
    bool writable;
};

static const struct space_case spaces[] = {{".global", 0, PTX_GLOBAL, false, true},
                                           {".shared", 0, PTX_SHARED, true, true},
                                           {".shared", 0, PTX_SHARED, false, true},
                                           {".shared::cta", 0, PTX_SHARED, true, true},
                                           {".local", 0, PTX_LOCAL, false, true},
                                           {".const", 0, PTX_GLOBAL, false, false},
                                           {".param", 0, PTX_PARAM, false, false},
                                           {"", 0, PTX_GLOBAL, false, true},
                                           {"", SIMT_SHARED_WINDOW, PTX_SHARED, false, true},
                                           {"", SIMT_LOCAL_WINDOW, PTX_LOCAL, false, true},
                                           {"", SIMT_PARAMETER_WINDOW, PTX_PARAM, false, false}};

/* The bytes a lane's offset 0 stands for, how many there are, and the address of the first. */
struct place {
    unsigned char *host;
    size_t bytes;
    uint64_t address;
};

static struct place find_place(struct harness *h, const struct space_case *space, uint64_t global,
                               uint32_t lane) {
    switch (space->in) {
    case PTX_SHARED:
        return (struct place){h->block.shared, HARNESS_SHARED, space->window};
    case PTX_LOCAL:
        return (struct place){h->block.local + ((size_t)h->warp->index * 32 + lane) * HARNESS_LOCAL,
                              HARNESS_LOCAL, space->window};
    case PTX_PARAM:
        return (struct place){h->parameters, HARNESS_PARAMETERS, space->window};
    default:
        return (struct place){harness_host(h, global), BUFFER, global};
    }
}

/* Fills everything with noise, and calls it written. */
static void fill(struct harness *h, struct rng *rng, uint64_t global) {
    unsigned char *places[] = {harness_host(h, global), h->block.shared, h->block.local,
                               h->parameters};
    const size_t sizes[] = {BUFFER, HARNESS_SHARED, (size_t)HARNESS_LOCAL * 32 * HARNESS_WARPS,
                            HARNESS_PARAMETERS};
    for (size_t p = 0; p < 4; p++) {
        for (size_t n = 0; n < sizes[p]; n++) {
            places[p][n] = (unsigned char)rng_u64(rng);
        }
    }
    simt_memory_mark(h->memory, global, BUFFER);
    if (h->block.shadow != NULL) {
        simt_shadow_mark(h->block.shadow, 0, HARNESS_SHARED);
        memset(h->block.shadow->local, 1, h->block.shadow->local_words);
    }
    for (int r = 1; r < R128 + 16; r++) {
        for (size_t n = 0; n < SIMT_LANES; n++) {
            harness_row(h, r)->u64[n] = rng_u64(rng);
            harness_row(h, r)[1].u64[n] = rng_u64(rng);
        }
    }
}

enum pattern { RANDOM, ASCENDING, SAME, DISTINCT, EIGHTS, PATTERNS };

/* Aligned offsets of the lanes; distinct ones where a store must not meet another. */
static void choose_offsets(struct rng *rng, enum pattern pattern, size_t bytes, uint32_t size,
                           uint32_t offsets[SIMT_LANES]) {
    size_t slots = bytes / size;
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        size_t slot = pattern == RANDOM ? rng_below(rng, slots) : 0;
        if (pattern == ASCENDING || pattern == DISTINCT) {
            slot = pattern == ASCENDING ? n : (n * 7 + 3) % 32;
        } else if (pattern == EIGHTS) { /* eight by eight, the last eight first */
            slot = 32 - 8 * (n / 8 + 1) + n % 8;
        }
        offsets[n] = (uint32_t)(slot % slots) * size;
    }
}

static uint64_t register_mask(uint32_t bytes) {
    return bytes >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * bytes) - 1;
}

struct access_case {
    const struct space_case *space;
    const struct type_case *type;
    uint32_t count; /* elements */
    int first;      /* first data register */
    uint32_t bytes; /* of a register */
    enum pattern pattern;
    uint32_t mask;
    bool strong;
};

static void set_addresses(struct harness *h, const struct access_case *c, uint64_t global,
                          const uint32_t offsets[SIMT_LANES], int64_t immediate) {
    int number = c->space->narrow ? R32 + 15 : R64;
    union simt_row *row = harness_row(h, number);
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        uint64_t address =
            find_place(h, c->space, global, n).address + offsets[n] - (uint64_t)immediate;
        if ((c->mask >> n & 1) == 0) {
            address = 0xdead0000beef0001u;
        }
        if (c->space->narrow) {
            row->u32[n] = (uint32_t)address;
        } else {
            row->u64[n] = address;
        }
    }
}

static void name_opcode(const struct access_case *c, const char *base, char *text, size_t size) {
    static const char *const vectors[] = {[1] = "", [2] = ".v2", [4] = ".v4", [8] = ".v8"};
    snprintf(text, size, "%s%s%s%s.%s", base, c->strong ? ".volatile" : "", c->space->name,
             vectors[c->count], c->type->name);
}

/* The row as it should be after the load of one element. */
static void expect_row(struct harness *h, const struct access_case *c, uint64_t global,
                       const uint32_t offsets[SIMT_LANES], uint32_t e, union simt_row want[2]) {
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        uint64_t halves[2] = {0, 0};
        const unsigned char *from =
            find_place(h, c->space, global, n).host + offsets[n] + e * c->type->bytes;
        if ((c->mask >> n & 1) == 0) {
            continue;
        }
        memcpy(halves, from, c->type->bytes);
        if (c->type->is_signed && (from[c->type->bytes - 1] & 0x80) != 0) {
            halves[0] |= ~register_mask(c->type->bytes);
        }
        if (c->bytes <= 4) {
            want[0].u32[n] = (uint32_t)(halves[0] & register_mask(c->bytes));
        } else {
            want[0].u64[n] = halves[0];
        }
        if (c->bytes == 16) {
            want[1].u64[n] = halves[1];
        }
    }
}

static void check_load(struct harness *h, struct rng *rng, const struct access_case *c,
                       uint64_t global) {
    uint32_t offsets[SIMT_LANES];
    char opcode[64];
    union simt_row want[SIMT_MAX_VECTOR][2];
    int64_t immediate = (int64_t)rng_below(rng, 65) - 32;
    struct harness_operands o = {
        .dst_count = c->count, .address = c->space->narrow ? R32 + 15 : R64, .offset = immediate};
    size_t bytes = find_place(h, c->space, global, 0).bytes;
    choose_offsets(rng, c->pattern, bytes, c->type->bytes * c->count, offsets);
    set_addresses(h, c, global, offsets, immediate);
    for (uint32_t e = 0; e < c->count; e++) {
        o.dst[e] = c->first + (int)e;
        memcpy(want[e], harness_row(h, o.dst[e]), sizeof want[e]);
        expect_row(h, c, global, offsets, e, want[e]);
    }
    name_opcode(c, "ld", opcode, sizeof opcode);
    harness_mask(h, c->mask);
    if (!harness_run(h, opcode, &o)) {
        TEST_FAIL("%s: not known, or %s", opcode, h->block.fault.text);
        return;
    }
    for (uint32_t e = 0; e < c->count; e++) {
        if (memcmp(want[e], harness_row(h, o.dst[e]), sizeof want[e]) != 0) {
            TEST_FAIL("%s, register of %u bytes, mask %08x, element %u", opcode, c->bytes, c->mask,
                      e);
        }
    }
}

typedef void check_case(struct harness *h, struct rng *rng, const struct access_case *c,
                        uint64_t global);

/* Runs a case for each space, type, vector and register that fits. */
static void for_each_case(struct harness *h, struct rng *rng, uint64_t global, check_case *check) {
    static const struct {
        int first;
        uint32_t bytes;
    } registers[] = {{R64 + 1, 8}, {R32, 4}, {R16, 2}, {R128, 16}};
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++) {
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            for (uint32_t count = 1; count <= 8; count *= 2) {
                for (size_t r = 0; r < 4; r++) {
                    const uint32_t masks[] = {UINT32_MAX, (uint32_t)rng_u64(rng) | 1,
                                              1u << rng_below(rng, 32)};
                    struct access_case c = {
                        &spaces[s],         &types[t], count, registers[r].first,
                        registers[r].bytes, RANDOM,    0,     false};
                    for (size_t m = 0; m < 12; m++) {
                        c.mask = masks[m % 3];
                        c.pattern = (enum pattern)(m / 3);
                        c.strong = rng_below(rng, 4) == 0;
                        if (c.bytes >= c.type->bytes && c.type->bytes * count <= 32 &&
                            !test_has_failed()) {
                            check(h, rng, &c, global);
                        }
                    }
                }
            }
        }
    }
}

/* Runs all cases in one warp of a new harness. */
static void run_cases(enum simt_check level, uint64_t seed, int warp, check_case *check) {
    struct harness h;
    struct rng rng = rng_create(seed + (uint64_t)level);
    ASSERT_TRUE(harness_create(&h, level));
    uint64_t global = harness_alloc(&h, BUFFER);
    h.warp = &h.warps[warp];
    fill(&h, &rng, global);
    for_each_case(&h, &rng, global, check);
    harness_free(&h);
}

static void run_loads(enum simt_check level) {
    run_cases(level, 1, 2, check_load);
}

C_TEST(access, loads_without_checks) {
    run_loads(SIMT_CHECK_OFF);
}

C_TEST(access, loads_with_bounds) {
    run_loads(SIMT_CHECK_BOUNDS);
}

C_TEST(access, loads_with_full_checks) {
    run_loads(SIMT_CHECK_FULL);
}

/* Writes into `to`, which starts like `from`, what the active lanes store. */
static void apply_store(struct harness *h, const struct access_case *c, uint64_t global,
                        const uint32_t offsets[SIMT_LANES], const unsigned char *from,
                        unsigned char *to) {
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        unsigned char *place = to + (find_place(h, c->space, global, n).host - from) + offsets[n];
        for (uint32_t e = 0; e < c->count && (c->mask >> n & 1) != 0; e++) {
            const union simt_row *row = harness_row(h, c->first + (int)e);
            uint64_t halves[2] = {c->bytes <= 4 ? row->u32[n] : row->u64[n], row[1].u64[n]};
            memcpy(place + e * c->type->bytes, halves, c->type->bytes);
        }
    }
}

static void check_store(struct harness *h, struct rng *rng, const struct access_case *c,
                        uint64_t global) {
    static unsigned char want[4][(size_t)HARNESS_LOCAL * 32 * HARNESS_WARPS];
    unsigned char *places[] = {harness_host(h, global), h->block.shared, h->block.local};
    const size_t sizes[] = {BUFFER, HARNESS_SHARED, sizeof want[2]};
    uint32_t offsets[SIMT_LANES];
    char opcode[64];
    struct harness_operands o = {
        .address = c->space->narrow ? R32 + 15 : R64, .offset = 16, .src_count = c->count};
    bool overlaps = c->pattern != ASCENDING && c->pattern != DISTINCT;
    uint32_t size = c->type->bytes * c->count;
    if (!c->space->writable || (overlaps && h->run.check == SIMT_CHECK_FULL && !c->strong)) {
        return;
    }
    if (c->space->in == PTX_LOCAL) {
        choose_offsets(rng, RANDOM, HARNESS_LOCAL, size, offsets);
    } else {
        choose_offsets(rng, c->pattern, BUFFER, size, offsets);
    }
    set_addresses(h, c, global, offsets, 16);
    for (size_t p = 0; p < 3; p++) {
        memcpy(want[p], places[p], sizes[p]);
    }
    size_t p = c->space->in == PTX_GLOBAL ? 0 : c->space->in == PTX_SHARED ? 1 : 2;
    apply_store(h, c, global, offsets, places[p], want[p]);
    for (uint32_t e = 0; e < c->count; e++) {
        o.src[e] = c->first + (int)e;
    }
    name_opcode(c, "st", opcode, sizeof opcode);
    harness_mask(h, c->mask);
    if (h->block.shadow != NULL) {
        simt_shadow_meet(h->block.shadow, h->warp->index); /* stores before do not matter here */
    }
    if (!harness_run(h, opcode, &o)) {
        TEST_FAIL("%s: not known, or %s", opcode, h->block.fault.text);
        return;
    }
    for (p = 0; p < 3; p++) {
        if (memcmp(want[p], places[p], sizes[p]) != 0) {
            TEST_FAIL("%s, register of %u bytes, mask %08x", opcode, c->bytes, c->mask);
        }
    }
}

static void run_stores(enum simt_check level) {
    run_cases(level, 11, 1, check_store);
}

C_TEST(access, stores_without_checks) {
    run_stores(SIMT_CHECK_OFF);
}

C_TEST(access, stores_with_bounds) {
    run_stores(SIMT_CHECK_BOUNDS);
}

C_TEST(access, stores_with_full_checks) {
    run_stores(SIMT_CHECK_FULL);
}

HARNESS_TEST(access, modifiers_that_change_nothing_are_accepted, SIMT_CHECK_BOUNDS) {
    static const char *const loads[] = {"ld.volatile.global.u32",
                                        "ld.relaxed.gpu.global.u32",
                                        "ld.acquire.sys.global.u32",
                                        "ld.weak.global.u32",
                                        "ld.global.nc.u32",
                                        "ld.global.ca.u32",
                                        "ld.global.cg.u32",
                                        "ld.global.cs.u32",
                                        "ld.global.cv.u32",
                                        "ld.global.lu.u32",
                                        "ld.global.nc.L1::no_allocate.L2::128B.u32",
                                        "ld.global.L1::evict_last.u32",
                                        "ldu.global.u32",
                                        "ld.acquire.cta.u32"};
    uint64_t global = harness_alloc(h, BUFFER);
    harness_addresses(h, R64, global, 4);
    for (uint32_t n = 0; n < BUFFER / 4; n++) {
        memcpy(harness_host(h, global) + 4 * n, &n, 4);
    }
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        memset(harness_row(h, R32), 0, sizeof(union simt_row));
        const struct harness_operands o = {
            .dst = {R32}, .dst_count = 1, .address = R64, .offset = 8};
        if (!harness_run(h, loads[i], &o) || harness_row(h, R32)->u32[31] != 33) {
            TEST_FAIL("%s", loads[i]);
        }
    }
}

HARNESS_TEST(access, unknown_forms_are_refused, SIMT_CHECK_BOUNDS) {
    static const char *const opcodes[] = {"ld.global.frob.u32", "ld.shared::grid.u32",
                                          "ld.global",          "ld.global.v4.u32",
                                          "ldmatrix.u32",       "ld.global.pred"};
    struct harness_instruction in;
    const struct harness_operands o = {.dst = {R32}, .dst_count = 1, .address = R64};
    const struct harness_operands st = {.address = R64, .src = {R32}, .src_count = 1};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        EXPECT_TRUE(!harness_decode(h, &in, opcodes[i], &o));
    }
    EXPECT_TRUE(!harness_decode(h, &in, "st.const.u32", &st));
    EXPECT_TRUE(!harness_decode(h, &in, "st.param.u32", &st));
    EXPECT_TRUE(!harness_decode(h, &in, "atom.local.add.u32", &o));
}

/* Lanes of one generic load in global, pinned host, shared and local memory. */
HARNESS_TEST(access, lanes_may_differ_in_space_and_allocation, SIMT_CHECK_FULL) {
    static uint32_t pinned[8];
    uint64_t near = harness_alloc(h, 64);
    uint64_t far = harness_alloc(h, 64);
    EXPECT_OK(simt_memory_register_host(h->memory, pinned, sizeof pinned, "cudaMallocHost"));
    const uint64_t starts[] = {near, (uint64_t)(uintptr_t)pinned, SIMT_SHARED_WINDOW,
                               SIMT_LOCAL_WINDOW, far};
    union simt_row *address = harness_row(h, R64);
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        address->u64[n] = starts[n % 5] + 4 * (n / 5);
        harness_row(h, R32)->u32[n] = 1000 + n;
    }
    const struct harness_operands st = {.address = R64, .src = {R32}, .src_count = 1};
    const struct harness_operands ld = {.address = R64, .dst = {R32 + 1}, .dst_count = 1};
    EXPECT_TRUE(harness_run(h, "st.u32", &st));
    EXPECT_TRUE(harness_run(h, "ld.u32", &ld));
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        EXPECT_INT_EQ(1000 + n, harness_row(h, R32 + 1)->u32[n]);
    }
    EXPECT_INT_EQ(1001, pinned[0]);
    EXPECT_INT_EQ(1002, ((uint32_t *)(void *)h->block.shared)[0]);
    /* One request each, whatever it was split into. */
    EXPECT_INT_EQ(1, h->counters.global_store_requests);
}

HARNESS_TEST(access, addresses_convert_to_windows_and_back, SIMT_CHECK_BOUNDS) {
    static const struct {
        const char *space;
        uint64_t window;
    } rows[] = {{"shared", SIMT_SHARED_WINDOW},
                {"local", SIMT_LOCAL_WINDOW},
                {"param", SIMT_PARAMETER_WINDOW},
                {"global", 0},
                {"const", 0}};
    char opcode[64];
    for (size_t i = 0; i < 5; i++) {
        const struct harness_operands there = {.dst = {R64 + 1}, .dst_count = 1, .address = R64};
        const struct harness_operands back = {.dst = {R64 + 2}, .dst_count = 1, .address = R64 + 1};
        harness_mask(h, 0x7fffffff);
        harness_addresses(h, R64, 64, 8);
        harness_addresses(h, R64 + 1, 7, 0);
        harness_addresses(h, R64 + 2, 7, 0);
        snprintf(opcode, sizeof opcode, "cvta.%s.u64", rows[i].space);
        EXPECT_TRUE(harness_run(h, opcode, &there));
        snprintf(opcode, sizeof opcode, "cvta.to.%s.u64", rows[i].space);
        EXPECT_TRUE(harness_run(h, opcode, &back));
        EXPECT_TRUE(harness_row(h, R64 + 1)->u64[3] == rows[i].window + 88);
        EXPECT_INT_EQ(88, harness_row(h, R64 + 2)->u64[3]);
        EXPECT_INT_EQ(7, harness_row(h, R64 + 2)->u64[31]);
    }
}

static uint32_t ask_space(struct harness *h, const char *opcode) {
    struct harness_instruction in;
    const struct harness_operands o = {.dst = {R32}, .dst_count = 1, .address = R64};
    if (!harness_decode(h, &in, opcode, &o)) {
        /* The destination is a predicate, which the helper does not know: set it here. */
        in.decoded.pred_dst[0] = 3;
        const struct simt_decoding decoding = {.source = &in.source, .function = &h->function};
        if (!simt_decode_memory(&decoding, &in.decoded)) {
            return 0xdeadu;
        }
    }
    in.decoded.run(h->warp, &in.decoded);
    return h->warp->predicates[3];
}

HARNESS_TEST(access, isspacep_tells_spaces_apart, SIMT_CHECK_BOUNDS) {
    static const uint64_t starts[] = {1 << 20, SIMT_SHARED_WINDOW, SIMT_LOCAL_WINDOW,
                                      SIMT_PARAMETER_WINDOW};
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        harness_row(h, R64)->u64[n] = starts[n % 4] + 4 * n;
    }
    harness_mask(h, 0xfffffff0);
    h->warp->predicates[3] = 0xf;
    EXPECT_INT_EQ(0x1111111f, ask_space(h, "isspacep.global"));
    EXPECT_INT_EQ(0x2222222f, ask_space(h, "isspacep.shared"));
    EXPECT_INT_EQ(0x4444444f, ask_space(h, "isspacep.local"));
    EXPECT_INT_EQ(0x8888888f, ask_space(h, "isspacep.param"));
}

HARNESS_TEST(access, hints_and_fences_run, SIMT_CHECK_FULL) {
    static const char *const opcodes[] = {
        "prefetch.global.L2", "prefetchu.L1", "membar.gl",         "membar.cta",      "membar.sys",
        "fence.acq_rel.gpu",  "fence.sc.cta", "discard.global.L2", "applypriority.L2"};
    const struct harness_operands o = {.address = R64};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        EXPECT_TRUE(harness_run(h, opcodes[i], &o));
    }
}

/* What ldmatrix, cp.async and the like are built on. */
HARNESS_TEST(access, places_are_told_and_counted, SIMT_CHECK_BOUNDS) {
    struct simt_access access = {
        .space = PTX_SHARED, .kind = SIMT_READ, .bytes = 16, .counted = true};
    unsigned char *host[SIMT_LANES] = {NULL};
    const struct simt_instruction none = {.guard = -1};
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        access.addresses[n] = 16 * n;
    }
    EXPECT_TRUE(simt_access_resolve(h->warp, &none, &access, host));
    EXPECT_TRUE(host[31] == h->block.shared + 496);
    simt_access_cache_tally(h->block.cache, &h->counters, NULL);
    EXPECT_INT_EQ(4, h->counters.shared_load_wavefronts);
    access.addresses[7] = HARNESS_SHARED;
    EXPECT_TRUE(!simt_access_resolve(h->warp, &none, &access, host));
    EXPECT_INT_EQ(7, h->block.fault.thread[0]);
}

HARNESS_TEST(access, wild_accesses_without_checks_do_nothing, SIMT_CHECK_OFF) {
    static const uint64_t wild[] = {0,
                                    8,
                                    UINT64_MAX - 3,
                                    SIMT_SHARED_WINDOW + (1 << 20),
                                    SIMT_LOCAL_WINDOW + (1 << 20),
                                    (uint64_t)1 << 60};
    const struct harness_operands ld = {.dst = {R32}, .dst_count = 1, .address = R64};
    const struct harness_operands st = {.address = R64, .src = {R32 + 1}, .src_count = 1};
    const struct harness_operands atom = {
        .dst = {R32}, .dst_count = 1, .address = R64, .src = {R32 + 1}, .src_count = 1};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        harness_addresses(h, R64, wild[i], 1 << 24);
        harness_row(h, R32)->u32[0] = 5;
        EXPECT_TRUE(harness_run(h, "ld.u32", &ld));
        EXPECT_INT_EQ(0, harness_row(h, R32)->u32[0]);
        EXPECT_TRUE(harness_run(h, "st.u32", &st));
        EXPECT_TRUE(harness_run(h, "atom.add.u32", &atom));
        EXPECT_TRUE(harness_run(h, "ld.global.u32", &ld));
        EXPECT_TRUE(harness_run(h, "st.shared.u32", &st));
    }
}
