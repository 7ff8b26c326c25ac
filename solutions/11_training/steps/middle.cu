/**
 * @file middle.cu
 * @brief LayerNorm and AdamW halfway between v1 and the last step, for the middling submission.
 *
 * LayerNorm: neighbouring threads read neighbouring elements, and every row and column has many
 * threads; but the rows are read in one kernel and the columns in another, element by element, and
 * a row twice. AdamW: two kernels, one for the moments and one for the weights, so m and v are
 * written and read again: 38 bytes a parameter for v3's 30 and v1's 54.
 */
#include <math.h>

#include "solutions/11_training/steps/ladder.h"
#include "solutions/11_training/steps/vectors.cuh"

enum { WARP = 32, SLICES = 32, ROW_THREADS = 256, ROWS = ROW_THREADS / WARP };

template <typename E> static __device__ __forceinline__ float at(const void *tensor, size_t i) {
    return to_float(((const E *)tensor)[i]);
}

/* A block has 32 columns; slices of the rows are summed up side by side. */
template <typename E>
static __global__ void __launch_bounds__(WARP *SLICES)
    middle_columns(const struct layernorm_backward_problem p) {
    __shared__ float2 slices[SLICES][WARP];
    size_t c = (size_t)blockIdx.x * WARP + threadIdx.x;
    float2 sum = {0.0f, 0.0f};
    for (size_t row = threadIdx.y; c < p.C && row < p.rows; row += SLICES) {
        float dout = at<E>(p.dout, row * p.C + c);
        sum.x += dout * (at<E>(p.in, row * p.C + c) - p.stats[2 * row]) * p.stats[2 * row + 1];
        sum.y += dout;
    }
    slices[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || c >= p.C) {
        return;
    }
    for (int i = 1; i < SLICES; i++) {
        sum.x += slices[i][threadIdx.x].x;
        sum.y += slices[i][threadIdx.x].y;
    }
    p.dweight[c] += sum.x;
    p.dbias[c] += sum.y;
}

/* A warp a row: once for the two means and once more. */
template <typename E>
static __global__ void __launch_bounds__(ROW_THREADS)
    middle_rows(const struct layernorm_backward_problem p) {
    size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / WARP, first = row * p.C;
    if (row >= p.rows) {
        return;
    }
    float mean = p.stats[2 * row], rstd = p.stats[2 * row + 1], g_mean = 0.0f, gx_mean = 0.0f;
    for (size_t c = threadIdx.x % WARP; c < p.C; c += WARP) {
        float g = at<E>(p.dout, first + c) * p.weight[c];
        g_mean += g;
        gx_mean += g * (at<E>(p.in, first + c) - mean) * rstd;
    }
    g_mean = warp_sum<WARP>(g_mean) / (float)p.C;
    gx_mean = warp_sum<WARP>(gx_mean) / (float)p.C;
    for (size_t c = threadIdx.x % WARP; c < p.C; c += WARP) {
        float g = at<E>(p.dout, first + c) * p.weight[c];
        float xhat = (at<E>(p.in, first + c) - mean) * rstd;
        ((E *)p.din)[first + c] = from_float<E>(rstd * (g - g_mean - xhat * gx_mean));
    }
}

/* The columns come first: din may be dout. */
template <typename E>
static enum status launch(const struct layernorm_backward_problem *p, device_stream stream,
                          struct error *error) {
    unsigned rows = 0, columns = (unsigned)((p->C + WARP - 1) / WARP);
    TRY(count_blocks("layernorm_backward", (p->rows + ROWS - 1) / ROWS, &rows, error));
    middle_columns<E><<<columns, dim3(WARP, SLICES), 0, stream>>>(*p);
    TRY(device_launched("middle_columns", error));
    middle_rows<E><<<rows, ROW_THREADS, 0, stream>>>(*p);
    return device_launched("middle_rows", error);
}

enum status layernorm_backward_middle(const struct layernorm_backward_problem *p, void *workspace,
                                      device_stream stream, struct error *error) {
    (void)workspace;
    TRY(layernorm_backward_check(p, error));
    if (p->rows == 0) {
        return STATUS_OK;
    }
    return p->dtype == NN_F32 ? launch<float>(p, stream, error)
                              : launch<__nv_bfloat16>(p, stream, error);
}

static __global__ void middle_moments(const struct adamw_problem p) {
    size_t i = (size_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    if (i < p.count) {
        float g = *p.scale * p.gradient[i];
        p.m[i] = p.beta1 * p.m[i] + (1.0f - p.beta1) * g;
        p.v[i] = p.beta2 * p.v[i] + (1.0f - p.beta2) * g * g;
    }
}

/* unbias1, unbias2: 1 / (1 - beta^step) */
static __global__ void middle_weights(const struct adamw_problem p, float unbias1, float unbias2) {
    size_t i = (size_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    if (i < p.count) {
        float w = p.weights[i] * (i < p.decayed ? 1.0f - p.rate * p.decay : 1.0f);
        w -= p.rate * (p.m[i] * unbias1) / (sqrtf(p.v[i] * unbias2) + p.eps);
        p.weights[i] = w;
        if (p.copy != NULL) {
            ((__nv_bfloat16 *)p.copy)[i] = from_float<__nv_bfloat16>(w);
        }
    }
}

enum status adamw_middle(const struct adamw_problem *p, device_stream stream, struct error *error) {
    unsigned blocks = 0;
    TRY(adamw_check(p, error));
    TRY(count_blocks("adamw", (p->count + ROW_THREADS - 1) / ROW_THREADS, &blocks, error));
    if (blocks == 0) {
        return STATUS_OK;
    }
    middle_moments<<<blocks, ROW_THREADS, 0, stream>>>(*p);
    TRY(device_launched("middle_moments", error));
    double step = (double)p->step;
    middle_weights<<<blocks, ROW_THREADS, 0, stream>>>(
        *p, (float)(1.0 / (1.0 - pow((double)p->beta1, step))),
        (float)(1.0 / (1.0 - pow((double)p->beta2, step))));
    return device_launched("middle_weights", error);
}
