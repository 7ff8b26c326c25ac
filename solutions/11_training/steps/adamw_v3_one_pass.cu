/**
 * @file adamw_v3_one_pass.cu
 * @brief AdamW: one kernel, each number read and written once.
 *
 * Changes since v1: what its five kernels do to a parameter is done while the parameter is in
 * registers; loads and stores of 16 bytes.
 *
 * Why: there are some 20 operations a parameter and 54 bytes in v1; the memory is the limit, and 30
 * bytes are needed: weights, gradient, m and v in, weights, m, v and copy out.
 *
 * Launch: a thread four parameters, 256 threads a block; 64 bytes a thread are on their way, 96
 * KiB a multiprocessor. The last count % 4 parameters go one at a time. FLOPs: 16 a parameter.
 */
#include <math.h>

#include "solutions/11_training/steps/ladder.h"
#include "solutions/11_training/steps/vectors.cuh"

enum { THREADS = 256 };

/* What all parameters have in common. */
struct rates {
    float rate, beta1, beta2, eps, keep; /* keep: what decay leaves */
    float unbias1, unbias2;              /* 1 / (1 - beta^step) */
};

static __device__ __forceinline__ void update(const struct rates &r, float g, bool decays, float &w,
                                              float &m, float &v) {
    w *= decays ? r.keep : 1.0f;
    m = r.beta1 * m + (1.0f - r.beta1) * g;
    v = r.beta2 * v + (1.0f - r.beta2) * g * g;
    w -= r.rate * (m * r.unbias1) / (sqrtf(v * r.unbias2) + r.eps);
}

static __device__ __forceinline__ void update_one(const struct adamw_problem &p,
                                                  const struct rates &r, float scale, size_t i) {
    update(r, scale * p.gradient[i], i < p.decayed, p.weights[i], p.m[i], p.v[i]);
    if (p.copy != NULL) {
        ((__nv_bfloat16 *)p.copy)[i] = from_float<__nv_bfloat16>(p.weights[i]);
    }
}

static __global__ void __launch_bounds__(THREADS)
    adamw_one_pass(const struct adamw_problem p, const struct rates r) {
    size_t first = 4 * ((size_t)blockIdx.x * THREADS + threadIdx.x);
    float scale = *p.scale;
    if (first + 4 > p.count) {
        for (size_t i = first; i < p.count; i++) {
            update_one(p, r, scale, i);
        }
        return;
    }
    float w[4], g[4], m[4], v[4];
    unpack_vector(*(const uint4 *)(p.weights + first), w);
    unpack_vector(*(const uint4 *)(p.gradient + first), g);
    unpack_vector(*(const uint4 *)(p.m + first), m);
    unpack_vector(*(const uint4 *)(p.v + first), v);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        update(r, scale * g[i], first + i < p.decayed, w[i], m[i], v[i]);
    }
    *(uint4 *)(p.weights + first) = pack_vector(w);
    *(uint4 *)(p.m + first) = pack_vector(m);
    *(uint4 *)(p.v + first) = pack_vector(v);
    if (p.copy != NULL) {
        const __nv_bfloat16 type = __nv_bfloat16();
        *(uint2 *)((__nv_bfloat16 *)p.copy + first) =
            make_uint2(pack(w[0], w[1], type), pack(w[2], w[3], type));
    }
}

static float unbias(float beta, uint64_t step) {
    return (float)(1.0 / (1.0 - pow((double)beta, (double)step)));
}

enum status adamw_v3_one_pass(const struct adamw_problem *p, device_stream stream,
                              struct error *error) {
    unsigned blocks = 0;
    TRY(adamw_check(p, error));
    TRY(count_blocks("adamw", p->count / (4 * THREADS) + 1, &blocks, error));
    if (p->count == 0) {
        return STATUS_OK;
    }
    const struct rates rates = {.rate = p->rate,
                                .beta1 = p->beta1,
                                .beta2 = p->beta2,
                                .eps = p->eps,
                                .keep = 1.0f - p->rate * p->decay,
                                .unbias1 = unbias(p->beta1, p->step),
                                .unbias2 = unbias(p->beta2, p->step)};
    adamw_one_pass<<<blocks, THREADS, 0, stream>>>(*p, rates);
    return device_launched("adamw_one_pass", error);
}
