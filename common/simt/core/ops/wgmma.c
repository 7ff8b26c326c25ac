/*
 * wgmma: D (64 x N) = A * B + D by the four warps of a warpgroup, A in registers or shared memory,
 * B in shared memory.
 *
 * Each warp computes its 16 rows of D when it comes to the instruction; that the four warps execute
 * the same ones is checked (async_proxy.h). Sums are those of the modelled GPU (tensor_sum.h).
 *
 * A matrix in shared memory is made of chunks of 16 bytes: of one row, neighbours in K (K-major),
 * or of one k, neighbours in M or N (transposed). With S and L for the descriptor's stride and
 * leading byte offset, and W for the bytes that a swizzle spans (16 without one), chunk c of row r
 * lies at
 *
 *     K-major     r % 8 * W + r / 8 * S + c * (16, or L without a swizzle)
 *     transposed  c % (W/16) * 16 + c / (W/16) * L + k % 8 * W + k / 8 * S
 *                 (without a swizzle L and S change places)
 *
 * behind the start, and then the chunk of that address is swizzled.
 *
 * wgmma.sp: of A only 32 bytes of K are stored, B has 64; metadata says which (sparse.h).
 */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/core/ops/async_proxy.h"
#include "common/simt/core/ops/lane_access.h"
#include "common/simt/core/ops/sparse.h"
#include "common/simt/core/ops/tensor_sum.h"
#include "common/simt/core/ops/tile.h"
#include "common/simt/memory/pipeline.h"
#include "common/simt/memory/undefined.h"

enum { ROWS = 16, MOST_N = 256, MOST_K = 32, CHUNK = 16, K_BYTES = 32, SPARSE_TIMES = 2 };

/* detail: 0 taken, 1 N and K (as stored), 2 formats of A, B, D and flags, 3 registers of D, of A,
 * and of wgmma.sp 1 and the selector. */
enum { SHAPE = 1, FORMATS, REGISTERS };
enum {
    FLAG_SATURATE = 1,
    FLAG_NEGATE_A = 2,
    FLAG_NEGATE_B = 4,
    FLAG_TRANSPOSED_A = 8,
    FLAG_TRANSPOSED_B = 16,
    FLAG_SCALE_NEGATED = 32,
    FLAG_SCALE_CONSTANT = 64, /* scale-d is a number */
    FLAG_A_IN_REGISTERS = 128
};

static uint32_t byte_of(uint32_t word, uint32_t n) {
    return word >> 8 * n & 0xff;
}

static bool is_checked(const struct simt_warp *warp) {
    const struct simt_block *block = warp->block;
    return block->shadow != NULL && (block->run->check & SIMT_CHECK_COPIES) != 0;
}

/* A descriptor of a matrix in shared memory. */
struct descriptor {
    uint32_t start, leading, stride; /* bytes */
    uint32_t width;                  /* that the swizzle spans; 16: none */
    enum tensor_swizzle swizzle;
};

static void unpack_descriptor(uint64_t bits, struct descriptor *d) {
    static const enum tensor_swizzle swizzles[] = {TENSOR_SWIZZLE_NONE, TENSOR_SWIZZLE_128,
                                                   TENSOR_SWIZZLE_64, TENSOR_SWIZZLE_32};
    d->start = (uint32_t)(bits & 0x3fff) << 4;
    d->leading = (uint32_t)(bits >> 16 & 0x3fff) << 4;
    d->stride = (uint32_t)(bits >> 32 & 0x3fff) << 4;
    d->swizzle = swizzles[bits >> 62];
    d->width = (uint32_t)CHUNK << d->swizzle;
}

static bool read_descriptor(struct simt_warp *warp, const struct simt_instruction *i, uint64_t bits,
                            struct descriptor *d) {
    unpack_descriptor(bits, d);
    if ((bits >> 49 & 7) != 0) {
        simt_fail(
            warp, i, 0, SIMT_FAULT_UNSUPPORTED, 0,
            "the matrix descriptor 0x%016llx has base offset %u: simt runs those whose swizzle "
            "pattern begins at a multiple of %u bytes",
            (unsigned long long)bits, (uint32_t)(bits >> 49 & 7), 8 * d->width);
        return false;
    }
    return true;
}

static uint32_t chunk_address(const struct descriptor *d, bool transposed, uint32_t row,
                              uint32_t chunk) {
    bool plain = d->swizzle == TENSOR_SWIZZLE_NONE;
    uint32_t address = d->start;
    if (!transposed) {
        address += row % 8 * d->width + row / 8 * d->stride + chunk * (plain ? d->leading : CHUNK);
    } else { /* row is k */
        uint32_t span = d->width / CHUNK;
        address += chunk % span * CHUNK + chunk / span * (plain ? d->stride : d->leading) +
                   row % 8 * d->width + row / 8 * (plain ? d->leading : d->stride);
    }
    return tensor_swizzled(address, d->swizzle);
}

/* The part of a matrix that a warp reads. */
struct part {
    struct descriptor d;
    bool transposed;
    uint32_t first, rows; /* of M or N, multiples of 8 */
    uint32_t k;
    enum tile_format format;
};

static uint64_t element_of(const unsigned char *chunk, uint32_t n, uint32_t bytes) {
    uint64_t bits = 0;
    memcpy(&bits, chunk + (size_t)n * bytes, bytes);
    return bits;
}

/* In a flight: format, transposed, first row, rows, k, from the lowest byte on. */
static void pack_part(const struct part *part, struct simt_flight *flight) {
    flight->shape = (uint64_t)part->format | (uint64_t)part->transposed << 8 |
                    (uint64_t)part->first << 16 | (uint64_t)part->rows << 32 |
                    (uint64_t)part->k << 48;
}

static void unpack_part(const struct simt_flight *flight, struct part *part) {
    uint64_t shape = flight->shape;
    *part = (struct part){.format = (enum tile_format)(shape & UINT8_MAX),
                          .transposed = (shape >> 8 & 1) != 0,
                          .first = (uint32_t)(shape >> 16) & UINT16_MAX,
                          .rows = (uint32_t)(shape >> 32) & UINT16_MAX,
                          .k = (uint32_t)(shape >> 48)};
    unpack_descriptor(flight->descriptor, &part->d);
}

/* Its chunks: line by line, `across` of them. */
struct grid {
    uint32_t lines, across, first_line, first_chunk;
};

static struct grid grid_of(const struct part *part) {
    uint32_t each = CHUNK / (tile_bits(part->format) / 8);
    return (struct grid){.lines = part->transposed ? part->k : part->rows,
                         .across = (part->transposed ? part->rows : part->k) / each,
                         .first_chunk = part->transposed ? part->first / each : 0,
                         .first_line = part->transposed ? 0 : part->first};
}

static uint32_t address_in(const struct part *part, const struct grid *grid, uint32_t n) {
    return chunk_address(&part->d, part->transposed, grid->first_line + n / grid->across,
                         grid->first_chunk + n % grid->across);
}

/* Reads the elements; `to` (k, rows) gets them by k. */
static bool read_part(struct simt_warp *warp, const struct simt_instruction *i,
                      const struct part *part, uint64_t *to) {
    uint32_t bytes = tile_bits(part->format) / 8, each = CHUNK / bytes;
    const struct grid grid = grid_of(part);
    uint32_t across = grid.across, all = grid.lines * across;
    for (uint32_t base = 0; base < all; base += SIMT_LANES) {
        struct simt_access access = {
            .space = PTX_SHARED, .kind = SIMT_READ, .bytes = CHUNK, .async = true};
        unsigned char *host[SIMT_LANES];
        uint32_t count = all - base < SIMT_LANES ? all - base : SIMT_LANES;
        for (uint32_t n = 0; n < count; n++) {
            access.addresses[n] = address_in(part, &grid, base + n);
        }
        uint32_t lanes = count == SIMT_LANES ? UINT32_MAX : ((uint32_t)1 << count) - 1;
        if (!simt_lane_resolve(warp, i, &access, lanes, host)) {
            return false;
        }
        for (uint32_t n = 0; n < count; n++) {
            uint32_t line = (base + n) / across, column = (base + n) % across * each;
            for (uint32_t e = 0; e < each; e++) {
                uint32_t row = part->transposed ? column + e : line;
                uint32_t k = part->transposed ? line : column + e;
                to[(size_t)k * part->rows + row] =
                    host[n] != NULL ? element_of(host[n], e, bytes) : 0;
            }
        }
    }
    return true;
}

/* Whether a matrix that is read has one of the bytes from begin to end. */
static bool covers(const struct simt_flight *flight, uint64_t begin, uint64_t end) {
    struct part part;
    unpack_part(flight, &part);
    const struct grid grid = grid_of(&part);
    for (uint32_t n = 0; n < grid.lines * grid.across; n++) {
        uint32_t at = address_in(&part, &grid, n);
        if (at < end && begin < at + CHUNK) {
            return true;
        }
    }
    return false;
}

/* Until the warp has waited nobody may write what it reads. */
static void follow(struct simt_warp *warp, const struct simt_instruction *i, uint64_t bits,
                   const struct part *part) {
    struct simt_flight flight = {.kind = SIMT_FLIGHT_PRODUCT,
                                 .begin = UINT64_MAX,
                                 .instruction = i,
                                 .block = warp->block,
                                 .thread = warp->index * SIMT_LANES,
                                 .covers = covers,
                                 .descriptor = bits};
    const struct grid grid = grid_of(part);
    if (!is_checked(warp)) {
        return;
    }
    for (uint32_t n = 0; n < grid.lines * grid.across; n++) {
        uint32_t at = address_in(part, &grid, n);
        flight.begin = at < flight.begin ? at : flight.begin;
        flight.end = at + CHUNK > flight.end ? at + CHUNK : flight.end;
    }
    pack_part(part, &flight);
    async_proxy_follow_product(warp, &flight);
}

/* The bytes that a swizzled box of a tensor map brings lie where a descriptor of the same swizzle
 * looks for them, and nowhere else. */
static bool check_swizzle(struct simt_warp *warp, const struct simt_instruction *i,
                          const struct part *part) {
    static const char *const names[] = {"none", "32 bytes", "64 bytes", "128 bytes"};
    const struct simt_block *block = warp->block;
    const struct grid grid = grid_of(part);
    for (uint32_t n = 0;
         is_checked(warp) && block->shadow->generic != NULL && n < grid.lines * grid.across; n++) {
        uint32_t at = address_in(part, &grid, n);
        const struct simt_generic_write *write = &block->shadow->generic[at / SIMT_GENERIC_BYTES];
        if (write->box != NULL && write->swizzle != part->d.swizzle) {
            char line[320];
            simt_fail(
                warp, i, 0, SIMT_FAULT_TEXTURE, at,
                "reads a matrix at %u of shared memory with a descriptor whose swizzle is %s, "
                "but the box that was copied there%s has a swizzle of %s",
                at, names[part->d.swizzle],
                simt_place_text(block->run, write->box, line, sizeof line), names[write->swizzle]);
            simt_place_find(block->run, write->box, &warp->block->fault.other);
            warp->block->fault.hint =
                "give the tensor map (cuTensorMapEncodeTiled) and bits 62 and "
                "63 of the descriptor the same swizzle";
            return false;
        }
    }
    return true;
}

static bool fetch(struct simt_warp *warp, const struct simt_instruction *i, uint64_t bits,
                  struct part *part, double *values) {
    uint64_t elements[MOST_N * MOST_K * SPARSE_TIMES];
    if (!read_descriptor(warp, i, bits, &part->d) || !read_part(warp, i, part, elements) ||
        !check_swizzle(warp, i, part)) {
        return false;
    }
    follow(warp, i, bits, part);
    tile_decode(part->format, elements, (size_t)part->rows * part->k, values);
    return true;
}

/* Element e (0 or 1) of lane `lane`'s pair q of D: its place among 16 x n. */
static size_t place_of(uint32_t lane, uint32_t q, uint32_t e, uint32_t n) {
    return (size_t)(lane / 4 + 8 * (q % 2)) * n + 8 * (q / 2) + lane % 4 * 2 + e;
}

/* D's registers hold one element, or two of f16. */
static void gather(const struct simt_warp *warp, const uint32_t *registers, uint32_t count,
                   enum tile_format format, uint32_t n, double *values) {
    uint64_t elements[ROWS * MOST_N];
    uint32_t each = format == TILE_F16 ? 2 : 1;
    for (uint32_t r = 0; r < count; r++) {
        const union simt_row *row = simt_row(warp, registers[r]);
        for (uint32_t e = 0; e < each; e++) {
            uint32_t number = r * each + e;
            for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
                uint32_t word = row->u32[lane];
                elements[place_of(lane, number / 2, number % 2, n)] =
                    each == 2 ? word >> 16 * e & 0xffff : word;
            }
        }
    }
    tile_decode(format, elements, (size_t)ROWS * n, values);
}

static void scatter(const struct simt_warp *warp, const uint32_t *registers, uint32_t count,
                    enum tile_format format, bool saturate, uint32_t n, const double *values) {
    uint64_t elements[ROWS * MOST_N];
    uint32_t each = format == TILE_F16 ? 2 : 1;
    tile_encode(format, values, (size_t)ROWS * n, saturate, elements);
    for (uint32_t r = 0; r < count; r++) {
        union simt_row *row = simt_row(warp, registers[r]);
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            uint32_t number = r * each;
            uint32_t word = (uint32_t)elements[place_of(lane, number / 2, number % 2, n)];
            if (each == 2) {
                word |= (uint32_t)elements[place_of(lane, number / 2, 1, n)] << 16;
            }
            row->u32[lane] = word;
        }
    }
}

/* Which columns of a are stored. */
static bool read_columns(struct simt_warp *warp, const struct simt_instruction *i, uint32_t stored,
                         uint32_t metadata, uint32_t *columns) {
    const struct sparse form = {.format = (enum tile_format)byte_of(i->detail[FORMATS], 0),
                                .k = SPARSE_TIMES * stored,
                                .selector = byte_of(i->detail[REGISTERS], 3),
                                .ordered = true};
    return sparse_read(warp, i, &form, metadata, columns);
}

static void negate(double *values, size_t count) {
    for (size_t n = 0; n < count; n++) {
        values[n] = -values[n];
    }
}

static bool is_sparse(const struct simt_instruction *i) {
    return byte_of(i->detail[REGISTERS], 2) != 0;
}

/* What the sources are, in their order; metadata and its selector before scale. */
struct sources {
    const uint32_t *d, *a;
    uint32_t d_count, a_count;
    uint32_t b, metadata, scale; /* rows; scale may be a predicate */
};

static struct sources sources_of(const struct simt_instruction *i) {
    const uint32_t *all = simt_sources(i);
    uint32_t d = byte_of(i->detail[REGISTERS], 0), a = byte_of(i->detail[REGISTERS], 1);
    return (struct sources){.d = all,
                            .a = all + d,
                            .d_count = d,
                            .a_count = a,
                            .b = all[d + a],
                            .metadata = all[d + a + 1],
                            .scale = all[d + a + (is_sparse(i) ? 3 : 1)]};
}

static bool adds(const struct simt_warp *warp, const struct simt_instruction *i,
                 const struct sources *s) {
    uint32_t flags = byte_of(i->detail[FORMATS], 3);
    if ((flags & FLAG_SCALE_CONSTANT) != 0) {
        return simt_row(warp, s->scale)->u32[0] != 0;
    }
    bool set = (warp->predicates[s->scale] & 1) != 0;
    return set != ((flags & FLAG_SCALE_NEGATED) != 0);
}

/* A (k, 16): this warp's rows. */
static bool fetch_a(struct simt_warp *warp, const struct simt_instruction *i,
                    const struct sources *s, uint32_t k, double *a) {
    uint32_t flags = byte_of(i->detail[FORMATS], 3);
    enum tile_format format = (enum tile_format)byte_of(i->detail[FORMATS], 0);
    if ((flags & FLAG_A_IN_REGISTERS) == 0) {
        struct part part = {.transposed = (flags & FLAG_TRANSPOSED_A) != 0,
                            .first = warp->index % 4 * ROWS,
                            .rows = ROWS,
                            .k = k,
                            .format = format};
        return fetch(warp, i, simt_row(warp, s->a[0])->u64[0], &part, a);
    }
    const struct tile_shape shape = {ROWS, 8, k};
    const struct tile tile = tile_of(&shape, TILE_A, format);
    uint64_t elements[ROWS * MOST_K];
    double values[ROWS * MOST_K];
    tile_gather(warp, &tile, s->a, elements);
    tile_decode(format, elements, (size_t)ROWS * k, values);
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t n = 0; n < k; n++) {
            a[(size_t)n * ROWS + row] = values[(size_t)row * k + n];
        }
    }
    return true;
}

static bool check_fence(struct simt_warp *warp, const struct simt_instruction *i) {
    if (!is_checked(warp) || (warp->attention & SIMT_ATTENTION_PRODUCTS) != 0) {
        return true;
    }
    simt_fail(warp, i, 0, SIMT_FAULT_PRODUCT, 0,
              "executes a wgmma, and no wgmma.fence before the first one");
    return false;
}

/* Cycles that a warp's tensor core takes for 32 bytes of K, whatever the format; but it reads a
 * from shared memory, which is 64 rows of 32 bytes for all four. */
static uint32_t cycles_of(uint32_t n, bool from_registers) {
    enum { READ_A = 64 * K_BYTES / 128 };
    uint32_t cycles = n / 2;
    return from_registers || cycles > READ_A ? cycles : READ_A;
}

static void run_mma(struct simt_warp *warp, const struct simt_instruction *i) {
    double a[ROWS * MOST_K], b[MOST_N * MOST_K * SPARSE_TIMES], c[ROWS * MOST_N] = {0};
    uint32_t columns[SPARSE_ROWS * SPARSE_MOST_STORED];
    if (!simt_lane_require_all(warp, i) || !check_fence(warp, i)) {
        return;
    }
    const struct sources s = sources_of(i);
    uint32_t n = i->detail[SHAPE] & 0xffff, k = i->detail[SHAPE] >> 16;
    uint32_t formats = i->detail[FORMATS], flags = byte_of(formats, 3);
    bool from_registers = (flags & FLAG_A_IN_REGISTERS) != 0;
    struct warpgroup_step step = {.instruction = i,
                                  .a = from_registers ? 0 : simt_row(warp, s.a[0])->u64[0],
                                  .b = simt_row(warp, s.b)->u64[0]};
    struct part part_b = {.transposed = (flags & FLAG_TRANSPOSED_B) != 0,
                          .rows = n,
                          .k = is_sparse(i) ? SPARSE_TIMES * k : k,
                          .format = (enum tile_format)byte_of(formats, 1)};
    enum tile_format format = (enum tile_format)byte_of(formats, 2);
    const struct tile_shape shape = {.m = ROWS, .n = n, .k = k};
    tile_count(warp, (enum tile_format)byte_of(formats, 0), &shape);
    pipeline_multiply(warp, cycles_of(n, from_registers));
    if (!async_proxy_step(warp, &step) || !fetch_a(warp, i, &s, k, a) ||
        !fetch(warp, i, step.b, &part_b, b)) {
        return;
    }
    if (adds(warp, i, &s)) {
        gather(warp, s.d, s.d_count, format, n, c);
    }
    if (((flags & FLAG_NEGATE_A) != 0) != ((flags & FLAG_NEGATE_B) != 0)) {
        negate(a, (size_t)ROWS * k);
    }
    if (is_sparse(i) && !read_columns(warp, i, k, s.metadata, columns)) {
        return;
    }
    const struct tensor_sum sum = tensor_sum_of(
        warp->block->run->tensor_code, (enum tile_format)byte_of(formats, 0), format, true);
    const struct tensor_factors factors = {.m = ROWS,
                                           .n = n,
                                           .k = k,
                                           .a = a,
                                           .a_row = 1,
                                           .a_k = ROWS,
                                           .b = b,
                                           .b_format = part_b.format,
                                           .columns = is_sparse(i) ? columns : NULL};
    tensor_multiply(&sum, &factors, c);
    scatter(warp, s.d, s.d_count, format, (flags & FLAG_SATURATE) != 0, n, c);
}

static void run_fence(struct simt_warp *warp, const struct simt_instruction *i) {
    if (simt_lane_require_all(warp, i) && is_checked(warp)) {
        warp->attention |= SIMT_ATTENTION_PRODUCTS;
    }
}

static void run_commit(struct simt_warp *warp, const struct simt_instruction *i) {
    if (simt_lane_require_all(warp, i)) {
        async_proxy_commit_products(warp);
        pipeline_commit(warp, true);
    }
}

/* What the other warps of the warpgroup read for its wgmma comes before what this warp does next.
 */
static void meet_warpgroup(const struct simt_warp *warp) {
    enum { WARPGROUP = 4 };
    struct simt_shadow *shadow = warp->block->shadow;
    uint32_t first = warp->index / WARPGROUP * WARPGROUP;
    for (uint32_t n = first; shadow != NULL && n < first + WARPGROUP && n < shadow->warps; n++) {
        simt_shadow_release(shadow, n);
    }
    if (shadow != NULL) {
        simt_shadow_acquire(shadow, warp->index);
    }
}

static void run_wait(struct simt_warp *warp, const struct simt_instruction *i) {
    if (simt_lane_require_all(warp, i)) {
        meet_warpgroup(warp);
        async_proxy_wait_for_products(warp, (uint32_t)i->immediate);
        pipeline_wait_for(warp, true, (uint32_t)i->immediate);
    }
}

struct form {
    struct tile_shape shape;
    enum tile_format d, a, b;
    bool saturate, sparse;
};

static bool read_form(const struct ptx_instruction *in, struct form *form) {
    static const char *const known[] = {"mma_async", "sync", "aligned", NULL};
    enum tile_format *const formats[] = {&form->d, &form->a, &form->b};
    uint32_t count = 0;
    *form = (struct form){.saturate = false};
    for (size_t n = 0; n < in->modifier_count; n++) {
        const char *modifier = in->modifiers[n];
        enum tile_format format = tile_format_find(modifier);
        if (format != TILE_NONE && count < 3) {
            *formats[count++] = format;
        } else if (strcmp(modifier, "satfinite") == 0) {
            form->saturate = true;
        } else if (strcmp(modifier, "sp") == 0) {
            form->sparse = true;
        } else if (!tile_shape_read(modifier, &form->shape) && !ptx_is_one_of(modifier, known)) {
            return false;
        }
    }
    return count == 3;
}

/* Formats that go together, and the shape. */
static bool check_form(const struct form *form) {
    uint32_t bits = tile_bits(form->a);
    bool known = false;
    switch (form->a) {
    case TILE_F16:
        known = form->b == TILE_F16 && (form->d == TILE_F16 || form->d == TILE_F32);
        break;
    case TILE_BF16:
    case TILE_TF32:
        known = form->b == form->a && form->d == TILE_F32;
        break;
    case TILE_E4M3:
    case TILE_E5M2:
        known = (form->b == TILE_E4M3 || form->b == TILE_E5M2) &&
                (form->d == TILE_F16 || form->d == TILE_F32);
        break;
    case TILE_S8:
    case TILE_U8:
        known = (form->b == TILE_S8 || form->b == TILE_U8) && form->d == TILE_S32;
        break;
    default:
        break;
    }
    return known && form->shape.m == 64 && form->shape.n % 8 == 0 && form->shape.n >= 8 &&
           form->shape.n <= MOST_N &&
           form->shape.k * bits == K_BYTES * 8 * (form->sparse ? SPARSE_TIMES : 1);
}

/* A number among the last operands: 1 or -1 to scale, 0 or 1 to transpose. */
static bool flag_of(const struct ptx_instruction *in, size_t n, uint64_t set, uint32_t flag,
                    uint32_t *flags) {
    if (in->operands[n].kind != PTX_OPERAND_IMMEDIATE) {
        return false;
    }
    *flags |= (uint32_t)in->operands[n].bits == (uint32_t)set ? flag : 0;
    return true;
}

static bool read_flags(const struct ptx_instruction *in, const struct form *form, uint32_t *flags) {
    bool registers = in->operands[1].kind == PTX_OPERAND_VECTOR;
    bool integer = form->d == TILE_S32;
    bool sixteen = tile_bits(form->a) == 16;
    size_t at = form->sparse ? 5 : 3; /* of scale-d */
    size_t expected = at + 1 + (integer ? 0u : 2u) + (sixteen ? (registers ? 1u : 2u) : 0u);
    bool known = in->operand_count == expected;
    const struct ptx_operand *scale = known ? &in->operands[at] : NULL;
    *flags = registers ? FLAG_A_IN_REGISTERS : 0;
    *flags |= form->saturate ? FLAG_SATURATE : 0;
    if (known && scale->kind == PTX_OPERAND_IMMEDIATE) {
        *flags |= FLAG_SCALE_CONSTANT;
    } else if (known) {
        *flags |= scale->negated ? FLAG_SCALE_NEGATED : 0;
    }
    if (known && !integer) {
        known = flag_of(in, at + 1, UINT32_MAX, FLAG_NEGATE_A, flags) &&
                flag_of(in, at + 2, UINT32_MAX, FLAG_NEGATE_B, flags);
    }
    if (known && sixteen) {
        known = (registers || flag_of(in, at + 3, 1, FLAG_TRANSPOSED_A, flags)) &&
                flag_of(in, at + (registers ? 3 : 4), 1, FLAG_TRANSPOSED_B, flags);
    }
    return known;
}

/* The selector of the metadata, behind it. */
static bool read_selector(const struct ptx_instruction *in, const struct form *form,
                          uint32_t *selector) {
    const struct ptx_operand *operand = &in->operands[4];
    *selector = form->sparse ? (uint32_t)operand->bits : 0;
    const struct sparse sparse = {.format = form->a, .k = form->shape.k, .selector = *selector};
    return !form->sparse || (operand->kind == PTX_OPERAND_IMMEDIATE && sparse_is_known(&sparse));
}

static bool decode_product(const struct ptx_instruction *in, struct simt_instruction *out) {
    struct form form;
    uint32_t flags, selector;
    if (in->operand_count < 4 || in->operands[0].kind != PTX_OPERAND_VECTOR ||
        !read_form(in, &form) || !check_form(&form) || !read_flags(in, &form, &flags) ||
        !read_selector(in, &form, &selector)) {
        return false;
    }
    uint32_t k = form.shape.k / (form.sparse ? SPARSE_TIMES : 1);
    uint32_t d = (uint32_t)in->operands[0].element_count;
    uint32_t a = (flags & FLAG_A_IN_REGISTERS) != 0 ? (uint32_t)in->operands[1].element_count : 1;
    if (d != form.shape.n / (form.d == TILE_F16 ? 4 : 2) ||
        ((flags & FLAG_A_IN_REGISTERS) != 0 && a != 4)) {
        return false;
    }
    simt_lane_synchronise(out);
    out->detail[SHAPE] = form.shape.n | k << 16;
    out->detail[FORMATS] =
        (uint32_t)form.a | (uint32_t)form.b << 8 | (uint32_t)form.d << 16 | flags << 24;
    out->detail[REGISTERS] = d | a << 8 | (uint32_t)form.sparse << 16 | selector << 24;
    out->flops = (uint16_t)(form.d == TILE_S32 ? 0 : form.shape.n * k); /* 2*16*n*k/32 */
    out->run = run_mma;
    return true;
}

bool simt_decode_wgmma(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *in = decoding->source;
    if (strcmp(in->base, "wgmma") != 0) {
        return false;
    }
    if (ptx_has_modifier(in, "fence") || ptx_has_modifier(in, "commit_group")) {
        simt_lane_synchronise(out);
        out->run = ptx_has_modifier(in, "fence") ? run_fence : run_commit;
        return true;
    }
    if (ptx_has_modifier(in, "wait_group")) {
        simt_lane_synchronise(out);
        out->flow = SIMT_FLOW_WARPGROUP;
        out->run = run_wait;
        out->immediate = in->operand_count == 1 ? (int64_t)in->operands[0].bits : 0;
        return in->operand_count == 1 && in->operands[0].kind == PTX_OPERAND_IMMEDIATE;
    }
    return ptx_has_modifier(in, "mma_async") && decode_product(in, out);
}
