/**
 * @file tile.h
 * @brief Template of v4's innermost function (the micro-kernel); included once for each tile size.
 *
 * Define before including it: TILE, the function's name; TILE_ROWS, TILE_VECTORS
 * and TILE_LANES, the tile's size TILE_ROWS x TILE_VECTORS * TILE_LANES. The
 * sizes must be constants so that the sums get registers, and a vector must not
 * be longer than a register, because GCC would split it by way of memory.
 * So it is a template and has no parameters for them. No include guard.
 */
CPU_INLINE void TILE(struct target t, const float *inputs, const float *panel, size_t depth) {
    typedef float vector __attribute__((vector_size(TILE_LANES * sizeof(float)), may_alias));
    typedef float loose_vector
        __attribute__((vector_size(TILE_LANES * sizeof(float)), aligned(4), may_alias));
    vector sum[TILE_ROWS][TILE_VECTORS] = {0};
    for (size_t k = 0; k < depth; k++) {
#pragma GCC unroll 16
        for (size_t r = 0; r < TILE_ROWS; r++) {
#pragma GCC unroll 4
            for (size_t v = 0; v < TILE_VECTORS; v++) {
                const float *weights = panel + k * COLUMNS + v * TILE_LANES;
                sum[r][v] += inputs[r * DEPTH + k] * *(const vector *)weights;
            }
        }
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < TILE_ROWS; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            loose_vector *out = (loose_vector *)(t.out + r * t.stride + v * TILE_LANES);
            *out = sum[r][v] + (t.add ? (vector)*out : (vector){0});
        }
    }
}
#undef TILE
#undef TILE_ROWS
#undef TILE_VECTORS
#undef TILE_LANES
