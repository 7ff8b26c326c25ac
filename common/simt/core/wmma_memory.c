/*
 * wmma.load and wmma.store: a matrix between memory and the registers of a warp.
 *
 * Memory is reached in pieces of 16 bytes along the lines of the matrix, one
 * lane each, 32 lanes a request. So counts say what a good layout costs; a GPU
 * may take more requests for a matrix that lies across.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/lane_access.h"
#include "common/simt/core/tile.h"

/* detail: 0 taken, 1 rows, columns, format, role; 2 the flags below, above them the space. */
enum { TILE = 1, FLAGS };
enum { FLAG_NARROW = 1, FLAG_BY_COLUMNS = 2, FLAG_STRIDE = 4, SPACE_SHIFT = 8, PIECE = 16 };

static struct tile tile_from(const struct simt_instruction *i) {
    uint32_t packed = i->detail[TILE];
    return (struct tile){.rows = packed & 0xff,
                         .columns = packed >> 8 & 0xff,
                         .format = (enum tile_format)(packed >> 16 & 0xff),
                         .role = (enum tile_role)(packed >> 24)};
}

/* Where the matrix lies: lines of equal length, `stride` bytes apart. */
struct lines {
    uint64_t address, stride;
    uint32_t count, bytes; /* of one line */
    uint32_t piece;
};

static struct lines lines_of(const struct simt_warp *warp, const struct simt_instruction *i,
                             const struct tile *tile) {
    uint64_t addresses[SIMT_LANES];
    bool by_columns = (i->detail[FLAGS] & FLAG_BY_COLUMNS) != 0;
    uint32_t size = tile_bits(tile->format) / 8;
    uint32_t length = by_columns ? tile->rows : tile->columns;
    struct lines lines = {.count = by_columns ? tile->columns : tile->rows,
                          .bytes = length * size,
                          .stride = (uint64_t)length * size};
    simt_lane_addresses(warp, i->src[0], (i->detail[FLAGS] & FLAG_NARROW) != 0, i->immediate,
                        addresses);
    lines.address = addresses[0];
    if ((i->detail[FLAGS] & FLAG_STRIDE) != 0) {
        lines.stride = (uint64_t)simt_row(warp, i->src[i->src_count - 1])->u32[0] * size;
    }
    lines.piece = lines.bytes < PIECE ? lines.bytes : PIECE;
    return lines;
}

/* Moves all lines between memory and `data`, 32 pieces a request. */
static bool move_lines(struct simt_warp *warp, const struct simt_instruction *i,
                       const struct lines *lines, bool store, unsigned char *data) {
    uint32_t per_line = lines->bytes / lines->piece;
    uint32_t pieces = per_line * lines->count;
    for (uint32_t first = 0; first < pieces; first += SIMT_LANES) {
        uint32_t count = pieces - first < SIMT_LANES ? pieces - first : SIMT_LANES;
        unsigned char *host[SIMT_LANES];
        struct simt_access access = {.space = (enum ptx_space)(i->detail[FLAGS] >> SPACE_SHIFT),
                                     .kind = store ? SIMT_WRITE : SIMT_READ,
                                     .bytes = lines->piece,
                                     .counted = true};
        for (uint32_t n = 0; n < count; n++) {
            uint32_t line = (first + n) / per_line;
            uint32_t part = (first + n) % per_line;
            access.addresses[n] =
                lines->address + line * lines->stride + (uint64_t)part * lines->piece;
        }
        uint32_t lanes = count == SIMT_LANES ? UINT32_MAX : ((uint32_t)1 << count) - 1;
        if (!simt_lane_resolve(warp, i, &access, lanes, host)) {
            return false;
        }
        for (uint32_t n = 0; n < count; n++) {
            unsigned char *piece = data + (size_t)(first + n) * lines->piece;
            if (host[n] == NULL) {
                memset(piece, 0, store ? 0 : lines->piece);
            } else {
                memcpy(store ? host[n] : piece, store ? piece : host[n], lines->piece);
            }
        }
    }
    return true;
}

/* Number of an element among those in memory. */
static uint32_t memory_number(const struct simt_instruction *i, const struct tile *tile,
                              uint32_t element) {
    uint32_t row = element / tile->columns, column = element % tile->columns;
    return (i->detail[FLAGS] & FLAG_BY_COLUMNS) != 0 ? column * tile->rows + row : element;
}

static void run_load(struct simt_warp *warp, const struct simt_instruction *i) {
    unsigned char data[8 * TILE_MOST];
    uint64_t elements[TILE_MOST];
    const struct tile tile = tile_from(i);
    if (!simt_lane_require_all(warp, i)) {
        return;
    }
    const struct lines lines = lines_of(warp, i, &tile);
    if (!move_lines(warp, i, &lines, false, data)) {
        return;
    }
    size_t size = tile_bits(tile.format) / 8;
    for (uint32_t n = 0; n < tile.rows * tile.columns; n++) {
        elements[n] = 0;
        memcpy(&elements[n], data + memory_number(i, &tile, n) * size, size);
    }
    tile_scatter(warp, &tile, i->dst, i->dst_count, elements);
}

static void run_store(struct simt_warp *warp, const struct simt_instruction *i) {
    unsigned char data[8 * TILE_MOST];
    uint64_t elements[TILE_MOST];
    const struct tile tile = tile_from(i);
    if (!simt_lane_require_all(warp, i)) {
        return;
    }
    const struct lines lines = lines_of(warp, i, &tile);
    tile_gather(warp, &tile, simt_sources(i) + 1, elements);
    size_t size = tile_bits(tile.format) / 8;
    for (uint32_t n = 0; n < tile.rows * tile.columns; n++) {
        memcpy(data + memory_number(i, &tile, n) * size, &elements[n], size);
    }
    (void)move_lines(warp, i, &lines, true, data);
}

static bool is_known(const char *modifier) {
    static const char *const known[] = {"load",   "store",   "a",           "b",   "c",
                                        "d",      "sync",    "row",         "col", "global",
                                        "shared", "aligned", "shared::cta", NULL};
    for (size_t n = 0; known[n] != NULL; n++) {
        if (strcmp(modifier, known[n]) == 0) {
            return true;
        }
    }
    return false;
}

/* Reads role, shape and format. @return false for what is not known */
static bool read_tile(const struct ptx_instruction *in, struct tile *tile) {
    struct tile_shape shape = {0};
    enum tile_format format = TILE_NONE;
    for (size_t n = 0; n < in->modifier_count; n++) {
        enum tile_format named = tile_format_find(in->modifiers[n]);
        if (named != TILE_NONE) {
            format = named;
        } else if (!tile_shape_read(in->modifiers[n], &shape) && !is_known(in->modifiers[n])) {
            return false;
        }
    }
    enum tile_role role = ptx_has_modifier(in, "a")   ? TILE_A
                          : ptx_has_modifier(in, "b") ? TILE_B
                                                      : TILE_C;
    *tile = tile_of(&shape, role, format);
    return tile_bits(format) >= 8 && tile_registers(tile) > 0;
}

bool simt_decode_wmma_memory(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    struct tile tile;
    bool store = ptx_has_modifier(in, "store");
    if (strcmp(in->base, "wmma") != 0 || (!store && !ptx_has_modifier(in, "load")) ||
        in->operand_count < 2 || in->operand_count > 3 || !read_tile(in, &tile)) {
        return false;
    }
    const struct ptx_operand *registers = &in->operands[store ? 1 : 0];
    uint32_t count = registers->kind == PTX_OPERAND_VECTOR ? (uint32_t)registers->element_count : 1;
    if (count % tile_registers(&tile) != 0) {
        return false;
    }
    simt_lane_synchronise(out);
    out->detail[TILE] =
        tile.rows | tile.columns << 8 | (uint32_t)tile.format << 16 | (uint32_t)tile.role << 24;
    out->detail[FLAGS] = (uint32_t)simt_lane_space(in) << SPACE_SHIFT;
    out->detail[FLAGS] |=
        simt_lane_address_is_narrow(decoding, store ? 0 : 1) ? (uint32_t)FLAG_NARROW : 0;
    out->detail[FLAGS] |= ptx_has_modifier(in, "col") ? (uint32_t)FLAG_BY_COLUMNS : 0;
    out->detail[FLAGS] |= in->operand_count == 3 ? (uint32_t)FLAG_STRIDE : 0;
    out->run = store ? run_store : run_load;
    return true;
}
