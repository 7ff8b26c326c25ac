/*
 * mma.sync and wmma.mma: D = A * B + C on the registers of a warp.
 *
 * Sums are those of the modelled GPU's tensor cores (tensor_sum.h). f64 uses fused
 * multiply-adds in the order of k. Integers are exact: they wrap, or with
 * .satfinite stop at the ends of the range.
 *
 * mma.sp: half of A is stored, and metadata says which half (sparse.h).
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/core/ops/sparse.h"
#include "common/simt/core/ops/tensor_sum.h"
#include "common/simt/core/ops/tile.h"

/* detail: 0 taken, 1 shape and saturation, 2 formats, 3 registers of A, B, C; a byte each. */
enum { SHAPE = 1, FORMATS, REGISTERS };

static uint32_t byte_of(uint32_t word, uint32_t n) {
    return word >> 8 * n & 0xff;
}

static uint32_t bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return a | b << 8 | c << 16 | d << 24;
}

static struct tile_shape shape_of(const struct simt_instruction *i) {
    return (struct tile_shape){byte_of(i->detail[SHAPE], 0), byte_of(i->detail[SHAPE], 1),
                               byte_of(i->detail[SHAPE], 2)};
}

static void fetch(const struct simt_warp *warp, const struct tile *tile, const uint32_t *registers,
                  double values[TILE_MOST]) {
    uint64_t elements[TILE_MOST];
    tile_gather(warp, tile, registers, elements);
    tile_decode(tile->format, elements, tile->rows * tile->columns, values);
}

/* detail 3 of mma.sp: registers of A, B, C, and from bit 24 on these. */
enum { SPARSE_IS = 1, SPARSE_ORDERED = 2, SPARSE_SELECTOR_SHIFT = 2 };

/* Which columns of A are stored. */
static bool read_columns(struct simt_warp *warp, const struct simt_instruction *i, uint32_t k,
                         uint32_t *columns) {
    uint32_t registers = i->detail[REGISTERS], sparse = byte_of(registers, 3);
    const struct sparse form = {.format = (enum tile_format)byte_of(i->detail[FORMATS], 0),
                                .k = k,
                                .selector = sparse >> SPARSE_SELECTOR_SHIFT,
                                .ordered = (sparse & SPARSE_ORDERED) != 0};
    uint32_t metadata =
        simt_sources(i)[byte_of(registers, 0) + byte_of(registers, 1) + byte_of(registers, 2)];
    return sparse_read(warp, i, &form, metadata, columns);
}

static void run_mma(struct simt_warp *warp, const struct simt_instruction *i) {
    double a[TILE_MOST], b[TILE_MOST], c[TILE_MOST];
    uint64_t elements[TILE_MOST];
    uint32_t columns[SPARSE_ROWS * SPARSE_MOST_STORED];
    if (!simt_lane_require_all(warp, i)) {
        return;
    }
    const struct tile_shape shape = shape_of(i);
    const uint32_t formats = i->detail[FORMATS];
    const bool sparse = byte_of(i->detail[REGISTERS], 3) != 0;
    const struct tile_shape stored = {shape.m, shape.n, sparse ? shape.k / 2 : shape.k};
    const struct tile ta = tile_of(&stored, TILE_A, (enum tile_format)byte_of(formats, 0));
    const struct tile tb = tile_of(&shape, TILE_B, (enum tile_format)byte_of(formats, 1));
    const struct tile tc = tile_of(&shape, TILE_C, (enum tile_format)byte_of(formats, 2));
    const struct tile td = tile_of(&shape, TILE_C, (enum tile_format)byte_of(formats, 3));
    tile_count(warp, ta.format, &stored);
    const uint32_t *sources = simt_sources(i);
    const uint32_t registers_a = byte_of(i->detail[REGISTERS], 0);
    fetch(warp, &ta, sources, a);
    fetch(warp, &tb, sources + registers_a, b);
    fetch(warp, &tc, sources + registers_a + byte_of(i->detail[REGISTERS], 1), c);
    if (sparse && !read_columns(warp, i, shape.k, columns)) {
        return;
    }
    const struct tensor_sum sum =
        tensor_sum_of(warp->block->run->tensor_code, ta.format, td.format, false);
    const struct tensor_factors factors = {.m = shape.m,
                                           .n = shape.n,
                                           .k = stored.k,
                                           .a = a,
                                           .a_row = stored.k,
                                           .a_k = 1,
                                           .b = b,
                                           .b_format = tb.format,
                                           .columns = sparse ? columns : NULL};
    tensor_multiply(&sum, &factors, c);
    bool saturate = byte_of(i->detail[SHAPE], 3) != 0;
    tile_encode(td.format, c, (size_t)shape.m * shape.n, saturate, elements);
    tile_scatter(warp, &td, i->dst, i->dst_count, elements);
}

/* What the modifiers say. */
struct form {
    struct tile_shape shape;
    enum tile_format formats[4]; /* in the order of the text: D, A, B, C; wmma of f16: D, C */
    uint32_t format_count;
    bool has_shape, saturate;
    bool sparse, ordered;
    uint32_t selector; /* of metadata */
};

static bool is_known(const char *modifier) {
    static const char *const known[] = {"sync", "aligned", "mma", "row", "col", "rn", NULL};
    return ptx_is_one_of(modifier, known);
}

static bool read_form(const struct ptx_instruction *in, struct form *form) {
    *form = (struct form){.has_shape = false};
    for (size_t n = 0; n < in->modifier_count; n++) {
        const char *modifier = in->modifiers[n];
        enum tile_format format = tile_format_find(modifier);
        if (format != TILE_NONE && form->format_count < 4) {
            form->formats[form->format_count++] = format;
        } else if (strcmp(modifier, "satfinite") == 0) {
            form->saturate = true;
        } else if (strcmp(modifier, "sp") == 0 || strcmp(modifier, "sp::ordered_metadata") == 0) {
            form->sparse = true;
            form->ordered = modifier[2] != '\0';
        } else if (tile_shape_read(modifier, &form->shape)) {
            form->has_shape = true;
        } else if (!is_known(modifier)) {
            return false;
        }
    }
    if (form->format_count == 2) {
        form->formats[3] = form->formats[1];
        form->formats[1] = form->formats[2] = TILE_F16;
        form->format_count = 4;
    }
    return form->has_shape && form->format_count == 4;
}

/* mma takes A by rows and B by columns; fragments of wmma carry no order. */
static bool is_row_column(const struct ptx_instruction *in) {
    int row = -1, column = -1;
    for (size_t n = 0; n < in->modifier_count; n++) {
        row = row < 0 && strcmp(in->modifiers[n], "row") == 0 ? (int)n : row;
        column = column < 0 && strcmp(in->modifiers[n], "col") == 0 ? (int)n : column;
    }
    return row >= 0 && column == row + 1;
}

static bool is_accumulator(enum tile_format input, enum tile_format sum) {
    switch (input) {
    case TILE_F16:
    case TILE_E4M3:
    case TILE_E5M2:
        return sum == TILE_F16 || sum == TILE_F32;
    case TILE_BF16:
    case TILE_TF32:
        return sum == TILE_F32;
    case TILE_F64:
        return sum == TILE_F64;
    case TILE_S8:
    case TILE_U8:
    case TILE_S4:
    case TILE_U4:
        return sum == TILE_S32;
    default:
        return false;
    }
}

static uint32_t element_count(const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_VECTOR ? (uint32_t)operand->element_count : 1;
}

/* A fragment may hold a matrix several times; then all registers hold it equally often. */
static bool holds(uint32_t registers, const struct tile *tile) {
    uint32_t once = tile_registers(tile);
    return once > 0 && registers >= once && registers % once == 0;
}

/* Metadata and selector, behind C. */
static bool read_sparse(const struct ptx_instruction *in, struct form *form) {
    const struct ptx_operand *selector = &in->operands[5];
    form->selector = (uint32_t)selector->bits;
    const struct sparse sparse = {
        .format = form->formats[1], .k = form->shape.k, .selector = form->selector};
    return selector->kind == PTX_OPERAND_IMMEDIATE && form->shape.m == SPARSE_ROWS &&
           form->shape.n == 8 && sparse_is_known(&sparse);
}

static bool check_form(const struct form *form, const struct ptx_instruction *in) {
    static const enum tile_role roles[] = {TILE_C, TILE_A, TILE_B, TILE_C};
    struct tile_shape stored = form->shape;
    stored.k /= form->sparse ? 2 : 1;
    bool known = is_accumulator(form->formats[1], form->formats[0]) &&
                 is_accumulator(form->formats[2], form->formats[3]) &&
                 tile_bits(form->formats[1]) == tile_bits(form->formats[2]);
    for (size_t n = 0; n < 4 && known; n++) {
        struct tile tile =
            tile_of(roles[n] == TILE_A ? &stored : &form->shape, roles[n], form->formats[n]);
        known = holds(element_count(&in->operands[n]), &tile);
    }
    return known;
}

static uint16_t flops_of(const struct form *form) {
    uint32_t all = 2 * form->shape.m * form->shape.n * form->shape.k / (form->sparse ? 2 : 1);
    bool integer = form->formats[0] == TILE_S32;
    return (uint16_t)(integer ? 0 : all / SIMT_LANES);
}

bool simt_decode_mma(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    struct form form;
    bool wmma = strcmp(in->base, "wmma") == 0 && ptx_has_modifier(in, "mma");
    bool plain = strcmp(in->base, "mma") == 0 && is_row_column(in);
    if ((!wmma && !plain) || !read_form(in, &form) || in->operand_count != (form.sparse ? 6 : 4) ||
        (form.sparse && !read_sparse(in, &form)) || !check_form(&form, in)) {
        return false;
    }
    uint32_t sparse = form.sparse ? (uint32_t)SPARSE_IS | (form.ordered ? SPARSE_ORDERED : 0) |
                                        form.selector << SPARSE_SELECTOR_SHIFT
                                  : 0;
    const enum tile_format *f = form.formats;
    simt_lane_synchronise(out);
    out->detail[SHAPE] = bytes(form.shape.m, form.shape.n, form.shape.k, form.saturate);
    out->detail[FORMATS] = bytes(f[1], f[2], f[3], f[0]);
    out->detail[REGISTERS] = bytes(element_count(&in->operands[1]), element_count(&in->operands[2]),
                                   element_count(&in->operands[3]), sparse);
    out->flops = flops_of(&form);
    out->run = run_mma;
    return true;
}
