/**
 * @file rows_inputs.cu
 * @brief Several texts: embeddings, and the inputs of products as signed digits. A warp has 128
 * channels of a text.
 */
#include <math.h>

#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/13_low_bit/rows/rows_kernels.h"

enum { INPUT_WARPS = 4, INPUT_THREADS = INPUT_WARPS * 32 };

struct embed_call {
    float *x;
    const __nv_bfloat16 *table;
    const int32_t *tokens, *positions;
    float2 *angles;
    unsigned C, HS;
    double log2_theta;
};

/* Grid: a block a text. */
static __global__ void __launch_bounds__(256) embed_kernel(const struct embed_call c) {
    const double one_over_pi = 0.31830988618379067;
    dependent_launch_begin();
    unsigned row = blockIdx.x;
    const __nv_bfloat16 *from = c.table + (size_t)c.tokens[row] * c.C;
    for (unsigned i = threadIdx.x; i < c.C; i += blockDim.x) {
        c.x[(size_t)row * c.C + i] = to_float(from[i]);
    }
    for (unsigned i = threadIdx.x; i < c.HS / 2; i += blockDim.x) {
        double half_turns = c.positions[row] * exp2(-2.0 * i / c.HS * c.log2_theta) * one_over_pi;
        float2 angle;
        sincospif((float)(half_turns - 2.0 * rint(0.5 * half_turns)), &angle.y, &angle.x);
        c.angles[row * (c.HS / 2) + i] = angle;
    }
}

void rows_embed(const struct rows_decoder *d, device_stream stream) {
    const struct decoder_model *m = &d->model.sizes;
    const struct embed_call c = {d->x,
                                 (const __nv_bfloat16 *)m->embedding,
                                 d->io.tokens,
                                 d->io.positions,
                                 d->angles,
                                 (unsigned)m->C,
                                 (unsigned)m->HS,
                                 log2((double)m->theta)};
    launch_dependent<embed_kernel>((unsigned)d->rows, 256, 0, stream, c);
}

/* Channels of x (rows, C), times a norm's weights where there are some. Grid: blocks of warps,
 * texts. */
static __global__ void __launch_bounds__(INPUT_THREADS)
    input_kernel(const struct rows_input in, const float *x, const float *weight, unsigned C) {
    dependent_launch_begin();
    unsigned block = blockIdx.x * INPUT_WARPS + threadIdx.x / 32, row = blockIdx.y;
    unsigned channel = block * ROWS_BLOCK + threadIdx.x % 32 * 4;
    float4 y = make_float4(0, 0, 0, 0);
    if (block * ROWS_BLOCK >= C) {
        return;
    }
    if (channel < C) { /* a multiple of 8 */
        y = *(const float4 *)(x + (size_t)row * C + channel);
    }
    float squares = y.x * y.x + y.y * y.y + y.z * y.z + y.w * y.w;
    if (weight != NULL && channel < C) {
        float4 w = *(const float4 *)(weight + channel);
        y = make_float4(y.x * w.x, y.y * w.y, y.z * w.z, y.w * w.w);
    }
    store_row(in, block, row, y, squares);
}

static void launch_input(const struct rows_decoder *d, const struct rows_input *in, const float *x,
                         const float *weight, size_t C, device_stream stream) {
    dim3 grid((unsigned)ceil_div(C, INPUT_WARPS * ROWS_BLOCK), (unsigned)d->rows);
    launch_dependent<input_kernel>(grid, INPUT_THREADS, 0, stream, *in, x, weight, (unsigned)C);
}

void rows_norm(const struct rows_decoder *d, const float *weight, device_stream stream) {
    launch_input(d, &d->residual, d->x, weight, d->model.sizes.C, stream);
}

void rows_hidden(const struct rows_decoder *d, device_stream stream) {
    launch_input(d, &d->hidden, d->gated, NULL, d->model.sizes.hidden, stream);
}
