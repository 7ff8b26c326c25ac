/**
 * @file low_bit_v2_magic.cu
 * @brief Step 2: words of 4 or 8 weights, unpacked without conversions.
 *
 * Changes since v1: a lane loads 4 bytes; unpack.cuh makes pairs of bf16 of them, two or three
 * instructions a pair; a group's scale multiplies the sum of a word's products, not each weight.
 *
 * Why: I2F runs at a quarter of the speed of other instructions, lop3 and fma at full speed. What
 * limits it now: nibble i and i + 4 come out together, so the pair of `in` for them is no pair in
 * memory and each product is an fma of its own; loads are 4 bytes.
 *
 * Mapping: as v1. Rows whose bytes are no multiple of 4 go to v1.
 *
 * Measured: NVIDIA H100 80GB HBM3, 2026-11-27, one row, L2 flushed before each call, us: 22016 x
 * 4096 int8 160.0, int4 in groups of 128 161.5.
 */
#include "solutions/13_low_bit/steps/ladder.h"

#include "common/base/checked.h"
#include "solutions/13_low_bit/steps/prepare.cuh"
#include "solutions/13_low_bit/steps/row_helpers.cuh"
#include "solutions/13_low_bit/steps/row_launch.cuh"
#include "solutions/13_low_bit/steps/unpack.cuh"

namespace {

enum { ROWS = 4 }; /* of in, at once */

__device__ __forceinline__ float low_of(unsigned pair) {
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float high_of(unsigned pair) {
    return __uint_as_float(pair & 0xffff0000u);
}

/* A word's weights in order, not scaled. */
template <enum low_bit_type TYPE>
__device__ __forceinline__ void unpack(float *w, unsigned word, unsigned minus_128_zero) {
    if constexpr (TYPE == LOW_BIT_INT4) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned pair = unpack_int4(word, i, minus_128_zero);
            w[i] = low_of(pair);
            w[i + 4] = high_of(pair);
        }
    } else {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unsigned pair = TYPE == LOW_BIT_INT8 ? unpack_int8(word, i) : unpack_fp8(word, i);
            w[i] = low_of(pair);
            w[i + 2] = high_of(pair);
        }
    }
}

template <enum low_bit_type TYPE>
__global__ void __launch_bounds__(ROW_WARPS * 32) low_bit_magic(const struct row_call c) {
    constexpr int EACH = TYPE == LOW_BIT_INT4 ? 8 : 4; /* weights of a word */
    size_t n = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32, K = c.matrix.layout.columns;
    if (n >= c.matrix.layout.rows) {
        return;
    }
    const unsigned *words = (const unsigned *)((const uint8_t *)c.matrix.values + n * c.row_bytes);
    for (size_t m = 0; m < c.M; m += ROWS) {
        float sums[ROWS] = {};
        for (size_t k = threadIdx.x % 32 * EACH; k < K; k += 32 * EACH) {
            size_t group = TYPE == LOW_BIT_INT4 ? k / c.matrix.layout.group : 0;
            unsigned zero = TYPE == LOW_BIT_INT4 ? 0xc300u | group_zero(c, n, group) : 0;
            float w[EACH], scale = group_scale(c, n, group);
            unpack<TYPE>(w, words[k / EACH], zero << 16 | zero);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                float sum = 0.0f;
#pragma unroll
                for (int j = 0; j < EACH; j++) {
                    bool is_there = m + i < c.M && k + j < K;
                    sum += is_there ? w[j] * __bfloat162float(c.in[(m + i) * K + k + j]) : 0.0f;
                }
                sums[i] += scale * sum;
            }
        }
        store_row<ROWS>(c, sums, n, m);
    }
}

} // namespace

enum status low_bit_v2_magic(const struct low_bit_linear *linear, void *workspace,
                             device_stream stream, struct error *error) {
    TRY(low_bit_linear_check(linear, error));
    TRY(low_bit_needs_bf16(error));
    if (low_bit_row_bytes(&linear->layout) % 4 != 0) {
        return low_bit_v1_rows(linear, workspace, stream, error);
    }
    if (linear->M == 0) {
        return STATUS_OK;
    }
    const struct row_call c = row_call_of(linear);
    unsigned blocks = (unsigned)ceil_div(linear->layout.rows, ROW_WARPS);
    FOR_LOW_BIT_TYPE(linear->layout.type,
                     (low_bit_magic<TYPE><<<blocks, ROW_WARPS * 32, 0, stream>>>(c)));
    return device_launched("low_bit_v2_magic", error);
}
