/* Attention's gradient in the bench: texts of one length, q, k and v as thirds of one matrix. */
#include <stdio.h>
#include <stdlib.h>

#include "labs/11_training/bench/problem.h"

enum { QKV, OUT, DOUT, LSE, DQKV, TENSORS };

/* Different texts, where B is a multiple of them, or else one; and how many times they are
 * compared, spread over all texts. */
enum { DIFFERENT = 2, CHECKED = 4 };

static enum status make_texts(struct bench_attention *a, const struct ladder_shape *s,
                              struct error *error) {
    struct rng rng = rng_create(4);
    const size_t NH = s->sizes[1], HS = s->sizes[3];
    const int32_t T = (int32_t)s->sizes[2];
    const enum nn_dtype dtype = (enum nn_dtype)s->dtype;
    /* bf16: p and ds are rounded before they multiply, the result once. */
    const double storage = dtype == NN_F32 ? 0.0 : 4.0 * nn_dtype_rounding(dtype);
    const double share = 5e-5 + storage;
    const struct attention_gradient_spec spec = {.dtype = dtype,
                                                 .NH = NH,
                                                 .KVH = NH,
                                                 .HS = HS,
                                                 .joined = true,
                                                 .packed = true,
                                                 .B = a->B % DIFFERENT == 0 ? DIFFERENT : 1,
                                                 .lengths = {T, T},
                                                 .loudness = 1.0,
                                                 .share = share,
                                                 .norm = 2.0 * share};
    TRY(attention_gradient_create(&a->texts, &spec, &rng, false, error));
    return attention_gradient_send(&a->texts, error);
}

static enum status make_starts(struct bench_attention *a, struct error *error) {
    const size_t bytes = (a->B + 1) * sizeof *a->starts;
    a->starts = malloc(bytes);
    if (a->starts == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t b = 0; b <= a->B; b++) {
        a->starts[b] = (int32_t)(b * a->texts.longest);
    }
    TRY(device_alloc((void **)&a->d_starts, bytes, error));
    return device_write(a->d_starts, a->starts, bytes, NULL, error);
}

static void *at(const struct bench_repeated *r, size_t element) {
    return (char *)r->device + element * nn_dtype_bytes(r->tensor->dtype);
}

/* The first texts. */
static struct attention_backward_problem problem_of(const struct bench_attention *a, size_t texts) {
    const struct bench_repeated *t = a->tensors;
    const size_t C = a->texts.spec.NH * a->texts.spec.HS;
    struct attention_backward_problem problem = attention_gradient_problem(&a->texts);
    problem.q = at(&t[QKV], 0);
    problem.k = at(&t[QKV], C);
    problem.v = at(&t[QKV], 2 * C);
    problem.out = t[OUT].device;
    problem.dout = t[DOUT].device;
    problem.lse = t[LSE].device;
    problem.dq = at(&t[DQKV], 0);
    problem.dk = at(&t[DQKV], C);
    problem.dv = at(&t[DQKV], 2 * C);
    problem.starts = a->d_starts;
    problem.host_starts = a->starts;
    problem.B = texts;
    problem.rows = texts * a->texts.longest;
    return problem;
}

static enum status create(struct bench_problem *p, const struct ladder_shape *s,
                          struct error *error) {
    struct bench_attention *a = &p->attention;
    struct attention_gradient_case *texts = &a->texts;
    const struct tensor *const tensors[TENSORS] = {&texts->qkv[0], &texts->out, &texts->dout,
                                                   &texts->lse, &texts->dqkv[0]};
    a->B = s->sizes[0];
    TRY(make_texts(a, s, error));
    TRY(make_starts(a, error));
    for (int i = 0; i < TENSORS; i++) {
        size_t count = a->B / texts->spec.B * tensors[i]->count;
        TRY(bench_repeated_create(&a->tensors[i], tensors[i], count, error));
        TRY(bench_repeated_fill(&a->tensors[i], error));
    }
    const struct attention_backward_problem problem = problem_of(a, a->B);
    return device_alloc(&a->scratch, attention_backward_scratch(&problem), error);
}

static void free_problem(struct bench_problem *p) {
    struct bench_attention *a = &p->attention;
    for (int i = 0; i < TENSORS; i++) {
        bench_repeated_free(&a->tensors[i]);
    }
    attention_gradient_free(&a->texts);
    device_free(a->scratch);
    device_free(a->d_starts);
    free(a->starts);
}

static enum status run(struct bench_problem *p, const struct training_functions *functions,
                       size_t rows, device_stream stream, struct error *error) {
    const struct attention_backward_problem problem = problem_of(&p->attention, rows);
    return functions->attention_backward(&problem, p->attention.scratch, stream, error);
}

/* Compares the different texts where they stand for the i-th time. */
static enum status check_texts(struct bench_attention *a, size_t i_th, char *wrong, size_t size,
                               struct error *error) {
    for (int i = 0; i < TENSORS; i++) {
        const struct bench_repeated *r = &a->tensors[i];
        TRY(bench_repeated_fetch(r, i_th * r->tensor->count, error));
    }
    return attention_gradient_check(&a->texts, wrong, size, error);
}

static enum status check(struct bench_problem *p, const struct training_functions *functions,
                         char *wrong, size_t size, struct error *error) {
    struct bench_attention *a = &p->attention;
    const size_t times = a->B / a->texts.spec.B, count = times < CHECKED ? times : CHECKED;
    TRY(attention_gradient_send(&a->texts, error));
    TRY(bench_repeated_fill(&a->tensors[DQKV], error)); /* NaN */
    TRY(run(p, functions, a->B, NULL, error));
    wrong[0] = '\0';
    for (size_t i = 0; i < count && wrong[0] == '\0'; i++) {
        TRY(check_texts(a, count < 2 ? 0 : (times - 1) * i / (count - 1), wrong, size, error));
    }
    return STATUS_OK;
}

static void describe(const struct ladder_shape *s, char *text, size_t size) {
    snprintf(text, size, "b%zu h%zu s%zu d%zu", s->sizes[0], s->sizes[1], s->sizes[2], s->sizes[3]);
}

/* Of a text: elements of q, of all heads, and elements of lse. */
static double elements(const struct ladder_shape *s) {
    return (double)s->sizes[1] * (double)s->sizes[2] * (double)s->sizes[3];
}

static double numbers(const struct ladder_shape *s) {
    return (double)s->sizes[1] * (double)s->sizes[2];
}

/* Five products of each pair of a query and a key: scores, dp, dq, dk, dv. */
static double flops(const struct ladder_shape *s) {
    return 10.0 * (double)s->sizes[0] * elements(s) * (double)s->sizes[2];
}

/* Of a text: q, k, v, out, dout and three gradients, and lse. */
static double text_bytes(const struct ladder_shape *s) {
    return 8.0 * elements(s) * (double)nn_dtype_bytes((enum nn_dtype)s->dtype) + 4.0 * numbers(s);
}

static double bytes(const struct ladder_shape *s) {
    return (double)s->sizes[0] * text_bytes(s);
}

/* All texts, those that are repeated, and scratch memory of both. */
static double memory(const struct ladder_shape *s) {
    double scratch = 8.0 * numbers(s) * (double)(s->sizes[2] + s->sizes[3] + 2);
    return (double)(s->sizes[0] + DIFFERENT) * (text_bytes(s) + scratch);
}

static bool differ(const struct training_functions *a, const struct training_functions *b) {
    return a->attention_backward != b->attention_backward;
}

const struct bench_function bench_attention = {.name = "attention_backward",
                                               .flag = "attention",
                                               .example = "B,NH,T,HS",
                                               .counts_flops = true,
                                               BENCH_FUNCTIONS};
