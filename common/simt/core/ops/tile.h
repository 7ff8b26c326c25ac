/**
 * @file tile.h
 * @brief How the lanes of a warp hold a matrix: element formats and fragment layouts.
 *
 * With g = lane / 4 and t = lane % 4, a register of p elements (p = 32 / bits,
 * at least 1) holds, as the PTX manual says for mma:
 *
 *     A (MxK): row g + 8 * (r % (M/8)),  columns p*t + 4*p * (r / (M/8)) ...
 *     B (KxN): rows p*t + 4*p * (r % (K/4p)) ...,  column g + 8 * (r / (K/4p))
 *     C (MxN): element pair q: row g + 8 * (q % (M/8)),
 *              columns 2*t + 8 * (q / (M/8)) and the next
 *
 * Fragments of wmma use the same formulas for their shapes. Where such a
 * fragment has more registers than the matrix needs (f16 A of m16n16k16 has
 * eight, and needs four), the others hold copies: loads fill them, mma ignores
 * them. So element-wise work on a fragment does what one expects.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_TILE_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_TILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/exec.h"

/** Formats of matrix elements. */
enum tile_format {
    TILE_NONE,
    TILE_F16,
    TILE_BF16,
    TILE_TF32,
    TILE_F32,
    TILE_F64,
    TILE_S8,
    TILE_U8,
    TILE_S4,
    TILE_U4,
    TILE_S32,
    TILE_E4M3,
    TILE_E5M2
};

enum tile_role { TILE_A, TILE_B, TILE_C };

/** Elements of the largest matrix: 16x64. */
enum { TILE_MOST = 1024 };

/** A matrix in the registers of a warp. */
struct tile {
    enum tile_role role;
    enum tile_format format;
    uint32_t rows, columns;
};

/** Shape and formats of a matrix product. */
struct tile_shape {
    uint32_t m, n, k;
};

/** @return the format that a modifier names, or TILE_NONE. */
enum tile_format tile_format_find(const char *name);

/** @return bits of one element. */
uint32_t tile_bits(enum tile_format format);

/** Reads "m16n8k16". @return false when it is no shape */
bool tile_shape_read(const char *name, struct tile_shape *shape);

/** @return the matrix that plays @p role. */
struct tile tile_of(const struct tile_shape *shape, enum tile_role role, enum tile_format format);

/** @return registers of a lane that hold all of it once; 0: the shape has no such layout. */
uint32_t tile_registers(const struct tile *tile);

/** Fetches the elements' bits. @param elements (rows*columns), row by row */
void tile_gather(const struct simt_warp *warp, const struct tile *tile, const uint32_t *registers,
                 uint64_t *elements);

/** Writes elements into @p count registers: copies where they hold more than the matrix. */
void tile_scatter(const struct simt_warp *warp, const struct tile *tile, const uint32_t *registers,
                  uint32_t count, const uint64_t *elements);

/** Counts a warp's product of that shape; @p format of its factors. */
void tile_count(const struct simt_warp *warp, enum tile_format format,
                const struct tile_shape *shape);

/** @return the value of each element's bits; exact. */
void tile_decode(enum tile_format format, const uint64_t *elements, size_t count, double *values);

/**
 * @brief Rounds values to a format: to nearest, ties to even, once; integers wrap.
 * @param saturate integers: to the nearest that fits instead
 */
void tile_encode(enum tile_format format, const double *values, size_t count, bool saturate,
                 uint64_t *elements);

#endif
