/**
 * @file dots.h
 * @brief Template of few_rows.c's innermost function, as tile.h is of v4's.
 *
 * Define before including it: DOTS, the function's name; DOTS_ROWS, rows of
 * input; DOTS_COLUMNS, rows of weight; DOTS_LANES, floats of a vector. There is
 * no include guard, because it is included once for each size.
 *
 * out (rows, columns) = in (rows, K) * weight (columns, K)^T.
 */
CPU_INLINE void DOTS(float *out, size_t stride, const float *in, const float *weight, size_t K) {
    typedef float vector __attribute__((vector_size(DOTS_LANES * sizeof(float)), may_alias));
    typedef float loose_vector
        __attribute__((vector_size(DOTS_LANES * sizeof(float)), aligned(4), may_alias));
    vector sum[DOTS_ROWS][DOTS_COLUMNS] = {0};
    size_t k = 0;
    for (; K - k >= DOTS_LANES; k += DOTS_LANES) {
#pragma GCC unroll 4
        for (size_t c = 0; c < DOTS_COLUMNS; c++) {
            prefetch(weight + c * K + k);
#pragma GCC unroll 4
            for (size_t r = 0; r < DOTS_ROWS; r++) {
                sum[r][c] += *(const loose_vector *)(in + r * K + k) *
                             *(const loose_vector *)(weight + c * K + k);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < DOTS_ROWS; r++) {
#pragma GCC unroll 4
        for (size_t c = 0; c < DOTS_COLUMNS; c++) {
            float rest = 0.0f;
            for (size_t i = k; i < K; i++) {
                rest += in[r * K + i] * weight[c * K + i];
            }
            float lanes[DOTS_LANES];
            *(loose_vector *)lanes = sum[r][c];
            out[r * stride + c] = sum_lanes(lanes, DOTS_LANES) + rest;
        }
    }
}
#undef DOTS
#undef DOTS_ROWS
#undef DOTS_COLUMNS
#undef DOTS_LANES
