/**
 * @file gemm16_few_rows.cu
 * @brief Which kernel few rows get.
 */
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

bool gemm16_few_rows_can(const struct gemm16_problem *p) {
    return has_plain_rows(p) && p->M <= GEMM16_FEW_ROWS;
}

enum status gemm16_few_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                            device_stream stream, struct error *error) {
    bool narrow = (p->N + 15) / 16 <= (size_t)gpu->multiprocessors;
    int shape = p->M <= 8 ? (narrow ? 0 : 1) : narrow ? 2 : 3;
    return gemm16_stream(p, shape, 1, stream, error);
}
