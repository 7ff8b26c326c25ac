/* AdamW in the bench. */
#include <stdio.h>

#include "labs/11_training/bench/problem.h"

enum { WEIGHTS, GRADIENT, M, V, COPY, TENSORS };

/* Different parameters: more of them repeat the first ones. */
#define PERIOD ((size_t)1 << 20)

static size_t period_of(size_t count) {
    return count < PERIOD ? count : PERIOD;
}

/* Parameters from `first` on, at most a period of them. */
static void choose(struct bench_adamw *a, size_t first) {
    struct adamw_spec *spec = &a->first.spec;
    size_t decayed = a->decayed > first ? a->decayed - first : 0;
    spec->count = period_of(a->count - first);
    spec->decayed = decayed < spec->count ? decayed : spec->count;
}

/* All but a thousandth decay, as in BERT: norms and biases are few. */
static enum status create(struct bench_problem *p, const struct ladder_shape *s,
                          struct error *error) {
    struct bench_adamw *a = &p->adamw;
    struct adamw_case *c = &a->first;
    const struct tensor *const tensors[TENSORS] = {&c->weights, &c->gradient, &c->m, &c->v,
                                                   &c->copy};
    struct rng rng = rng_create(2);
    a->count = s->sizes[0];
    a->decayed = a->count - a->count / 1000;
    struct adamw_spec spec = adamw_spec_usual(period_of(a->count), 0);
    spec.copy = s->dtype == NN_BF16;
    spec.scale = 0.7;
    TRY(adamw_case_create(c, &spec, false, error));
    TRY(adamw_case_draw(c, &rng, error));
    for (int i = 0; i < TENSORS; i++) {
        TRY(bench_repeated_create(&a->tensors[i], tensors[i], a->count, error));
        TRY(bench_repeated_fill(&a->tensors[i], error));
    }
    return STATUS_OK;
}

static void free_problem(struct bench_problem *p) {
    for (int i = 0; i < TENSORS; i++) {
        bench_repeated_free(&p->adamw.tensors[i]);
    }
    adamw_case_free(&p->adamw.first);
}

static enum status run(struct bench_problem *p, const struct training_functions *functions,
                       size_t rows, device_stream stream, struct error *error) {
    const struct bench_adamw *a = &p->adamw;
    struct adamw_problem problem = adamw_case_problem(&a->first);
    problem.weights = a->tensors[WEIGHTS].device;
    problem.gradient = a->tensors[GRADIENT].device;
    problem.m = a->tensors[M].device;
    problem.v = a->tensors[V].device;
    problem.copy = a->first.spec.copy ? a->tensors[COPY].device : NULL;
    problem.count = rows;
    problem.decayed = a->decayed < rows ? a->decayed : rows;
    return functions->adamw(&problem, stream, error);
}

static enum status check_period(struct bench_adamw *a, size_t first, char *wrong, size_t size,
                                struct error *error) {
    choose(a, first);
    for (int i = 0; i < TENSORS; i++) {
        TRY(bench_repeated_fetch(&a->tensors[i], first, error));
    }
    return adamw_case_check(&a->first, wrong, size, error);
}

/* The first parameters, those where decay ends, and the last. */
static enum status check(struct bench_problem *p, const struct training_functions *functions,
                         char *wrong, size_t size, struct error *error) {
    struct bench_adamw *a = &p->adamw;
    const size_t period = a->first.weights.count;
    const size_t firsts[] = {0, a->decayed / period, (a->count - 1) / period};
    TRY(adamw_case_send(&a->first, error));
    for (int i = 0; i < TENSORS; i++) {
        TRY(bench_repeated_fill(&a->tensors[i], error));
    }
    TRY(run(p, functions, a->count, NULL, error));
    wrong[0] = '\0';
    for (int i = 0; i < 3 && wrong[0] == '\0'; i++) {
        bool again = i > 0 && firsts[i] == firsts[i - 1];
        if (!again && firsts[i] * period < a->count) {
            TRY(check_period(a, firsts[i] * period, wrong, size, error));
        }
    }
    return STATUS_OK;
}

static void describe(const struct ladder_shape *s, char *text, size_t size) {
    snprintf(text, size, "%zu parameters", s->sizes[0]);
}

static double flops(const struct ladder_shape *s) {
    return 16.0 * (double)s->sizes[0];
}

/* weights, m and v in and out, the gradient in, the copy out. */
static double bytes(const struct ladder_shape *s) {
    return (s->dtype == NN_BF16 ? 30.0 : 28.0) * (double)s->sizes[0];
}

static double memory(const struct ladder_shape *s) {
    return (s->dtype == NN_BF16 ? 18.0 : 16.0) * (double)(s->sizes[0] + period_of(s->sizes[0]));
}

static bool differ(const struct training_functions *a, const struct training_functions *b) {
    return a->adamw != b->adamw;
}

const struct bench_function bench_adamw = {
    .name = "adamw", .flag = "adamw", .example = "PARAMETERS", BENCH_FUNCTIONS};
