/* A problem of lab 01 in a worker. */
#include "grader/01_cpu_matmul/remote.h"

enum status remote_matmul_create(struct remote_matmul *buffers, struct matmul_shape s, size_t skew,
                                 struct error *error) {
    *buffers = (struct remote_matmul){0};
    TRY(remote_buffer_create(&buffers->out, s.M * s.N, skew, error));
    TRY(remote_buffer_create(&buffers->in, s.M * s.K, skew, error));
    return remote_buffer_create(&buffers->weight, s.N * s.K, skew, error);
}

void remote_matmul_free(struct remote_matmul *buffers) {
    remote_buffer_free(&buffers->out);
    remote_buffer_free(&buffers->in);
    remote_buffer_free(&buffers->weight);
}

void remote_matmul_put(struct remote_matmul *buffers, const struct matmul_data *data) {
    remote_buffer_put(&buffers->out, NULL);
    remote_buffer_put(&buffers->in, data->in);
    remote_buffer_put(&buffers->weight, data->weight);
}

enum status remote_matmul_get(const struct remote_matmul *buffers, float *out, const char **wrong,
                              struct error *error) {
    bool intact[3], changed[3];
    TRY(remote_buffer_get(&buffers->out, out, &intact[0], &changed[0], error));
    TRY(remote_buffer_get(&buffers->in, NULL, &intact[1], &changed[1], error));
    TRY(remote_buffer_get(&buffers->weight, NULL, &intact[2], &changed[2], error));
    *wrong = !intact[0] || !intact[1] || !intact[2] ? "wrote outside of the output"
             : changed[1] || changed[2]             ? "changed its input"
                                                    : NULL;
    return STATUS_OK;
}
