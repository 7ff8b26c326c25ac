/**
 * @file low_bit_v1_rows.cu
 * @brief Step 1: a warp a row, a number a lane, dequantised as the formula says.
 *
 * Changes since the starter: the 32 lanes of a warp read neighbouring numbers of a row, and four
 * rows of `in` are multiplied with each weight that is read.
 *
 * Why: a thread a row reads one byte of each sector of 32, and too few rows fill no GPU. What
 * limits it now: a load of one byte a lane (int4: two lanes load the same one), a conversion, and a
 * scale looked up for each weight.
 *
 * Mapping: ROW_WARPS warps a block; warp w of the grid has row w.
 *
 * Measured: NVIDIA H100 80GB HBM3, 2026-11-27, one row, L2 flushed before each call, us: 22016 x
 * 4096 int8 215.1, int4 in groups of 128 397.8; the starter: 1119 and 1421.
 */
#include "solutions/13_low_bit/steps/ladder.h"

#include "common/base/checked.h"
#include "solutions/13_low_bit/steps/prepare.cuh"
#include "solutions/13_low_bit/steps/row_helpers.cuh"
#include "solutions/13_low_bit/steps/row_launch.cuh"

namespace {

enum { ROWS = 4 }; /* of in, at once */

__device__ float of_e4m3(unsigned bits) {
    float magnitude = __uint_as_float((bits & 0x7f) << 20) * 0x1p120f;
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

template <enum low_bit_type TYPE>
__device__ float weight_at(const struct row_call &c, size_t row, size_t column) {
    const uint8_t *values = (const uint8_t *)c.matrix.values + row * c.row_bytes;
    if (TYPE == LOW_BIT_INT4) {
        size_t group = column / c.matrix.layout.group;
        int q = values[column / 2] >> (column % 2 * 4) & 15;
        return (float)(q - group_zero(c, row, group)) * group_scale(c, row, group);
    }
    float q = TYPE == LOW_BIT_INT8 ? (float)(int8_t)values[column] : of_e4m3(values[column]);
    return q * group_scale(c, row, 0);
}

template <enum low_bit_type TYPE>
__global__ void __launch_bounds__(ROW_WARPS * 32) low_bit_rows(const struct row_call c) {
    size_t n = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32, K = c.matrix.layout.columns;
    if (n >= c.matrix.layout.rows) {
        return;
    }
    for (size_t m = 0; m < c.M; m += ROWS) {
        float sums[ROWS] = {};
        for (size_t k = threadIdx.x % 32; k < K; k += 32) {
            float w = weight_at<TYPE>(c, n, k);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                sums[i] += m + i < c.M ? w * __bfloat162float(c.in[(m + i) * K + k]) : 0.0f;
            }
        }
        store_row<ROWS>(c, sums, n, m);
    }
}

} // namespace

enum status low_bit_v1_rows(const struct low_bit_linear *linear, void *workspace,
                            device_stream stream, struct error *error) {
    (void)workspace;
    TRY(low_bit_linear_check(linear, error));
    if (linear->M == 0) {
        return STATUS_OK;
    }
    const struct row_call c = row_call_of(linear);
    unsigned blocks = (unsigned)ceil_div(linear->layout.rows, ROW_WARPS);
    FOR_LOW_BIT_TYPE(linear->layout.type,
                     (low_bit_rows<TYPE><<<blocks, ROW_WARPS * 32, 0, stream>>>(c)));
    return device_launched("low_bit_v1_rows", error);
}
