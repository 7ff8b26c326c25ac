/**
 * @file gemm16_hopper.cu
 * @brief The kernel for Hopper: none yet that is faster.
 */
#include "common/gemm16/gemm16_parts.h"

bool gemm16_hopper_can(const struct gemm16_problem *, const struct gemm16_gpu *) {
    return false;
}

bool gemm16_hopper_is_faster(const struct gemm16_problem *, const struct gemm16_gpu *) {
    return false;
}

enum status gemm16_hopper(const struct gemm16_problem *, const struct gemm16_gpu *, device_stream,
                          struct error *error) {
    return error_set(error, STATUS_UNSUPPORTED, "gemm16: no kernel of its own for Hopper");
}
