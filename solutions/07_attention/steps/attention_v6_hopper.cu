/**
 * @file attention_v6_hopper.cu
 * @brief fp16 and bf16 on Hopper: both products by wgmma.
 *
 * Changes since v5, for 16-bit inputs on GPUs of compute capability 9.0 only:
 * hopper_tile.cuh replaces v4's kernel. Masks, causality and packed texts as in v5.
 *
 * Why: relieves the tensor cores, which the same products by mma.sync keep busy 1.5
 * times as long, and the warps, which no longer load fragments.
 *
 * Measured, H200, 2026-11-21, 16 texts of 512, 12 heads of 64, bf16: 0.0473 ms,
 * 273 TFLOP/s (v5 0.0566, cuDNN 0.0398); packed as in v5 0.0196 (v5 0.0253). One text
 * of 128: 0.0073 (v5 0.0068).
 *
 * v5 does the rest: fp32, heads that do not begin 16-byte aligned, few
 * queries, other GPUs; and simt, which does not know wgmma (its code is for compute
 * capability 9.0 without the a, as PTX is that is to run on later GPUs).
 */
#include "solutions/07_attention/steps/hopper_tile.cuh"

template <typename E>
static enum status run(const struct attention_problem *p, float *lse, device_stream stream,
                       struct error *error) {
    return p->HS <= 64 ? launch_hopper<hopper_tile<E, 64>>(p, lse, stream, error)
                       : launch_hopper<hopper_tile<E, 128>>(p, lse, stream, error);
}

enum status attention_hopper(const struct attention_problem *p, float *lse, device_stream stream,
                             struct error *error) {
    return p->dtype == NN_F16 ? run<__half>(p, lse, stream, error)
                              : run<__nv_bfloat16>(p, lse, stream, error);
}

bool attention_hopper_takes(const struct attention_problem *p) {
    static const bool hopper = attention_hopper_there();
    return hopper && p->dtype != NN_F32 && heads_aligned(p) && p->HS * p->NH > 0;
}

/* Up to this number of queries v5 is better, with a block for each. */
enum { FEW_QUERIES = 4 };

bool attention_hopper_there(void) {
    return gpu_limits().major == 9 && has_hopper_code();
}

enum status attention_v6_hopper(const struct attention_problem *p, device_stream stream,
                                struct error *error) {
    TRY(attention_check(p, error));
    return p->T > FEW_QUERIES && attention_hopper_takes(p)
               ? attention_hopper(p, NULL, stream, error)
               : attention_v5_lengths(p, stream, error);
}
