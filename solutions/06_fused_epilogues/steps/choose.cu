/**
 * @file choose.cu
 * @brief All steps: lab 04's plan for a fused product, on the GPU at hand.
 */
#include "solutions/06_fused_epilogues/steps/ladder.h"

enum status fused_choose(const struct fused_problem *p, struct sgemm_plan *plan,
                         struct error *error) {
    int device = 0, multiprocessors = 0;
    cudaError_t code = cudaGetDevice(&device);
    if (code == cudaSuccess) {
        code = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    }
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "asking the GPU for its multiprocessors: %s",
                         cudaGetErrorString(code));
    }
    const struct sgemm_problem product = {
        .M = p->M, .N = p->N, .K = p->K, .form = SGEMM_B_TRANSPOSED};
    *plan = sgemm_v10_choose(&product, multiprocessors);
    return STATUS_OK;
}
