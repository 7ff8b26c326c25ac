/**
 * @file gemm16_v4_ring.cu
 * @brief mma.sync from a ring of cp.async stages, on every GPU: v10's kernel for GPUs before
 * Hopper.
 *
 * Measured: NVIDIA H100 80GB HBM3, 4096 x 4096 x 4096, bf16: 477 TFLOP/s, 62% of cublasLt's.
 */
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"
#include "solutions/12_tensor_cores/steps/ladder.h"

enum status gemm16_v4_ring(const struct gemm16_problem *problem, void *workspace,
                           device_stream stream, struct error *error) {
    enum status status = gemm16_check(problem, error);
    if (status != STATUS_OK || problem->M == 0 || problem->N == 0) {
        return status;
    }
    const struct gemm16_gpu gpu = gemm16_gpu_of_this_thread();
    if (gpu.major < 8) {
        return gemm16_v10_shapes(problem, workspace, stream, error); /* says so */
    }
    TRY(gemm16_check_workspace(workspace, error));
    return gemm16_tile(problem, &gpu, workspace, stream, error);
}
