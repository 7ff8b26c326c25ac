/**
 * @file low_bit.cu
 * @brief Lab 13: YOUR FILE. Make the product with 8-bit and 4-bit weights fast, and keep it right.
 *
 * What it must do is in low_bit.h, how to go about it in README.md. Everything in this file may
 * change; low_bit_prepare(), low_bit_linear() and low_bit_ladder() must stay. Check and measure
 * with
 *
 *     bazel test //grader:13_low_bit_parity //grader:13_low_bit_speedup
 *     bazel run //labs/13_low_bit:bench
 */
#include "labs/13_low_bit/low_bit.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/base/checked.h"

enum { THREADS = 128 };

/* The prepared matrix as this file has it: values, scales and zero points as they came, each at a
   multiple of 256 bytes. */
static struct low_bit_matrix parts_of(const struct low_bit_layout *layout, const void *prepared) {
    size_t values = ceil_div(low_bit_values_bytes(layout), 256) * 256;
    size_t scales = ceil_div(low_bit_scales_bytes(layout), 256) * 256;
    char *at = (char *)prepared;
    return (struct low_bit_matrix){*layout, at, at + values, (uint8_t *)at + values + scales};
}

static enum status prepare_v1(const struct low_bit_matrix *matrix, void *prepared,
                              device_stream stream, struct error *error) {
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check_layout(layout, error));
    const struct low_bit_matrix to = parts_of(layout, prepared);
    TRY(device_copy(to.values, matrix->values, low_bit_values_bytes(layout), stream, error));
    TRY(device_copy(to.scales, matrix->scales, low_bit_scales_bytes(layout), stream, error));
    return layout->has_zeros
               ? device_copy(to.zeros, matrix->zeros, low_bit_zeros_bytes(layout), stream, error)
               : STATUS_OK;
}

/* The scale of a row's group. */
static __device__ float scale_at(const struct low_bit_matrix &w, size_t index) {
    if (w.layout.scale_dtype == NN_F32) {
        return ((const float *)w.scales)[index];
    }
    return w.layout.scale_dtype == NN_F16
               ? __half2float(((const __half *)w.scales)[index])
               : __bfloat162float(((const __nv_bfloat16 *)w.scales)[index]);
}

/* e4m3: sign, four bits of exponent with bias 7, three of fraction. */
static __device__ float of_e4m3(unsigned bits) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    float x =
        exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf((float)(fraction + 8), exponent - 10);
    return (bits & 0x80) != 0 ? -x : x;
}

/* The weight at (row, column): scale * (stored - zero). */
static __device__ float weight_at(const struct low_bit_matrix &w, size_t row, size_t column) {
    const struct low_bit_layout &l = w.layout;
    size_t groups = (l.columns + l.group - 1) / l.group, index = row * groups + column / l.group;
    const uint8_t *values = (const uint8_t *)w.values;
    float x;
    if (l.type == LOW_BIT_INT4) {
        uint8_t byte = values[row * ((l.columns + 1) / 2) + column / 2];
        int stored = column % 2 == 0 ? byte & 15 : byte >> 4;
        x = (float)(stored - (l.has_zeros ? w.zeros[index] : 8));
    } else {
        uint8_t byte = values[row * l.columns + column];
        x = l.type == LOW_BIT_INT8 ? (float)(int8_t)byte : of_e4m3(byte);
    }
    return scale_at(w, index) * x;
}

/*
 * Step 1: a thread has a row of W and computes its products with one row of in after the other.
 * Right, and slow.
 */
static __global__ void linear_kernel(struct low_bit_matrix w, struct low_bit_linear l) {
    size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x, N = w.layout.rows, K = w.layout.columns;
    if (n >= N) {
        return;
    }
    for (size_t m = 0; m < l.M; m++) {
        const __nv_bfloat16 *in = (const __nv_bfloat16 *)l.in + m * K;
        float sum = 0.0f;
        for (size_t k = 0; k < K; k++) {
            sum += weight_at(w, n, k) * __bfloat162float(in[k]);
        }
        if (l.out_dtype == NN_F32) {
            ((float *)l.out)[m * N + n] = sum;
        } else {
            ((__nv_bfloat16 *)l.out)[m * N + n] = __float2bfloat16_rn(sum);
        }
    }
}

static enum status linear_v1(const struct low_bit_linear *linear, void *workspace,
                             device_stream stream, struct error *error) {
    (void)workspace;
    TRY(low_bit_linear_check(linear, error));
    if (linear->M == 0) {
        return STATUS_OK;
    }
    const struct low_bit_matrix w = parts_of(&linear->layout, linear->prepared);
    unsigned blocks = (unsigned)ceil_div(linear->layout.rows, THREADS);
    linear_kernel<<<blocks, THREADS, 0, stream>>>(w, *linear);
    return device_launched("low_bit", error);
}

/*
 * The steps the bench compares, in the order you wrote them; the last is your best.
 * Keep a step when you write the next one, and the bench shows what each one gained.
 */
const struct low_bit_step *low_bit_ladder(size_t *count) {
    static const struct low_bit_step steps[] = {
        {"v1_plain", prepare_v1, linear_v1},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

/* What a model and the grader call: the last step of the table. */
enum status low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                            device_stream stream, struct error *error) {
    size_t count;
    const struct low_bit_step *steps = low_bit_ladder(&count);
    return steps[count - 1].prepare(matrix, prepared, stream, error);
}

enum status low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                           device_stream stream, struct error *error) {
    size_t count;
    const struct low_bit_step *steps = low_bit_ladder(&count);
    return steps[count - 1].linear(linear, workspace, stream, error);
}
