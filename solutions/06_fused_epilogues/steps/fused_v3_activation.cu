/**
 * @file fused_v3_activation.cu
 * @brief The activation follows the bias, still in registers.
 *
 * Changes since v2: FUSED_LINEAR_ACTIVATION applies its function in the epilogue,
 * GELU by a formula of 10 instructions (functions.cuh), the others by one formula
 * with five constants, so that there are two kernels and not five.
 *
 * Why: a launch less, and 2 x 100 MB for 8192 x 3072.
 *
 * Launches: 1 (2 where K is split). Bytes: as the matmul.
 *
 * Measured on an NVIDIA H200, 2026-11-21, 8192 x 3072 x 768: 0.7903 ms after 0.9191; the plain
 * matmul 0.7841.
 */
#include "solutions/06_fused_epilogues/steps/split_k.cuh"

template <class ACTIVATION>
static enum status run(const struct fused_problem *p, ACTIVATION function, struct sgemm_plan plan,
                       void *workspace, device_stream stream, struct error *error) {
    fused_gemm<identity, ACTIVATION> gemm = gemm_of<identity>(p, function);
    gemm.bias = p->bias;
    if (plan.splits == 1) {
        launch_fused(gemm, plan, stream);
    } else {
        TRY(fused_linear_splits(p, plan, workspace, stream, error));
        launch_reduce_splits(gemm, fused_scratch(workspace), plan.splits, stream);
    }
    return device_launched("the matmul with an activation", error);
}

enum status fused_linear_activation(const struct fused_problem *p, struct sgemm_plan plan,
                                    void *workspace, device_stream stream, struct error *error) {
    if (p->f == NN_GELU) {
        return run(p, gelu(), plan, workspace, stream, error);
    }
    return run(p, sigmoid_like_of(p->f), plan, workspace, stream, error);
}

enum status fused_v3_activation(const struct fused_problem *p, void *workspace,
                                device_stream stream, struct error *error) {
    struct sgemm_plan plan;
    if (p->op != FUSED_LINEAR_ACTIVATION) {
        return fused_v2_bias(p, workspace, stream, error);
    }
    TRY(fused_choose(p, &plan, error));
    return fused_linear_activation(p, plan, workspace, stream, error);
}
