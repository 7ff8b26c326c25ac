/**
 * @file fused_v6_gelu_in.cu
 * @brief GELU of A on its way to shared memory: v10 loads A to registers, where it is applied.
 *
 * Changes since v4 (v5 is not built upon): between a load of A and its store to shared memory each
 * float goes through GELU.
 *
 * Why: a launch less, and 2 x 100 MB for 8192 x 3072. The price: an element of A is
 * loaded by each of the N / 128 blocks of its row, six for N = 768, and becomes GELU
 * as often. That is 10 instructions for 128 multiply-adds, so GELU has to be short
 * (functions.cuh). A model does better: it puts GELU into the epilogue of the layer
 * before, once an element.
 *
 * Launches: 2. Bytes: as v4.
 *
 * Measured on an NVIDIA H200, 2026-11-21, 8192 x 768 x 3072: 0.9052 ms after 0.9462 (v4); the
 * plain matmul 0.7830. With a GELU of 14 instructions it was 0.9150: four less saved a tenth of
 * what GELU costs here, not the two sevenths that counting promised.
 */
#include "solutions/06_fused_epilogues/steps/gemm.cuh"

enum status fused_gelu_linear_add_norm(const struct fused_problem *p, struct sgemm_plan plan,
                                       void *workspace, device_stream stream, struct error *error) {
    fused_gemm<gelu, identity> gemm = gemm_of<gelu>(p, identity());
    if (plan.splits == 1) {
        gemm.bias = p->bias;
        gemm.residual = p->residual;
    } else {
        gemm.C = fused_scratch(workspace);
    }
    launch_fused(gemm, plan, stream);
    TRY(device_launched("the matmul of GELU", error));
    return fused_norm_after(p, plan, workspace, stream, error);
}

enum status fused_v6_gelu_in(const struct fused_problem *p, void *workspace, device_stream stream,
                             struct error *error) {
    struct sgemm_plan plan;
    if (p->op != FUSED_GELU_LINEAR_ADD_NORM) {
        return fused_v4_residual(p, workspace, stream, error);
    }
    TRY(fused_choose(p, &plan, error));
    return fused_gelu_linear_add_norm(p, plan, workspace, stream, error);
}
