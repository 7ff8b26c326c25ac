/**
 * @file attention_v4_tensor.cu
 * @brief fp16 and bf16: both products on tensor cores, through mma.sync.
 *
 * Changes since v3, for 16-bit inputs only: tensor_tile.cuh replaces v2.
 * Queries' fragments stay in registers, the weights go from one product to the
 * other in registers, K and V come by ldmatrix.
 *
 * Why: relieves the FMA units. A tile of 64 keys is 128 mmas a warp for 64 times
 * 2^x a thread; a multiprocessor does 16 of those a cycle, so that they are the
 * next limit, and have to run while another warp multiplies.
 *
 * Measured, H200, 2026-11-21, 16 texts of 512, 12 heads of 64, bf16: 0.0560 ms,
 * 230 TFLOP/s (v2 2.459). Tensor cores busy 41%, 2^x 29%: two warps a scheduler are
 * few, but 16 queries a warp and twice the warps read shared memory twice as often,
 * and took longer.
 *
 * v3 does fp32.
 */
#include "solutions/07_attention/steps/tensor_tile.cuh"

/* With the taller tile of queries where that leaves no multiprocessor idle. Heads up to 64: not on
   an RTX 3090 or 4090, whose multiprocessors have the shared memory for one block of `tall` but for
   two of `low`. */
template <typename E>
static enum status run(const struct attention_problem *p, float *lse, bool lengths,
                       device_stream stream, struct error *error) {
    struct gpu_limits gpu = gpu_limits();
    typedef tensor_tile<E, 64, 2, 2> tall;
    typedef tensor_tile<E, 64, 1, 3> low;
    typedef tensor_tile<E, 128, 2, 2> wide_tall;
    typedef tensor_tile<E, 128, 1, 2> wide_low;
    if (p->HS <= 64) {
        bool roomy = tall::BLOCKS * tall::BYTES <= gpu.shared_bytes;
        return roomy && fills(p, tall::QUERIES, gpu, 1)
                   ? launch_tensor<tall>(p, lse, lengths, stream, error)
                   : launch_tensor<low>(p, lse, lengths, stream, error);
    }
    return wide_tall::BYTES <= gpu.shared_bytes && fills(p, wide_tall::QUERIES, gpu, 1)
               ? launch_tensor<wide_tall>(p, lse, lengths, stream, error)
               : launch_tensor<wide_low>(p, lse, lengths, stream, error);
}

/* v2 serves GPUs without these instructions. */
enum status attention_half(const struct attention_problem *p, float *lse, bool lengths,
                           device_stream stream, struct error *error) {
    if (p->HS * p->NH == 0) {
        return STATUS_OK;
    }
    if (gpu_limits().major < 8) {
        return lse == NULL ? attention_v2_flash(p, stream, error)
                           : error_set(error, STATUS_UNSUPPORTED,
                                       "attention: sums of exponentials of 16-bit inputs need a "
                                       "code for compute capability 8.0 or more");
    }
    return p->dtype == NN_F16 ? run<__half>(p, lse, lengths, stream, error)
                              : run<__nv_bfloat16>(p, lse, lengths, stream, error);
}

enum status attention_v4_tensor(const struct attention_problem *p, device_stream stream,
                                struct error *error) {
    TRY(attention_check(p, error));
    return p->dtype == NN_F32 ? attention_float(p, NULL, false, stream, error)
                              : attention_half(p, NULL, false, stream, error);
}
