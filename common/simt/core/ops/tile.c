#include "common/simt/core/ops/tile.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/core/ops/small_float.h"
#include "common/simt/memory/run.h"

static const struct {
    const char *name;
    enum tile_format format;
    uint32_t bits;
} formats[] = {{"f16", TILE_F16, 16}, {"bf16", TILE_BF16, 16}, {"tf32", TILE_TF32, 32},
               {"f32", TILE_F32, 32}, {"f64", TILE_F64, 64},   {"s8", TILE_S8, 8},
               {"u8", TILE_U8, 8},    {"s4", TILE_S4, 4},      {"u4", TILE_U4, 4},
               {"s32", TILE_S32, 32}, {"e4m3", TILE_E4M3, 8},  {"e5m2", TILE_E5M2, 8}};

enum tile_format tile_format_find(const char *name) {
    for (size_t n = 0; n < sizeof formats / sizeof *formats; n++) {
        if (strcmp(name, formats[n].name) == 0) {
            return formats[n].format;
        }
    }
    return TILE_NONE;
}

uint32_t tile_bits(enum tile_format format) {
    return format == TILE_NONE ? 0 : formats[format - TILE_F16].bits;
}

bool tile_shape_read(const char *name, struct tile_shape *shape) {
    static const char letters[] = "mnk";
    uint32_t *const sizes[] = {&shape->m, &shape->n, &shape->k};
    for (size_t n = 0; n < 3; n++) {
        char *end;
        if (*name != letters[n] || name[1] < '1' || name[1] > '9') {
            return false;
        }
        unsigned long size = strtoul(name + 1, &end, 10);
        if (size > 256) {
            return false;
        }
        *sizes[n] = (uint32_t)size;
        name = end;
    }
    return *name == '\0';
}

struct tile tile_of(const struct tile_shape *shape, enum tile_role role, enum tile_format format) {
    return (struct tile){.role = role,
                         .format = format,
                         .rows = role == TILE_B ? shape->k : shape->m,
                         .columns = role == TILE_A ? shape->k : shape->n};
}

/* Elements in a register. */
static uint32_t packed(const struct tile *tile) {
    uint32_t bits = tile_bits(tile->format);
    return bits >= 32 ? 1 : 32 / bits;
}

uint32_t tile_registers(const struct tile *tile) {
    uint32_t p = packed(tile);
    uint32_t row_unit = tile->role == TILE_B ? 4 * p : 8;
    uint32_t column_unit = tile->role == TILE_A ? 4 * p : 8;
    uint32_t size = tile->rows * tile->columns;
    bool fits = tile->rows > 0 && tile->columns > 0 && tile->rows % row_unit == 0 &&
                tile->columns % column_unit == 0 && size <= TILE_MOST;
    return fits && p <= 8 && (tile->role != TILE_C || p <= 2) ? size / (SIMT_LANES * p) : 0;
}

/* Element e of register r of lane 4*g + t is number base + g * by_group + t * by_thread. */
struct place {
    uint32_t base, by_group, by_thread;
};

static struct place element_place(const struct tile *tile, uint32_t r, uint32_t e) {
    uint32_t p = packed(tile);
    uint32_t width = tile->columns;
    uint32_t down, across;
    if (tile->role == TILE_A) {
        down = tile->rows / 8;
        return (struct place){8 * (r % down) * width + e + 4 * p * (r / down), width, p};
    }
    if (tile->role == TILE_B) {
        down = tile->rows / (4 * p);
        return (struct place){(e + 4 * p * (r % down)) * width + 8 * (r / down), 1, p * width};
    }
    down = tile->rows / 8;
    across = (r * p + e) / 2;
    return (struct place){8 * (across % down) * width + (r * p + e) % 2 + 8 * (across / down),
                          width, 2};
}

static uint32_t number(const struct place *place, uint32_t lane) {
    return place->base + lane / 4 * place->by_group + lane % 4 * place->by_thread;
}

void tile_gather(const struct simt_warp *warp, const struct tile *tile, const uint32_t *registers,
                 uint64_t *elements) {
    uint32_t bits = tile_bits(tile->format);
    uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    uint32_t count = tile_registers(tile);
    for (uint32_t r = 0; r < count; r++) {
        const union simt_row *row = simt_row(warp, registers[r]);
        for (uint32_t e = 0; e < packed(tile); e++) {
            struct place place = element_place(tile, r, e);
            for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
                uint64_t word = bits == 64 ? row->u64[lane] : row->u32[lane] >> e * bits % 32;
                elements[number(&place, lane)] = word & mask;
            }
        }
    }
}

void tile_scatter(const struct simt_warp *warp, const struct tile *tile, const uint32_t *registers,
                  uint32_t count, const uint64_t *elements) {
    uint32_t bits = tile_bits(tile->format);
    uint32_t distinct = tile_registers(tile);
    for (uint32_t r = 0; r < count; r++) {
        union simt_row *row = simt_row(warp, registers[r]);
        for (uint32_t e = 0; e < packed(tile); e++) {
            struct place place = element_place(tile, r % distinct, e);
            for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
                uint64_t element = elements[number(&place, lane)];
                if (bits == 64) {
                    row->u64[lane] = element;
                } else {
                    uint32_t before = e == 0 ? 0 : row->u32[lane];
                    row->u32[lane] = before | (uint32_t)element << e * bits % 32;
                }
            }
        }
    }
}

static int64_t extend(uint64_t bits, uint32_t width) {
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static double value_of(enum tile_format format, uint64_t bits) {
    switch (format) {
    case TILE_F16:
        return (double)half_to_float((uint32_t)bits);
    case TILE_BF16:
        return (double)bfloat_to_float((uint32_t)bits);
    case TILE_TF32: /* the last 13 bits of the register do not take part */
        return (double)row_float_of_bits((uint32_t)bits & 0xffffe000);
    case TILE_F32:
        return (double)row_float_of_bits((uint32_t)bits);
    case TILE_F64:
        return row_double_of_bits(bits);
    case TILE_S8:
    case TILE_S4:
    case TILE_S32:
        return (double)extend(bits, tile_bits(format));
    case TILE_U8:
    case TILE_U4:
        return (double)bits;
    case TILE_E4M3:
        return e4m3_to_double((uint32_t)bits);
    case TILE_E5M2:
        return e5m2_to_double((uint32_t)bits);
    case TILE_NONE:
        break;
    }
    return 0.0;
}

/* The format as a constant makes the loop one over a plain function. */
#define EACH(FORMAT)                                   \
    case FORMAT:                                       \
        for (size_t n = 0; n < count; n++) {           \
            values[n] = value_of(FORMAT, elements[n]); \
        }                                              \
        break;

void tile_decode(enum tile_format format, const uint64_t *elements, size_t count, double *values) {
    switch (format) {
        EACH(TILE_F16)
        EACH(TILE_BF16)
        EACH(TILE_TF32)
        EACH(TILE_F32)
        EACH(TILE_F64)
        EACH(TILE_S8)
        EACH(TILE_U8)
        EACH(TILE_S4)
        EACH(TILE_U4)
        EACH(TILE_S32)
        EACH(TILE_E4M3)
        EACH(TILE_E5M2)
        EACH(TILE_NONE)
    }
}
#undef EACH

/* Sums of integers stay far below 2^53. */
static uint32_t to_int32(double value, bool saturate) {
    if (saturate) {
        value = value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value;
    }
    return (uint32_t)(int64_t)value;
}

static uint32_t to_float(double value) {
    return value != value ? 0x7fffffff : row_bits_of_float((float)value);
}

void tile_encode(enum tile_format format, const double *values, size_t count, bool saturate,
                 uint64_t *elements) {
    for (size_t n = 0; n < count; n++) {
        elements[n] = format == TILE_F32   ? to_float(values[n])
                      : format == TILE_S32 ? to_int32(values[n], saturate)
                      : format == TILE_F16 ? float_to_half(double_to_odd(values[n]))
                                           : row_bits_of_double(values[n]);
    }
}

void tile_count(const struct simt_warp *warp, enum tile_format format,
                const struct tile_shape *shape) {
    static const uint8_t counted[] = {
        [TILE_F16] = SIMT_TENSOR_F16,   [TILE_BF16] = SIMT_TENSOR_BF16,
        [TILE_TF32] = SIMT_TENSOR_TF32, [TILE_F64] = SIMT_TENSOR_F64,
        [TILE_E4M3] = SIMT_TENSOR_FP8,  [TILE_E5M2] = SIMT_TENSOR_FP8,
        [TILE_S8] = SIMT_TENSOR_INT8,   [TILE_U8] = SIMT_TENSOR_INT8,
        [TILE_S4] = SIMT_TENSOR_INT4,   [TILE_U4] = SIMT_TENSOR_INT4};
    warp->block->counters->tensor_operations[counted[format]] +=
        2 * (uint64_t)shape->m * shape->n * shape->k;
}
