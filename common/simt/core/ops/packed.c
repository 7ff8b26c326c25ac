/* vabsdiff4, and conversions to and from pairs of 8-bit floats. */
#include <string.h>

#include "common/simt/alu/row_ops.h"
#include "common/simt/core/code.h"
#include "common/simt/core/ops/small_float.h"

static uint32_t absolute_differences(uint32_t a, uint32_t b, bool is_signed, bool sum) {
    uint32_t result = 0;
    for (uint32_t n = 0; n < 4; n++) {
        int32_t x = (int32_t)(a >> 8 * n & 0xff), y = (int32_t)(b >> 8 * n & 0xff);
        if (is_signed) {
            x = (x ^ 0x80) - 0x80;
            y = (y ^ 0x80) - 0x80;
        }
        uint32_t difference = (uint32_t)(x < y ? y - x : x - y);
        result += sum ? difference : (difference & 0xff) << 8 * n;
    }
    return result;
}

/* detail: 0 the bytes are signed, 1 .add: c plus the sum of the four. */
static void run_differences(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t values[SIMT_LANES];
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        bool sum = i->detail[1] != 0;
        values[lane] =
            absolute_differences(simt_row(warp, i->src[0])->u32[lane],
                                 simt_row(warp, i->src[1])->u32[lane], i->detail[0] != 0, sum) +
            (sum ? simt_row(warp, i->src[2])->u32[lane] : 0);
    }
    row_commit32(warp, i->dst[0], values);
}

/* vabsdiff4.t.t.t{.add} d, a, b, c; without .sat, without selectors. */
static bool decode_differences(const struct ptx_instruction *in, struct simt_instruction *out) {
    enum ptx_type a = ptx_modifier_type(in, 1), b = ptx_modifier_type(in, 2);
    bool plain = out->src_count == 3 && a == b && (a == PTX_U32 || a == PTX_S32) &&
                 in->modifier_count == 3u + ptx_has_modifier(in, "add");
    for (size_t n = 1; n < in->operand_count && plain; n++) {
        plain = in->operands[n].special == NULL;
    }
    if (!plain) {
        return false;
    }
    out->detail[0] = a == PTX_S32;
    out->detail[1] = ptx_has_modifier(in, "add");
    out->op_class = SIMT_CLASS_INTEGER;
    out->run = run_differences;
    return true;
}

/* detail[0]: e5m2, else e4m3; detail[1]: .relu. */
static uint32_t to_byte(const struct simt_instruction *i, double x) {
    x = i->detail[1] != 0 && x < 0.0 ? 0.0 : x;
    return i->detail[0] != 0 ? double_to_e5m2(x) : double_to_e4m3(x);
}

static void run_from_floats(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t values[SIMT_LANES];
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t high = to_byte(i, (double)simt_row(warp, i->src[0])->f32[lane]);
        uint32_t low = to_byte(i, (double)simt_row(warp, i->src[1])->f32[lane]);
        values[lane] = low | high << 8;
    }
    row_commit32(warp, i->dst[0], values);
}

static void run_from_halves(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t values[SIMT_LANES];
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t pair = simt_row(warp, i->src[0])->u32[lane];
        uint32_t high = to_byte(i, (double)half_to_float(pair >> 16));
        uint32_t low = to_byte(i, (double)half_to_float(pair & 0xffff));
        values[lane] = low | high << 8;
    }
    row_commit32(warp, i->dst[0], values);
}

static uint32_t half_of(const struct simt_instruction *i, uint32_t byte) {
    double value = i->detail[0] != 0 ? e5m2_to_double(byte) : e4m3_to_double(byte);
    value = i->detail[1] != 0 && value < 0.0 ? 0.0 : value;
    return float_to_half((float)value);
}

static void run_to_halves(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t values[SIMT_LANES];
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t pair = simt_row(warp, i->src[0])->u32[lane];
        values[lane] = half_of(i, pair & 0xff) | half_of(i, pair >> 8 & 0xff) << 16;
    }
    row_commit32(warp, i->dst[0], values);
}

static simt_handler *conversion(const char *to, const char *from, uint32_t sources,
                                bool *wide_range) {
    bool to_bytes = strcmp(to, "e4m3x2") == 0 || strcmp(to, "e5m2x2") == 0;
    bool from_bytes = strcmp(from, "e4m3x2") == 0 || strcmp(from, "e5m2x2") == 0;
    *wide_range = strcmp(to_bytes ? to : from, "e5m2x2") == 0;
    if (to_bytes && strcmp(from, "f32") == 0 && sources == 2) {
        return run_from_floats;
    }
    if (to_bytes && strcmp(from, "f16x2") == 0 && sources == 1) {
        return run_from_halves;
    }
    return from_bytes && strcmp(to, "f16x2") == 0 && sources == 1 ? run_to_halves : NULL;
}

/* cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b; ...f16x2 d, a; cvt.rn{.relu}.f16x2.e4m3x2 d, a. */
static bool decode_conversion(const struct ptx_instruction *in, struct simt_instruction *out) {
    bool wide_range;
    if (in->modifier_count < 3 || !ptx_has_modifier(in, "rn") || out->dst_count != 1) {
        return false;
    }
    out->run = conversion(in->modifiers[in->modifier_count - 2],
                          in->modifiers[in->modifier_count - 1], out->src_count, &wide_range);
    out->detail[0] = wide_range;
    out->detail[1] = ptx_has_modifier(in, "relu");
    out->op_class = SIMT_CLASS_CONVERT;
    return out->run != NULL;
}

bool simt_decode_packed(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    if (strcmp(in->base, "vabsdiff4") == 0) {
        return decode_differences(in, out);
    }
    return strcmp(in->base, "cvt") == 0 && decode_conversion(in, out);
}
