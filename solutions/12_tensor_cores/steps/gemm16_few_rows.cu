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
    size_t wave = (size_t)gpu->multiprocessors;
    if (p->M <= 8) {
        return gemm16_stream(p, (p->N + 15) / 16 <= wave ? 0 : 1, 1, stream, error);
    }
    return gemm16_stream(p, 2, 1, stream, error);
}
