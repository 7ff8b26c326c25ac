/**
 * @file convert.c
 * @brief cvt between all integer and float types, and cvt.pack.
 *
 * The usual conversions have handlers of their own. All others go through one
 * exact path: a lane becomes an integer of 64 bits or a double (which holds every
 * source exactly), and encode() rounds it once into the destination's format.
 *
 * detail[0]: enum alu_flag and TO_INTEGER; detail[1]: rounding; detail[2]: destination
 * type and source type << 8; detail[3]: bits of the destination's register.
 */
#include "common/simt/alu/half.h"

enum { TO_INTEGER = 1 << 16 };

/** A floating-point format as encode() needs it. */
struct format {
    int fraction_bits;
    int least_exponent; /**< of normal numbers */
    uint64_t infinity;  /**< its bits, also the sign bit's mask less one half */
    uint64_t sign;
    uint64_t nan;
};

/* tf32 has the exponents of fp32 and 10 bits of fraction; its bits stand 13 places up. */
static const struct format half_format = {10, -14, 0x7c00, 0x8000, HALF_NAN};
static const struct format bfloat_format = {7, -126, 0x7f80, 0x8000, HALF_NAN};
static const struct format tf32_format = {10, -126, 0x3fc00, 0x40000, 0x3ffff};
static const struct format single_format = {23, -126, 0x7f800000, 0x80000000, 0x7fffffff};
static const struct format double_format = {52, -1022, 0x7ff0000000000000, 0x8000000000000000,
                                            0x7fffffffffffffff};

static const struct format *find_format(enum ptx_type type) {
    switch (type) {
    case PTX_F16:
    case PTX_F16X2:
        return &half_format;
    case PTX_BF16:
    case PTX_BF16X2:
        return &bfloat_format;
    case PTX_TF32:
        return &tf32_format;
    case PTX_F32:
        return &single_format;
    case PTX_F64:
        return &double_format;
    default:
        return NULL;
    }
}

/** @return whether what was cut off, its first bit and the rest, asks for the next value up. */
static bool rounds_up(uint32_t rounding, bool negative, bool odd, bool first, bool rest) {
    switch (rounding) {
    case ALU_NEAREST:
        return first && (rest || odd);
    case ALU_AWAY:
        return first;
    case ALU_DOWN:
        return negative && (first || rest);
    case ALU_UP:
        return !negative && (first || rest);
    default:
        return false;
    }
}

/** @return the magnitude's bits of mantissa * 2^exponent, rounded; may reach or pass infinity. */
static uint64_t encode_magnitude(const struct format *format, bool negative, uint64_t mantissa,
                                 int exponent, uint32_t rounding) {
    if (mantissa == 0) {
        return 0;
    }
    const int zeros = __builtin_clzll(mantissa);
    const int leading = exponent + 63 - zeros;
    const int below = leading < format->least_exponent ? format->least_exponent - leading : 0;
    const int cut = 63 - format->fraction_bits + below;

    mantissa <<= zeros;
    if (cut > 64) {
        return rounds_up(rounding, negative, false, false, true);
    }
    const uint64_t kept = cut == 64 ? 0 : mantissa >> cut;
    const uint64_t lost = mantissa << (64 - cut);
    const bool up = rounds_up(rounding, negative, kept & 1, lost >> 63, lost << 1 != 0);
    const uint64_t biased = below > 0 ? 0 : (uint64_t)(leading - format->least_exponent);

    return (biased << format->fraction_bits) + kept + up;
}

static uint64_t encode(const struct format *format, bool negative, uint64_t mantissa, int exponent,
                       uint32_t rounding, bool finite) {
    const uint64_t bits = encode_magnitude(format, negative, mantissa, exponent, rounding);
    const bool towards_zero = rounding == ALU_ZERO || (rounding == ALU_DOWN && !negative) ||
                              (rounding == ALU_UP && negative);
    const uint64_t overflow = format->infinity - (towards_zero || finite ? 1 : 0);

    return (bits < format->infinity ? bits : overflow) | (negative ? format->sign : 0);
}

/** @return a quiet NaN with the upper bits of a double's fraction. */
static uint64_t carry_payload(const struct format *format, bool negative, uint64_t fraction) {
    const uint64_t quiet = (uint64_t)1 << (format->fraction_bits - 1);

    return (negative ? format->sign : 0) | format->infinity | quiet |
           fraction >> (52 - format->fraction_bits);
}

/** @return a double in the format's bits. @p keep_payload: a NaN stays the NaN it is */
static uint64_t encode_double(const struct format *format, double value, uint32_t rounding,
                              bool finite, bool keep_payload) {
    const uint64_t bits = row_bits_of_double(value);
    const bool negative = bits >> 63;
    const uint32_t field = (uint32_t)(bits >> 52) & 0x7ff;
    const uint64_t fraction = bits & 0xfffffffffffff;

    if (field == 0x7ff) {
        if (fraction != 0) {
            return keep_payload ? carry_payload(format, negative, fraction) : format->nan;
        }
        return (format->infinity - (finite ? 1 : 0)) | (negative ? format->sign : 0);
    }
    if (field == 0) {
        return encode(format, negative, fraction, -1074, rounding, finite);
    }
    return encode(format, negative, fraction | (uint64_t)1 << 52, (int)field - 1075, rounding,
                  finite);
}

static enum ptx_type destination_type(const struct simt_instruction *instruction) {
    return (enum ptx_type)(instruction->detail[2] & 0xff);
}

static enum ptx_type source_type(const struct simt_instruction *instruction) {
    return (enum ptx_type)(instruction->detail[2] >> 8);
}

static bool is_signed(enum ptx_type type) {
    return type == PTX_S8 || type == PTX_S16 || type == PTX_S32 || type == PTX_S64;
}

/** @return the low bits of @p value that an integer type has, extended to 64 by its sign. */
static uint64_t extend(uint64_t value, enum ptx_type type) {
    const unsigned spare = 64 - 8 * (unsigned)ptx_type_size(type);

    return is_signed(type) ? (uint64_t)((int64_t)(value << spare) >> spare)
                           : value << spare >> spare;
}

/** Whether the lanes of the source's row are 8 bytes apart. */
enum { WIDE_SOURCE = 1 << 17 };

static void load_integers(const struct simt_warp *warp, const struct simt_instruction *instruction,
                          uint64_t values[SIMT_LANES]) {
    const union simt_row *row = simt_row(warp, instruction->src[0]);
    const bool wide = instruction->detail[0] & WIDE_SOURCE;

    for (size_t i = 0; i < SIMT_LANES; i++) {
        values[i] = extend(wide ? row->u64[i] : row->u32[i], source_type(instruction));
    }
}

/** A row of floats of any format as doubles, subnormals flushed if asked for. */
static void load_floats(const struct simt_warp *warp, const struct simt_instruction *instruction,
                        double values[SIMT_LANES]) {
    const union simt_row *row = simt_row(warp, instruction->src[0]);
    const enum ptx_type type = source_type(instruction);
    const bool wide = instruction->detail[0] & WIDE_SOURCE;
    const bool flush = instruction->detail[0] & ALU_FTZ;

    for (size_t i = 0; i < SIMT_LANES; i++) {
        const uint64_t bits = wide ? row->u64[i] : row->u32[i];
        const uint32_t word = (uint32_t)bits;
        const float plain = row_float_of_bits(word);
        const float single = flush ? float_canonical(float_flush(plain)) : plain;

        values[i] = type == PTX_F64    ? row_double_of_bits(bits)
                    : type == PTX_F32  ? (double)single
                    : type == PTX_BF16 ? (double)bfloat_to_float(word & 0xffff)
                                       : (double)half_to_float(word & 0xffff);
    }
}

/** Extends results to the destination's register and writes them. */
static void store_bits(const struct simt_warp *warp, const struct simt_instruction *instruction,
                       const uint64_t values[SIMT_LANES]) {
    const uint32_t bits = instruction->detail[3];
    uint32_t narrow[SIMT_LANES];

    if (bits == 64) {
        row_commit64(warp, instruction->dst[0], values);
        return;
    }
    for (size_t i = 0; i < SIMT_LANES; i++) {
        narrow[i] = (uint32_t)(values[i] & (((uint64_t)1 << bits) - 1));
    }
    row_commit32(warp, instruction->dst[0], narrow);
}

/** Largest and, of signed types, least value. */
static uint64_t largest(enum ptx_type type) {
    const unsigned bits = 8 * (unsigned)ptx_type_size(type);

    return UINT64_MAX >> (64 - bits + is_signed(type));
}

/** @return an integer clamped to a type; @p value is signed when @p from is. */
static uint64_t saturate_integer(uint64_t value, enum ptx_type from, enum ptx_type to) {
    const bool negative = is_signed(from) && (int64_t)value < 0;
    const uint64_t least = is_signed(to) ? ~largest(to) : 0;

    if (negative) {
        return (int64_t)value < (int64_t)least ? least : value;
    }
    return value > largest(to) ? largest(to) : value;
}

ROW_HANDLER(integer_to_integer) {
    const enum ptx_type to = destination_type(instruction);
    const bool saturate = instruction->detail[0] & ALU_SAT;
    uint64_t values[SIMT_LANES];

    load_integers(warp, instruction, values);
    for (size_t i = 0; i < SIMT_LANES; i++) {
        const uint64_t value =
            saturate ? saturate_integer(values[i], source_type(instruction), to) : values[i];
        values[i] = extend(value, to);
    }
    store_bits(warp, instruction, values);
}

/** @return the bits of @p value as the format's, after .sat; an integer of 64 bits. */
static uint64_t encode_integer(const struct format *format, uint64_t value, bool negative,
                               const struct simt_instruction *instruction) {
    if (instruction->detail[0] & ALU_SAT) {
        value = negative || value == 0 ? 0 : 1;
        negative = false;
    }
    return encode(format, negative, negative ? 0 - value : value, 0, instruction->detail[1], false);
}

ROW_HANDLER(integer_to_float) {
    const struct format *format = find_format(destination_type(instruction));
    const bool can_be_negative = is_signed(source_type(instruction));
    uint64_t values[SIMT_LANES];

    load_integers(warp, instruction, values);
    for (size_t i = 0; i < SIMT_LANES; i++) {
        const bool negative = can_be_negative && values[i] >> 63;
        values[i] = encode_integer(format, values[i], negative, instruction);
    }
    store_bits(warp, instruction, values);
}

/** @return @p x rounded to a whole number, still a double. */
static double round_whole(double x, uint32_t rounding) {
    switch (rounding) {
    case ALU_NEAREST:
        return __builtin_rint(x);
    case ALU_DOWN:
        return __builtin_floor(x);
    case ALU_UP:
        return __builtin_ceil(x);
    default:
        return __builtin_trunc(x);
    }
}

/**
 * @return a whole number as an integer of the type, clamped. NaN gives 0, but from
 *         fp64 and to 64 bits the top bit alone, as an H200 does.
 */
static uint64_t clamp_whole(double whole, enum ptx_type type, enum ptx_type from) {
    const uint64_t most = largest(type);
    const unsigned bits = 8 * (unsigned)ptx_type_size(type);

    if (whole != whole) {
        const bool top = from == PTX_F64 || bits == 64;
        return top ? extend((uint64_t)1 << (bits - 1), type) : 0;
    }
    if (whole < 0) {
        const int64_t least = is_signed(type) ? -(int64_t)most - 1 : 0;
        return whole <= (double)least ? (uint64_t)least : (uint64_t)(int64_t)whole;
    }
    /* (double)most may be rounded up to the power of two, which is out of range. */
    return whole >= (double)most ? most : (uint64_t)whole;
}

ROW_HANDLER(float_to_integer) {
    const enum ptx_type to = destination_type(instruction);
    double values[SIMT_LANES];
    uint64_t bits[SIMT_LANES];

    load_floats(warp, instruction, values);
    for (size_t i = 0; i < SIMT_LANES; i++) {
        bits[i] = clamp_whole(round_whole(values[i], instruction->detail[1]), to,
                              source_type(instruction));
    }
    store_bits(warp, instruction, bits);
}

static double clamp_double(double x, uint32_t flags) {
    if (flags & ALU_SAT) {
        x = x > 0.0 ? x : 0.0;
        return x < 1.0 ? x : 1.0;
    }
    return flags & ALU_RELU && !(x != x) && !(x > 0.0) ? 0.0 : x;
}

/** One value in the destination's format; all modifiers of detail[0] and [1]. */
static uint64_t convert_float(const struct simt_instruction *instruction, double value) {
    const uint32_t flags = instruction->detail[0];
    const enum ptx_type to = destination_type(instruction);
    const bool whole = flags & TO_INTEGER;
    const double rounded = whole ? round_whole(value, instruction->detail[1]) : value;
    const uint32_t rounding = whole ? ALU_NEAREST : instruction->detail[1];
    /* Conversions from and to fp64 keep what a NaN carries, as an H200 does. */
    const bool keep = to == PTX_F64 || source_type(instruction) == PTX_F64;
    uint64_t bits = encode_double(find_format(to), clamp_double(rounded, flags), rounding,
                                  flags & ALU_SATFINITE, keep);

    if (to == PTX_TF32) {
        return bits << 13;
    }
    if (to == PTX_F32 && flags & ALU_FTZ) {
        bits = row_bits_of_float(float_flush(row_float_of_bits((uint32_t)bits)));
    }
    return bits;
}

ROW_HANDLER(float_to_float) {
    double values[SIMT_LANES];
    uint64_t bits[SIMT_LANES];

    load_floats(warp, instruction, values);
    for (size_t i = 0; i < SIMT_LANES; i++) {
        bits[i] = convert_float(instruction, values[i]);
    }
    store_bits(warp, instruction, bits);
}

/** cvt.f16x2.f32 and bf16x2: the first source is the upper half. */
ROW_HANDLER(floats_to_pair) {
    const float *upper = simt_row(warp, instruction->src[0])->f32;
    const float *lower = simt_row(warp, instruction->src[1])->f32;
    uint32_t pairs[SIMT_LANES];

    for (size_t i = 0; i < SIMT_LANES; i++) {
        const uint64_t high = convert_float(instruction, (double)upper[i]);
        const uint64_t low = convert_float(instruction, (double)lower[i]);
        pairs[i] = (uint32_t)(high << 16 | low);
    }
    row_commit32(warp, instruction->dst[0], pairs);
}

/* cvt.pack: both sources clamped, the first in the upper half of the low end, a third source
 * shifted up behind them. detail[0]: bits of an element; detail[1]: signed; detail[2]: three. */
static inline uint32_t pack_element(int32_t value, uint32_t bits, bool with_sign) {
    const int32_t most = (int32_t)((1u << (bits - with_sign)) - 1);
    const int32_t least = with_sign ? -most - 1 : 0;

    value = value > most ? most : value;
    value = value < least ? least : value;
    return (uint32_t)value & ((1u << bits) - 1);
}

ROW_HANDLER(pack) {
    const uint32_t bits = instruction->detail[0];
    const bool with_sign = instruction->detail[1];
    const bool three = instruction->detail[2];
    ROW_DESTINATION;
    ROW_SOURCE(a, 0);
    ROW_SOURCE(b, 1);
    const union simt_row *c = simt_row(warp, instruction->src[three ? 2 : 0]);

    ROW_STORE(uint32_t, u32, const uint32_t above = three ? c->u32[i] << (2 * bits & 31) : 0;
              , above | pack_element(a->s32[i], bits, with_sign) << bits |
                    pack_element(b->s32[i], bits, with_sign));
}

/* The usual conversions. */

/** @return @p x cut to an integer, clamped; NaN gives 0. */
static inline int32_t float_to_s32(float x) {
    const float bounded = float_choose(x < 0x1p31f, x, 0.0f);
    const float inside = float_choose(bounded >= -0x1p31f, bounded, 0.0f);
    const uint32_t cut = (uint32_t)(int32_t)inside;
    const uint32_t high = 0 - (uint32_t)(x >= 0x1p31f);
    const uint32_t low = 0 - (uint32_t)(x < -0x1p31f);

    return (int32_t)(cut | (high & 0x7fffffff) | (low & 0x80000000));
}

static inline uint32_t float_to_u32(float x) {
    const float positive = float_choose(x > 0.0f, x, 0.0f);
    const bool upper = positive >= 0x1p31f;
    const float lowered = float_choose(upper, positive - 0x1p31f, positive);
    const float inside = float_choose(lowered < 0x1p31f, lowered, 0.0f);
    const uint32_t high = 0 - (uint32_t)(x >= 0x1p32f);

    return ((uint32_t)(int32_t)inside ^ (uint32_t)upper << 31) | high;
}

#define FROM_F32(NAME, EXPRESSION) ROW_OP1(NAME, uint32_t, u32, float, f32, EXPRESSION)
FROM_F32(s32_rzi_f32, (uint32_t)float_to_s32(x))
FROM_F32(s32_rni_f32, (uint32_t)float_to_s32(__builtin_rintf(x)))
FROM_F32(s32_rmi_f32, (uint32_t)float_to_s32(__builtin_floorf(x)))
FROM_F32(s32_rpi_f32, (uint32_t)float_to_s32(__builtin_ceilf(x)))
FROM_F32(u32_rzi_f32, float_to_u32(x))

/** @return @p x rounded to 10 bits of fraction, ties away; of NaN the bits that fit. */
static inline uint32_t float_to_tf32(float x) {
    const uint32_t bits = row_bits_of_float(x);
    const uint32_t half = (bits & 0x7f800000) == 0x7f800000 ? 0 : 0x1000;

    return (bits + half) & ~0x1fffu;
}

FROM_F32(tf32_rna_f32, float_to_tf32(x))
FROM_F32(f16_rn_f32, float_to_half(x))
FROM_F32(bf16_rn_f32, float_to_bfloat(x))
ROW_OP1(f32_rzi_f32, float, f32, float, f32, float_canonical(__builtin_truncf(x)))
ROW_OP1(f32_rni_f32, float, f32, float, f32, float_canonical(__builtin_rintf(x)))
ROW_OP1(f32_rmi_f32, float, f32, float, f32, float_canonical(__builtin_floorf(x)))
ROW_OP1(f32_rpi_f32, float, f32, float, f32, float_canonical(__builtin_ceilf(x)))
ROW_OP1(f32_rn_s32, float, f32, int32_t, u32, (float)x)
ROW_OP1(f32_rn_u32, float, f32, uint32_t, u32, (float)x)
ROW_OP1(f64_rn_s32, double, f64, int32_t, u32, (double)x)
ROW_OP1(f64_rn_u32, double, f64, uint32_t, u32, (double)x)
ROW_OP1(f32_f16, float, f32, uint32_t, u32, float_canonical(half_to_float(x & 0xffff)))
ROW_OP1(f32_bf16, float, f32, uint32_t, u32, bfloat_to_float(x & 0xffff))
ROW_OP1(f64_f32, double, f64, float, f32, (double)x)
ROW_OP1(f32_rn_f64, float, f32, double, f64, (float)x)
ROW_OP2(f16x2_rn_f32, uint32_t, u32, float, f32, float, f32,
        float_to_half(x) << 16 | float_to_half(y))
ROW_OP2(bf16x2_rn_f32, uint32_t, u32, float, f32, float, f32,
        float_to_bfloat(x) << 16 | float_to_bfloat(y))

static const struct alu_entry usual[] = {
    {"cvt.rzi.s32.f32", s32_rzi_f32},     {"cvt.rni.s32.f32", s32_rni_f32},
    {"cvt.rmi.s32.f32", s32_rmi_f32},     {"cvt.rpi.s32.f32", s32_rpi_f32},
    {"cvt.rzi.u32.f32", u32_rzi_f32},     {"cvt.rn.f16.f32", f16_rn_f32},
    {"cvt.rn.bf16.f32", bf16_rn_f32},     {"cvt.rzi.f32.f32", f32_rzi_f32},
    {"cvt.rni.f32.f32", f32_rni_f32},     {"cvt.rmi.f32.f32", f32_rmi_f32},
    {"cvt.rpi.f32.f32", f32_rpi_f32},     {"cvt.rn.f32.s32", f32_rn_s32},
    {"cvt.rn.f32.u32", f32_rn_u32},       {"cvt.rn.f64.s32", f64_rn_s32},
    {"cvt.rn.f64.u32", f64_rn_u32},       {"cvt.f32.f16", f32_f16},
    {"cvt.f32.bf16", f32_bf16},           {"cvt.f64.f32", f64_f32},
    {"cvt.rn.f32.f64", f32_rn_f64},       {"cvt.rn.f16x2.f32", f16x2_rn_f32},
    {"cvt.rn.bf16x2.f32", bf16x2_rn_f32}, {"cvt.rna.tf32.f32", tf32_rna_f32},
};

/* Integers: the low bits of a source, extended, cut to the destination's register. */
#define CAST32(NAME, OUT, T) ROW_OP1(NAME, OUT, u32, T, u32, x)
#define CAST_FROM(S, T)           \
    CAST32(to16_##S, uint16_t, T) \
    CAST32(to32_##S, uint32_t, T) \
    ROW_OP1(to64_##S, uint64_t, u64, T, u32, x)

CAST_FROM(u8, uint8_t)
CAST_FROM(s8, int8_t)
CAST_FROM(u16, uint16_t)
CAST_FROM(s16, int16_t)
CAST_FROM(u32, uint32_t)
CAST_FROM(s32, int32_t)
ROW_OP1(to32_wide, uint32_t, u32, uint32_t, u64, x)
ROW_OP1(to16_wide, uint16_t, u32, uint16_t, u64, x)
ROW_OP1(to64_wide, uint64_t, u64, uint64_t, u64, x)

struct cast {
    enum ptx_type from;
    simt_handler *to16, *to32, *to64;
};

static const struct cast casts[] = {
    {PTX_U8, to16_u8, to32_u8, to64_u8},        {PTX_S8, to16_s8, to32_s8, to64_s8},
    {PTX_U16, to16_u16, to32_u16, to64_u16},    {PTX_S16, to16_s16, to32_s16, to64_s16},
    {PTX_U32, to16_u32, to32_u32, to64_u32},    {PTX_S32, to16_s32, to32_s32, to64_s32},
    {PTX_U64, to16_wide, to32_wide, to64_wide}, {PTX_S64, to16_wide, to32_wide, to64_wide},
};

/** @return the handler of an integer conversion whose registers are as wide as its types. */
static simt_handler *find_cast(enum ptx_type to, enum ptx_type from) {
    for (size_t i = 0; i < COUNT(casts); i++) {
        if (casts[i].from == from) {
            const size_t size = ptx_type_size(to);
            return size == 8   ? casts[i].to64
                   : size == 4 ? casts[i].to32
                   : size == 2 ? casts[i].to16
                               : NULL;
        }
    }
    return NULL;
}

static bool is_integer(enum ptx_type type) {
    return type >= PTX_U8 && type <= PTX_S64;
}

static bool is_scalar_float(enum ptx_type type) {
    return type == PTX_F16 || type == PTX_BF16 || type == PTX_F32 || type == PTX_F64;
}

/** What a form may say: which conversions take a rounding mode and which flags. */
static bool integer_target_allowed(const struct alu_form *form, enum ptx_type from) {
    if (is_integer(from)) {
        return form->rounding == ALU_NO_ROUNDING && (form->flags & ~(uint32_t)ALU_SAT) == 0;
    }
    return form->to_integer && (form->flags & ~(uint32_t)(ALU_SAT | ALU_FTZ)) == 0;
}

static bool float_target_allowed(const struct alu_form *form, enum ptx_type to,
                                 enum ptx_type from) {
    const bool half_target = find_format(to)->fraction_bits <= 10;
    const uint32_t extra = half_target && from == PTX_F32 ? ALU_RELU | ALU_SATFINITE : 0;

    if (form->flags & ~(uint32_t)(ALU_SAT | ALU_FTZ | extra)) {
        return false;
    }
    if (is_integer(from)) {
        return form->rounding <= ALU_ZERO && !form->to_integer;
    }
    if (to == from) {
        return form->rounding == ALU_NO_ROUNDING || form->to_integer;
    }
    if (ptx_type_size(to) > ptx_type_size(from) && to != PTX_TF32) {
        return form->rounding == ALU_NO_ROUNDING;
    }
    return form->rounding != ALU_NO_ROUNDING && !form->to_integer &&
           (form->rounding != ALU_AWAY || to == PTX_TF32);
}

/** @return the handler of the exact path, or NULL when the form is none of PTX's. */
static simt_handler *general_handler(const struct alu_form *form, enum ptx_type to,
                                     enum ptx_type from, bool pair) {
    if (!is_integer(from) && !is_scalar_float(from)) {
        return NULL;
    }
    if (is_integer(to)) {
        return !integer_target_allowed(form, from) ? NULL
               : is_integer(from)                  ? integer_to_integer
                                                   : float_to_integer;
    }
    if (find_format(to) == NULL || ((pair || to == PTX_TF32) && from != PTX_F32) ||
        !float_target_allowed(form, to, from)) {
        return NULL;
    }
    return pair ? floats_to_pair : is_integer(from) ? integer_to_float : float_to_float;
}

static void fill_details(const struct simt_decoding *decoding, const struct alu_form *form,
                         enum ptx_type to, enum ptx_type from, struct simt_instruction *out) {
    out->detail[0] = form->flags | (form->to_integer ? TO_INTEGER : 0) |
                     (alu_register_bits(decoding, 1) > 32 ? WIDE_SOURCE : 0);
    out->detail[1] = form->rounding == ALU_NO_ROUNDING ? ALU_NEAREST : form->rounding;
    out->detail[2] = (uint32_t)to | (uint32_t)from << 8;
    out->detail[3] = (uint32_t)alu_register_bits(decoding, 0);
}

/** @return a handler of its own for the usual cases, where registers are as wide as types. */
static simt_handler *usual_handler(const struct simt_decoding *decoding,
                                   const struct alu_form *form, enum ptx_type to,
                                   enum ptx_type from) {
    const bool wide = alu_register_bits(decoding, 1) > 32;

    if (alu_register_bits(decoding, 0) != 8 * ptx_type_size(to) ||
        wide != (ptx_type_size(from) > 4)) {
        return NULL;
    }
    if (is_integer(to) && is_integer(from)) {
        return form->flags == 0 ? find_cast(to, from) : NULL;
    }
    return alu_find(usual, COUNT(usual), decoding->source->opcode);
}

struct pack_name {
    const char *opcode;
    uint32_t bits;
    bool with_sign, three;
};

static const struct pack_name pack_names[] = {
    {"cvt.pack.sat.u16.s32", 16, false, false},  {"cvt.pack.sat.s16.s32", 16, true, false},
    {"cvt.pack.sat.u8.s32.b32", 8, false, true}, {"cvt.pack.sat.s8.s32.b32", 8, true, true},
    {"cvt.pack.sat.u4.s32.b32", 4, false, true}, {"cvt.pack.sat.s4.s32.b32", 4, true, true},
    {"cvt.pack.sat.u2.s32.b32", 2, false, true}, {"cvt.pack.sat.s2.s32.b32", 2, true, true},
};

static bool decode_pack(const struct simt_decoding *decoding, struct simt_instruction *out) {
    for (size_t i = 0; i < COUNT(pack_names); i++) {
        if (strcmp(decoding->source->opcode, pack_names[i].opcode) == 0) {
            out->detail[0] = pack_names[i].bits;
            out->detail[1] = pack_names[i].with_sign;
            out->detail[2] = pack_names[i].three;
            out->run = pack;
            out->op_class = SIMT_CLASS_CONVERT;
            return out->src_count == (pack_names[i].three ? 3 : 2);
        }
    }
    return false;
}

bool alu_decode_cvt(const struct simt_decoding *decoding, struct simt_instruction *instruction) {
    const struct ptx_instruction *source = decoding->source;
    const enum ptx_type to = ptx_modifier_type(source, 0);
    const enum ptx_type from = ptx_modifier_type(source, 1);
    const bool pair = to == PTX_F16X2 || to == PTX_BF16X2;
    struct alu_form form;
    size_t named = 0;

    if (strcmp(source->base, "cvt") != 0) {
        return false;
    }
    if (decode_pack(decoding, instruction)) {
        return true;
    }
    if (!alu_form_parse(source, &form) || instruction->src_count != (pair ? 2 : 1)) {
        return false;
    }
    /* What is left in the key must be cvt and two types. */
    for (const char *c = form.key; *c != '\0'; c++) {
        named += *c == '.';
    }
    simt_handler *run = general_handler(&form, to, from, pair);
    if (run == NULL || named != 2) {
        return false;
    }
    fill_details(decoding, &form, to, from, instruction);
    simt_handler *own = usual_handler(decoding, &form, to, from);
    instruction->run = own != NULL ? own : run;
    instruction->op_class = SIMT_CLASS_CONVERT;
    return true;
}
