/* A problem of lab 02 in device memory. */
#include "labs/02_gpu_matmul/problem/case.h"

enum status gpu_matmul_buffers_create(struct gpu_matmul_buffers *buffers, struct matmul_shape s,
                                      size_t skew, bool guarded, struct error *error) {
    *buffers = (struct gpu_matmul_buffers){0};
    TRY(device_buffer_create(&buffers->out, s.M * s.N, guarded, skew, error));
    TRY(device_buffer_create(&buffers->in, s.M * s.K, guarded, skew, error));
    return device_buffer_create(&buffers->weight, s.N * s.K, guarded, skew, error);
}

void gpu_matmul_buffers_free(struct gpu_matmul_buffers *buffers) {
    device_buffer_free(&buffers->out);
    device_buffer_free(&buffers->in);
    device_buffer_free(&buffers->weight);
}

enum status gpu_matmul_buffers_put(struct gpu_matmul_buffers *buffers,
                                   const struct matmul_data *data, struct error *error) {
    TRY(device_buffer_put(&buffers->out, NULL, error));
    TRY(device_buffer_put(&buffers->in, data->in, error));
    return device_buffer_put(&buffers->weight, data->weight, error);
}

enum status gpu_matmul_buffers_get(const struct gpu_matmul_buffers *buffers, float *out,
                                   const char **wrong, struct error *error) {
    bool intact[3], changed[3];
    TRY(device_buffer_get(&buffers->out, out, &intact[0], &changed[0], error));
    TRY(device_buffer_get(&buffers->in, NULL, &intact[1], &changed[1], error));
    TRY(device_buffer_get(&buffers->weight, NULL, &intact[2], &changed[2], error));
    *wrong = !intact[0] || !intact[1] || !intact[2] ? "wrote outside of the output"
             : changed[1] || changed[2]             ? "changed its input"
                                                    : NULL;
    return STATUS_OK;
}
