/* One shape of the bench on the GPU. */
#include "labs/04_sgemm/bench/trial.h"

#include <stdio.h>
#include <stdlib.h>

/* Products of the rows that are checked, about: a second of one core. */
#define CHECKED_PRODUCTS ((size_t)1 << 27)

static enum status upload(struct sgemm_trial *t, struct error *error) {
    const struct sgemm_shape *s = &t->data.shape;
    const size_t bytes[] = {s->M * s->K * sizeof(float), s->N * s->K * sizeof(float),
                            s->M * s->N * sizeof(float), SGEMM_WORKSPACE_BYTES};
    void **memory[] = {&t->A, &t->B, &t->C, &t->workspace};
    for (int i = 0; i < 4; i++) {
        TRY(device_alloc(memory[i], bytes[i], error));
    }
    TRY(device_write(t->A, t->data.A, bytes[0], NULL, error));
    return device_write(t->B, t->data.B, bytes[1], NULL, error);
}

enum status sgemm_trial_create(void *trial, const struct ladder_setup *setup,
                               const struct ladder_shape *shape, struct error *error) {
    struct sgemm_trial *t = trial;
    struct rng rng = rng_create(1);
    const struct sgemm_shape s = sgemm_shape_of(shape);
    const struct sgemm_variant variant = {sgemm_form_of(setup), 1.0f, 0.0f, 0};
    const size_t rows = CHECKED_PRODUCTS / (s.N * s.K);
    t->cublas = setup->cublas;
    TRY(sgemm_data_create(&t->data, s, variant, SGEMM_UNIFORM, rows < 3 ? 3 : rows, &rng, error));
    t->got = malloc(s.N * sizeof *t->got);
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    TRY(upload(t, error));
    sgemm_data_free_operands(&t->data);
    return STATUS_OK;
}

void sgemm_trial_free(void *trial) {
    struct sgemm_trial *t = trial;
    device_free(t->A);
    device_free(t->B);
    device_free(t->C);
    device_free(t->workspace);
    sgemm_data_free(&t->data);
    free(t->got);
}

enum status sgemm_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                            struct error *error) {
    size_t count;
    const struct sgemm_trial *t = trial;
    const struct sgemm_problem problem = {.M = rows,
                                          .N = t->data.shape.N,
                                          .K = t->data.shape.K,
                                          .form = t->data.variant.form,
                                          .alpha = 1.0f,
                                          .A = t->A,
                                          .B = t->B,
                                          .C = t->C};
    return sgemm_ladder(&count)[step].run(&problem, t->workspace, stream, error);
}

enum status sgemm_trial_run_cublas(void *trial, device_stream stream, struct error *error) {
    const struct sgemm_trial *t = trial;
    const struct cublas_problem problem = {.M = t->data.shape.M,
                                           .N = t->data.shape.N,
                                           .K = t->data.shape.K,
                                           .b_transposed =
                                               t->data.variant.form == SGEMM_B_TRANSPOSED,
                                           .alpha = 1.0f,
                                           .A = t->A,
                                           .B = t->B,
                                           .C = t->C};
    return cublas_sgemm(t->cublas, &problem, t->workspace, SGEMM_WORKSPACE_BYTES, stream, error);
}

enum status sgemm_trial_check(void *trial, size_t step, char *wrong, size_t size,
                              struct error *error) {
    const struct sgemm_trial *t = trial;
    const struct sgemm_data *data = &t->data;
    const size_t M = data->shape.M, N = data->shape.N;
    wrong[0] = '\0';
    /* Bytes of ones are NaN: an element that nobody writes is found. */
    TRY(device_set(t->C, 0xff, M * N * sizeof(float), NULL, error));
    TRY(sgemm_trial_run(trial, step, M, NULL, error));
    for (size_t i = 0; i < data->rows && wrong[0] == '\0'; i++) {
        char text[256];
        const float *row = (const float *)t->C + data->row[i] * N;
        TRY(device_read(t->got, row, N * sizeof(float), NULL, error));
        if (!sgemm_check_row(data, i, t->got, text, sizeof text)) {
            snprintf(wrong, size, "row %zu: %s", data->row[i], text);
        }
    }
    return STATUS_OK;
}
