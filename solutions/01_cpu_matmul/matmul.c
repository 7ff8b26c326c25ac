/**
 * @file matmul.c
 * @brief Solution of lab 01: the last step of the ladder, and the ladder.
 */
#include "labs/01_cpu_matmul/matmul.h"

#include "solutions/01_cpu_matmul/steps/ladder.h"

enum status cpu_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                       size_t K, int threads) {
    return matmul_v5_threads(out, in, weight, M, N, K, threads);
}

const struct cpu_matmul_step *cpu_matmul_ladder(size_t *count) {
    static const struct cpu_matmul_step steps[] = {
        {"v1_naive", starter_cpu_matmul},
        {"v2_loop_order", matmul_v2_loop_order},
        {"v3_cache_blocked", matmul_v3_cache_blocked},
        {"v4_register_blocked", matmul_v4_register_blocked},
        {"v5_threads", matmul_v5_threads},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}
