/* AdamW in the bench. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/train/train_engine.h"
#include "labs/11_training/bench/parts.h"

enum { WEIGHTS, GRADIENT, M, V, SCALE, COPY, TENSORS };

/* Parameters that are compared in each of three places; of all, so many are different. */
enum { CHECKED = 4096, DIFFERENT = 1 << 20 };

static const struct train_adamw rates = {
    .rate = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .decay = 0.01f, .step = 10};

static size_t count_of(const struct bench_shape *s) {
    return s->sizes[0];
}

/* All but a thousandth, as in BERT: norms and biases are few. */
static size_t decayed_of(const struct bench_shape *s) {
    return count_of(s) - count_of(s) / 1000;
}

static enum status create(struct bench_case *c, struct error *error) {
    struct rng rng = rng_create(2);
    struct bench_tensor *t = c->tensors;
    for (int i = 0; i < TENSORS; i++) {
        size_t count = i == SCALE ? 1 : count_of(&c->shape);
        bool wanted = i != COPY || c->dtype == NN_BF16;
        TRY(bench_tensor_create(&t[i], i == COPY ? NN_BF16 : NN_F32, wanted ? count : 0, DIFFERENT,
                                error));
    }
    TRY(bench_tensor_draw(&t[GRADIENT], &rng, 0.0, 0.01, error));
    return bench_tensor_draw(&t[SCALE], &rng, 0.7, 0.0, error);
}

static void destroy(struct bench_case *c) {
    for (int i = 0; i < TENSORS; i++) {
        bench_tensor_free(&c->tensors[i]);
    }
}

static enum status run(struct bench_case *c, size_t rows, device_stream stream,
                       struct error *error) {
    const struct bench_tensor *t = c->tensors;
    size_t decayed = decayed_of(&c->shape);
    const struct adamw_problem problem = {.weights = t[WEIGHTS].device,
                                          .copy = t[COPY].device,
                                          .gradient = t[GRADIENT].device,
                                          .m = t[M].device,
                                          .v = t[V].device,
                                          .count = rows,
                                          .decayed = decayed < rows ? decayed : rows,
                                          .scale = t[SCALE].device,
                                          .rate = rates.rate,
                                          .beta1 = rates.beta1,
                                          .beta2 = rates.beta2,
                                          .eps = rates.eps,
                                          .decay = rates.decay,
                                          .step = rates.step};
    return c->functions->adamw(&problem, stream, error);
}

/* Weights and moments as they are before the step that is checked. */
static enum status renew(struct bench_case *c, struct error *error) {
    struct rng rng = rng_create(3);
    struct bench_tensor *t = c->tensors;
    TRY(bench_tensor_draw(&t[WEIGHTS], &rng, 0.0, 0.02, error));
    TRY(bench_tensor_draw(&t[M], &rng, 0.0, 0.001, error));
    return bench_tensor_draw(&t[V], &rng, 1e-4, 1e-5, error);
}

/* Parameters from `first` on, as they were before and, in place, as they must be then. */
struct part {
    size_t first, count;
    double weights[CHECKED], m[CHECKED], v[CHECKED], gradient[CHECKED], copy[CHECKED];
};

static void copy_out(double *to, const struct bench_tensor *t, const struct part *part) {
    for (size_t i = 0; i < part->count; i++) {
        to[i] = t->values[(part->first + i) % t->period];
    }
}

static enum status expect(const struct bench_case *c, struct part *part) {
    struct train_engine reference;
    const struct bench_tensor *t = c->tensors;
    size_t decayed = decayed_of(&c->shape), first = part->first;
    copy_out(part->weights, &t[WEIGHTS], part);
    copy_out(part->gradient, &t[GRADIENT], part);
    copy_out(part->m, &t[M], part);
    copy_out(part->v, &t[V], part);
    struct train_adamw adamw = rates;
    adamw.weights = part->weights;
    adamw.copy = part->copy;
    adamw.gradient = part->gradient;
    adamw.m = part->m;
    adamw.v = part->v;
    adamw.scale = t[SCALE].values;
    adamw.count = part->count;
    adamw.decayed = decayed <= first ? 0 : decayed - first;
    adamw.decayed = adamw.decayed < part->count ? adamw.decayed : part->count;
    TRY(train_reference_create(&reference));
    enum status status = reference.adamw(reference.context, &adamw);
    train_engine_destroy(&reference);
    return status;
}

static enum status check_part(struct bench_case *c, struct part *part, char *wrong, size_t size,
                              struct error *error) {
    const struct bench_tensor *t = c->tensors;
    size_t n = part->count, first = part->first;
    TRY(expect(c, part));
    TRY(bench_tensor_check(&t[WEIGHTS], "weights", part->weights, first, 1, n, n, 1e-6, wrong, size,
                           error));
    TRY(bench_tensor_check(&t[M], "m", part->m, first, 1, n, n, 1e-6, wrong, size, error));
    TRY(bench_tensor_check(&t[V], "v", part->v, first, 1, n, n, 1e-6, wrong, size, error));
    if (c->dtype != NN_BF16) {
        return STATUS_OK;
    }
    double rounding = nn_dtype_rounding(NN_BF16);
    return bench_tensor_check(&t[COPY], "copy", part->copy, first, 1, n, n, rounding, wrong, size,
                              error);
}

/* The first parameters, those where decay ends, and the last. */
static enum status check(struct bench_case *c, char *wrong, size_t size, struct error *error) {
    size_t count = count_of(&c->shape), decayed = decayed_of(&c->shape);
    size_t most = count < CHECKED ? count : CHECKED;
    const size_t firsts[] = {0, decayed < most / 2 ? 0 : decayed - most / 2, count - most};
    struct part *part = malloc(sizeof *part);
    enum status status = part != NULL ? renew(c, error) : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK && c->dtype == NN_BF16) {
        status = bench_tensor_poison(&c->tensors[COPY], error);
    }
    if (status == STATUS_OK) {
        status = run(c, count, NULL, error);
    }
    wrong[0] = '\0';
    for (int i = 0; i < 3 && status == STATUS_OK && wrong[0] == '\0'; i++) {
        part->first = firsts[i];
        part->count = most < count - firsts[i] ? most : count - firsts[i];
        status = check_part(c, part, wrong, size, error);
    }
    free(part);
    return status;
}

static void describe(const struct bench_shape *s, char *text, size_t size) {
    snprintf(text, size, "%zu parameters", count_of(s));
}

static double flops(const struct bench_shape *s) {
    return 16.0 * (double)count_of(s);
}

/* weights, m and v in and out, the gradient in, the copy out. */
static double bytes(const struct bench_shape *s, enum nn_dtype dtype) {
    return (dtype == NN_BF16 ? 30.0 : 28.0) * (double)count_of(s);
}

static double memory(const struct bench_shape *s, enum nn_dtype dtype) {
    return (dtype == NN_BF16 ? 18.0 : 16.0) * (double)count_of(s);
}

static bool differ(const struct training_functions *a, const struct training_functions *b) {
    return a->adamw != b->adamw;
}

const struct bench_function bench_adamw = {.name = "adamw",
                                           .flag = "adamw",
                                           .example = "PARAMETERS",
                                           .sizes = 1,
                                           .unit = "GB/s",
                                           .create = create,
                                           .destroy = destroy,
                                           .run = run,
                                           .check = check,
                                           .describe = describe,
                                           .flops = flops,
                                           .bytes = bytes,
                                           .memory = memory,
                                           .differ = differ};
