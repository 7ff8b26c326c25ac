/**
 * @file attention_small_tiles.cu
 * @brief The kernels of v3 and v4 with small tiles, for the middling submission.
 *
 * A block has 32 queries (fp32), or one warp with 16 (fp16 and bf16), whatever the problem. So a
 * key or value that a block copies serves a quarter or an eighth of the products that it could.
 */
#include "solutions/07_attention/steps/float_tile.cuh"
#include "solutions/07_attention/steps/tensor_tile.cuh"

/* A block is one warp. */
template <typename E, int HS> struct one_warp_tile : tensor_tile<E, HS, 1, 1> {
    typedef tensor_tile<E, HS, 1, 1> four_warps;
    static constexpr int WARPS = 1, THREADS = 32, QUERIES = four_warps::WARP_QUERIES;
    static constexpr size_t BYTES =
        (QUERIES * four_warps::PITCH + 2 * four_warps::STAGE) * sizeof(E);
};

template <typename E>
static enum status run(const struct attention_problem *p, device_stream stream,
                       struct error *error) {
    return p->HS <= 64 ? launch_tensor<one_warp_tile<E, 64>>(p, NULL, false, stream, error)
                       : launch_tensor<one_warp_tile<E, 128>>(p, NULL, false, stream, error);
}

enum status attention_small_tiles(const struct attention_problem *p, device_stream stream,
                                  struct error *error) {
    TRY(attention_check(p, error));
    if (p->HS * p->NH == 0) {
        return STATUS_OK;
    }
    if (p->dtype == NN_F32 && p->HS <= 64) {
        return launch_float<float_tile<64, 2>>(p, NULL, false, stream, error);
    }
    if (p->dtype == NN_F32 || gpu_limits().major < 8) {
        return attention_v2_flash(p, stream, error);
    }
    return p->dtype == NN_F16 ? run<__half>(p, stream, error)
                              : run<__nv_bfloat16>(p, stream, error);
}
