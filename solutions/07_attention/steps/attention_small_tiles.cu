/**
 * @file attention_small_tiles.cu
 * @brief The kernels of v3 and v4 with their smallest tiles, for the middling submission.
 *
 * A block has 32 queries (fp32) or 64 (fp16 and bf16) whatever the problem, so each key and value
 * that a block copies serves a quarter or half as many products as it could.
 */
#include "solutions/07_attention/steps/float_tile.cuh"
#include "solutions/07_attention/steps/tensor_tile.cuh"

template <typename E>
static enum status run(const struct attention_problem *p, device_stream stream,
                       struct error *error) {
    return p->HS <= 64 ? launch_tensor<tensor_tile<E, 64, 1, 1>>(p, NULL, false, stream, error)
                       : launch_tensor<tensor_tile<E, 128, 1, 1>>(p, NULL, false, stream, error);
}

enum status attention_small_tiles(const struct attention_problem *p, device_stream stream,
                                  struct error *error) {
    TRY(attention_check(p, error));
    if (p->HS * p->NH == 0) {
        return STATUS_OK;
    }
    if (p->dtype != NN_F32 && gpu_limits().major >= 8) {
        return p->dtype == NN_F16 ? run<__half>(p, stream, error)
                                  : run<__nv_bfloat16>(p, stream, error);
    }
    if (p->dtype != NN_F32 || p->HS > 64) {
        return attention_v2_flash(p, stream, error);
    }
    return launch_float<float_tile<64, 2>>(p, NULL, false, stream, error);
}
