/* A problem of lab 04 in device memory. */
#include "labs/04_sgemm/problem/case.h"

enum status sgemm_buffers_create(struct sgemm_buffers *buffers, struct sgemm_shape s, size_t skew,
                                 bool guarded, struct error *error) {
    *buffers = (struct sgemm_buffers){0};
    TRY(device_buffer_create(&buffers->a, s.M * s.K, guarded, skew, error));
    TRY(device_buffer_create(&buffers->b, s.N * s.K, guarded, skew, error));
    return device_buffer_create(&buffers->c, s.M * s.N, guarded, skew, error);
}

void sgemm_buffers_free(struct sgemm_buffers *buffers) {
    device_buffer_free(&buffers->a);
    device_buffer_free(&buffers->b);
    device_buffer_free(&buffers->c);
}

enum status sgemm_buffers_put(struct sgemm_buffers *buffers, const struct sgemm_data *data,
                              struct error *error) {
    TRY(device_buffer_put(&buffers->a, data->A, error));
    TRY(device_buffer_put(&buffers->b, data->B, error));
    return device_buffer_put(&buffers->c, data->C, error);
}

struct sgemm_problem sgemm_buffers_problem(const struct sgemm_buffers *buffers,
                                           const struct sgemm_data *data) {
    return (struct sgemm_problem){.M = data->shape.M,
                                  .N = data->shape.N,
                                  .K = data->shape.K,
                                  .form = data->variant.form,
                                  .alpha = data->variant.alpha,
                                  .beta = data->variant.beta,
                                  .A = buffers->a.data,
                                  .B = buffers->b.data,
                                  .C = buffers->c.data};
}

enum status sgemm_buffers_get(const struct sgemm_buffers *buffers, float *C, const char **wrong,
                              struct error *error) {
    bool intact[3], changed[3];
    TRY(device_buffer_get(&buffers->c, C, &intact[0], &changed[0], error));
    TRY(device_buffer_get(&buffers->a, NULL, &intact[1], &changed[1], error));
    TRY(device_buffer_get(&buffers->b, NULL, &intact[2], &changed[2], error));
    *wrong = !intact[0] || !intact[1] || !intact[2] ? "wrote outside of the output"
             : changed[1]                           ? "changed its input A"
             : changed[2]                           ? "changed its input B"
                                                    : NULL;
    return STATUS_OK;
}
