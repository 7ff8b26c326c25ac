/**
 * @file attention_v4_tensor.cu
 * @brief fp16 and bf16: both products on tensor cores, through mma.sync.
 *
 * Changes since v3, for 16-bit inputs only: v2's way becomes tensor_tile.cuh.
 * Queries' fragments stay in registers, the weights go from one product to the
 * other in registers, K and V come by ldmatrix.
 *
 * Why: relieves the FMA units. A tile of 64 keys is 128 mmas a warp for 64 times
 * 2^x a thread; a multiprocessor does 16 of those a cycle, so that they are the
 * next limit, and have to run while another warp multiplies.
 *
 * fp32 goes v3's way.
 */
#include "solutions/07_attention/tensor_tile.cuh"

enum status attention_v4_tensor(const struct attention_problem *p, device_stream stream,
                                struct error *error) {
    enum status status = attention_check(p, error);
    if (status != STATUS_OK) {
        return status;
    }
    switch (p->dtype) {
    case NN_F16:
        return run_tensor<__half, false>(p, stream, error);
    case NN_BF16:
        return run_tensor<__nv_bfloat16, false>(p, stream, error);
    default:
        return attention_v3_registers(p, stream, error);
    }
}
