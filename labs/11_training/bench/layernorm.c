/* LayerNorm's gradient in the bench. */
#include <stdio.h>

#include "labs/11_training/bench/problem.h"

static enum status create(struct bench_problem *p, const struct ladder_shape *s,
                          struct error *error) {
    struct bench_layernorm *l = &p->layernorm;
    struct rng rng = rng_create(1);
    const struct norm_spec spec = {.dtype = (enum nn_dtype)s->dtype,
                                   .rows = s->sizes[0],
                                   .C = s->sizes[1],
                                   .mean = 0.3,
                                   .share = 2e-5};
    TRY(norm_case_create(&l->all, &spec, false, error));
    TRY(norm_case_draw(&l->all, &rng, error));
    return device_alloc(&l->workspace, TRAINING_WORKSPACE_BYTES, error);
}

static void free_problem(struct bench_problem *p) {
    norm_case_free(&p->layernorm.all);
    device_free(p->layernorm.workspace);
}

static enum status run(struct bench_problem *p, const struct training_functions *functions,
                       size_t rows, device_stream stream, struct error *error) {
    struct layernorm_backward_problem problem = norm_case_problem(&p->layernorm.all);
    problem.rows = rows;
    return functions->layernorm_backward(&problem, p->layernorm.workspace, stream, error);
}

static enum status check(struct bench_problem *p, const struct training_functions *functions,
                         char *wrong, size_t size, struct error *error) {
    struct norm_case *all = &p->layernorm.all;
    TRY(norm_case_send(all, error));
    TRY(run(p, functions, all->spec.rows, NULL, error));
    return norm_case_check(all, wrong, size, error);
}

static void describe(const struct ladder_shape *s, char *text, size_t size) {
    snprintf(text, size, "%zux%zu", s->sizes[0], s->sizes[1]);
}

static double elements(const struct ladder_shape *s) {
    return (double)s->sizes[0] * (double)s->sizes[1];
}

/* xhat 2, g 1, their sums 3, the columns' 3, din 4. */
static double flops(const struct ladder_shape *s) {
    return 13.0 * elements(s);
}

/* in, dout, din; statistics; weight; and the gradients of weight and bias, read and written. */
static double bytes(const struct ladder_shape *s) {
    return 3.0 * elements(s) * (double)nn_dtype_bytes((enum nn_dtype)s->dtype) +
           8.0 * (double)s->sizes[0] + 20.0 * (double)s->sizes[1];
}

static double memory(const struct ladder_shape *s) {
    return bytes(s) + (double)TRAINING_WORKSPACE_BYTES;
}

static bool differ(const struct training_functions *a, const struct training_functions *b) {
    return a->layernorm_backward != b->layernorm_backward;
}

const struct bench_function bench_layernorm = {
    .name = "layernorm_backward", .flag = "layernorm", .example = "ROWS,C", BENCH_FUNCTIONS};
