#include <stdio.h>
#include <string.h>

#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

/* References read and write single bits, as the ISA's pseudo code does. */

struct form {
    const char *name;
    unsigned bits;
    bool is_signed;
};

static unsigned bit_of(uint64_t word, int64_t bit) {
    return (unsigned)(word >> bit & 1);
}

static uint64_t count(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    uint64_t ones = 0;
    uint64_t leading = 0;
    uint64_t reversed = 0;

    for (unsigned bit = 0; bit < f->bits; bit++) {
        ones += bit_of(s[0], bit);
        leading = bit_of(s[0], bit) ? 0 : leading + 1;
        reversed |= (uint64_t)bit_of(s[0], bit) << (f->bits - 1 - bit);
    }
    return strcmp(f->name, "popc") == 0 ? ones : strcmp(f->name, "clz") == 0 ? leading : reversed;
}

static uint64_t find(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    const unsigned sign = f->is_signed ? bit_of(s[0], f->bits - 1) : 0;

    for (int bit = (int)f->bits - 1; bit >= 0; bit--) {
        if (bit_of(s[0], bit) != sign) {
            return strstr(f->name, "shiftamt") != NULL ? f->bits - 1 - (unsigned)bit
                                                       : (uint64_t)bit;
        }
    }
    return UINT32_MAX;
}

/** Positions and lengths: the low byte; an H200 clamps those of 64-bit fields. */
static unsigned byte_of(const struct form *f, uint64_t word) {
    return f->bits == 64 && word > 255 ? 255 : word & 0xff;
}

static uint64_t extract(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    const unsigned position = byte_of(f, s[1]);
    const unsigned length = byte_of(f, s[2]);
    const unsigned end = position + length - 1;
    const unsigned sign =
        f->is_signed && length > 0 ? bit_of(s[0], end < f->bits - 1 ? end : f->bits - 1) : 0;
    uint64_t result = 0;

    for (unsigned bit = 0; bit < f->bits; bit++) {
        const bool inside = bit < length && position + bit <= f->bits - 1;
        result |= (uint64_t)(inside ? bit_of(s[0], position + bit) : sign) << bit;
    }
    return result;
}

static uint64_t insert(const void *context, const uint64_t s[4]) {
    const struct form *f = context;
    const unsigned position = byte_of(f, s[2]);
    const unsigned length = byte_of(f, s[3]);
    uint64_t result = s[1];

    for (unsigned bit = 0; bit < length && position + bit < f->bits; bit++) {
        const uint64_t at = (uint64_t)1 << (position + bit);
        result = bit_of(s[0], bit) ? result | at : result & ~at;
    }
    return result;
}

C_TEST(alu_bits, counting_and_fields) {
    static const char *const counts[] = {"popc", "clz", "brev"};
    char opcode[32];

    for (unsigned bits = 32; bits <= 64; bits += 32) {
        for (size_t n = 0; n < COUNT(counts); n++) {
            const struct form form = {counts[n], bits, false};

            snprintf(opcode, sizeof opcode, "%s.b%u", counts[n], bits);
            alu_check(opcode, 1, alu_make_integer, count, &form);
        }
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            const struct form plain = {"bfind", bits, is_signed};
            const struct form amount = {"bfind.shiftamt", bits, is_signed};

            snprintf(opcode, sizeof opcode, "bfind.%c%u", "us"[is_signed], bits);
            alu_check(opcode, 1, alu_make_integer, find, &plain);
            snprintf(opcode, sizeof opcode, "bfind.shiftamt.%c%u", "us"[is_signed], bits);
            alu_check(opcode, 1, alu_make_integer, find, &amount);
            snprintf(opcode, sizeof opcode, "bfe.%c%u", "us"[is_signed], bits);
            alu_check(opcode, 3, alu_make_integer, extract, &plain);
        }
        const struct form form = {"bfi", bits, false};
        snprintf(opcode, sizeof opcode, "bfi.b%u", bits);
        alu_check(opcode, 4, alu_make_integer, insert, &form);
    }
}

static uint64_t funnel(const void *context, const uint64_t s[4]) {
    const char *name = context;
    const bool left = name[4] == 'l';
    const bool wrap = strstr(name, "wrap") != NULL;
    const unsigned amount = wrap ? s[2] % 32 : s[2] > 32 ? 32 : (unsigned)s[2];
    uint64_t result = 0;

    for (int bit = 0; bit < 32; bit++) {
        const int from = left ? 32 + bit - (int)amount : bit + (int)amount;
        const unsigned one = from < 32 ? bit_of(s[0], from) : bit_of(s[1], from - 32);
        result |= (uint64_t)one << bit;
    }
    return result;
}

/** Bytes of {s[1], s[0]} by a list of selectors, the most significant first. */
static uint64_t bytes_by(const uint64_t s[4], const unsigned pick[4]) {
    uint64_t result = 0;

    for (int n = 0; n < 4; n++) {
        const unsigned which = pick[n] & 7;
        const unsigned byte =
            (unsigned)(which < 4 ? s[0] >> (8 * which) : s[1] >> (8 * which - 32));
        const unsigned sign = byte & 0x80 ? 0xff : 0;
        result = result << 8 | (pick[n] & 8 ? sign : byte & 0xff);
    }
    return result;
}

static uint64_t permute(const void *context, const uint64_t s[4]) {
    const char *mode = context;
    const unsigned n = s[2] & 3;
    const unsigned high = n & 1;
    unsigned pick[4]; /* of result bytes 3, 2, 1, 0 */

    for (unsigned at = 0; at < 4; at++) {
        const unsigned byte = 3 - at;
        pick[at] = strcmp(mode, "f4e") == 0    ? byte + n
                   : strcmp(mode, "b4e") == 0  ? (n + 8 - byte) % 8
                   : strcmp(mode, "rc8") == 0  ? n
                   : strcmp(mode, "ecl") == 0  ? (byte > n ? byte : n)
                   : strcmp(mode, "ecr") == 0  ? (byte < n ? byte : n)
                   : strcmp(mode, "rc16") == 0 ? 2 * high + byte % 2
                                               : (unsigned)(s[2] >> (4 * byte)) & 15;
    }
    return bytes_by(s, pick);
}

C_TEST(alu_bits, funnel_shifts_and_permutations) {
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    static const char *const shifts[] = {"shf.l.wrap.b32", "shf.l.clamp.b32", "shf.r.wrap.b32",
                                         "shf.r.clamp.b32"};
    char opcode[32];

    for (size_t n = 0; n < COUNT(shifts); n++) {
        alu_check(shifts[n], 3, alu_make_integer, funnel, shifts[n]);
    }
    alu_check("prmt.b32", 3, alu_make_integer, permute, "");
    for (size_t n = 0; n < COUNT(modes); n++) {
        snprintf(opcode, sizeof opcode, "prmt.b32.%s", modes[n]);
        alu_check(opcode, 3, alu_make_integer, permute, modes[n]);
    }
}

static uint64_t nth_set(const void *context, const uint64_t s[4]) {
    const int32_t offset = (int32_t)(uint32_t)s[2];
    const int step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? offset : -(int64_t)offset;

    (void)context;
    if (s[1] > 31) {
        return UINT32_MAX;
    }
    if (offset == 0) {
        return bit_of(s[0], (int64_t)s[1]) ? s[1] : UINT32_MAX;
    }
    for (int64_t bit = (int64_t)s[1]; bit >= 0 && bit < 32; bit += step) {
        if (bit_of(s[0], bit) && --left == 0) {
            return (uint64_t)bit;
        }
    }
    return UINT32_MAX;
}

static uint64_t small_offsets(struct rng *rng, size_t n, size_t bits) {
    return n == 1   ? rng_below(rng, 36)
           : n == 2 ? rng_below(rng, 20) - 10
                    : alu_make_integer(rng, n, bits);
}

static uint64_t dot(const void *context, const uint64_t s[4]) {
    const char *name = context;
    const bool two = name[2] == '2';
    const bool high = strstr(name, ".hi") != NULL;
    const char *types = strchr(name, two ? 'o' : 'a');
    const bool signed_a = strstr(name, ".s32.") != NULL;
    const bool signed_b = strcmp(name + strlen(name) - 3, "s32") == 0;
    int64_t sum = (int64_t)s[2];

    (void)types;
    for (int n = 0; n < (two ? 2 : 4); n++) {
        const int bits = two ? 16 : 8;
        const int byte = two ? n + (high ? 2 : 0) : n;
        int64_t x = (int64_t)(s[0] >> (bits * n)) & ((1 << bits) - 1);
        int64_t y = (int64_t)(s[1] >> (8 * byte)) & 0xff;
        x -= signed_a && x >> (bits - 1) ? 1 << bits : 0;
        y -= signed_b && y >> 7 ? 256 : 0;
        sum += x * y;
    }
    return (uint64_t)sum & UINT32_MAX;
}

C_TEST(alu_bits, nth_set_bit_and_dot_products) {
    static const char *const dots[] = {"dp4a.u32.u32",    "dp4a.u32.s32",    "dp4a.s32.u32",
                                       "dp4a.s32.s32",    "dp2a.lo.u32.u32", "dp2a.hi.u32.s32",
                                       "dp2a.lo.s32.u32", "dp2a.hi.s32.s32"};

    alu_check("fns.b32", 3, small_offsets, nth_set, NULL);
    for (size_t n = 0; n < COUNT(dots); n++) {
        alu_check(dots[n], 3, alu_make_integer, dot, dots[n]);
    }
}

static uint64_t mask_or_extend(const void *context, const uint64_t s[4]) {
    const char *name = context;
    const bool wrap = strstr(name, "wrap") != NULL;
    const uint64_t a = wrap && name[0] == 'b' ? s[0] % 32 : s[0];
    const uint64_t b = wrap ? s[1] % 32 : s[1];
    uint64_t result = 0;

    for (unsigned bit = 0; bit < 32; bit++) {
        if (name[0] == 'b') {
            result |= (uint64_t)(bit >= a && bit - a < b) << bit;
        } else {
            const unsigned from = bit < b ? bit : b == 0 ? 32 : (unsigned)b - 1;
            const bool there = bit < b || (strchr(name, 's') != strrchr(name, 's') && b > 0);
            result |= (uint64_t)(there ? bit_of(s[0], from) : 0) << bit;
        }
    }
    return result;
}

C_TEST(alu_bits, masks_and_extension) {
    static const char *const names[] = {"bmsk.clamp.b32", "bmsk.wrap.b32",   "szext.clamp.u32",
                                        "szext.wrap.u32", "szext.clamp.s32", "szext.wrap.s32"};

    for (size_t n = 0; n < COUNT(names); n++) {
        alu_check(names[n], 2, alu_make_integer, mask_or_extend, names[n]);
    }
}

C_TEST(alu_bits, all_256_tables_of_lop3) {
    struct alu_fixture f;

    alu_fixture_create(&f, "lop3.b32", 4);
    ASSERT_TRUE(alu_fixture_decode(&f));
    for (uint32_t table = 0; table < 256; table++) {
        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            const uint32_t constants[] = {0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, table};
            for (size_t n = 0; n < 4; n++) {
                alu_fixture_row(&f, n + 1)->u32[lane] = constants[n];
            }
            alu_fixture_row(&f, 0)->u32[lane] = 5;
        }
        alu_fixture_mask(&f, table % 2 == 0 ? UINT32_MAX : 0x00ff00ff);
        f.instruction.run(&f.warp, &f.instruction);
        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            /* By the definition of the table it is the result of its own three constants. */
            EXPECT_INT_EQ(f.warp.lanes[lane] ? table * 0x01010101u : 5,
                          alu_fixture_row(&f, 0)->u32[lane]);
        }
    }
}
