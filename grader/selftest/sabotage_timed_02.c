#include "grader/selftest/sabotage_timed.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

enum status __real_gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                              const float *weight, size_t M, size_t N, size_t K,
                              struct error *error);
enum status __wrap_gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                              const float *weight, size_t M, size_t N, size_t K,
                              struct error *error);

/* Sizes alone: a call that comes again allocates nothing when it does nothing. */
enum status __wrap_gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                              const float *weight, size_t M, size_t N, size_t K,
                              struct error *error) {
    const size_t arguments[] = {M, N, K};
    if (sabotage_leaves_out(arguments, sizeof arguments, NULL)) {
        return STATUS_OK;
    }
    return __real_gpu_matmul(matmul, out, in, weight, M, N, K, error);
}
