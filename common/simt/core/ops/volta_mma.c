/*
 * mma.sync.m8n8k4 of f16, Volta's: four products 8x8x4 a warp, one for each four lanes of the first
 * sixteen together with the four lanes 16 further on (as 0-3 with 16-19). A and B may lie either
 * way.
 *
 * Of the eight lanes of a product, number u = lane % 4 + 4 * (lane / 16) holds, as the PTX manual
 * says:
 *
 *     A, row:  row u, column i                     A, col:  row i + 4 * (lane / 16), column lane %
 * 4 B, col:  row i, column u                     B, row:  row lane % 4, column i + 4 * (lane / 16)
 *     C and D of f16: row u, column i
 *     C and D of f32: row lane % 2 + (i & 2) + 4 * (lane / 16), column (i & 4) + (lane & 2) + (i &
 * 1)
 *
 * Sums as in mma.c: in fp64 in the order of k, rounded once.
 */
#include <math.h>
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/core/ops/tile.h"

enum { PRODUCTS = 4, MEMBERS = 8, SIZE = 8, DEPTH = 4, FACTOR = SIZE * DEPTH, SUM = SIZE * SIZE };

/* detail: 0 taken, 1 how A and B lie, 2 formats of C and D. */
enum { LAYOUT = 1, FORMATS };
enum { A_COLUMN = 1, B_ROW = 2 };

static const struct tile_shape shape = {SIZE, SIZE, DEPTH};

static uint32_t lane_of(uint32_t product, uint32_t member) {
    return 4 * product + member % 4 + 16 * (member / 4);
}

/* Element i of a member in A (8, 4) by rows; B as its transpose (column, row) lies the same way. */
static uint32_t factor_place(bool crosswise, uint32_t member, uint32_t i) {
    return crosswise ? (i + 4 * (member / 4)) * DEPTH + member % 4 : member * DEPTH + i;
}

static uint32_t sum_place(enum tile_format format, uint32_t member, uint32_t i) {
    if (format == TILE_F16) {
        return member * SIZE + i;
    }
    uint32_t row = (member & 1) + (i & 2) + 4 * (member / 4);
    return row * SIZE + (i & 4) + (member & 2) + (i & 1);
}

static uint64_t half_at(const struct simt_warp *warp, const uint32_t *registers, uint32_t lane,
                        uint32_t i) {
    return simt_row(warp, registers[i / 2])->u32[lane] >> 16 * (i % 2) & 0xffff;
}

static void fetch_factor(const struct simt_warp *warp, const uint32_t *registers, uint32_t product,
                         bool crosswise, double values[FACTOR]) {
    uint64_t elements[FACTOR];
    for (uint32_t member = 0; member < MEMBERS; member++) {
        for (uint32_t i = 0; i < DEPTH; i++) {
            elements[factor_place(crosswise, member, i)] =
                half_at(warp, registers, lane_of(product, member), i);
        }
    }
    tile_decode(TILE_F16, elements, FACTOR, values);
}

static void fetch_sum(const struct simt_warp *warp, const uint32_t *registers, uint32_t product,
                      enum tile_format format, double values[SUM]) {
    uint64_t elements[SUM];
    for (uint32_t member = 0; member < MEMBERS; member++) {
        uint32_t lane = lane_of(product, member);
        for (uint32_t i = 0; i < SIZE; i++) {
            elements[sum_place(format, member, i)] = format == TILE_F16
                                                         ? half_at(warp, registers, lane, i)
                                                         : simt_row(warp, registers[i])->u32[lane];
        }
    }
    tile_decode(format, elements, SUM, values);
}

static void put_sum(const struct simt_warp *warp, const uint32_t *registers, uint32_t product,
                    enum tile_format format, const double values[SUM]) {
    uint64_t elements[SUM];
    tile_encode(format, values, SUM, false, elements);
    for (uint32_t member = 0; member < MEMBERS; member++) {
        uint32_t lane = lane_of(product, member);
        for (uint32_t i = 0; i < SIZE; i++) {
            uint32_t bits = (uint32_t)elements[sum_place(format, member, i)];
            uint32_t *word = &simt_row(warp, registers[format == TILE_F16 ? i / 2 : i])->u32[lane];
            *word = format == TILE_F32 || i % 2 == 0 ? bits : *word | bits << 16;
        }
    }
}

/* c (8, 8) += a (8, 4) * transpose of b (8, 4). */
static void multiply(const double a[FACTOR], const double b[FACTOR], double c[SUM]) {
    for (size_t row = 0; row < SIZE; row++) {
        for (size_t column = 0; column < SIZE; column++) {
            for (size_t k = 0; k < DEPTH; k++) {
                c[row * SIZE + column] += a[row * DEPTH + k] * b[column * DEPTH + k];
            }
        }
    }
}

static void run_volta_mma(struct simt_warp *warp, const struct simt_instruction *i) {
    double a[FACTOR], b[FACTOR], c[PRODUCTS][SUM];
    if (!simt_lane_require_all(warp, i)) {
        return;
    }
    enum tile_format from = (enum tile_format)(i->detail[FORMATS] & 0xff);
    enum tile_format to = (enum tile_format)(i->detail[FORMATS] >> 8);
    const uint32_t *sources = simt_sources(i);
    for (uint32_t product = 0; product < PRODUCTS; product++) {
        tile_count(warp, TILE_F16, &shape);
        fetch_factor(warp, sources, product, i->detail[LAYOUT] & A_COLUMN, a);
        fetch_factor(warp, sources + 2, product, i->detail[LAYOUT] & B_ROW, b);
        fetch_sum(warp, sources + 4, product, from, c[product]);
        multiply(a, b, c[product]);
    }
    /* D may be C's registers, or A's: written when all is read. */
    for (uint32_t product = 0; product < PRODUCTS; product++) {
        put_sum(warp, i->dst, product, to, c[product]);
    }
}

static bool is_half_or_float(enum tile_format format) {
    return format == TILE_F16 || format == TILE_F32;
}

static bool has_registers(const struct ptx_operand *operand, size_t count) {
    return operand->kind == PTX_OPERAND_VECTOR && operand->element_count == count;
}

static size_t sum_registers(enum tile_format format) {
    return format == TILE_F16 ? 4 : 8;
}

static bool is_layout(const char *modifier) {
    return strcmp(modifier, "row") == 0 || strcmp(modifier, "col") == 0;
}

bool simt_decode_volta_mma(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    const char *const *m = in->modifiers;
    if (strcmp(in->base, "mma") != 0 || in->modifier_count != 9 || in->operand_count != 4 ||
        strcmp(m[0], "sync") != 0 || strcmp(m[1], "aligned") != 0 || strcmp(m[2], "m8n8k4") != 0 ||
        !is_layout(m[3]) || !is_layout(m[4]) || tile_format_find(m[6]) != TILE_F16 ||
        tile_format_find(m[7]) != TILE_F16) {
        return false;
    }
    enum tile_format to = tile_format_find(m[5]), from = tile_format_find(m[8]);
    if (!is_half_or_float(to) || !is_half_or_float(from) || (from == TILE_F32 && to == TILE_F16) ||
        !has_registers(&in->operands[0], sum_registers(to)) ||
        !has_registers(&in->operands[1], 2) || !has_registers(&in->operands[2], 2) ||
        !has_registers(&in->operands[3], sum_registers(from))) {
        return false;
    }
    simt_lane_synchronise(out);
    out->detail[LAYOUT] =
        (strcmp(m[3], "col") == 0 ? A_COLUMN : 0U) | (strcmp(m[4], "row") == 0 ? B_ROW : 0U);
    out->detail[FORMATS] = (uint32_t)from | (uint32_t)to << 8;
    out->flops = PRODUCTS * 2 * SIZE * SIZE * DEPTH / SIMT_LANES;
    out->run = run_volta_mma;
    return true;
}
