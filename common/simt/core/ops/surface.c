/*
 * suld and sust: bytes of a surface object, at a place in elements but for x, which counts bytes.
 * sust.p takes numbers of 32 bits, and x counts elements.
 */
#include <inttypes.h>
#include <string.h>

#include "common/simt/alu/half.h"
#include "common/simt/core/code.h"
#include "common/simt/core/ops/handles.h"
#include "common/simt/core/ops/lane_access.h"

/* detail: 0 the shape, 1 bytes of an element of the vector and their number, 2 what to do outside.
 */
enum { SHAPE, SIZE, BOUNDARY };
enum { SHAPE_DIMENSIONS = 3, SHAPE_LAYERED = 4, SHAPE_FORMATTED = 8, SHAPE_STORE = 16 };
enum { COUNT_SHIFT = 8 };
enum { BOUNDARY_TRAP, BOUNDARY_CLAMP, BOUNDARY_ZERO };
enum { MOST_BYTES = 16 };

/* An access of some lanes through one object. */
struct access {
    struct simt_warp *warp;
    const struct simt_instruction *instruction;
    const struct simt_texture *surface;
    uint32_t lanes, bytes; /* of a lane */
};

/* Where a lane's access lies: x in bytes. */
struct spot {
    int64_t at[3];
    int32_t layer;
};

static bool is_store(const struct simt_instruction *i) {
    return (i->detail[SHAPE] & SHAPE_STORE) != 0;
}

static bool is_formatted(const struct simt_instruction *i) {
    return (i->detail[SHAPE] & SHAPE_FORMATTED) != 0;
}

static struct spot spot_of(const struct access *a, uint32_t lane) {
    uint32_t shape = a->instruction->detail[SHAPE];
    const uint32_t *row = simt_sources(a->instruction) + 1;
    struct spot spot = {.layer = 0};
    if ((shape & SHAPE_LAYERED) != 0) {
        spot.layer = simt_row(a->warp, *row++)->s32[lane];
    }
    for (uint32_t axis = 0; axis < (shape & SHAPE_DIMENSIONS); axis++) {
        spot.at[axis] = simt_row(a->warp, row[axis])->s32[lane];
    }
    spot.at[0] *= is_formatted(a->instruction) ? a->bytes : 1;
    return spot;
}

static void hint_bytes(const struct access *a) {
    if (!is_formatted(a->instruction)) {
        a->warp->block->fault.hint =
            "x of surf1Dread(), surf2Dwrite() and the like counts bytes: x * sizeof(element)";
    }
}

static void fail_outside(const struct access *a, uint32_t lane, const struct spot *spot) {
    const struct simt_image *image = &a->surface->image;
    char text[SIMT_HANDLE_TEXT], place[96];
    int used = snprintf(place, sizeof place, "byte %" PRId64 " of a row", spot->at[0]);
    if (image->dimensions > 1) {
        used += snprintf(place + used, sizeof place - (size_t)used, ", row %" PRId64, spot->at[1]);
    }
    if (image->dimensions > 2) {
        used +=
            snprintf(place + used, sizeof place - (size_t)used, ", plane %" PRId64, spot->at[2]);
    }
    if (image->layers > 0) {
        snprintf(place + used, sizeof place - (size_t)used, ", layer %d", spot->layer);
    }
    simt_texture_text(a->surface, text, sizeof text);
    simt_fail(a->warp, a->instruction, lane, SIMT_FAULT_OUT_OF_BOUNDS, 0,
              "%s %u byte%s at %s of %s: a row has %u bytes",
              is_store(a->instruction) ? "writes" : "reads", a->bytes, simt_plural(a->bytes), place,
              text, image->width * simt_image_texel(image));
    hint_bytes(a);
}

/* An access begins at a multiple of its size. */
static void check_alignment(const struct access *a, uint32_t lane, int64_t x) {
    char text[SIMT_HANDLE_TEXT];
    if (x % a->bytes == 0 || a->warp->block->run->check == SIMT_CHECK_OFF) {
        return;
    }
    simt_texture_text(a->surface, text, sizeof text);
    simt_fail(a->warp, a->instruction, lane, SIMT_FAULT_MISALIGNED, (uint64_t)x,
              "%s %u bytes at byte %" PRId64 " of a row of %s, which is not a multiple of %u",
              is_store(a->instruction) ? "writes" : "reads", a->bytes, x, text, a->bytes);
    hint_bytes(a);
}

static bool is_within(int64_t at, int64_t last) {
    return at >= 0 && at <= last;
}

static int64_t clamped(int64_t at, int64_t last) {
    return at < 0 ? 0 : at > last ? last : at;
}

/* @return true and the address of a lane; false: its access is dropped, or the launch fails */
static bool find_address(const struct access *a, uint32_t lane, uint64_t *address) {
    const struct simt_image *image = &a->surface->image;
    struct spot spot = spot_of(a, lane);
    const int64_t last[3] = {(int64_t)image->width * simt_image_texel(image) - a->bytes,
                             (int64_t)image->height - 1, (int64_t)image->depth - 1};
    const uint64_t steps[3] = {1, image->pitch, image->slice};
    uint32_t last_layer = image->layers > 0 ? image->layers - 1 : 0;
    uint32_t layer = (uint32_t)spot.layer < last_layer ? (uint32_t)spot.layer : last_layer;
    bool inside = layer == (uint32_t)spot.layer;
    check_alignment(a, lane, spot.at[0]);
    *address = image->address + layer * image->slice;
    for (uint32_t axis = 0; axis < image->dimensions; axis++) {
        inside = inside && is_within(spot.at[axis], last[axis]);
        *address += (uint64_t)clamped(spot.at[axis], last[axis]) * steps[axis];
    }
    if (!inside && a->instruction->detail[BOUNDARY] == BOUNDARY_TRAP &&
        a->warp->block->run->check != SIMT_CHECK_OFF) {
        fail_outside(a, lane, &spot);
    }
    return last[0] >= 0 && (inside || a->instruction->detail[BOUNDARY] == BOUNDARY_CLAMP);
}

/* The bytes that a lane stores. */
static void gather_bytes(const struct access *a, uint32_t lane, unsigned char bytes[MOST_BYTES]) {
    const struct simt_instruction *i = a->instruction;
    uint32_t size = i->detail[SIZE] & 0xff, count = i->detail[SIZE] >> COUNT_SHIFT;
    const uint32_t *rows = simt_sources(i) + i->src_count - count;
    for (uint32_t n = 0; n < count && n * size < MOST_BYTES; n++) {
        const union simt_row *row = simt_row(a->warp, rows[n]);
        uint64_t value = size == 8 ? row->u64[lane] : row->u32[lane];
        memcpy(bytes + (size_t)n * size, &value, size);
    }
}

/* A number as a channel of the image, as near as can be. */
static uint32_t convert(const struct simt_image *image, uint32_t bits) {
    uint32_t most = ((uint32_t)1 << (image->bits % 32)) - 1;
    if (image->bits == 32) {
        return bits;
    }
    if (image->kind == SIMT_CHANNEL_FLOAT) {
        float value;
        memcpy(&value, &bits, sizeof value);
        return float_to_half(value);
    }
    if (image->kind == SIMT_CHANNEL_UNSIGNED) {
        return bits < most ? bits : most;
    }
    int32_t value = (int32_t)bits, high = (int32_t)(most >> 1);
    return (uint32_t)(value > high ? high : value < -high - 1 ? -high - 1 : value);
}

/* The same for sust.p: a number a channel. */
static void format_bytes(const struct access *a, uint32_t lane, unsigned char bytes[MOST_BYTES]) {
    const struct simt_instruction *i = a->instruction;
    const struct simt_image *image = &a->surface->image;
    uint32_t count = i->detail[SIZE] >> COUNT_SHIFT, size = image->bits / 8;
    const uint32_t *rows = simt_sources(i) + i->src_count - count;
    for (uint32_t c = 0; c < image->channels; c++) {
        uint32_t number = c < count ? simt_row(a->warp, rows[c])->u32[lane] : 0;
        uint32_t channel = convert(image, number);
        memcpy(bytes + (size_t)c * size, &channel, size);
    }
}

static void scatter_bytes(const struct access *a, uint32_t lane, const unsigned char *bytes) {
    const struct simt_instruction *i = a->instruction;
    uint32_t size = i->detail[SIZE] & 0xff, count = i->detail[SIZE] >> COUNT_SHIFT;
    for (uint32_t n = 0; n < count; n++) {
        union simt_row *row = simt_row(a->warp, i->dst[n]);
        uint64_t value = 0;
        memcpy(&value, bytes + (size_t)n * size, size);
        if (size == 8) {
            row->u64[lane] = value;
        } else {
            row->u32[lane] = (uint32_t)value;
        }
    }
}

/* Moves the bytes of the lanes. @param inside lanes with an address */
static void move(const struct access *a, uint32_t inside, unsigned char *host[SIMT_LANES]) {
    for (uint32_t rest = a->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        unsigned char bytes[MOST_BYTES] = {0};
        bool there = (inside >> lane & 1) != 0 && host[lane] != NULL;
        if (!is_store(a->instruction)) {
            memcpy(bytes, there ? host[lane] : bytes, there ? a->bytes : 0);
            scatter_bytes(a, lane, bytes);
        } else if (there) {
            if (is_formatted(a->instruction)) {
                format_bytes(a, lane, bytes);
            } else {
                gather_bytes(a, lane, bytes);
            }
            memcpy(host[lane], bytes, a->bytes);
        }
    }
}

static void access_through(const struct access *a) {
    struct simt_access request = {.space = PTX_GLOBAL,
                                  .kind = is_store(a->instruction) ? SIMT_WRITE : SIMT_READ,
                                  .bytes = a->bytes,
                                  .counted = true};
    unsigned char *host[SIMT_LANES] = {NULL};
    uint32_t inside = 0;
    for (uint32_t rest = a->lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        bool there = find_address(a, lane, &request.addresses[lane]);
        inside |= (uint32_t)there << lane;
        if (a->warp->fault != NULL) {
            return;
        }
    }
    if (inside == 0 || simt_lane_resolve(a->warp, a->instruction, &request, inside, host)) {
        move(a, inside, host);
    }
}

/* Says what does not fit. @return true: all does */
static bool fits(const struct access *a, uint32_t lane) {
    const struct simt_image *image = &a->surface->image;
    uint32_t shape = a->instruction->detail[SHAPE];
    const char *uses = is_store(a->instruction) ? "writes" : "reads";
    char text[SIMT_HANDLE_TEXT];
    simt_texture_text(a->surface, text, sizeof text);
    if ((shape & SHAPE_DIMENSIONS) != image->dimensions ||
        ((shape & SHAPE_LAYERED) != 0) != (image->layers > 0)) {
        simt_fail(a->warp, a->instruction, lane, SIMT_FAULT_TEXTURE, 0,
                  "%s at %uD coordinates%s of %s", uses, shape & SHAPE_DIMENSIONS,
                  (shape & SHAPE_LAYERED) != 0 ? " and a layer" : "", text);
        return false;
    }
    if (a->bytes > simt_image_texel(image)) {
        simt_fail(a->warp, a->instruction, lane, SIMT_FAULT_TEXTURE, 0,
                  "%s %u bytes at once of %s, whose elements have %u byte%s", uses, a->bytes, text,
                  simt_image_texel(image), simt_plural(simt_image_texel(image)));
        return false;
    }
    return true;
}

static void run_access(struct simt_warp *warp, const struct simt_instruction *i) {
    struct access a = {.warp = warp, .instruction = i};
    uint32_t left = warp->mask;
    while (left != 0 && warp->fault == NULL) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        a.surface = simt_handle_group(warp, i, left, true, &a.lanes);
        a.bytes = (i->detail[SIZE] & 0xff) * (i->detail[SIZE] >> COUNT_SHIFT);
        left &= ~a.lanes;
        if (a.surface == NULL) {
            move(&a, 0, (unsigned char *[SIMT_LANES]){NULL});
            continue;
        }
        if (is_formatted(i)) {
            a.bytes = simt_image_texel(&a.surface->image);
        }
        if (fits(&a, lane)) {
            access_through(&a);
        }
    }
}

static bool read_shape(const struct ptx_instruction *in, uint32_t *shape) {
    static const struct {
        const char *name;
        uint32_t shape;
    } shapes[] = {
        {"1d", 1}, {"2d", 2}, {"3d", 3}, {"a1d", 1 | SHAPE_LAYERED}, {"a2d", 2 | SHAPE_LAYERED}};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        if (ptx_has_modifier(in, shapes[n].name)) {
            *shape = shapes[n].shape;
            return true;
        }
    }
    return false;
}

static bool read_boundary(const struct ptx_instruction *in, uint32_t *boundary) {
    static const char *const names[] = {"trap", "clamp", "zero"};
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (ptx_has_modifier(in, names[n])) {
            *boundary = n;
            return true;
        }
    }
    return false;
}

static bool knows_all(const struct ptx_instruction *in) {
    static const char *const known[] = {"b",  "p",  "1d",    "2d",   "3d",  "a1d",  "a2d", "v2",
                                        "v4", "b8", "b16",   "b32",  "b64", "trap", "ca",  "cg",
                                        "cs", "cv", "clamp", "zero", "wb",  "wt",   NULL};
    for (size_t n = 0; n < in->modifier_count; n++) {
        if (!ptx_is_one_of(in->modifiers[n], known)) {
            return false;
        }
    }
    return true;
}

bool simt_decode_surface(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    bool store = strcmp(in->base, "sust") == 0;
    uint32_t count = ptx_has_modifier(in, "v4") ? 4 : ptx_has_modifier(in, "v2") ? 2 : 1;
    uint32_t size = (uint32_t)ptx_type_size(ptx_modifier_type(in, 0));
    uint32_t shape = 0;
    if ((!store && strcmp(in->base, "suld") != 0) || !knows_all(in) || !read_shape(in, &shape) ||
        !read_boundary(in, &out->detail[BOUNDARY])) {
        return false;
    }
    bool formatted = ptx_has_modifier(in, "p");
    uint32_t coordinates = (shape & SHAPE_DIMENSIONS) + ((shape & SHAPE_LAYERED) != 0);
    if (size == 0 || size * count > MOST_BYTES || (formatted && (!store || size != 4)) ||
        out->src_count < 1 + coordinates + (store ? count : 0) ||
        (!store && out->dst_count != count)) {
        return false;
    }
    out->detail[SHAPE] =
        shape | (formatted ? (uint32_t)SHAPE_FORMATTED : 0) | (store ? (uint32_t)SHAPE_STORE : 0);
    out->detail[SIZE] = size | count << COUNT_SHIFT;
    out->run = run_access;
    out->op_class = SIMT_CLASS_GLOBAL;
    return true;
}
