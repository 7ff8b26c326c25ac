/**
 * @file ladder.cu
 * @brief What the hosts of all steps share: checking sizes, counting blocks,
 * reading errors.
 */
#include "solutions/04_sgemm/steps/ladder.h"

#include <limits.h>

static enum status check_size(const char *name, size_t size, struct error *error) {
    if (size > SGEMM_MAX_SIZE) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "sgemm: %s = %zu is above the largest size, %zu", name, size,
                         SGEMM_MAX_SIZE);
    }
    return STATUS_OK;
}

enum status sgemm_count_blocks(const struct sgemm_problem *problem, size_t rows, size_t columns,
                               unsigned *blocks, struct error *error) {
    TRY(check_size("M", problem->M, error));
    TRY(check_size("N", problem->N, error));
    TRY(check_size("K", problem->K, error));
    size_t count = (problem->M + rows - 1) / rows * ((problem->N + columns - 1) / columns);
    if (count > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "sgemm: M = %zu and N = %zu need %zu blocks, a launch takes %d",
                         problem->M, problem->N, count, INT_MAX);
    }
    *blocks = (unsigned)count;
    return STATUS_OK;
}

enum status sgemm_launched(const char *kernel, struct error *error) {
    cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "sgemm: launching %s: %s", kernel,
                         cudaGetErrorString(code));
    }
    return STATUS_OK;
}
