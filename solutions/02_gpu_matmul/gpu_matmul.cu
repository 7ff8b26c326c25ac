/**
 * @file gpu_matmul.cu
 * @brief Solution of lab 02: the last step of the ladder, and the call with pooled buffers.
 *
 * The pool has one device buffer for each operand, which grows to the largest
 * size that was ever asked for. A model's sizes repeat with every token, so
 * after the first token nothing is allocated any more. Growing frees the old
 * buffer before it allocates the new one, so both are never held at once.
 *
 * The pool cannot avoid that the weights cross the bus in every call, because
 * the contract forbids remembering them. There is no page-locked staging
 * buffer: the CPU would have to copy every weight into it, and the driver does
 * the same already for pageable memory.
 */
#include "labs/02_gpu_matmul/gpu_matmul.h"

#include <stdlib.h>

#include "solutions/02_gpu_matmul/steps/ladder.h"

const struct gpu_matmul_step *gpu_matmul_ladder(size_t *count) {
    static const struct gpu_matmul_step steps[] = {
        {"v1_thread_an_output", gpu_matmul_v1_thread_an_output},
        {"v2_block_an_output", gpu_matmul_v2_block_an_output},
        {"v3_warp_an_output", gpu_matmul_v3_warp_an_output},
        {"v4_tile_a_warp", gpu_matmul_v4_tile_a_warp},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

enum status gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M, size_t N,
                              size_t K, device_stream stream, struct error *error) {
    return gpu_matmul_v4_tile_a_warp(out, in, weight, M, N, K, stream, error);
}

/* Device memory that only grows. */
struct pooled {
    float *d_data;
    size_t capacity; /* floats */
};

struct gpu_matmul {
    device_stream stream;
    struct pooled out, in, weight;
};

/* Makes room for count floats; on failure the buffer is empty. */
static enum status pooled_reserve(struct pooled *buffer, size_t count, struct error *error) {
    if (count <= buffer->capacity) {
        return STATUS_OK;
    }
    device_free(buffer->d_data);
    *buffer = {};
    TRY(device_alloc((void **)&buffer->d_data, count * sizeof(float), error));
    buffer->capacity = count;
    return STATUS_OK;
}

enum status gpu_matmul_create(struct gpu_matmul **matmul, struct error *error) {
    *matmul = (struct gpu_matmul *)calloc(1, sizeof **matmul);
    if (*matmul == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = device_stream_create(&(*matmul)->stream, error);
    if (status != STATUS_OK) {
        gpu_matmul_destroy(*matmul);
        *matmul = NULL;
    }
    return status;
}

void gpu_matmul_destroy(struct gpu_matmul *matmul) {
    if (matmul != NULL) {
        device_free(matmul->out.d_data);
        device_free(matmul->in.d_data);
        device_free(matmul->weight.d_data);
        device_stream_destroy(matmul->stream);
        free(matmul);
    }
}

static enum status reserve(struct gpu_matmul *matmul, size_t M, size_t N, size_t K,
                           struct error *error) {
    TRY(pooled_reserve(&matmul->in, M * K, error));
    TRY(pooled_reserve(&matmul->weight, N * K, error));
    return pooled_reserve(&matmul->out, M * N, error);
}

enum status gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in, const float *weight,
                       size_t M, size_t N, size_t K, struct error *error) {
    device_stream stream = matmul->stream;
    TRY(reserve(matmul, M, N, K, error));
    TRY(device_write(matmul->in.d_data, in, M * K * sizeof(float), stream, error));
    TRY(device_write(matmul->weight.d_data, weight, N * K * sizeof(float), stream, error));
    TRY(gpu_matmul_launch(matmul->out.d_data, matmul->in.d_data, matmul->weight.d_data, M, N, K,
                          stream, error));
    return device_read(out, matmul->out.d_data, M * N * sizeof(float), stream, error);
}
