/* One shape of the bench on the GPU. */
#include "labs/02_gpu_matmul/bench/trial.h"

#include <stdio.h>
#include <stdlib.h>

#include "labs/02_gpu_matmul/gpu_matmul.h"

enum status matmul_trial_create(void *trial, const struct ladder_setup *setup,
                                const struct ladder_shape *shape, struct error *error) {
    struct matmul_trial *t = trial;
    struct rng rng = rng_create(1);
    const struct matmul_shape s = matmul_shape_of(shape);
    (void)setup;
    t->got = malloc(s.M * s.N * sizeof *t->got);
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    TRY(matmul_data_create(&t->data, s, 0, MATMUL_NORMAL, &rng, error));
    TRY(gpu_matmul_buffers_create(&t->buffers, s, 0, false, error));
    return gpu_matmul_buffers_put(&t->buffers, &t->data, error);
}

void matmul_trial_free(void *trial) {
    struct matmul_trial *t = trial;
    gpu_matmul_buffers_free(&t->buffers);
    matmul_data_free(&t->data);
    free(t->got);
}

enum status matmul_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                             struct error *error) {
    size_t count;
    const struct matmul_trial *t = trial;
    const struct gpu_matmul_buffers *b = &t->buffers;
    return gpu_matmul_ladder(&count)[step].run(b->out.data, b->in.data, b->weight.data, rows,
                                               t->data.shape.N, t->data.shape.K, stream, error);
}

enum status matmul_trial_check(void *trial, size_t step, char *wrong, size_t size,
                               struct error *error) {
    struct matmul_trial *t = trial;
    bool intact, changed;
    char text[300];
    TRY(device_buffer_put(&t->buffers.out, NULL, error));
    TRY(matmul_trial_run(trial, step, t->data.shape.M, NULL, error));
    TRY(device_buffer_get(&t->buffers.out, t->got, &intact, &changed, error));
    const bool right = matmul_check(&t->data, t->got, text, sizeof text);
    snprintf(wrong, size, "%s", right ? "" : text);
    return STATUS_OK;
}
