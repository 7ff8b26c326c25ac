/* One operation's data on the GPU: few different rows, as often as M asks for. */
#include "labs/06_fused_epilogues/bench/trial.h"

#include <stdlib.h>

#include "common/bench/device/device_launches.h"
#include "labs/04_sgemm/sgemm.h"

enum { DIFFERENT_ROWS = 8 };

enum status fused_trial_create(void *trial, const struct ladder_setup *setup,
                               const struct ladder_shape *shape, struct error *error) {
    (void)setup;
    struct fused_trial *t = trial;
    struct rng rng = rng_create(7);
    const size_t M = shape->sizes[0], N = shape->sizes[1];
    const size_t rows = M < DIFFERENT_ROWS ? M : DIFFERENT_ROWS;
    t->c = (struct fused_case){.op = (enum fused_op)shape->op,
                               .shape = {rows, N, shape->sizes[2]},
                               .flavour = {.f = NN_GELU, .eps = 1e-12f},
                               .rows = M};
    t->got = malloc(rows * N * sizeof(float));
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the results");
    }
    TRY(device_alloc(&t->workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(t->workspace, 0, FUSED_ZERO_BYTES, NULL, error));
    TRY(fused_case_create(&t->c, &rng, false, error));
    return device_synchronize(NULL, error);
}

void fused_trial_free(void *trial) {
    struct fused_trial *t = trial;
    fused_case_free(&t->c);
    device_free(t->workspace);
    free(t->got);
}

enum status fused_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                            struct error *error) {
    size_t count;
    const struct fused_trial *t = trial;
    struct fused_problem problem = t->c.problem;
    problem.M = rows;
    return fused_epilogues_ladder(&count)[step].run(&problem, t->workspace, stream, error);
}

enum status fused_trial_matmul(void *trial, device_stream stream, struct error *error) {
    const struct fused_trial *t = trial;
    const struct fused_problem *p = &t->c.problem;
    const struct sgemm_problem product = {.M = p->M,
                                          .N = p->N,
                                          .K = p->K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .A = p->in,
                                          .B = p->weight,
                                          .C = p->out};
    return sgemm(&product, (char *)t->workspace + FUSED_ZERO_BYTES, stream, error);
}

static enum status run_counted(void *trial, device_stream stream, struct error *error) {
    const struct fused_trial *t = trial;
    return fused_trial_run(trial, t->step, t->c.problem.M, stream, error);
}

enum status fused_trial_launches(void *trial, size_t step, double *launches, struct error *error) {
    struct fused_trial *t = trial;
    size_t count;
    t->step = step;
    TRY(device_count_launches(run_counted, t, &count, error));
    *launches = (double)count;
    return STATUS_OK;
}

/* Compares rows of one result from `first` on, a multiple of the number of different rows. */
static enum status check_rows(const struct fused_trial *t, enum fused_buffer which, size_t first,
                              char *wrong, size_t size, struct error *error) {
    const struct fused_shape *s = &t->c.shape;
    if (wrong[0] != '\0') {
        return STATUS_OK;
    }
    TRY(device_read(t->got, t->c.buffers[which].data + first * s->N, s->M * s->N * sizeof(float),
                    NULL, error));
    fused_compare(&t->c.data, t->got, which == FUSED_SUM, wrong, size);
    return STATUS_OK;
}

enum status fused_trial_check(void *trial, size_t step, char *wrong, size_t size,
                              struct error *error) {
    const struct fused_trial *t = trial;
    const struct device_buffer *out = &t->c.buffers[FUSED_OUT], *sum = &t->c.buffers[FUSED_SUM];
    const size_t rows = t->c.shape.M, last = (t->c.problem.M / rows - 1) * rows;
    wrong[0] = '\0';
    /* Bytes of ones are NaN: an element that nobody writes is found. */
    TRY(device_set(out->data, 0xff, out->bytes, NULL, error));
    if (t->c.op == FUSED_ADD_KEEP_NORM) {
        TRY(device_set(sum->data, 0xff, sum->bytes, NULL, error));
    }
    TRY(fused_trial_run(trial, step, t->c.problem.M, NULL, error));
    TRY(check_rows(t, FUSED_OUT, 0, wrong, size, error));
    TRY(check_rows(t, FUSED_OUT, last, wrong, size, error));
    return t->c.op == FUSED_ADD_KEEP_NORM ? check_rows(t, FUSED_SUM, last, wrong, size, error)
                                          : STATUS_OK;
}
