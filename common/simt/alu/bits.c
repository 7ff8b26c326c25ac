/**
 * @file bits.c
 * @brief Bits and bytes: lop3 shf prmt bfe bfi bfind brev clz popc fns bmsk szext dp4a dp2a.
 */
#include "common/simt/alu/alu.h"
#include "common/simt/alu/row_ops.h"

/* Bits in a word by pairs, nibbles and bytes: vectorises where popcnt would not. */
static inline uint32_t ones32(uint32_t x) {
    x -= (x >> 1) & 0x55555555;
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    return (x * 0x01010101u) >> 24;
}

/** @return number of the highest set bit; UINT32_MAX when there is none. */
static inline uint32_t highest_bit(uint64_t x) {
    return x == 0 ? UINT32_MAX : 63 - (uint32_t)__builtin_clzll(x);
}

static inline uint32_t reverse32(uint32_t x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

static inline uint64_t reverse64(uint64_t x) {
    return (uint64_t)reverse32((uint32_t)x) << 32 | reverse32((uint32_t)(x >> 32));
}

ROW_OP1(popc_b32, uint32_t, u32, uint32_t, u32, ones32(x))
ROW_OP1(popc_b64, uint32_t, u32, uint64_t, u64, ones32((uint32_t)x) + ones32((uint32_t)(x >> 32)))
ROW_OP1(clz_b32, uint32_t, u32, uint32_t, u32, 31 - highest_bit(x))
ROW_OP1(clz_b64, uint32_t, u32, uint64_t, u64, 63 - highest_bit(x))
ROW_OP1(brev_b32, uint32_t, u32, uint32_t, u32, reverse32(x))
ROW_OP1(brev_b64, uint64_t, u64, uint64_t, u64, reverse64(x))

/* bfind looks for the highest bit that differs from the sign; .shiftamt counts from the top. */
#define SHIFT_AMOUNT(bit, bits) ((bit) == UINT32_MAX ? (bit) : (bits)-1 - (bit))
#define DEFINE_BFIND(S, T, V, BITS, MAGNITUDE)                      \
    ROW_OP1(bfind_##S, uint32_t, u32, T, V, highest_bit(MAGNITUDE)) \
    ROW_OP1(bfind_shiftamt_##S, uint32_t, u32, T, V, SHIFT_AMOUNT(highest_bit(MAGNITUDE), BITS))

DEFINE_BFIND(u32, uint32_t, u32, 32, x)
DEFINE_BFIND(u64, uint64_t, u64, 64, x)
DEFINE_BFIND(s32, int32_t, u32, 32, (uint32_t)(x < 0 ? ~x : x))
DEFINE_BFIND(s64, int64_t, u64, 64, (uint64_t)(x < 0 ? ~x : x))

/* @return @p count ones at the bottom; count may be the width or more. */
static inline uint32_t ones_below32(uint32_t count) {
    return count >= 32 ? UINT32_MAX : (1u << (count & 31)) - 1;
}

static inline uint64_t ones_below64(uint32_t count) {
    return count >= 64 ? UINT64_MAX : ((uint64_t)1 << (count & 63)) - 1;
}

/* Position and length are bytes; of 64 bits they are clamped to a byte instead, as the hardware
 * does where the ISA leaves it open. */
static inline uint32_t byte32(uint32_t x) {
    return x & 0xff;
}

static inline uint32_t byte64(uint32_t x) {
    return x < 255 ? x : 255;
}

/**
 * bfe and bfi of a width T. Bits beyond the top and above the field are zeros, or
 * copies of the field's sign: of its highest bit that lies in the word. A field of
 * no length is zero.
 */
#define DEFINE_FIELDS(BITS, T)                                                              \
    static inline T bfe_unsigned##BITS(T x, uint32_t position, uint32_t length) {           \
        const uint32_t start = byte##BITS(position);                                        \
        const T shifted = start < BITS ? x >> (start & (BITS - 1)) : 0;                     \
        return shifted & ones_below##BITS(byte##BITS(length));                              \
    }                                                                                       \
    static inline T bfe_signed##BITS(T x, uint32_t position, uint32_t length) {             \
        const uint32_t start = byte##BITS(position);                                        \
        const uint32_t end = start + byte##BITS(length);                                    \
        const uint32_t sign_at = end - 1 < BITS ? end - 1 : BITS - 1;                       \
        const T sign = byte##BITS(length) == 0 ? 0 : 0 - (x >> (sign_at & (BITS - 1)) & 1); \
        const T ones = ones_below##BITS(byte##BITS(length));                                \
        const T kept = start < BITS ? ones & ((T)-1 >> (start & (BITS - 1))) : 0;           \
        return (bfe_unsigned##BITS(x, position, length) & kept) | (sign & ~kept);           \
    }                                                                                       \
    static inline T bfi##BITS(T x, T y, uint32_t position, uint32_t length) {               \
        const uint32_t start = byte##BITS(position);                                        \
        const T ones = ones_below##BITS(byte##BITS(length));                                \
        const T field = start < BITS ? ones << (start & (BITS - 1)) : 0;                    \
        const T placed = start < BITS ? x << (start & (BITS - 1)) : 0;                      \
        return (placed & field) | (y & ~field);                                             \
    }

DEFINE_FIELDS(32, uint32_t)
DEFINE_FIELDS(64, uint64_t)

ROW_OP3(bfe_u32, uint32_t, u32, uint32_t, u32, uint32_t, u32, uint32_t, u32,
        bfe_unsigned32(x, y, z))
ROW_OP3(bfe_s32, uint32_t, u32, uint32_t, u32, uint32_t, u32, uint32_t, u32, bfe_signed32(x, y, z))
ROW_OP3(bfe_u64, uint64_t, u64, uint64_t, u64, uint32_t, u32, uint32_t, u32,
        bfe_unsigned64(x, y, z))
ROW_OP3(bfe_s64, uint64_t, u64, uint64_t, u64, uint32_t, u32, uint32_t, u32, bfe_signed64(x, y, z))

#define DEFINE_BFI(NAME, T, V, FUNCTION)                                     \
    ROW_HANDLER(NAME) {                                                      \
        ROW_DESTINATION;                                                     \
        ROW_SOURCE(a, 0);                                                    \
        ROW_SOURCE(b, 1);                                                    \
        ROW_SOURCE(c, 2);                                                    \
        ROW_SOURCE(e, 3);                                                    \
        ROW_STORE(T, V, , FUNCTION(a->V[i], b->V[i], c->u32[i], e->u32[i])); \
    }

DEFINE_BFI(bfi_b32, uint32_t, u32, bfi32)
DEFINE_BFI(bfi_b64, uint64_t, u64, bfi64)

/* bmsk: y ones from bit x on. szext: the low y bits of x, extended to the word. */
static inline uint32_t mask_clamp(uint32_t x, uint32_t y) {
    return x < 32 ? ones_below32(y) << (x & 31) : 0;
}

static inline uint32_t extend_signed(uint32_t x, uint32_t y) {
    return y == 0    ? 0
           : y >= 32 ? x
                     : (uint32_t)((int32_t)(x << ((32 - y) & 31)) >> ((32 - y) & 31));
}

#define WORD_OP2(NAME, EXPRESSION) \
    ROW_OP2(NAME, uint32_t, u32, uint32_t, u32, uint32_t, u32, EXPRESSION)

WORD_OP2(bmsk_clamp, mask_clamp(x, y))
WORD_OP2(bmsk_wrap, mask_clamp(x & 31, y & 31))
WORD_OP2(szext_clamp_u32, (x)&ones_below32(y))
WORD_OP2(szext_wrap_u32, (x)&ones_below32(y & 31))
WORD_OP2(szext_clamp_s32, extend_signed(x, y))
WORD_OP2(szext_wrap_s32, extend_signed(x, y & 31))

/* Funnel shifts move {y, x}, y the high word; .l delivers the high word, .r the low one. */
static inline uint32_t funnel_left(uint32_t x, uint32_t y, uint32_t amount) {
    return (uint32_t)((((uint64_t)y << 32 | x) << amount) >> 32);
}

static inline uint32_t funnel_right(uint32_t x, uint32_t y, uint32_t amount) {
    return (uint32_t)(((uint64_t)y << 32 | x) >> amount);
}

#define WORD_OP3(NAME, EXPRESSION) \
    ROW_OP3(NAME, uint32_t, u32, uint32_t, u32, uint32_t, u32, uint32_t, u32, EXPRESSION)

WORD_OP3(shf_l_wrap, funnel_left(x, y, z & 31))
WORD_OP3(shf_l_clamp, funnel_left(x, y, z < 32 ? z : 32))
WORD_OP3(shf_r_wrap, funnel_right(x, y, z & 31))
WORD_OP3(shf_r_clamp, funnel_right(x, y, z < 32 ? z : 32))

/* prmt picks bytes of {y, x}; bit 3 of a selector spreads that byte's sign instead. */
static inline uint32_t pick_byte(uint64_t bytes, uint32_t selector) {
    const uint32_t byte = (uint32_t)(bytes >> (8 * (selector & 7))) & 0xff;

    return selector & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}

static inline uint32_t permute(uint32_t x, uint32_t y, uint32_t z) {
    const uint64_t bytes = (uint64_t)y << 32 | x;

    return pick_byte(bytes, z) | pick_byte(bytes, z >> 4) << 8 | pick_byte(bytes, z >> 8) << 16 |
           pick_byte(bytes, z >> 12) << 24;
}

/* The other modes are permutations too: four tables of selectors, by the low bits of z. */
static inline uint32_t permute_by(uint32_t x, uint32_t y, uint32_t z, const uint16_t table[4]) {
    return permute(x, y, table[z & 3]);
}

static const uint16_t f4e_table[4] = {0x3210, 0x4321, 0x5432, 0x6543};
static const uint16_t b4e_table[4] = {0x5670, 0x6701, 0x7012, 0x0123};
static const uint16_t rc8_table[4] = {0x0000, 0x1111, 0x2222, 0x3333};
static const uint16_t ecl_table[4] = {0x3210, 0x3211, 0x3222, 0x3333};
static const uint16_t ecr_table[4] = {0x0000, 0x1110, 0x2210, 0x3210};
static const uint16_t rc16_table[4] = {0x1010, 0x3232, 0x1010, 0x3232};

WORD_OP3(prmt_b32, permute(x, y, z))
WORD_OP3(prmt_f4e, permute_by(x, y, z, f4e_table))
WORD_OP3(prmt_b4e, permute_by(x, y, z, b4e_table))
WORD_OP3(prmt_rc8, permute_by(x, y, z, rc8_table))
WORD_OP3(prmt_ecl, permute_by(x, y, z, ecl_table))
WORD_OP3(prmt_ecr, permute_by(x, y, z, ecr_table))
WORD_OP3(prmt_rc16, permute_by(x, y, z, rc16_table))

/* fns: from bit y on, upwards for z > 0 and downwards for z < 0, the |z|-th set bit of x. */
static uint32_t find_nth_set(uint32_t x, uint32_t base, int32_t offset) {
    if (base >= 32) {
        return UINT32_MAX;
    }
    if (offset == 0) {
        return x >> base & 1 ? base : UINT32_MAX;
    }
    int64_t left = offset > 0 ? offset : -(int64_t)offset;
    for (int32_t bit = (int32_t)base; bit >= 0 && bit<32; bit += offset> 0 ? 1 : -1) {
        left -= x >> bit & 1;
        if (left == 0) {
            return (uint32_t)bit;
        }
    }
    return UINT32_MAX;
}

ROW_OP3(fns_b32, uint32_t, u32, uint32_t, u32, uint32_t, u32, int32_t, u32, find_nth_set(x, y, z))

/* Dot products of bytes: TA, TB are the types of the elements of x and y. */
#define BYTE_PRODUCT(TA, TB, n) ((int32_t)(TA)(x >> (8 * (n))) * (int32_t)(TB)(y >> (8 * (n))))
#define DOT4(TA, TB)                                                                              \
    (z + (uint32_t)(BYTE_PRODUCT(TA, TB, 0) + BYTE_PRODUCT(TA, TB, 1) + BYTE_PRODUCT(TA, TB, 2) + \
                    BYTE_PRODUCT(TA, TB, 3)))
/* dp2a: both 16-bit halves of x times two bytes of y, the lower or the upper two. */
#define HALF_PRODUCT(TA, TB, n, byte) \
    ((int32_t)(TA)(x >> (16 * (n))) * (int32_t)(TB)(y >> (8 * (byte))))
#define DOT2(TA, TB, first) \
    (z + (uint32_t)(HALF_PRODUCT(TA, TB, 0, first) + HALF_PRODUCT(TA, TB, 1, first + 1)))
#define DEFINE_DOT(TYPES, BYTE_A, HALF_A, BYTE_B)      \
    WORD_OP3(dp4a_##TYPES, DOT4(BYTE_A, BYTE_B))       \
    WORD_OP3(dp2a_lo_##TYPES, DOT2(HALF_A, BYTE_B, 0)) \
    WORD_OP3(dp2a_hi_##TYPES, DOT2(HALF_A, BYTE_B, 2))

DEFINE_DOT(u32_u32, uint8_t, uint16_t, uint8_t)
DEFINE_DOT(u32_s32, uint8_t, uint16_t, int8_t)
DEFINE_DOT(s32_u32, int8_t, int16_t, uint8_t)
DEFINE_DOT(s32_s32, int8_t, int16_t, int8_t)

/* lop3: the sum of the minterms whose bit of the table is set. Its value is the same in all lanes:
 * each minterm is there or not as a mask. */
ROW_HANDLER(lop3_b32) {
    const uint32_t table = simt_row(warp, instruction->src[3])->u32[0];
    uint32_t term[8];
    ROW_DESTINATION;
    ROW_SOURCE(a, 0);
    ROW_SOURCE(b, 1);
    ROW_SOURCE(c, 2);

    for (uint32_t n = 0; n < 8; n++) {
        term[n] = 0 - (table >> n & 1);
    }
    const uint32_t t0 = term[0], t1 = term[1], t2 = term[2], t3 = term[3];
    const uint32_t t4 = term[4], t5 = term[5], t6 = term[6], t7 = term[7];
#define CHOOSE(by, yes, no) (((by) & (yes)) | (~(by) & (no)))
    ROW_STORE(uint32_t, u32, const uint32_t x = a->u32[i]; const uint32_t y = b->u32[i];
              const uint32_t z = c->u32[i];
              , CHOOSE(x, CHOOSE(y, CHOOSE(z, t7, t6), CHOOSE(z, t5, t4)),
                       CHOOSE(y, CHOOSE(z, t3, t2), CHOOSE(z, t1, t0))));
#undef CHOOSE
}

/** lop3.or / .and with d|p, a, b, c, table, q: p = (d != 0) op q. detail[0]: and. */
ROW_HANDLER(lop3_predicate) {
    const bool is_and = instruction->detail[0];
    const uint32_t q = row_predicate(warp, instruction, 4);
    uint32_t nonzero = 0;

    if (instruction->dst_count == 0) {
        return;
    }
    lop3_b32(warp, instruction);
    const uint32_t *d = simt_row(warp, instruction->dst[0])->u32;
    for (size_t i = 0; i < SIMT_LANES; i++) {
        nonzero |= (uint32_t)(d[i] != 0) << i;
    }
    row_commit_predicate(warp, instruction->pred_dst[0], is_and ? nonzero & q : nonzero | q);
}

#define ENTRIES_DOT(KEY, TYPES)                                       \
    {"dp4a." KEY, dp4a_##TYPES}, {"dp2a.lo." KEY, dp2a_lo_##TYPES}, { \
        "dp2a.hi." KEY, dp2a_hi_##TYPES                               \
    }
#define ENTRIES_BFIND(S)                         \
    {"bfind." #S, bfind_##S}, {                  \
        "bfind.shiftamt." #S, bfind_shiftamt_##S \
    }

static const struct alu_entry entries[] = {
    {"popc.b32", popc_b32},
    {"popc.b64", popc_b64},
    {"clz.b32", clz_b32},
    {"clz.b64", clz_b64},
    {"brev.b32", brev_b32},
    {"brev.b64", brev_b64},
    ENTRIES_BFIND(u32),
    ENTRIES_BFIND(u64),
    ENTRIES_BFIND(s32),
    ENTRIES_BFIND(s64),
    {"bfe.u32", bfe_u32},
    {"bfe.s32", bfe_s32},
    {"bfe.u64", bfe_u64},
    {"bfe.s64", bfe_s64},
    {"bfi.b32", bfi_b32},
    {"bfi.b64", bfi_b64},
    {"bmsk.clamp.b32", bmsk_clamp},
    {"bmsk.wrap.b32", bmsk_wrap},
    {"szext.clamp.u32", szext_clamp_u32},
    {"szext.wrap.u32", szext_wrap_u32},
    {"szext.clamp.s32", szext_clamp_s32},
    {"szext.wrap.s32", szext_wrap_s32},
    {"shf.l.wrap.b32", shf_l_wrap},
    {"shf.l.clamp.b32", shf_l_clamp},
    {"shf.r.wrap.b32", shf_r_wrap},
    {"shf.r.clamp.b32", shf_r_clamp},
    {"prmt.b32", prmt_b32},
    {"prmt.b32.f4e", prmt_f4e},
    {"prmt.b32.b4e", prmt_b4e},
    {"prmt.b32.rc8", prmt_rc8},
    {"prmt.b32.ecl", prmt_ecl},
    {"prmt.b32.ecr", prmt_ecr},
    {"prmt.b32.rc16", prmt_rc16},
    {"fns.b32", fns_b32},
    {"lop3.b32", lop3_b32},
    {"lop3.or.b32", lop3_predicate},
    {"lop3.and.b32", lop3_predicate},
    ENTRIES_DOT("u32.u32", u32_u32),
    ENTRIES_DOT("u32.s32", u32_s32),
    ENTRIES_DOT("s32.u32", s32_u32),
    ENTRIES_DOT("s32.s32", s32_s32),
};

bool alu_decode_bits(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    if (!alu_decode_entry(entries, COUNT(entries), SIMT_CLASS_INTEGER, decoding, instruction)) {
        return false;
    }
    instruction->detail[0] = ptx_has_modifier(decoding->source, "and");
    return true;
}
