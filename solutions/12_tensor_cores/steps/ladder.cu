/**
 * @file ladder.cu
 * @brief What the hosts of all steps share: what a problem may be, and the parameters of an
 * epilogue.
 */
#include "solutions/12_tensor_cores/steps/ladder.h"

#include <stdint.h>

#include "common/cuda/gpu_limits.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

static bool is_16_bits(enum nn_dtype dtype) {
    return dtype == NN_F16 || dtype == NN_BF16;
}

static enum status check_sizes(const struct gemm16_problem *p, struct error *error) {
    const size_t sizes[] = {p->M, p->N, p->K};
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > GEMM16_MAX_SIZE) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "gemm16: %c = %zu is above %zu",
                             "MNK"[i], sizes[i], GEMM16_MAX_SIZE);
        }
    }
    return STATUS_OK;
}

enum status gemm16_check(const struct gemm16_problem *p, struct error *error) {
    if (!is_16_bits(p->dtype)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: dtype is fp16 or bf16, not %d (enum nn_dtype)", (int)p->dtype);
    }
    if (p->out_dtype != p->dtype && p->out_dtype != NN_F32) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: out_dtype is that of in, or fp32, not %d (enum nn_dtype)",
                         (int)p->out_dtype);
    }
    if (p->residual_is_float && p->out_dtype != NN_F32) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: an fp32 residual needs an fp32 result");
    }
    if (p->activate && ((int)p->f < NN_GELU || (int)p->f > NN_RELU)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: f = %d is none of enum nn_activation", (int)p->f);
    }
    return check_sizes(p, error);
}

enum status gemm16_check_workspace(const void *workspace, struct error *error) {
    return workspace != NULL && (uintptr_t)workspace % 256 == 0
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "gemm16: workspace %p, where %zu bytes of device memory should be, "
                           "256-byte aligned",
                           workspace, GEMM16_WORKSPACE_BYTES);
}

struct gemm16_gpu gemm16_gpu_of_this_thread(void) {
    const struct gpu_limits limits = gpu_limits();
    return {limits.major, limits.multiprocessors, limits.shared_bytes};
}

enum status gemm16_needs(int code, const char *step, struct error *error) {
    int major = gpu_limits().major;
    return major * 10 >= code
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "gemm16: %s needs code for compute capability %d.0 or more, this GPU "
                           "runs code for %d.x",
                           step, code / 10, major);
}

enum status gemm16_needs_code(bool is_there, const char *step, struct error *error) {
    return is_there && gpu_limits().major == 9
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "gemm16: %s needs a Hopper GPU and code for compute_90a, this GPU runs "
                           "code for %d.x",
                           step, gpu_limits().major);
}

struct gemm16_epilogue gemm16_epilogue_of(const struct gemm16_problem *p) {
    struct gemm16_epilogue f;
    f.bias = p->bias;
    f.residual = p->residual;
    f.out = p->out;
    f.M = p->M;
    f.N = p->N;
    f.activation = p->activate ? (int)p->f : -1;
    f.out_is_float = p->out_dtype == NN_F32;
    f.bias_is_float = p->bias_is_float;
    f.residual_is_float = p->residual_is_float;
    uintptr_t addresses = (uintptr_t)p->bias | (uintptr_t)p->residual | (uintptr_t)p->out;
    f.vector = addresses % 16 == 0 && p->N % 8 == 0;
    return f;
}

bool gemm16_has_whole_pieces(const struct gemm16_problem *p) {
    size_t in_row = p->in_is_transposed ? p->M : p->K;
    size_t weight_row = p->weight_is_transposed ? p->N : p->K;
    return ((uintptr_t)p->in | (uintptr_t)p->weight) % 16 == 0 && in_row % 8 == 0 &&
           weight_row % 8 == 0;
}
