/*
 * Sectors and wavefronts against a plain count from the definitions, over known
 * and random patterns.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/memory/access/memory_harness.h"

enum { GLOBAL_BYTES = 1 << 16 };

static uint32_t plain_sectors(const uint64_t addresses[32], uint32_t mask, uint32_t bytes) {
    static bool seen[GLOBAL_BYTES];
    uint32_t count = 0;
    uint64_t base = UINT64_MAX;
    memset(seen, 0, sizeof seen);
    for (int n = 0; n < 32; n++) {
        base = addresses[n] / 32 < base ? addresses[n] / 32 : base;
    }
    for (int n = 0; n < 32; n++) {
        for (uint32_t b = 0; b < bytes && (mask >> n & 1) != 0; b++) {
            bool *sector = &seen[(addresses[n] + b) / 32 - base];
            count += !*sector;
            *sector = true;
        }
    }
    return count;
}

/* Cycles of one group of lanes: each bank serves one of its words a cycle. */
static uint32_t plain_group(const uint64_t addresses[32], uint32_t mask, uint32_t bytes, int begin,
                            int end) {
    static bool seen[HARNESS_SHARED / 4];
    uint32_t busy[32] = {0}, most = 0;
    memset(seen, 0, sizeof seen);
    for (int n = begin; n < end; n++) {
        for (uint32_t b = 0; b < bytes && (mask >> n & 1) != 0; b++) {
            uint64_t word = (addresses[n] + b) / 4;
            busy[word % 32] += !seen[word];
            seen[word] = true;
        }
    }
    for (int bank = 0; bank < 32; bank++) {
        most = busy[bank] > most ? busy[bank] : most;
    }
    return most;
}

/* Lanes n and n^1 of the range read the same wherever both are active; or all n and n^2 do. */
static bool plain_pairs(const uint64_t addresses[32], uint32_t mask, int begin, int end) {
    bool pairs[2] = {true, true};
    for (int n = begin; n < end; n++) {
        for (int d = 0; d < 2; d++) {
            int other = n ^ (1 << d);
            bool both = (mask >> n & 1) != 0 && (mask >> other & 1) != 0;
            pairs[d] = pairs[d] && (!both || addresses[n] == addresses[other]);
        }
    }
    return pairs[0] || pairs[1];
}

static uint32_t plain_wavefronts(const uint64_t addresses[32], uint32_t mask, uint32_t bytes,
                                 uint32_t *excess) {
    int lanes = bytes <= 4 ? 32 : 128 / (int)bytes;
    uint32_t total = 0;
    *excess = 0;
    for (int begin = 0; begin < 32; begin += lanes) {
        if (lanes < 32 && begin % (2 * lanes) == 0 &&
            plain_pairs(addresses, mask, begin, begin + 2 * lanes)) {
            uint32_t both = plain_group(addresses, mask, bytes, begin, begin + 2 * lanes);
            total += both;
            *excess += both > 0 ? both - 1 : 0;
            begin += lanes;
            continue;
        }
        uint32_t group = plain_group(addresses, mask, bytes, begin, begin + lanes);
        total += group;
        *excess += group > 0 ? group - 1 : 0;
    }
    return total;
}

struct counted {
    struct harness h;
    uint64_t global;
};

static void set(struct counted *c, const uint64_t addresses[32], uint32_t mask) {
    memcpy(harness_row(&c->h, R64)->u64, addresses, 32 * sizeof *addresses);
    harness_mask(&c->h, mask);
    c->h.counters = (struct simt_counters){0};
}

static const char *const vector_names[] = {
    [1] = "u8", [2] = "u16", [4] = "u32", [8] = "v2.u32", [16] = "v4.u32", [32] = "v8.u32"};

/* Runs a load of `bytes` bytes a lane; the counters say what it cost. */
static void load(struct counted *c, const char *space, uint32_t bytes) {
    char opcode[64];
    struct harness_operands o = {.address = R64, .dst_count = bytes <= 4 ? 1 : bytes / 4};
    for (size_t n = 0; n < o.dst_count; n++) {
        o.dst[n] = R32 + (int)n;
    }
    snprintf(opcode, sizeof opcode, "ld.%s.%s", space, vector_names[bytes]);
    if (!harness_run(&c->h, opcode, &o)) {
        TEST_FAIL("%s: %s", opcode, c->h.block.fault.text);
    }
}

static bool start(struct counted *c) {
    bool made = harness_create(&c->h, SIMT_CHECK_BOUNDS);
    c->global = harness_alloc(&c->h, GLOBAL_BYTES);
    return made && c->global != 0;
}

#define PATTERN_TEST(name) \
    FIXTURE_TEST(pattern, name, struct counted, c, start(c), harness_free(&c->h))

PATTERN_TEST(known_global_patterns) {
    static const struct {
        uint32_t bytes;
        uint64_t start, stride;
        uint32_t sectors;
    } rows[] = {{4, 0, 4, 4},    {4, 4, 4, 5},    {4, 0, 8, 8},     {4, 0, 128, 32}, {4, 12, 0, 1},
                {16, 0, 16, 16}, {8, 0, 8, 8},    {8, 0, 256, 32},  {1, 0, 1, 1},    {2, 0, 2, 2},
                {1, 31, 1, 2},   {32, 0, 32, 32}, {16, 16, 16, 17}, {4, 0, 12, 12}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t addresses[32];
        for (uint64_t n = 0; n < 32; n++) {
            addresses[n] = c->global + rows[i].start + n * rows[i].stride;
        }
        set(c, addresses, UINT32_MAX);
        load(c, "global", rows[i].bytes);
        EXPECT_INT_EQ(rows[i].sectors, c->h.counters.global_load_sectors);
        EXPECT_INT_EQ(1, c->h.counters.global_load_requests);
        EXPECT_INT_EQ(32 * rows[i].bytes, c->h.counters.global_bytes);
    }
}

PATTERN_TEST(known_shared_patterns) {
    static const struct {
        uint32_t bytes;
        uint64_t stride;
        uint32_t wavefronts, conflicts;
    } rows[] = {{4, 4, 1, 0},   {4, 8, 2, 1},      {4, 16, 4, 3},   {4, 128, 32, 31}, {4, 0, 1, 0},
                {4, 132, 1, 0}, {4, 12, 1, 0},     {1, 1, 1, 0},    {2, 2, 1, 0},     {1, 4, 1, 0},
                {8, 8, 2, 0},   {8, 16, 4, 2},     {8, 0, 1, 0},    {16, 16, 4, 0},   {16, 0, 2, 0},
                {16, 32, 8, 4}, {16, 128, 32, 28}, {8, 128, 32, 30}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t addresses[32];
        for (uint64_t n = 0; n < 32; n++) {
            addresses[n] = n * rows[i].stride;
        }
        set(c, addresses, UINT32_MAX);
        load(c, "shared", rows[i].bytes);
        EXPECT_INT_EQ(rows[i].wavefronts, c->h.counters.shared_load_wavefronts);
        EXPECT_INT_EQ(rows[i].conflicts, c->h.counters.shared_bank_conflicts);
    }
}

PATTERN_TEST(random_global_patterns) {
    struct rng rng = rng_create(21);
    for (size_t round = 0; round < 3000 && !test_has_failed(); round++) {
        uint32_t bytes = 1u << rng_below(&rng, 6);
        uint32_t span = 1u << (6 + rng_below(&rng, 11));
        uint32_t mask = round % 3 == 0 ? UINT32_MAX : (uint32_t)rng_u64(&rng) | 1u << 5;
        uint64_t addresses[32];
        for (int n = 0; n < 32; n++) {
            addresses[n] = c->global + rng_below(&rng, span / bytes) * bytes;
        }
        set(c, addresses, mask);
        for (int again = 0; again < 2; again++) {
            load(c, "global", bytes);
        }
        EXPECT_INT_EQ(2 * plain_sectors(addresses, mask, bytes), c->h.counters.global_load_sectors);
        EXPECT_INT_EQ(2 * bytes * (uint32_t)__builtin_popcount(mask), c->h.counters.global_bytes);
    }
}

PATTERN_TEST(random_shared_patterns) {
    struct rng rng = rng_create(22);
    for (size_t round = 0; round < 3000 && !test_has_failed(); round++) {
        uint32_t bytes = 1u << rng_below(&rng, 6);
        uint32_t span = 1u << (6 + rng_below(&rng, 7));
        uint32_t mask = round % 3 == 0 ? UINT32_MAX : (uint32_t)rng_u64(&rng) | 1u << 5;
        uint32_t excess;
        uint64_t addresses[32];
        for (int n = 0; n < 32; n++) {
            addresses[n] = rng_below(&rng, span / bytes) * bytes;
        }
        set(c, addresses, mask);
        load(c, "shared", bytes);
        EXPECT_INT_EQ(plain_wavefronts(addresses, mask, bytes, &excess),
                      c->h.counters.shared_load_wavefronts);
        EXPECT_INT_EQ(excess, c->h.counters.shared_bank_conflicts);
    }
}

/* Word w of the thread in lane l lies at word 32 w + l. */
PATTERN_TEST(random_local_patterns) {
    struct rng rng = rng_create(23);
    for (size_t round = 0; round < 2000 && !test_has_failed(); round++) {
        uint32_t bytes = 4u << rng_below(&rng, 4);
        uint32_t span = bytes << rng_below(&rng, 3);
        uint32_t mask = round % 3 == 0 ? UINT32_MAX : (uint32_t)rng_u64(&rng) | 1u << 5;
        uint64_t addresses[32];
        bool seen[HARNESS_LOCAL * 32 / 32] = {false};
        uint32_t sectors = 0;
        for (uint32_t n = 0; n < 32; n++) {
            addresses[n] = rng_below(&rng, span / bytes) * bytes;
            for (uint32_t b = 0; b < bytes && (mask >> n & 1) != 0; b += 4) {
                uint64_t sector = ((addresses[n] + b) / 4 * 32 + n) * 4 / 32;
                sectors += !seen[sector];
                seen[sector] = true;
            }
        }
        set(c, addresses, mask);
        load(c, "local", bytes);
        EXPECT_INT_EQ(sectors, c->h.counters.local_sectors);
        EXPECT_INT_EQ(1, c->h.counters.local_requests);
    }
}

/* A warp gets constants one address at a time. */
PATTERN_TEST(constants_come_one_after_the_other) {
    static const struct {
        uint64_t stride;
        uint32_t mask;
        uint64_t more;
    } rows[] = {{0, UINT32_MAX, 0}, {4, UINT32_MAX, 31}, {4, 0xff, 7}, {0, 0xff00, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t addresses[32];
        for (uint64_t n = 0; n < 32; n++) {
            addresses[n] = c->global + rows[i].stride * n;
        }
        set(c, addresses, rows[i].mask);
        load(c, "const", 4);
        EXPECT_INT_EQ(rows[i].more, c->h.counters.constant_serial);
        EXPECT_INT_EQ(0, c->h.counters.global_load_sectors);
    }
}

/* Stores and atomics go to counters of their own; constants to none of these. */
PATTERN_TEST(each_kind_has_its_counters) {
    uint64_t addresses[32];
    const struct harness_operands st = {.address = R64, .src = {R32}, .src_count = 1};
    for (uint64_t n = 0; n < 32; n++) {
        addresses[n] = c->global + 4 * n;
    }
    set(c, addresses, UINT32_MAX);
    EXPECT_TRUE(harness_run(&c->h, "st.global.u32", &st));
    EXPECT_TRUE(harness_run(&c->h, "red.global.add.u32", &st));
    load(c, "const", 4);
    EXPECT_INT_EQ(4, c->h.counters.global_store_sectors);
    EXPECT_INT_EQ(1, c->h.counters.global_store_requests);
    EXPECT_INT_EQ(0, c->h.counters.global_load_requests);
    EXPECT_INT_EQ(1, c->h.counters.atomic_requests);
    struct simt_counters sum = c->h.counters;
    simt_counters_add(&sum, &c->h.counters);
    EXPECT_INT_EQ(8, sum.global_store_sectors);
    EXPECT_INT_EQ(2, sum.atomic_requests);
    EXPECT_INT_EQ(0, sum.divergent_branches);
}
