/*
 * tex, tld4 and txq: fetches through texture objects (64-bit handles, PTX's unified mode).
 *
 * Each texel that a fetch needs is a load of global memory by all lanes: it is checked and
 * counted as one, and goes through L1.
 */
#include <inttypes.h>
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/handles.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/texture/sample.h"

/* detail: 0 the shape, 1 what the result is, 2 the channel of a gather or the question of txq. */
enum { SHAPE, RESULT, CHANNEL };
enum { SHAPE_DIMENSIONS = 3, SHAPE_LAYERED = 4, SHAPE_WHOLE = 8, SHAPE_GATHER = 16 };
enum { RESULT_FLOAT, RESULT_SIGNED, RESULT_UNSIGNED };
enum { ASK_WIDTH, ASK_HEIGHT, ASK_DEPTH, ASK_LAYERS, ASK_COUNT };

/* A fetch of some lanes through one object. */
struct fetch {
    struct simt_warp *warp;
    const struct simt_instruction *instruction;
    const struct simt_texture *texture;
    uint32_t lanes, tap_count;
    struct simt_tap taps[SIMT_LANES][SIMT_MOST_TAPS];
    uint32_t texels[SIMT_LANES][SIMT_MOST_TAPS][4];
};

static bool is_gather(const struct simt_instruction *i) {
    return (i->detail[SHAPE] & SHAPE_GATHER) != 0;
}

static struct simt_place place_of(const struct simt_warp *warp, const struct simt_instruction *i,
                                  uint32_t lane) {
    uint32_t shape = i->detail[SHAPE], dimensions = shape & SHAPE_DIMENSIONS;
    const uint32_t *row = simt_sources(i) + 1;
    struct simt_place place = {.whole = (shape & SHAPE_WHOLE) != 0};
    if ((shape & SHAPE_LAYERED) != 0) {
        place.layer = simt_row(warp, *row++)->s32[lane];
    }
    if (place.whole) {
        place.index = simt_row(warp, *row)->s32[lane];
        return place;
    }
    for (uint32_t axis = 0; axis < dimensions; axis++) {
        place.at[axis] = simt_row(warp, row[axis])->f32[lane];
    }
    return place;
}

/* Reads one texel of every lane, all where they are not the border. @return false: a fault */
static bool read_taps(struct fetch *f, uint32_t n) {
    const struct simt_texture *texture = f->texture;
    struct simt_access access = {.space = PTX_GLOBAL,
                                 .kind = SIMT_READ,
                                 .bytes = simt_image_texel(&texture->image),
                                 .counted = true};
    unsigned char *host[SIMT_LANES] = {NULL};
    uint32_t inside = 0;
    for (uint32_t rest = f->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        access.addresses[lane] = f->taps[lane][n].address;
        inside |= f->taps[lane][n].border ? 0 : (uint32_t)1 << lane;
    }
    if (inside != 0 && !simt_lane_resolve(f->warp, f->instruction, &access, inside, host)) {
        return false;
    }
    for (uint32_t rest = f->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        bool border = (inside >> lane & 1) == 0;
        static const unsigned char zeros[16];
        const unsigned char *bytes = border ? NULL : host[lane] != NULL ? host[lane] : zeros;
        simt_texel_read(texture, bytes, f->texels[lane][n]);
    }
    return true;
}

static void write_lane(const struct fetch *f, uint32_t lane, const uint32_t channels[4]) {
    for (uint32_t c = 0; c < 4; c++) {
        simt_row(f->warp, f->instruction->dst[c])->u32[lane] = channels[c];
    }
}

/* The four texels of a gather, counterclockwise from the lower left. */
static void write_gather(const struct fetch *f, uint32_t lane) {
    static const uint8_t order[4] = {2, 3, 1, 0};
    uint32_t channels[4];
    for (uint32_t n = 0; n < 4; n++) {
        uint32_t channel = f->texels[lane][order[n]][f->instruction->detail[CHANNEL]];
        channels[n] = simt_texel_value(f->texture, channel);
    }
    write_lane(f, lane, channels);
}

static void write_filtered(const struct fetch *f, uint32_t lane) {
    uint32_t channels[4];
    for (uint32_t c = 0; c < 4; c++) {
        uint32_t values[SIMT_MOST_TAPS];
        for (uint32_t n = 0; n < f->tap_count; n++) {
            values[n] = f->texels[lane][n][c];
        }
        channels[c] = f->tap_count > 1
                          ? simt_texel_filter(f->texture, f->taps[lane], f->tap_count, values)
                          : simt_texel_value(f->texture, values[0]);
    }
    write_lane(f, lane, channels);
}

static void write_results(const struct fetch *f) {
    for (uint32_t rest = f->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (is_gather(f->instruction)) {
            write_gather(f, lane);
        } else {
            write_filtered(f, lane);
        }
    }
}

static void write_zeros(struct simt_warp *warp, const struct simt_instruction *i, uint32_t lanes) {
    const struct fetch f = {.warp = warp, .instruction = i, .lanes = lanes};
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        write_lane(&f, (uint32_t)__builtin_ctz(rest), (uint32_t[4]){0});
    }
}

static const char *result_name(const struct simt_instruction *i) {
    return i->detail[RESULT] == RESULT_FLOAT ? "floats" : "integers";
}

/* The functions of the toolkit that become an instruction of that shape. */
static const char *shape_name(uint32_t shape) {
    static const char *const names[] = {"", "tex1D()",        "tex2D()",        "tex3D()",
                                        "", "tex1DLayered()", "tex2DLayered()", ""};
    return (shape & SHAPE_WHOLE) != 0    ? "tex1Dfetch()"
           : (shape & SHAPE_GATHER) != 0 ? "tex2Dgather()"
                                         : names[shape & (SHAPE_DIMENSIONS | SHAPE_LAYERED)];
}

static const char *fitting_shape(const struct simt_image *image) {
    bool memory = !image->array && image->dimensions == 1;
    uint32_t shape = image->dimensions | (image->layers > 0 ? (uint32_t)SHAPE_LAYERED : 0);
    return shape_name(memory ? (uint32_t)SHAPE_WHOLE : shape);
}

static bool shape_fits(const struct simt_instruction *i, const struct simt_image *image) {
    uint32_t shape = i->detail[SHAPE];
    bool layered = (shape & SHAPE_LAYERED) != 0, whole = (shape & SHAPE_WHOLE) != 0;
    return (shape & SHAPE_DIMENSIONS) == image->dimensions && layered == (image->layers > 0) &&
           (image->dimensions > 1 || layered || whole == !image->array);
}

/* Says what does not fit. @return true: all does */
static bool fits(struct simt_warp *warp, const struct simt_instruction *i,
                 const struct simt_texture *texture, uint32_t lane) {
    char text[SIMT_HANDLE_TEXT];
    bool floats = texture->as_float || texture->image.kind == SIMT_CHANNEL_FLOAT;
    simt_texture_text(texture, text, sizeof text);
    if (!shape_fits(i, &texture->image)) {
        simt_fail(warp, i, lane, SIMT_FAULT_TEXTURE, 0, "fetches with %s from %s, which is for %s",
                  shape_name(i->detail[SHAPE]), text, fitting_shape(&texture->image));
        return false;
    }
    if (floats != (i->detail[RESULT] == RESULT_FLOAT)) {
        simt_fail(warp, i, lane, SIMT_FAULT_TEXTURE, 0, "fetches %s from %s, which gives %s",
                  result_name(i), text, floats ? "floats" : "integers");
        return false;
    }
    return true;
}

static void fetch_through(struct fetch *f) {
    for (uint32_t rest = f->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        struct simt_place place = place_of(f->warp, f->instruction, lane);
        f->tap_count = simt_sample(f->texture, &place, is_gather(f->instruction), f->taps[lane]);
    }
    for (uint32_t n = 0; n < f->tap_count; n++) {
        if (!read_taps(f, n)) {
            return;
        }
    }
    write_results(f);
}

static void run_fetch(struct simt_warp *warp, const struct simt_instruction *i) {
    struct fetch f = {.warp = warp, .instruction = i};
    uint32_t left = warp->mask;
    while (left != 0 && warp->fault == NULL) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        f.texture = simt_handle_group(warp, i, left, false, &f.lanes);
        left &= ~f.lanes;
        if (f.texture == NULL) {
            write_zeros(warp, i, f.lanes);
        } else if (warp->block->run->check == SIMT_CHECK_OFF || fits(warp, i, f.texture, lane)) {
            fetch_through(&f);
        }
    }
}

static void run_question(struct simt_warp *warp, const struct simt_instruction *i) {
    bool surface = strcmp(i->source->base, "suq") == 0;
    uint32_t left = warp->mask;
    while (left != 0 && warp->fault == NULL) {
        uint32_t lanes;
        const struct simt_texture *texture = simt_handle_group(warp, i, left, surface, &lanes);
        left &= ~lanes;
        for (uint32_t rest = lanes; rest != 0 && warp->fault == NULL; rest &= rest - 1) {
            const struct simt_image none = {0};
            const struct simt_image *image = texture != NULL ? &texture->image : &none;
            uint32_t planes = image->layers > 0 ? image->layers : image->depth;
            const uint32_t answers[] = {image->width, image->height, planes, image->layers};
            simt_row(warp, i->dst[0])->u32[__builtin_ctz(rest)] = answers[i->detail[CHANNEL]];
        }
    }
}

/* The shape that a modifier names; 0: none. */
static uint32_t read_shape(const struct ptx_instruction *in) {
    static const struct {
        const char *name;
        uint32_t shape;
    } shapes[] = {
        {"1d", 1}, {"2d", 2}, {"3d", 3}, {"a1d", 1 | SHAPE_LAYERED}, {"a2d", 2 | SHAPE_LAYERED}};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        if (ptx_has_modifier(in, shapes[n].name)) {
            return shapes[n].shape;
        }
    }
    return 0;
}

static bool read_result(enum ptx_type type, uint32_t *result) {
    *result = type == PTX_F32 ? RESULT_FLOAT : type == PTX_S32 ? RESULT_SIGNED : RESULT_UNSIGNED;
    return type == PTX_F32 || type == PTX_S32 || type == PTX_U32;
}

/* A level or gradients choose among the levels of a mipmap; there is but one. */
static bool is_known(const char *modifier) {
    static const char *const known[] = {"1d",  "2d",    "3d",   "a1d", "a2d", "v4", "f32", "s32",
                                        "u32", "level", "grad", "r",   "g",   "b",  "a",   NULL};
    return ptx_is_one_of(modifier, known);
}

static bool knows_all(const struct ptx_instruction *in) {
    for (size_t n = 0; n < in->modifier_count; n++) {
        if (!is_known(in->modifiers[n])) {
            return false;
        }
    }
    return true;
}

static size_t coordinates_of(uint32_t shape) {
    return (shape & SHAPE_DIMENSIONS) + ((shape & SHAPE_LAYERED) != 0);
}

static bool decode_fetch(const struct ptx_instruction *in, bool gather,
                         struct simt_instruction *out) {
    static const char *const channels[] = {"r", "g", "b", "a"};
    uint32_t shape = read_shape(in);
    enum ptx_type coordinates = ptx_modifier_type(in, 1);
    bool whole = coordinates == PTX_S32;
    if (shape == 0 || !knows_all(in) || out->dst_count != 4 || out->pred_dst[0] >= 0 ||
        out->src_count < 1 + coordinates_of(shape) || (!whole && coordinates != PTX_F32) ||
        (whole && (shape != 1 || gather)) || (gather && shape != 2) ||
        !read_result(ptx_modifier_type(in, 0), &out->detail[RESULT])) {
        return false;
    }
    out->detail[SHAPE] =
        shape | (whole ? (uint32_t)SHAPE_WHOLE : 0) | (gather ? (uint32_t)SHAPE_GATHER : 0);
    for (uint32_t c = 0; c < 4; c++) {
        out->detail[CHANNEL] = ptx_has_modifier(in, channels[c]) ? c : out->detail[CHANNEL];
    }
    out->run = run_fetch;
    out->op_class = SIMT_CLASS_GLOBAL;
    return true;
}

static bool decode_question(const struct ptx_instruction *in, struct simt_instruction *out) {
    static const char *const questions[ASK_COUNT] = {"width", "height", "depth", "array_size"};
    for (uint32_t n = 0; n < ASK_COUNT; n++) {
        if (in->modifier_count == 2 && strcmp(in->modifiers[0], questions[n]) == 0) {
            out->detail[CHANNEL] = n;
            out->run = run_question;
            out->op_class = SIMT_CLASS_OTHER;
            return out->dst_count == 1 && ptx_modifier_type(in, 0) == PTX_B32;
        }
    }
    return false;
}

bool simt_decode_texture(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    if (strcmp(in->base, "txq") == 0 || strcmp(in->base, "suq") == 0) {
        return decode_question(in, out);
    }
    bool gather = strcmp(in->base, "tld4") == 0;
    return (gather || strcmp(in->base, "tex") == 0) && decode_fetch(in, gather, out);
}
