/**
 * @file choose.cu
 * @brief All steps: lab 04's plan for a fused product, on the GPU at hand.
 */
#include "solutions/06_fused_epilogues/steps/ladder.h"

enum status fused_choose(const struct fused_problem *p, struct sgemm_plan *plan,
                         struct error *error) {
    struct sgemm_gpu gpu;
    TRY(sgemm_v10_gpu(&gpu, error));
    const struct sgemm_problem product = {
        .M = p->M, .N = p->N, .K = p->K, .form = SGEMM_B_TRANSPOSED};
    *plan = sgemm_v10_choose(&product, &gpu);
    return STATUS_OK;
}
