/*
 * Wrong submissions to lab 13. $WRONG_LOW_BIT names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. A warp computes
 * one result after the other, from the matrix as it came.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/cuda/warp.cuh"
#include "labs/13_low_bit/low_bit.h"

#define MISTAKES(X)                                                                     \
    X(right)                                                                            \
    X(empty)           /* does nothing */                                               \
    X(no_zero)         /* forgets the zero points */                                    \
    X(always_8)        /* takes 8 for every zero point */                               \
    X(group_late)      /* begins each group a column late */                            \
    X(next_group)      /* takes the next group's scale and zero point */                \
    X(groups_of_128)   /* takes groups of 32 for groups of 128 */                       \
    X(neighbour_scale) /* takes the scale of the next row */                            \
    X(swapped_nibbles) /* the even column in the high nibble */                         \
    X(packed_rows)     /* rows of an odd number of nibbles without the one between */   \
    X(signed_nibbles)  /* takes nibbles for -8 .. 7 */                                  \
    X(unsigned_bytes)  /* takes int8 for 0 .. 255 */                                    \
    X(wrong_bias)      /* e4m3 with a bias of 8 */                                      \
    X(no_denormals)    /* e4m3's smallest numbers are 0 */                              \
    X(half_scales)     /* takes every 16-bit scale for fp16 */                          \
    X(half_sums)       /* sums of stored numbers in fp16: they overflow in long rows */ \
    X(short_sums)      /* rounded to 16 bits, too */                                    \
    X(bf16_sums)       /* rounds the sum to bf16 at each step */                        \
    X(rounds_weights)  /* rounds the scaled weights to bf16 */                          \
    X(last_columns)    /* leaves out what fills no 8 columns */                         \
    X(first_row)       /* multiplies the first row of in alone */                       \
    X(eight_rows)      /* multiplies up to eight rows */                                \
    X(bf16_out)        /* stores bf16 where fp32 is asked for */                        \
    X(behind)          /* stores one result too many */                                 \
    X(aligned)         /* reads pairs of in, wherever they lie */                       \
    X(prepares_once)   /* keeps the first matrix that it prepared */                    \
    X(status)          /* reports a failure */                                          \
    X(not_refused)     /* takes any call */

#define MISTAKE_VARIABLE "WRONG_LOW_BIT"
#include "grader/selftest/mistakes.h"

enum { WARPS = 4 };

struct call {
    struct low_bit_linear l;
    struct low_bit_matrix w;
    enum mistake mistake;
};

static struct low_bit_matrix parts_of(const struct low_bit_layout *layout, const void *prepared) {
    size_t values = (low_bit_values_bytes(layout) + 255) / 256 * 256;
    size_t scales = (low_bit_scales_bytes(layout) + 255) / 256 * 256;
    char *at = (char *)prepared;
    return {*layout, at, at + values, (uint8_t *)at + values + scales};
}

static __device__ float scale_at(const struct call &c, size_t index) {
    enum nn_dtype dtype = c.w.layout.scale_dtype;
    if (dtype == NN_F32) {
        return ((const float *)c.w.scales)[index];
    }
    return dtype == NN_F16 || c.mistake == MISTAKE_half_scales
               ? __half2float(((const __half *)c.w.scales)[index])
               : __bfloat162float(((const __nv_bfloat16 *)c.w.scales)[index]);
}

static __device__ float of_e4m3(unsigned bits, enum mistake mistake) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    float x = exponent != 0                     ? ldexpf((float)(fraction + 8), exponent - 10)
              : mistake == MISTAKE_no_denormals ? 0.0f
                                                : ldexpf((float)fraction, -9);
    x *= mistake == MISTAKE_wrong_bias ? 0.5f : 1.0f;
    return (bits & 0x80) != 0 ? -x : x;
}

/* The stored nibble. */
static __device__ int nibble_at(const struct call &c, size_t row, size_t column) {
    size_t K = c.w.layout.columns, at = row * ((K + 1) / 2) * 2 + column;
    at = c.mistake == MISTAKE_packed_rows ? row * K + column : at;
    at ^= c.mistake == MISTAKE_swapped_nibbles ? 1 : 0;
    int q = ((const uint8_t *)c.w.values)[at / 2] >> (at % 2 * 4) & 15;
    return c.mistake == MISTAKE_signed_nibbles && q > 7 ? q - 16 + 8 : q;
}

static __device__ size_t group_of(const struct call &c, size_t column, size_t groups) {
    const struct low_bit_layout &l = c.w.layout;
    size_t width = c.mistake == MISTAKE_groups_of_128 && l.group == 32 ? 128 : l.group;
    size_t shifted = c.mistake == MISTAKE_group_late && column > 0 ? column - 1 : column;
    size_t group = shifted / width;
    return c.mistake == MISTAKE_next_group && group + 1 < groups ? group + 1 : group;
}

/* The stored number less its zero point, and its scale. */
static __device__ float stored_at(const struct call &c, size_t row, size_t column, float *scale) {
    const struct low_bit_layout &l = c.w.layout;
    size_t groups = (l.columns + l.group - 1) / l.group;
    size_t index = row * groups + group_of(c, column, groups);
    bool is_next = c.mistake == MISTAKE_neighbour_scale && row + 1 < l.rows;
    *scale = scale_at(c, index + (is_next ? groups : 0));
    if (l.type == LOW_BIT_INT4) {
        int zero = l.has_zeros && c.mistake != MISTAKE_always_8 ? c.w.zeros[index] : 8;
        return (float)(nibble_at(c, row, column) - (c.mistake == MISTAKE_no_zero ? 0 : zero));
    }
    uint8_t byte = ((const uint8_t *)c.w.values)[row * l.columns + column];
    if (l.type == LOW_BIT_FP8) {
        return of_e4m3(byte, c.mistake);
    }
    return c.mistake == MISTAKE_unsigned_bytes ? (float)byte : (float)(int8_t)byte;
}

static __device__ float in_at(const struct call &c, size_t m, size_t k) {
    const __nv_bfloat16 *in = (const __nv_bfloat16 *)c.l.in + m * c.w.layout.columns;
    if (c.mistake == MISTAKE_aligned && c.w.layout.columns % 2 == 0) {
        __nv_bfloat162 pair = ((const __nv_bfloat162 *)in)[k / 2];
        return __bfloat162float(k % 2 == 0 ? pair.x : pair.y);
    }
    return __bfloat162float(in[k]);
}

static __device__ float product(const struct call &c, size_t m, size_t n) {
    size_t K = c.w.layout.columns, end = c.mistake == MISTAKE_last_columns ? K / 8 * 8 : K;
    float sum = 0.0f, scale = 0.0f;
    bool row_scale = c.w.layout.type != LOW_BIT_INT4 &&
                     (c.mistake == MISTAKE_half_sums || c.mistake == MISTAKE_short_sums);
    for (size_t k = threadIdx.x % 32; k < end; k += 32) {
        float q = stored_at(c, n, k, &scale), x = in_at(c, m, k);
        float w = row_scale ? q : q * scale;
        w = c.mistake == MISTAKE_rounds_weights ? __bfloat162float(__float2bfloat16(w)) : w;
        sum += w * x;
        sum = row_scale && c.mistake == MISTAKE_half_sums ? __half2float(__float2half(sum)) : sum;
        sum = c.mistake == MISTAKE_bf16_sums ? __bfloat162float(__float2bfloat16(sum)) : sum;
    }
    sum = warp_sum(sum);
    if (row_scale) {
        sum = c.mistake == MISTAKE_half_sums ? __half2float(__float2half(sum))
                                             : fminf(fmaxf(rintf(sum), -32768.0f), 32767.0f);
        stored_at(c, n, 0, &scale);
        sum *= scale;
    }
    return sum;
}

static __global__ void wrong_kernel(struct call c) {
    size_t N = c.w.layout.rows, n = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (n >= N) {
        return;
    }
    size_t rows = c.mistake == MISTAKE_first_row                 ? 1
                  : c.mistake == MISTAKE_eight_rows && c.l.M > 8 ? 8
                                                                 : c.l.M;
    for (size_t m = 0; m < rows; m++) {
        float sum = product(c, m, n);
        size_t at = m * N + n;
        if (threadIdx.x % 32 != 0) {
            continue;
        }
        if (c.l.out_dtype == NN_F32 && c.mistake != MISTAKE_bf16_out) {
            ((float *)c.l.out)[at] = sum;
        } else {
            ((__nv_bfloat16 *)c.l.out)[at] = __float2bfloat16_rn(sum);
        }
        if (c.mistake == MISTAKE_behind && at == c.l.M * N - 1) {
            size_t element = c.l.out_dtype == NN_F32 ? 4 : 2;
            ((__nv_bfloat16 *)c.l.out)[(at + 1) * element / 2] = __float2bfloat16_rn(sum);
        }
    }
}

enum status low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                            device_stream stream, struct error *error) {
    static bool is_prepared;
    const struct low_bit_layout *layout = &matrix->layout;
    if (chosen_mistake() == MISTAKE_prepares_once && is_prepared) {
        return STATUS_OK;
    }
    is_prepared = true;
    TRY(low_bit_check_layout(layout, error));
    const struct low_bit_matrix to = parts_of(layout, prepared);
    TRY(device_copy(to.values, matrix->values, low_bit_values_bytes(layout), stream, error));
    TRY(device_copy(to.scales, matrix->scales, low_bit_scales_bytes(layout), stream, error));
    return layout->has_zeros
               ? device_copy(to.zeros, matrix->zeros, low_bit_zeros_bytes(layout), stream, error)
               : STATUS_OK;
}

enum status low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                           device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    (void)workspace;
    if (mistake == MISTAKE_not_refused && linear->M > LOW_BIT_MAX_ROWS) {
        return STATUS_OK;
    }
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    TRY(low_bit_linear_check(linear, error));
    if (linear->M == 0 || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    const struct call c = {*linear, parts_of(&linear->layout, linear->prepared), mistake};
    unsigned blocks = (unsigned)((linear->layout.rows + WARPS - 1) / WARPS);
    wrong_kernel<<<blocks, WARPS * 32, 0, stream>>>(c);
    return device_launched("wrong_kernel", error);
}

const struct low_bit_step *low_bit_ladder(size_t *count) {
    static const struct low_bit_step steps[] = {{"v1_wrong", low_bit_prepare, low_bit_linear}};
    *count = 1;
    return steps;
}
