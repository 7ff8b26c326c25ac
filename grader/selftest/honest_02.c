#include "grader/selftest/honest_ways.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

enum status __real_gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M,
                                     size_t N, size_t K, device_stream stream, struct error *error);
enum status __wrap_gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M,
                                     size_t N, size_t K, device_stream stream, struct error *error);

struct gpu_matmul_launch_arguments {
    float *out;
    const float *in;
    const float *weight;
    size_t M;
    size_t N;
    size_t K;
};

static enum status do_gpu_matmul_launch(const void *arguments, device_stream stream,
                                        struct error *error) {
    const struct gpu_matmul_launch_arguments *a = arguments;
    return __real_gpu_matmul_launch(a->out, a->in, a->weight, a->M, a->N, a->K, stream, error);
}

enum status __wrap_gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M,
                                     size_t N, size_t K, device_stream stream,
                                     struct error *error) {
    const struct gpu_matmul_launch_arguments a = {out, in, weight, M, N, K};
    return honest_around(do_gpu_matmul_launch, &a, stream, true, error);
}
