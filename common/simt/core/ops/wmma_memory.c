/*
 * wmma.load and wmma.store: a matrix between memory and the registers of a warp.
 *
 * Requests are those of the machine code that ptxas 13.0 makes for sm_80 and sm_90. A
 * register holds one number of each lane: lane 4 g + t has those of line g, places
 * t, t + 1 ... So a request that fills a register of every lane takes 8 lines, 4 pieces
 * of each; of a matrix that lies across, 4 lines and 8 elements of each. Numbers of 16
 * bits are transposed in registers; from shared memory they come as by ldmatrix.
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/core/ops/tile.h"

/* detail: 0 taken, 1 rows, columns, format, role; 2 the flags below, above them the space. */
enum { TILE = 1, FLAGS };
enum { FLAG_NARROW = 1, FLAG_BY_COLUMNS = 2, FLAG_STRIDE = 4, SPACE_SHIFT = 8, ALIGNMENT = 16 };

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
};

/* The part of the matrix that a request takes: `lines`, `distance` apart, and of each `pieces`
 * neighbours of `piece` bytes. */
struct pattern {
    uint32_t lines, distance, pieces, piece;
    bool lines_first; /* lane 1 has the next line, not the next piece of the same */
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
    return lines;
}

static struct pattern pattern_of(const struct simt_instruction *i, const struct tile *tile,
                                 const struct lines *lines) {
    enum { WORD = 4, LDMATRIX_PIECE = 16 };
    uint32_t size = tile_bits(tile->format) / 8;
    bool by_columns = (i->detail[FLAGS] & FLAG_BY_COLUMNS) != 0;
    bool sum = tile->role == TILE_C;
    bool columns_are_lines =
        tile->role == TILE_B || (sum && tile->rows == 8 && tile->columns == 32);
    bool across = by_columns != columns_are_lines && size != 2;
    bool shared = (enum ptx_space)(i->detail[FLAGS] >> SPACE_SHIFT) == PTX_SHARED;
    uint32_t together = size < WORD ? WORD / size : sum ? 2 : 1; /* elements of a lane */
    if (shared && !sum && size <= 2 && !across && lines->bytes >= LDMATRIX_PIECE) {
        uint32_t pieces = lines->bytes / LDMATRIX_PIECE;
        uint32_t most = SIMT_LANES / pieces;
        return (struct pattern){lines->count < most ? lines->count : most, 1, pieces,
                                LDMATRIX_PIECE, true};
    }
    return across ? (struct pattern){4, together, 8, size, true}
                  : (struct pattern){8, 1, 4, together * size, false};
}

/* One request: what begins at line `first` and `from` bytes into it. */
static bool move_request(struct simt_warp *warp, const struct simt_instruction *i,
                         const struct lines *lines, const struct pattern *p, uint32_t first,
                         uint32_t from, bool store, unsigned char *data) {
    uint32_t count = p->lines * p->pieces;
    uint32_t places[SIMT_LANES]; /* in `data` */
    unsigned char *host[SIMT_LANES];
    struct simt_access access = {.space = (enum ptx_space)(i->detail[FLAGS] >> SPACE_SHIFT),
                                 .kind = store ? SIMT_WRITE : SIMT_READ,
                                 .bytes = p->piece,
                                 .counted = true};
    for (uint32_t n = 0; n < count; n++) {
        uint32_t line = first + (p->lines_first ? n % p->lines : n / p->pieces) * p->distance;
        uint32_t byte = from + (p->lines_first ? n / p->lines : n % p->pieces) * p->piece;
        access.addresses[n] = lines->address + line * lines->stride + byte;
        places[n] = line * lines->bytes + byte;
    }
    uint32_t lanes = count == SIMT_LANES ? UINT32_MAX : ((uint32_t)1 << count) - 1;
    if (!simt_lane_resolve(warp, i, &access, lanes, host)) {
        return false;
    }
    for (uint32_t n = 0; n < count; n++) {
        unsigned char *piece = data + places[n];
        if (host[n] == NULL) {
            memset(piece, 0, store ? 0 : p->piece);
        } else {
            memcpy(store ? host[n] : piece, store ? piece : host[n], p->piece);
        }
    }
    return true;
}

/* Lines must be aligned, even where a GPU's requests need less. @return false: the launch fails */
static bool check_alignment(struct simt_warp *warp, const struct simt_instruction *i,
                            const struct lines *lines, bool store) {
    uint32_t alignment = lines->bytes < ALIGNMENT ? lines->bytes : ALIGNMENT;
    uint64_t first =
        lines->address % alignment != 0 ? lines->address : lines->address + lines->stride;
    unsigned char *host[SIMT_LANES];
    if (first % alignment == 0) {
        return true;
    }
    const struct simt_access access = {.space = (enum ptx_space)(i->detail[FLAGS] >> SPACE_SHIFT),
                                       .kind = store ? SIMT_WRITE : SIMT_READ,
                                       .bytes = alignment,
                                       .addresses = {first}};
    return simt_lane_resolve(warp, i, &access, 1, host);
}

/* Moves the matrix between memory and `data`, line after line. */
static bool move_lines(struct simt_warp *warp, const struct simt_instruction *i,
                       const struct tile *tile, bool store, unsigned char *data) {
    const struct lines lines = lines_of(warp, i, tile);
    const struct pattern p = pattern_of(i, tile, &lines);
    if (!check_alignment(warp, i, &lines, store)) {
        return false;
    }
    for (uint32_t n = 0; n < lines.count / p.lines; n++) {
        uint32_t first = n / p.distance * p.lines * p.distance + n % p.distance;
        for (uint32_t from = 0; from < lines.bytes; from += p.pieces * p.piece) {
            if (!move_request(warp, i, &lines, &p, first, from, store, data)) {
                return false;
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
    if (!move_lines(warp, i, &tile, false, data)) {
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
    tile_gather(warp, &tile, simt_sources(i) + 1, elements);
    size_t size = tile_bits(tile.format) / 8;
    for (uint32_t n = 0; n < tile.rows * tile.columns; n++) {
        memcpy(data + memory_number(i, &tile, n) * size, &elements[n], size);
    }
    (void)move_lines(warp, i, &tile, true, data);
}

static bool is_known(const char *modifier) {
    static const char *const known[] = {"load",   "store",   "a",           "b",   "c",
                                        "d",      "sync",    "row",         "col", "global",
                                        "shared", "aligned", "shared::cta", NULL};
    return ptx_is_one_of(modifier, known);
}

/* Reads role, shape and format. @return false when one is not known */
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
